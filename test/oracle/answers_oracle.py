#!/usr/bin/env python3
"""Compares every post-processor with a reference written here from its definition (NumPy; OpenCV
for the boxes around text):

    test/oracle/answers_oracle.py BUILD_DIRECTORY [--all]

Prints "kind: N same, M different" a kind. Exit 0: no difference; 1: differences, the first ones
shown; 77: NumPy or OpenCV is missing (scripts/setup test installs them).
"""
import os
import struct
import subprocess
import sys
import tempfile

try:
    import cv2
    import numpy as np
except ImportError as missing:
    print(f"skipped: {missing} (scripts/setup test installs it)")
    sys.exit(77)

IS_ALL = "--all" in sys.argv
PROGRAM = os.path.join(os.path.abspath(sys.argv[1]), "oracle_prep_answers")
RANDOM = np.random.default_rng(7)
TIMES = 20 if IS_ALL else 1


def ours(kind, cases):
    """cases: (ints, floats) each -> an array of floats each"""
    with tempfile.TemporaryDirectory() as scratch:
        given, taken = os.path.join(scratch, "cases"), os.path.join(scratch, "out")
        with open(given, "wb") as file:
            for ints, floats in cases:
                ints = np.asarray(ints, dtype="<i4").ravel()
                floats = np.asarray(floats, dtype="<f4").ravel()
                file.write(struct.pack("<II", len(ints), len(floats)) + ints.tobytes() + floats.tobytes())
        subprocess.run([PROGRAM, kind, given, taken], check=True)
        with open(taken, "rb") as file:
            data = file.read()
    answers, at = [], 0
    for _ in cases:
        count = struct.unpack_from("<I", data, at)[0]
        answers.append(np.frombuffer(data, "<f4", count, at + 4))
        at += 4 + 4 * count
    assert at == len(data)
    return answers


class Score:
    def __init__(self, kind):
        self.kind, self.same, self.different = kind, 0, 0

    def add(self, is_same, *shown):
        self.same += bool(is_same)
        self.different += not is_same
        if not is_same and self.different <= 3:
            print(f"  {self.kind}:", *shown)


def compare(kind, program_kind, cases, expected, is_same):
    score = Score(kind)
    for case, got, want in zip(cases, ours(program_kind, cases), expected):
        score.add(is_same(got, want), "ints", list(case[0])[:24], "\n    got ", got[:24], "\n    want", np.asarray(want)[:24])
    return score


def close(got, want, tolerance=1e-6):
    want = np.asarray(want, dtype=np.float64)
    return got.shape == want.shape and np.allclose(got, want, rtol=tolerance, atol=tolerance, equal_nan=True)


# ---- softmax, sigmoid, the k best ----

def activations():
    cases, wants = [], []
    for i in range(400 * TIMES):
        count = int(RANDOM.integers(1, 200))
        values = (RANDOM.normal(size=count) * 10.0 ** RANDOM.integers(-3, 3)).astype(np.float32)
        if i % 7 == 0:
            values = np.round(values)  # ties
        if i % 11 == 0:
            values[RANDOM.integers(count)] = 3e38 * RANDOM.choice([-1, 1])
        kind, k = int(RANDOM.integers(3)), int(RANDOM.integers(count + 1))
        x = values.astype(np.float64)
        if kind == 1:
            e = np.exp(x - x.max())
            want = e / e.sum()
        elif kind == 2:
            with np.errstate(over="ignore"):
                want = 1 / (1 + np.exp(-x))
        else:
            want = x
        best = np.argsort(-values, kind="stable")[:k]
        cases.append(([kind, count, k], values))
        wants.append(np.concatenate([want, best]))
    return compare("activation and top-k", "activation", cases, wants, lambda g, w: close(g, w, 2e-6))


# ---- pooling ----

