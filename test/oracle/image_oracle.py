#!/usr/bin/env python3
"""Compares decoding, resizing, placing and converting of pictures with Pillow, OpenCV and NumPy:

    test/oracle/image_oracle.py BUILD_DIRECTORY [--all] [DIRECTORY...]

DIRECTORY: where JPEG, PNG and WebP files are looked for, besides those that this script makes
(default: .deps/samples/pictures). Prints "kind: N same, M different" a kind. Exit 0: no
difference; 1: differences, the first ones shown; 77: Pillow, OpenCV or NumPy is missing
(scripts/setup test installs them).
"""
import base64
import io
import math
import os
import pathlib
import struct
import subprocess
import sys
import warnings
import zlib

try:
    import cv2
    import numpy as np
    from PIL import Image, ImageOps
except ImportError as missing:
    print(f"skipped: {missing} (scripts/setup test installs it)")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FLAGS = [a for a in sys.argv[1:] if a.startswith("--")]
PATHS = [a for a in sys.argv[1:] if not a.startswith("--")]
IS_ALL = "--all" in FLAGS
RANDOM = np.random.default_rng(11)
Image.MAX_IMAGE_PIXELS = None
warnings.simplefilter("ignore")
cv2.setNumThreads(1)

DECODE, RESIZE, PLACE, PIXELS, UNWRAP = range(5)
KINDS = ["pillow-bilinear", "pillow-bicubic", "opencv-linear", "opencv-cubic", "nearest"]
FITS = ["stretch", "letterbox", "crop", "height", "limit", "none"]


class Program:
    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def read(self, size):
        data = self.process.stdout.read(size)
        if len(data) != size:
            sys.exit(f"prep_image_dump ended: {self.process.wait()}")
        return data

    def ask(self, op, numbers, data=b""):
        """-> (status, numbers, error text, bytes)"""
        numbers = list(numbers) + [0] * (14 - len(numbers))
        self.process.stdin.write(struct.pack("<16I", op, len(data), *numbers))
        self.process.stdin.write(data)
        self.process.stdin.flush()
        status, count, text, size = struct.unpack("<4I", self.read(16))
        return status, struct.unpack(f"<{count}i", self.read(4 * count)), self.read(text).decode(), self.read(size)


class Score:
    def __init__(self, kind):
        self.kind, self.same, self.different = kind, 0, 0

    def add(self, is_same, *shown):
        self.same += bool(is_same)
        self.different += not is_same
        if not is_same and self.different <= 5:
            print(f"  {self.kind}:", *shown)


def shape_of(array):
    height, width = array.shape[:2]
    return width, height, 1 if array.ndim == 2 else array.shape[2]


def difference(got, want):
    if got.shape != want.shape:
        return f"shape {got.shape}, expected {want.shape}"
    delta = np.abs(got.astype(int) - want.astype(int))
    return f"{np.count_nonzero(delta)} of {delta.size} samples differ, by up to {delta.max()}"


def as_array(numbers, data):
    width, height, channels = numbers[:3]
    array = np.frombuffer(data, np.uint8).reshape(height, width, channels)
    return array[:, :, 0] if channels == 1 else array


# ---- resizing and placing ----

def reference_resize(array, kind, width, height):
    if array.shape[:2] == (height, width):
        return array
    if kind.startswith("opencv"):
        how = cv2.INTER_LINEAR if kind == "opencv-linear" else cv2.INTER_CUBIC
        return cv2.resize(array, (width, height), interpolation=how)
    how = {"pillow-bilinear": Image.BILINEAR, "pillow-bicubic": Image.BICUBIC, "nearest": Image.NEAREST}[kind]
    return np.asarray(Image.fromarray(array).resize((width, height), how))


def noise(width, height, channels):
    """Noise, or noise that only has extremes (where cubic kernels overshoot), or a smooth field."""
    shape = (height, width) if channels == 1 else (height, width, channels)
    how = RANDOM.integers(0, 3)
    if how == 0:
        return RANDOM.integers(0, 256, shape, dtype=np.uint8)
    if how == 1:
        return (RANDOM.integers(0, 2, shape) * 255).astype(np.uint8)
    small = RANDOM.integers(0, 256, (3, 3) if channels == 1 else (3, 3, channels), dtype=np.uint8)
    return np.asarray(Image.fromarray(small).resize((width, height), Image.BICUBIC))


