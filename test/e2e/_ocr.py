"""Rendered pages of text, and PaddleOCR's own preprocessing in NumPy and OpenCV."""
import io
import math
import os

from _prep import DEPS, PIL, cv2, need, np
import PIL.ImageDraw
import PIL.ImageFont

FONTS = "/usr/share/fonts/truetype/dejavu"
LINES = ("ONNX latency 12.5 ms", "Telltale reads this line exactly.", "99th percentile: 125 ms",
         "The quick brown fox jumps over", "0123456789", "thirty-two rows a batch", "Hello, world!",
         "Zebra and Quartz 1976", "https://example.org/a?b=c", "fifty per cent faster")


def font(size, name="DejaVuSans.ttf"):
    return PIL.ImageFont.truetype(need(os.path.join(FONTS, name)), size)


def rendered(text, size, name="DejaVuSans.ttf", ink=(0, 0, 0), paper=(255, 255, 255)):
    """A picture of that line with a margin as a detector leaves it."""
    face = font(size, name)
    left, top, right, bottom = face.getbbox(text)
    margin = size // 10
    picture = PIL.Image.new("RGB", (right - left + 2 * margin, bottom - top + 2 * margin), paper)
    PIL.ImageDraw.Draw(picture).text((margin - left, margin - top), text, ink, font=face)
    return picture


def page(lines, width=900, size=28, gap=64, margin=40, name="DejaVuSans.ttf"):
    """-> (picture, boxes (n, 4) of the ink): one line below the other, each further to the right"""
    picture = PIL.Image.new("RGB", (width, 2 * margin + gap * len(lines)), (250, 248, 240))
    draw, face, boxes = PIL.ImageDraw.Draw(picture), font(size, name), []
    for index, text in enumerate(lines):
        at = (margin + 15 * index, margin + gap * index)
        draw.text(at, text, (20, 20, 60), font=face)
        boxes.append(draw.textbbox(at, text, font=face))
    return picture, np.array(boxes, float)


def png(picture):
    file = io.BytesIO()
    picture.save(file, "PNG")
    return file.getvalue()


def line_tensor(picture, least_width=320, most_width=2304, multiple=32):
    """(1, 3, 48, width): BGR, 48 high, (x / 255 - 0.5) / 0.5, zero on the right"""
    bgr = np.asarray(picture.convert("RGB"))[:, :, ::-1]
    height, width = bgr.shape[:2]
    scaled = min(most_width, math.ceil(48 * width / height))
    canvas = max(least_width, -(-scaled // multiple) * multiple)
    small = cv2.resize(np.ascontiguousarray(bgr), (scaled, 48), interpolation=cv2.INTER_LINEAR)
    out = np.zeros((1, 3, 48, canvas), np.float32)
    out[0, :, :, :scaled] = ((small.astype(np.float32) / 255 - 0.5) / 0.5).transpose(2, 0, 1)
    return out


def characters():
    path = need(os.path.join(DEPS, "models", "ocr_recognizer", "1", "characters.txt"))
    with open(path, encoding="utf-8") as file:
        return ["", *file.read().removesuffix("\n").split("\n"), " "]


def greedy(values, names):
    """(steps, classes) -> (text, mean probability of what was kept)"""
    best, kept = values.argmax(1), []
    for step, index in enumerate(best):
        if index and (step == 0 or index != best[step - 1]):
            kept.append(step)
    text = "".join(names[best[step]] for step in kept)
    return text, float(values[kept, best[kept]].mean()) if kept else 0.0