def pooling():
    cases, wants = [], []
    for _ in range(300 * TIMES):
        length, size = int(RANDOM.integers(1, 60)), int(RANDOM.integers(1, 400))
        hidden = RANDOM.normal(size=(length, size)).astype(np.float32)
        has_mask = RANDOM.random() < 0.8
        style = RANDOM.integers(4)
        mask = np.ones(length, dtype=np.int32)
        if has_mask:
            real = int(RANDOM.integers(0, length + 1))
            mask = (np.arange(length) < real).astype(np.int32)
            mask = [mask, mask[::-1], RANDOM.integers(0, 2, length), mask][style]
        kind, normalizes = int(RANDOM.integers(3)), int(RANDOM.integers(2))
        real = np.flatnonzero(mask)
        rows = hidden.astype(np.float64)
        if len(real) == 0:
            want = np.zeros(size)
        else:
            want = [rows[real].mean(axis=0), rows[real[0]], rows[real[-1]]][kind]
        if normalizes and np.linalg.norm(want) > 0:
            want = want / np.linalg.norm(want)
        cases.append(([kind, normalizes, int(has_mask), length, size, *mask], hidden))
        wants.append(want)
    return compare("pooling", "pooling", cases, wants, close)


# ---- detection ----

def iou(a, b):
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    inside = width * height
    return inside / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - inside)


def reference_detect(head, form, unit, background, agnostic, most, score_at, iou_at, scores, boxes, place):
    """-> rows of x1 y1 x2 y2 score class; straight from the definitions in docs/answers.md"""
    source_w, source_h, scaled_w, scaled_h, left, top, width, height = place
    if head == 0:
        candidates = [(float(s), a, c - background) for a, row in enumerate(scores)
                      for c, s in enumerate(row) if c >= background and s > score_at]
    else:
        if head == 1:
            boxes, classes = scores[:, :4], scores[:, 4:5] * scores[:, 5:]
            keep = scores[:, 4] > score_at
        else:
            boxes, classes = scores[:4].T, scores[4:].T
            keep = np.ones(len(classes), dtype=bool)
        form = 1
        candidates = [(float(row.max()), a, int(row.argmax())) for a, row in enumerate(classes)
                      if keep[a] and row.max() > score_at]
    candidates.sort(key=lambda c: (-c[0], c[1], c[2]))
    kept = []
    for score, anchor, label in candidates:
        if len(kept) == most:
            break
        b = np.array(boxes[anchor], dtype=np.float64)
        if form == 1:
            b = np.array([b[0] - b[2] / 2, b[1] - b[3] / 2, b[0] + b[2] / 2, b[1] + b[3] / 2])
        elif form == 2:
            b = np.array([b[0], b[1], b[0] + b[2], b[1] + b[3]])
        if unit == 1:
            b = b * [width, height, width, height]
        if not np.isfinite(b).all() or b[2] < b[0] or b[3] < b[1]:
            continue
        if all((not agnostic and other != label) or iou(k, b) <= iou_at for k, _, other in kept):
            kept.append((b, score, label))
    out = []
    for b, score, label in kept:
        x = np.clip((b[[0, 2]] - left) * source_w / scaled_w, 0, source_w)
        y = np.clip((b[[1, 3]] - top) * source_h / scaled_h, 0, source_h)
        out += [x[0], y[0], x[1], y[1], score, label]
    return np.array(out)


