"""PaddleOCR's three models on rendered text: lines are read exactly, text that stands on its head is
told from text that does not, boxes lie around the lines of a page, and the three in a chain read the
page. Each also against the model without pipeline, fed by NumPy and OpenCV."""
import io

from _harness import case, check, equal, main
from _ocr import LINES, characters, greedy, line_tensor, page, png, rendered
from _prep import PIL, ask, ask_picture, closest, cv2, np, serve, tally

READER, DETECTOR, CLASSIFIER = "ocr_recognizer", "ocr_detector", "ocr_classifier"
READABLE = [(name, size) for name in ("DejaVuSans.ttf", "DejaVuSerif.ttf") for size in (24, 32, 48)]
CLOSE = 1e-4  # of scores: the model sums in another order in another batch


def text_of(answer):
    return answer["text"].item().decode()


@case
def rendered_lines_are_read_exactly():
    with serve(READER) as server:
        for name, size in READABLE:
            for text in LINES:
                answer = ask(server, READER, {"IMAGE": [png(rendered(text, size, name))]})
                equal(text_of(answer), text, f"{name} at {size}")
                check(0.8 < float(answer["score"].item()) <= 1, f"score {answer['score']}")
    tally("PaddleOCR: lines read exactly", len(READABLE) * len(LINES))


@case
def lines_of_any_size_are_read_as_by_the_reference():
    names, worst, exact = characters(), 0.0, 0
    with serve(READER) as server, serve(READER, raw=True) as raw:
        for size in (12, 17, 48, 90):
            for text in LINES:
                picture = rendered(text, size, ink=(180, 30, 20), paper=(230, 240, 210))
                values = next(iter(ask(raw, READER, {"x": line_tensor(picture)}).values()))[0]
                expected, score = greedy(values, names)
                answer = ask(server, READER, {"IMAGE": [png(picture)]})
                equal(text_of(answer), expected, f"size {size}")
                worst = max(worst, abs(float(answer["score"].item()) - score))
                exact += expected == text
    tally("PaddleOCR: lines read as by NumPy", 4 * len(LINES))
    check(worst < CLOSE, f"scores differ by {worst}")
    return f"{exact} of {4 * len(LINES)} as they were written; scores within {worst:.1e}"


def cls_tensor(picture):
    return line_tensor(picture, 192, 192, 1)


@case
def text_on_its_head_is_told_from_text_upright():
    right = 0
    with serve(CLASSIFIER) as server, serve(CLASSIFIER, raw=True) as raw:
        for text in LINES:
            upright = rendered(text, 32)
            for angle, picture in ((b"0", upright), (b"180", upright.rotate(180))):
                answer = ask(server, CLASSIFIER, {"IMAGE": [png(picture)]})
                values = next(iter(ask(raw, CLASSIFIER, {"x": cls_tensor(picture)}).values()))[0]
                equal(answer["label"].item(), (b"0", b"180")[int(values.argmax())], text)
                check(abs(float(answer["score"].item()) - float(values.max())) < CLOSE, f"score of {text}")
                right += answer["label"].item() == angle
    tally("PaddleOCR: directions as by NumPy", 2 * len(LINES))
    check(right >= 2 * len(LINES) - 2, f"only {right} of {2 * len(LINES)} right")
    return f"{right} of {2 * len(LINES)} right"


@case
def several_lines_in_one_request_are_classified_as_alone():
    with serve(CLASSIFIER) as server:
        files = [png(rendered(text, 32).rotate(180 * (index % 2))) for index, text in enumerate(LINES)]
        together = ask(server, CLASSIFIER, {"IMAGE": files})
        equal(together["label"].shape, (len(files),), "shape")
        for index, file in enumerate(files):
            alone = ask(server, CLASSIFIER, {"IMAGE": [file]})
            equal(together["label"][index], alone["label"].item(), LINES[index])
            closest(together["score"][index:index + 1], alone["score"], CLOSE, LINES[index])


def det_tensor(picture):
    """A picture whose sides are multiples of 32 and at most 960: no resizing."""
    bgr = np.asarray(picture.convert("RGB"))[:, :, ::-1].astype(np.float32) / 255
    mean, std = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])
    return np.ascontiguousarray(((bgr - mean) / std).transpose(2, 0, 1)[None])


def regions(probabilities):
    """Upright boxes around regions over 0.3, grown as DB grows them; from top to bottom"""
    count, _, stats, _ = cv2.connectedComponentsWithStats((probabilities > 0.3).astype(np.uint8))
    out = []
    for x, y, width, height, _ in stats[1:count]:
        if probabilities[y:y + height, x:x + width].mean() < 0.6 or min(width, height) < 3:
            continue
        far = (width - 1) * (height - 1) * 1.5 / (2 * (width + height - 2))
        out.append((x - far, y - far, x + width - 1 + far, y + height - 1 + far))
    return np.array(sorted(out, key=lambda box: box[1])).reshape(-1, 4)