def random_side():
    return int(RANDOM.choice([RANDOM.integers(1, 12), RANDOM.integers(1, 90), RANDOM.integers(1, 400)]))


def resize_cases(count):
    for case in range(count):
        width, height = random_side(), random_side()
        new_width, new_height = random_side(), random_side()
        if case % 5 == 0:  # by exact factors
            factor = int(RANDOM.integers(2, 5))
            new_width, new_height = max(1, width // factor), max(1, height // factor)
            width, height = new_width * factor, new_height * factor
            if case % 10 == 0:
                width, height, new_width, new_height = new_width, new_height, width, height
        if case % 7 == 0:  # one direction stays
            new_width = width
        yield width, height, 1 if case % 3 == 0 else 3, new_width, new_height
    for size in [(640, 480, 224, 224), (1920, 1080, 224, 224), (1920, 1080, 640, 360), (100, 50, 1000, 700)]:
        yield size[0], size[1], 3, size[2], size[3]
    for size in [(1, 1, 7, 9), (1, 3000, 50, 1), (3000, 1, 1, 50), (2, 2, 1, 1), (4, 2, 2, 1), (5000, 3, 7, 200)]:
        for channels in (1, 3):
            yield size[0], size[1], channels, size[2], size[3]


def check_resize(program):
    scores = []
    for number, kind in enumerate(KINDS):
        score = Score("resize " + kind)
        for width, height, channels, new_width, new_height in resize_cases(3000 if IS_ALL else 250):
            array = noise(width, height, channels)
            want = reference_resize(array, kind, new_width, new_height)
            status, numbers, text, data = program.ask(
                RESIZE, [width, height, channels, number, new_width, new_height], array.tobytes())
            got = as_array(numbers, data) if status == 0 else array[:0]
            score.add(status == 0 and np.array_equal(got, want), f"{width}x{height}x{channels} to",
                      f"{new_width}x{new_height}: {text or difference(got, want)}")
        scores.append(score)
    return scores


def letterbox(sw, sh, w, h):
    ratio = min(h / sh, w / sw)
    width, height = max(1, int(round(sw * ratio))), max(1, int(round(sh * ratio)))
    dw, dh = (w - width) / 2, (h - height) / 2
    return width, height, int(round(dw - 0.1)), int(round(dh - 0.1)), w, h


def crop_size(sw, sh, shorter):
    short, long = (sw, sh) if sw <= sh else (sh, sw)
    longer = max(1, int(shorter * long / short))
    return (shorter, longer) if sw <= sh else (longer, shorter)


def crop_at(size, wanted):
    """torchvision: pads where too small, then crops."""
    return (wanted - size) // 2 if wanted > size else -int(round((size - wanted) / 2.0))


def height_fit(sw, sh, w, h, most, multiple):
    width = max(1, int(math.ceil(h * (sw / float(sh)))))
    if most:
        width = min(width, most)
    canvas = max(width, w)
    if multiple > 1:
        canvas = int(math.ceil(canvas / multiple) * multiple)
    return width, h, 0, 0, canvas, h


def limit_fit(sw, sh, most, multiple):
    ratio = float(most) / max(sw, sh) if most and max(sw, sh) > most else 1.0
    width, height = int(sw * ratio), int(sh * ratio)
    if multiple > 1:
        width = max(int(round(width / multiple) * multiple), multiple)
        height = max(int(round(height / multiple) * multiple), multiple)
    else:
        width, height = max(width, 1), max(height, 1)
    return width, height, 0, 0, width, height


def place_case(sw, sh):
    """-> (fit's numbers as the program wants them, expected placement)"""
    fit = FITS[RANDOM.integers(0, len(FITS))]
    w, h = random_side(), random_side()
    shorter, most_width, most_side, multiple = 0, 0, 0, int(RANDOM.choice([0, 1, 8, 32]))
    if fit == "stretch":
        want = (w, h, 0, 0, w, h)
    elif fit == "letterbox":
        want = letterbox(sw, sh, w, h)
    elif fit == "crop":
        shorter = random_side() if RANDOM.integers(0, 3) else 0
        if shorter:
            size = crop_size(sw, sh, shorter)
        else:
            ratio = max(w / sw, h / sh)
            size = max(int(round(sw * ratio)), w), max(int(round(sh * ratio)), h)
        want = (*size, crop_at(size[0], w), crop_at(size[1], h), w, h)
    elif fit == "height":
        most_width = random_side() if RANDOM.integers(0, 2) else 0
        want = height_fit(sw, sh, w, h, most_width, multiple)
    elif fit == "limit":
        most_side = random_side() if RANDOM.integers(0, 3) else 0
        want = limit_fit(sw, sh, most_side, multiple)
    else:
        want = (sw, sh, 0, 0, sw, sh)
    return [FITS.index(fit), w, h, shorter, most_width, most_side, multiple], want


def placed(array, want, kind, pad):
    scaled = reference_resize(array, kind, want[0], want[1])
    left, top, width, height = want[2:]
    color = [pad & 255, pad >> 8 & 255, pad >> 16 & 255]
    canvas = np.empty((height, width) + array.shape[2:], np.uint8)
    canvas[:] = color[0] if array.ndim == 2 else color
    x, y = max(left, 0), max(top, 0)
    part = scaled[max(-top, 0):, max(-left, 0):][:height - y, :width - x]
    canvas[y:y + part.shape[0], x:x + part.shape[1]] = part
    return canvas


def check_place(program):
    score, pixels = Score("placement"), Score("placed pixels")
    for case in range(20000 if IS_ALL else 2000):
        sw, sh = random_side(), random_side()
        fit, want = place_case(sw, sh)
        wants_pixels = case % 8 == 0 and want[0] * want[1] < 2000000
        kind, channels = int(RANDOM.integers(0, len(KINDS))), int(RANDOM.choice([1, 3]))
        pad = int(RANDOM.choice([0x727272, 0, 0x123456]))
        array = noise(sw, sh, channels)
        numbers = [sw, sh, channels, kind, *fit, pad]
        status, got, text, data = program.ask(PLACE, numbers, array.tobytes() if wants_pixels else b"")
        if status != 0:
            # refused for its size, and nothing else
            score.add(max(want[0], want[1]) > 1 << 24 or want[4] * want[5] > 64000000, numbers, want, text)
            continue
        score.add(got[:6] == want, FITS[fit[0]], f"{sw}x{sh}", fit, "got", got[:6], "expected", want)
        if wants_pixels:
            expected = placed(array, want, KINDS[kind], pad)
            result = as_array(got[6:], data)
            pixels.add(np.array_equal(result, expected), FITS[fit[0]], KINDS[kind], f"{sw}x{sh}x{channels}",
                       want, difference(result, expected))
    return [score, pixels]


# ---- numbers ----

def check_pixels(program):
    score = Score("numbers")
    dtypes = {1: np.uint8, 9: np.float16, 10: np.float32}
    for case in range(3000 if IS_ALL else 400):
        color, layout = int(RANDOM.integers(0, 3)), int(RANDOM.integers(1, 3))
        dtype = int(RANDOM.choice(list(dtypes)))
        width, height, channels = random_side() % 70 + 1, random_side() % 40 + 1, 1 if color == 2 else 3
        array = noise(width, height, channels)
        scale, mean, std = 1.0, [0.0] * 3, [1.0] * 3
        if dtype != 1:
            scale = float(RANDOM.choice([1.0, 1 / 255, 1 / 128, RANDOM.normal() * 10.0 ** RANDOM.integers(-7, 4)]))
            mean, std = list(RANDOM.normal(size=3) if case % 4 else np.zeros(3)), list(RANDOM.uniform(0.001, 300, size=3))
        blank = width if case % 2 else int(RANDOM.integers(0, width + 3))
        values = array.reshape(height, width, channels)
        if color == 1:
            values = values[:, :, ::-1]
        if dtype != 1:
            values = (values.astype(np.float64) * scale - np.array(mean)[:channels]) / np.array(std)[:channels]
        values = values.astype(dtypes[dtype])
        values[:, blank:] = 0
        want = values if layout == 2 else values.transpose(2, 0, 1)
        numbers = [width, height, channels, color, layout, dtype, blank]
        status, _, text, data = program.ask(PIXELS, numbers, struct.pack("<7d", scale, *mean, *std) + array.tobytes())
        got = np.frombuffer(data, dtypes[dtype])
        score.add(status == 0 and got.tobytes() == np.ascontiguousarray(want).tobytes(), numbers, scale, mean, std, text)
    return [score]


# ---- decoding ----

def pillow(data, is_grey, ignores_orientation):
    """What this defines as right, or None where Pillow raises."""
    try:
        with Image.open(io.BytesIO(data)) as image:
            if image.format not in ("JPEG", "MPO", "PNG", "WEBP"):
                return None
            image.load()
            if not ignores_orientation:
                image = ImageOps.exif_transpose(image)
            if image.mode == "I":  # 16 bits a sample: the upper 8
                image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
            return np.asarray(image.convert("L" if is_grey else "RGB"))
    except Exception:  # Pillow's decoders raise whatever they happen upon
        return None


def decode(program, data, is_grey=False, ignores=False, scales=(0, 0, 0), most=0):
    status, numbers, text, pixels = program.ask(DECODE, [is_grey, ignores, *scales, most], data)
    return (as_array(numbers, pixels) if status == 0 else None), text, numbers


def compare_file(program, score, name, data, instead=None):
    """instead: what Pillow is given, where data has a fault beside the pixels that it refuses"""
    for is_grey in (False, True):
        for ignores in (False, True):
            want = pillow(instead or data, is_grey, ignores)
            got, text, _ = decode(program, data, is_grey, ignores)
            if want is None or got is None:
                score.add(want is None and got is None, name, f"Pillow {'refuses' if want is None else 'reads'} it; we:",
                          text or "read it")
                if want is None:
                    return
            else:
                score.add(np.array_equal(got, want), name, "grey" if is_grey else "RGB", difference(got, want))


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, bits, color, rows, before=b"", after=b""):
    """rows: the bytes of each row, not filtered"""
    raw = b"".join(b"\0" + row for row in rows)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, color, 0, 0, 0))
            + before + chunk(b"IDAT", zlib.compress(raw)) + after + chunk(b"IEND", b""))