def placements():
    width, height = int(RANDOM.integers(64, 700)), int(RANDOM.integers(64, 700))
    source_w, source_h = int(RANDOM.integers(1, 3000)), int(RANDOM.integers(1, 3000))
    if RANDOM.random() < 0.5:
        return [source_w, source_h, width, height, 0, 0, width, height]
    ratio = min(width / source_w, height / source_h)
    scaled_w, scaled_h = max(1, round(source_w * ratio)), max(1, round(source_h * ratio))
    return [source_w, source_h, scaled_w, scaled_h, (width - scaled_w) // 2, (height - scaled_h) // 2, width, height]


def one_detect(head):
    anchors, classes = int(RANDOM.integers(1, 300)), int(RANDOM.integers(1, 6))
    place = placements()
    width, height = place[6], place[7]
    unit, form = int(RANDOM.integers(2)), int(RANDOM.integers(3)) if head == 0 else 1
    background = int(head == 0 and classes > 1 and RANDOM.random() < 0.5)
    scale = np.array([1, 1] if unit else [width, height])
    # objects, and several anchors near each, so that suppression has work
    centres = RANDOM.random((6, 2)) * scale
    sides = (0.05 + 0.3 * RANDOM.random((6, 2))) * scale
    pick = RANDOM.integers(6, size=anchors)
    c = centres[pick] + RANDOM.normal(size=(anchors, 2)) * 0.01 * scale
    s = sides[pick] * (1 + 0.1 * RANDOM.normal(size=(anchors, 2)))
    boxes = {0: np.hstack([c - s / 2, c + s / 2]), 1: np.hstack([c, s]), 2: np.hstack([c - s / 2, s])}[form]
    boxes = boxes.astype(np.float32)
    if RANDOM.random() < 0.2:
        boxes[RANDOM.integers(anchors)] = [[np.nan, 1, 2, 3], [np.inf, 0, 1, 1], [5, 5, 1, 1]][RANDOM.integers(3)]
    scores = RANDOM.random((anchors, classes)).astype(np.float32) ** 2
    if RANDOM.random() < 0.3:
        scores = (np.round(scores * 8) / 8).astype(np.float32)  # ties
    if head == 0:
        floats = [scores, boxes]
    elif head == 1:
        objectness = RANDOM.random((anchors, 1)).astype(np.float32)
        scores = np.hstack([boxes, objectness, scores]).astype(np.float32)
        floats = [scores]
    else:
        scores = np.ascontiguousarray(np.hstack([boxes, scores]).T)
        floats = [scores]
    agnostic, most = int(RANDOM.integers(2)), int(RANDOM.choice([0, 3, 50]))
    score_at, iou_at = np.float32(RANDOM.choice([0.05, 0.3, 0.65])), np.float32(RANDOM.choice([0.2, 0.4, 0.7]))
    ints = [head, form, unit, background, agnostic, 0, most, anchors, classes, *place]
    with np.errstate(all="ignore"):
        want = reference_detect(head, form, unit, background, agnostic, most or 300, score_at, iou_at,
                                scores, boxes, place)
    return (ints, np.concatenate([[score_at, iou_at], *[f.ravel() for f in floats]])), want


def detections(head, name):
    pairs = [one_detect(head) for _ in range(150 * TIMES)]
    return compare(name, "detect", [p[0] for p in pairs], [p[1] for p in pairs],
                   lambda g, w: g.shape == w.shape and np.allclose(g, w, rtol=1e-4, atol=0.02))


# ---- CTC ----

def ctc():
    cases, wants = [], []
    for _ in range(300 * TIMES):
        steps, classes = int(RANDOM.integers(0, 60)), int(RANDOM.integers(2, 30))
        blank = int(RANDOM.integers(classes))
        values = RANDOM.random((steps, classes)).astype(np.float32)
        winners = np.repeat(RANDOM.integers(classes, size=steps), 1 + RANDOM.integers(3, size=steps))[:steps]
        winners[RANDOM.random(steps) < 0.4] = blank
        if steps:
            values[np.arange(steps), winners] += 1
        text, scores = [], []
        for step in range(steps):
            if winners[step] != blank and (step == 0 or winners[step] != winners[step - 1]):
                text.append(winners[step])
                scores.append(values[step, winners[step]])
        cases.append(([blank, steps, classes], values))
        wants.append(np.array([np.mean(scores, dtype=np.float64) if scores else 0, *text]))
    return compare("ctc", "ctc", cases, wants, close)


# ---- boxes around text ----

def ordered(points):
    points = sorted(points.tolist(), key=lambda p: (p[0], p[1]))
    left, right = sorted(points[:2], key=lambda p: p[1]), sorted(points[2:], key=lambda p: p[1])
    return np.array([left[0], right[0], right[1], left[1]])


def reference_text_boxes(map_, at, box_at, ratio, least):
    """PaddleOCR's procedure with OpenCV's contours and rectangles"""
    contours, _ = cv2.findContours((map_ > at).astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    found = []
    for contour in contours:
        (cx, cy), (w, h), angle = cv2.minAreaRect(contour.reshape(-1, 1, 2).astype(np.float32))
        if min(w, h) < least:
            continue
        # Pixels whose centres lie inside. (cv2.fillPoly, which PaddleOCR uses here, rounds the
        # corners first and so takes in a rim of up to a pixel.)
        along = np.array([np.cos(np.radians(angle)), np.sin(np.radians(angle))])
        y, x = np.mgrid[:map_.shape[0], :map_.shape[1]]
        u = (x - cx) * along[0] + (y - cy) * along[1]
        v = (y - cy) * along[0] - (x - cx) * along[1]
        score = map_[(np.abs(u) <= w / 2 + 1e-3) & (np.abs(v) <= h / 2 + 1e-3)].mean()
        if score < box_at:
            continue
        grown = w * h * ratio / (2 * (w + h))
        if min(w, h) + 2 * grown < least + 2:
            continue
        box = ordered(cv2.boxPoints(((cx, cy), (w + 2 * grown, h + 2 * grown), angle)))
        found.append((box, score))
    return found


def text_map():
    height, width = int(RANDOM.integers(40, 400)), int(RANDOM.integers(40, 400))
    map_ = np.zeros((height, width), np.float32)
    taken = np.zeros((height, width), np.uint8)
    for _ in range(int(RANDOM.integers(0, 8))):
        w, h = RANDOM.integers(4, width // 2 + 5), RANDOM.integers(4, 30)
        angle = RANDOM.choice([0.0, 0.0, 3.0, 17.0, 45.0, 88.0])
        rect = ((float(RANDOM.integers(width)), float(RANDOM.integers(height))), (float(w), float(h)), float(angle))
        mask = np.zeros_like(taken)
        if RANDOM.random() < 0.2:
            cv2.ellipse(mask, rect, 1, -1)
        else:
            cv2.fillPoly(mask, [np.int32(cv2.boxPoints(rect))], 1)
        if (cv2.dilate(mask, np.ones((5, 5), np.uint8)) & taken).any():
            continue  # regions that touch are one region: another case
        is_cut = mask[0].any() or mask[-1].any() or mask[:, 0].any() or mask[:, -1].any()
        if angle and is_cut:
            continue  # a triangle has three smallest rectangles, with a score each
        taken |= mask
        map_[mask > 0] = RANDOM.choice([0.95, 0.9, 0.35])
    map_ += (RANDOM.random((height, width)) * 0.04).astype(np.float32)
    return map_


def boxes_of_text():
    cases, wants = [], []
    while len(cases) < 120 * TIMES:
        map_ = text_map()
        # Maps with a region at the edge of being kept say nothing: there the choice between two
        # rectangles of the same area decides.
        kept = [len(reference_text_boxes(map_, 0.3, score, 1.5, least)) for score, least in
                ((0.5, 2.6), (0.6, 3.0), (0.7, 3.4))]
        if len(set(kept)) > 1:
            continue
        height, width = map_.shape
        # A picture with 1,000 pixels around the map, so that nothing is cut off at its edge.
        place = [3000, 3000, 3000, 3000, -1000, -1000, width, height]
        cases.append(([0, width, height, *place], np.concatenate([[0.3, 0.6, 1.5, 3.0], map_.ravel()])))
        wants.append(reference_text_boxes(map_, 0.3, 0.6, 1.5, 3.0))

    def is_same(got, want):
        got = got.reshape(-1, 9)
        if len(got) != len(want):
            return False
        left = list(want)

        def is_near_tie(mine, theirs):
            """Another smallest rectangle around the same region, in the same place: no larger before it
            grew, and by how much one grows depends on its sides."""
            side = np.abs(theirs.max(axis=0) - theirs.min(axis=0)).min()
            return (cv2.contourArea(mine) <= 1.04 * cv2.contourArea(theirs.astype(np.float32)) and
                    np.linalg.norm(mine.mean(axis=0) - theirs.mean(axis=0)) < 0.25 * side)

        for row in got:
            mine = row[:8].reshape(4, 2) - 1000
            # A square's smallest rectangle has several orders of corners: compare as sets.
            near = [i for i, (b, s) in enumerate(left)
                    if (all(np.abs(b - p).max(axis=1).min() <= 1.0 for p in mine) and abs(s - row[8]) < 0.02)
                    or is_near_tie(mine, b)]
            if not near:
                return False
            left.pop(near[0])
        return True

    score = Score("text boxes")
    for case, got, want in zip(cases, ours("text_boxes", cases), wants):
        score.add(is_same(got, want), case[0], "\n    got ", got.reshape(-1, 9), "\n    want", want)
    return score


def main():
    if not os.path.exists(PROGRAM):
        sys.exit(f"{PROGRAM} is not built")
    scores = [activations(), pooling(), detections(0, "detect: scores and boxes"),
              detections(1, "detect: yolov5"), detections(2, "detect: yolov8"), ctc(), boxes_of_text()]
    for score in scores:
        print(f"{score.kind}: {score.same} same, {score.different} different")
    passed, failed = sum(s.same for s in scores), sum(s.different for s in scores)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