def outer(quads):
    """(n, 8) -> upright boxes around them (n, 4)"""
    corners = quads.reshape(-1, 4, 2)
    return np.concatenate([corners.min(1), corners.max(1)], axis=1)


@case
def every_line_of_a_page_is_found_where_it_was_drawn():
    picture, ink = page(LINES, width=896, margin=32)
    equal([side % 32 for side in picture.size], [0, 0], "the page's sides")
    with serve(DETECTOR) as server, serve(DETECTOR, raw=True) as raw:
        answer = ask(server, DETECTOR, {"IMAGE": [png(picture)]})
        equal(answer["count"].tolist(), [len(LINES)], "lines found")
        found = outer(answer["quads"][0])
        found = found[np.argsort(found[:, 1])]
        for box, drawn, text in zip(found, ink, LINES):
            check((box[:2] < drawn[:2] + 4).all() and (box[2:] > drawn[2:] - 4).all(),
                  f"{text}: {box} does not hold {drawn}")
            check(np.abs(box - drawn).max() < 20, f"{text}: {box} is not near {drawn}")
        probabilities = next(iter(ask(raw, DETECTOR, {"x": det_tensor(picture)}).values()))[0, 0]
        # The reference's boxes are upright, DB's may lean by a pixel or two.
        apart = closest(found, regions(probabilities), 4, "boxes against the reference's")
    tally("PaddleOCR: lines found on a page", len(LINES))
    return f"{len(LINES)} lines, at most {apart:.1f} pixels from the reference"


@case
def boxes_come_in_pixels_of_the_picture_that_was_sent():
    picture, ink = page(LINES[:5], width=700, size=24)
    with serve(DETECTOR) as server:
        for factor in (1, 2.5):
            size = tuple(int(side * factor) for side in picture.size)
            large = picture.resize(size, PIL.Image.Resampling.BICUBIC)
            answer = ask(server, DETECTOR, {"IMAGE": [png(large)]})
            equal(answer["count"].tolist(), [5], f"lines at {size}")
            found = outer(answer["quads"][0]) / factor
            apart = np.abs(found[np.argsort(found[:, 1])] - ink).max()
            check(apart < 16, f"{apart} pixels off at {size}")


def cut(picture, quad, margin=0.2):
    """The line inside a quadrangle, laid straight as PaddleOCR does it, with a little paper around:
    cut tight, the recogniser does not see the spaces of every line."""
    corners = quad.reshape(4, 2).astype(np.float32)
    width = max(np.linalg.norm(corners[0] - corners[1]), np.linalg.norm(corners[3] - corners[2]))
    height = max(np.linalg.norm(corners[0] - corners[3]), np.linalg.norm(corners[1] - corners[2]))
    edge = round(float(height * margin))
    right, bottom = round(float(width)) + edge, round(float(height)) + edge
    target = np.float32([[edge, edge], [right, edge], [right, bottom], [edge, bottom]])
    matrix = cv2.getPerspectiveTransform(corners, target)
    return PIL.Image.fromarray(cv2.warpPerspective(
        np.asarray(picture), matrix, (right + edge, bottom + edge), flags=cv2.INTER_CUBIC,
        borderMode=cv2.BORDER_REPLICATE))


def jpeg(picture):
    file = io.BytesIO()
    picture.save(file, "JPEG", quality=95)
    return file.getvalue()


def read_page(servers, sheet):
    """-> (which way each line stands, its text): the page found, cut, turned and read"""
    detector, classifier, reader = servers
    quads = ask_picture(detector, DETECTOR, jpeg(sheet), "image/jpeg")["quads"][0]
    strips = [cut(sheet, quad) for quad in quads]
    turns = ask(classifier, CLASSIFIER, {"IMAGE": [png(strip) for strip in strips]})["label"].tolist()
    upright = [strip.rotate(int(turn)) for strip, turn in zip(strips, turns)]
    return turns, [text_of(ask_picture(reader, READER, jpeg(strip), "image/jpeg")).strip()
                   for strip in upright]


@case
def the_three_in_a_chain_read_whole_pages():
    with serve(DETECTOR) as detector, serve(CLASSIFIER) as classifier, serve(READER) as reader:
        servers = detector, classifier, reader
        for name, size in (("DejaVuSans.ttf", 24), ("DejaVuSans.ttf", 40), ("DejaVuSerif.ttf", 32)):
            picture, _ = page(LINES, size=size, gap=80, name=name)
            turns, read = read_page(servers, picture)
            equal(turns, [b"0"] * len(LINES), f"which way the lines stand, {name} at {size}")
            equal(read, list(LINES), f"{name} at {size}")
            turns, read = read_page(servers, picture.rotate(180))
            equal(turns, [b"180"] * len(LINES), f"which way the lines stand on their heads, {name}")
            equal(read[::-1], list(LINES), f"{name} at {size}, on its head")
            tally("PaddleOCR: lines read by the chain", 2 * len(LINES))


main()