def exif_with(orientation, big=False):
    mark = ">" if big else "<"
    entries = struct.pack(mark + "HHIHH", 0x10f, 2, 4, 0x4142, 0) + struct.pack(mark + "HHIHH", 0x112, 3, 1, orientation, 0)
    return (b"MM\0*" if big else b"II*\0") + struct.pack(mark + "IH", 8, 2) + entries + b"\0\0\0\0"


def picture(width, height, seed=0):
    """A photo-like field: smooth colours with some detail."""
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    base = [128 + 100 * np.sin(x / (7 + i) + i + seed) * np.cos(y / (9 - i)) for i in range(3)]
    array = np.stack(base, -1) + RANDOM.normal(scale=9, size=(height, width, 3))
    return Image.fromarray(np.clip(array, 0, 255).astype(np.uint8))


def saved(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def made_jpegs():
    for width, height in [(1, 1), (1, 17), (16, 1), (7, 5), (64, 48), (101, 67), (256, 200)]:
        image = picture(width, height)
        for subsampling in (0, 1, 2):
            for progressive in (False, True):
                yield (f"{width}x{height} JPEG 4:{subsampling} progressive {progressive}",
                       saved(image, "JPEG", quality=88, subsampling=subsampling, progressive=progressive))
        yield f"{width}x{height} grey JPEG", saved(image.convert("L"), "JPEG")
        yield f"{width}x{height} CMYK JPEG", saved(image.convert("CMYK"), "JPEG")
        ok, coded = cv2.imencode(".jpg", np.asarray(image), [cv2.IMWRITE_JPEG_RST_INTERVAL, 2])
        yield f"{width}x{height} JPEG with restarts", coded.tobytes() if ok else b""
    noisy = Image.fromarray(RANDOM.integers(0, 256, (60, 70, 3), dtype=np.uint8))
    for quality in (1, 30, 100):
        yield f"noise JPEG {quality}", saved(noisy, "JPEG", quality=quality)
    cmyk = saved(picture(40, 30).convert("CMYK"), "JPEG", quality=95)
    at = cmyk.find(b"Adobe")
    if at > 0:  # the same components, taken as YCCK
        yield "YCCK JPEG", cmyk[:at + 11] + b"\x02" + cmyk[at + 12:]
    rgb = saved(picture(40, 30), "JPEG", subsampling=0)
    adobe = b"\xff\xee\x00\x0eAdobe\0\x64\0\0\0\0\0"
    yield "RGB JPEG by Adobe's marker", rgb[:2] + adobe + rgb[2 + 2 + struct.unpack(">H", rgb[4:6])[0]:]
    plain = saved(picture(90, 60), "JPEG")
    yield "JPEG with a tail", plain + b"trailing \xff\xd8 garbage" * 20
    yield "JPEG behind fill bytes", plain[:2] + b"\xff\xff\xff" + plain[2:]
    yield "JPEG with a comment", plain[:2] + b"\xff\xfe\0\x06abcd" + plain[2:]


def made_pngs():
    for width, height in [(1, 1), (3, 1), (1, 9), (7, 5), (33, 17), (64, 64)]:
        for color, channels in [(0, 1), (2, 3), (3, 1), (4, 2), (6, 4)]:
            for bits in [b for b in (1, 2, 4, 8, 16) if b >= 8 or color in (0, 3)]:
                if color == 3 and bits == 16:
                    continue
                row_bytes = (width * channels * bits + 7) // 8
                rows = [RANDOM.integers(0, 256, row_bytes, dtype=np.uint8).tobytes() for _ in range(height)]
                before = b""
                if color == 3:
                    entries = int(RANDOM.choice([1, 1 << bits, max(1, (1 << bits) // 2)]))
                    before = chunk(b"PLTE", RANDOM.integers(0, 256, entries * 3, dtype=np.uint8).tobytes())
                    if RANDOM.integers(0, 2):
                        before += chunk(b"tRNS", RANDOM.integers(0, 256, entries, dtype=np.uint8).tobytes())
                elif color in (0, 2) and RANDOM.integers(0, 2):
                    before = chunk(b"tRNS", struct.pack(f">{channels}H", *([1] * channels)))
                yield f"{width}x{height} PNG of {bits} bits, colour {color}", png(width, height, bits, color, rows, before)
    image = picture(75, 43)
    for kind in ("RGB", "RGBA", "L", "LA", "1", "P"):
        for level in (0, 6):
            yield f"PNG {kind} {level}", saved(image.convert(kind), "PNG", compress_level=level, optimize=level == 6)
    text = chunk(b"zTXt", b"Comment\0\0" + zlib.compress(b"a" * 20000000))
    rows = [bytes(range(30)) for _ in range(10)]
    whole = png(10, 10, 8, 2, rows)
    yield "PNG with a bomb for a text", png(10, 10, 8, 2, rows, before=text), whole
    yield "PNG with a damaged text", png(10, 10, 8, 2, rows, before=b"\0\0\0\x03tEXtabcXXXX"), whole
    yield "PNG with gamma", png(10, 10, 8, 2, rows, before=chunk(b"gAMA", struct.pack(">I", 45455)))
    yield "PNG with a tail", whole + b"garbage"
    yield "animated PNG", saved(image, "PNG", save_all=True, append_images=[picture(75, 43, 2)])


def made_webps():
    for width, height in [(1, 1), (5, 3), (64, 40), (131, 97)]:
        image = picture(width, height)
        alpha = image.copy()
        alpha.putalpha(Image.fromarray(RANDOM.integers(0, 256, (height, width), dtype=np.uint8)))
        for lossless in (False, True):
            yield f"{width}x{height} WebP lossless {lossless}", saved(image, "WEBP", lossless=lossless)
            yield f"{width}x{height} WebP alpha, lossless {lossless}", saved(alpha, "WEBP", lossless=lossless)
            yield f"{width}x{height} WebP grey, lossless {lossless}", saved(image.convert("L"), "WEBP", lossless=lossless)
        hidden = image.copy()
        hidden.putalpha(0)
        yield f"{width}x{height} WebP, all of it transparent", saved(hidden, "WEBP", lossless=True)
    first = picture(60, 40)
    yield "animated WebP", saved(first, "WEBP", save_all=True, append_images=[picture(60, 40, 3)], duration=40)
    part = Image.new("RGBA", (60, 40))
    part.paste(first.crop((10, 8, 30, 28)), (10, 8))
    yield "animated WebP whose first frame is a part", saved(part, "WEBP", save_all=True, append_images=[first.convert("RGBA")])
    yield "WebP with a tail", saved(first, "WEBP") + b"garbage"


def made_turned():
    image = picture(37, 22)
    for orientation in range(0, 10):
        for big in (False, True):
            exif = exif_with(orientation, big)
            yield f"JPEG turned {orientation}", saved(image, "JPEG", exif=b"Exif\0\0" + exif)
            yield f"WebP turned {orientation}", saved(image, "WEBP", lossless=True, exif=exif)
            yield f"PNG turned {orientation}", saved(image, "PNG", exif=exif)
            yield f"CMYK JPEG turned {orientation}", saved(image.convert("CMYK"), "JPEG", exif=b"Exif\0\0" + exif)
    rows = [bytes(range(30)) for _ in range(10)]
    yield "PNG turned at its end", png(10, 10, 8, 2, rows, after=chunk(b"eXIf", exif_with(6)))
    exif = exif_with(6)
    for cut in range(0, len(exif), 3):
        damaged = saved(image, "JPEG", exif=b"Exif\0\0" + exif[:cut])
        plain = saved(image, "JPEG")
        yield f"JPEG with {cut} bytes of EXIF", damaged, None if pillow(damaged, False, False) is not None else plain


def files():
    directories = PATHS[1:] or [ROOT / ".deps/samples/pictures"]
    found = sorted(p for d in directories for p in pathlib.Path(d).rglob("*")
                   if p.suffix.lower() in (".jpg", ".jpeg", ".png", ".webp") and p.is_file())
    for path in found:
        if IS_ALL or path.stat().st_size < 400000:
            yield str(path), path.read_bytes()


def check_decode(program):
    scores = []
    for kind, cases in [("JPEG made here", made_jpegs), ("PNG made here", made_pngs), ("WebP made here", made_webps),
                        ("turned by EXIF", made_turned), ("files", files)]:
        score = Score(kind)
        for case in cases():
            compare_file(program, score, *case)
        scores.append(score)
    return scores


def check_cut(program):
    """Both refuse what is cut short; where Pillow reads it still, so do we or we say why not."""
    score, late = Score("cut short"), Score("cut behind the pixels")
    image = picture(80, 60)
    whole = {
        "JPEG": saved(image, "JPEG", quality=90), "progressive JPEG": saved(image, "JPEG", progressive=True),
        "PNG": saved(image, "PNG"), "grey PNG": saved(image.convert("L"), "PNG"),
        "WebP": saved(image, "WEBP"), "lossless WebP": saved(image, "WEBP", lossless=True),
    }
    for name, data in whole.items():
        cuts = {len(data) * i // 16 for i in range(1, 16)} | set(range(max(0, len(data) - 24), len(data)))
        for cut in sorted(cuts):
            want, (got, text, _) = pillow(data[:cut], False, False), decode(program, data[:cut])
            if want is not None and got is None:
                late.add(len(data) - cut <= 24 and "cut short" in text, name, f"{cut} of {len(data)}: Pillow reads it; we: {text}")
            else:
                score.add((want is None) == (got is None) and (want is None or np.array_equal(got, want)), name,
                          f"{cut} of {len(data)}: Pillow {'refuses' if want is None else 'reads'} it; we: {text or 'read it'}")
    return [score, late]


def check_claims(program):
    """A header that claims more than is allowed is refused as too large, whatever follows."""
    score = Score("huge claims refused")
    for width, height in [(32769, 1), (1, 32769), (30000, 30000), (65535, 65535)]:
        jpeg = bytearray(saved(picture(16, 16), "JPEG"))
        at = jpeg.find(b"\xff\xc0")
        jpeg[at + 5:at + 9] = struct.pack(">HH", height, width)
        for name, data in [("JPEG", bytes(jpeg)), ("PNG", png(width, height, 8, 2, [b""]))]:
            _, text, _ = decode(program, data)
            score.add("claims" in text, name, f"{width}x{height}:", text or "read")
    for most, is_read in [(64 * 48, True), (64 * 48 - 1, False)]:
        for kind in ("JPEG", "PNG", "WEBP"):
            got, text, _ = decode(program, saved(picture(64, 48), kind), most=most)
            score.add((got is not None) == is_read and (is_read or "limit" in text), kind, most, text)
    return [score]


def check_scaled(program):
    """Scaled decoding is libjpeg's own, which Pillow calls draft."""
    score = Score("JPEG at 1/2, 1/4, 1/8")
    for width, height in [(640, 480), (333, 211), (65, 17)]:
        for is_grey in (False, True):
            data = saved(picture(width, height).convert("L" if is_grey else "RGB"), "JPEG", quality=90)
            for least in [(width, height), (width // 2, height // 2), (width // 4, height // 4), (width // 8, height // 8), (1, 1)]:
                got, text, numbers = decode(program, data, is_grey, False, (1, *least))
                divisor = next(d for d in (8, 4, 2, 1)
                               if (-(-width // d) >= least[0] and -(-height // d) >= least[1]) or d == 1)
                with Image.open(io.BytesIO(data)) as image:
                    image.decoderconfig = (divisor, 0)
                    image._size = (-(-width // divisor), -(-height // divisor))
                    image.tile = [("jpeg", (0, 0, *image._size), 0, image.tile[0][3])]
                    want = np.asarray(image)
                score.add(got is not None and np.array_equal(got, want) and numbers[3:5] == (width, height),
                          f"{width}x{height} at least {least}:", text or difference(got, want))
    return [score]


def check_unwrap(program):
    score = Score("base64")
    for case in range(4000 if IS_ALL else 600):
        data = RANDOM.integers(0, 256, int(RANDOM.integers(0, 90)), dtype=np.uint8).tobytes()
        text = base64.urlsafe_b64encode(data) if case % 2 else base64.b64encode(data)
        if case % 3 == 0:
            text = text.rstrip(b"=")
        if case % 4 == 0:
            text = b"\r\n".join(text[i:i + 7] for i in range(0, len(text), 7)) + b"\n"
        if case % 5 == 0:
            text = b"data:image/jpeg;base64," + text
        status, numbers, message, got = program.ask(UNWRAP, [], text)
        score.add(status == 0 and got == data and numbers[0] == (len(text) > 0), text, message)
        if len(text) > 0 and not text.startswith(b"data:"):
            at = int(RANDOM.integers(0, len(text)))
            status, _, message, _ = program.ask(UNWRAP, [], text[:at] + b"*" + text[at + 1:])
            score.add(status != 0 and f"character {at + 1} of" in message, text, at, message)
    for name, data in [("JPEG", saved(picture(9, 9), "JPEG")), ("PNG", saved(picture(9, 9), "PNG")), ("WebP", saved(picture(9, 9), "WEBP"))]:
        for sent, was in [(data, 0), (base64.b64encode(data), 1), (b"data:image/x;charset=a;base64," + base64.b64encode(data), 1)]:
            status, numbers, message, got = program.ask(UNWRAP, [], sent)
            score.add(status == 0 and got == data and numbers[0] == was, name, message)
    return [score]


def main():
    if not PATHS:
        sys.exit("usage: image_oracle.py BUILD_DIRECTORY [--all] [DIRECTORY...]")
    program = Program(os.path.join(os.path.abspath(PATHS[0]), "oracle_prep_image_dump"))
    different = 0
    for check in [check_resize, check_place, check_pixels, check_decode, check_cut, check_claims, check_scaled, check_unwrap]:
        for score in check(program):
            print(f"{score.kind}: {score.same} same, {score.different} different", flush=True)
            different += score.different
    program.process.stdin.close()
    if program.process.wait() != 0:
        sys.exit("prep_image_dump failed at its end")
    sys.exit(1 if different else 0)


main()
