"""UltraFace on photographs: the server's boxes against a reference that shares nothing with it but
the model (Pillow reads, OpenCV resizes, NumPy suppresses; the model runs behind a server without
pipeline), and the same answer whichever way the picture is sent."""
import io
import os

from _harness import case, check, equal, main
from _prep import (PICTURES, PIL, ask, ask_picture, cv2, json_body, need, np, pixels_of, same_answers,
                   serve, tally)

MODEL = "ultraface"
WIDTH, HEIGHT, THRESHOLD, OVERLAP = 320, 240, 0.65, 0.4
SKIMAGE = ("astronaut.png", "coffee.png", "chelsea.png", "rocket.jpg")


def picture(name):
    return need(os.path.join(PICTURES, "skimage", name))


def encoded(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def crowd():
    """Six faces of different sizes over a photograph, two of them overlapping in part."""
    face = PIL.Image.open(picture("astronaut.png")).convert("RGB").crop((150, 0, 320, 230))
    page = PIL.Image.open(picture("coffee.png")).convert("RGB").resize((1200, 800))
    for x, y, width in ((20, 30, 170), (250, 60, 240), (560, 20, 130), (720, 40, 300),
                        (90, 430, 220), (600, 480, 190)):
        page.paste(face.resize((width, width * 230 // 170)), (x, y))
    return page


def photographs():
    """name to (file's bytes, MIME type)"""
    out = {}
    for name in SKIMAGE:
        with open(picture(name), "rb") as file:
            out[name] = file.read(), "image/png" if name.endswith("png") else "image/jpeg"
    astronaut = PIL.Image.open(picture("astronaut.png")).convert("RGB")
    out["astronaut.jpg"] = encoded(astronaut, "JPEG", quality=90), "image/jpeg"
    out["astronaut.webp"] = encoded(astronaut, "WEBP", quality=90), "image/webp"
    out["crowd.jpg"] = encoded(crowd(), "JPEG", quality=92), "image/jpeg"
    exif = PIL.Image.Exif()
    exif[0x0112] = 6  # upright when turned by 90 degrees clockwise
    out["turned.jpg"] = encoded(crowd().transpose(PIL.Image.Transpose.ROTATE_90), "JPEG", quality=92,
                                exif=exif), "image/jpeg"
    return out


def overlap(box, others):
    low, high = np.maximum(box[:2], others[:, :2]), np.minimum(box[2:], others[:, 2:])
    both = np.prod(np.clip(high - low, 0, None), axis=1)
    def area(boxes):
        return np.prod(boxes[..., 2:] - boxes[..., :2], axis=-1)
    return both / (area(box) + area(others) - both)


def reference(raw, file):
    """-> (boxes in pixels, scores), best first"""
    pixels = pixels_of(io.BytesIO(file))
    small = cv2.resize(pixels, (WIDTH, HEIGHT), interpolation=cv2.INTER_LINEAR)
    tensor = ((small.astype(np.float32) - 127) / 128).transpose(2, 0, 1)[None]
    answer = ask(raw, MODEL, {"input": tensor})
    scores, boxes = answer["scores"][0, :, 1], answer["boxes"][0]
    order = np.argsort(-scores, kind="stable")
    order = order[scores[order] > THRESHOLD]
    kept = []
    for index in order:
        if not kept or overlap(boxes[index], boxes[kept]).max() <= OVERLAP:
            kept.append(index)
    size = np.array([pixels.shape[1], pixels.shape[0]] * 2, np.float32)
    return np.clip(boxes[kept] * size, 0, size).reshape(-1, 4), scores[kept]


@case
def boxes_are_within_a_pixel_of_an_independent_pipeline():
    worst, found = 0.0, 0
    with serve(MODEL) as server, serve(MODEL, raw=True) as raw:
        for name, (file, _) in photographs().items():
            boxes, scores = reference(raw, file)
            answer = ask(server, MODEL, {"IMAGE": [file]})
            count = int(answer["count"][0])
            equal(count, len(boxes), f"faces in {name}")
            equal(answer["boxes"].shape, (1, count, 4), f"shape of boxes, {name}")
            if count:
                worst = max(worst, float(np.abs(answer["boxes"][0] - boxes).max()))
                check(np.abs(answer["scores"][0] - scores).max() < 1e-4, f"scores, {name}")
                check((answer["labels"][0] == b"face").all() and (answer["classes"] == 0).all(),
                      f"labels, {name}")
            found += count
    check(worst < 1, f"a box is {worst} pixels off")
    check(found >= 10, f"only {found} faces in all pictures")
    tally("UltraFace: boxes within a pixel", found)
    return f"{found} faces, at most {worst:.4f} pixels apart"


@case
def the_astronaut_has_one_face_and_the_coffee_none():
    with serve(MODEL) as server:
        answer = ask(server, MODEL, {"IMAGE": [photographs()["astronaut.png"][0]]})
        equal(answer["count"].tolist(), [1], "faces")
        check(np.abs(answer["boxes"][0, 0] - [180, 62, 268, 174]).max() < 2, str(answer["boxes"]))
        equal(ask(server, MODEL, {"IMAGE": [photographs()["coffee.png"][0]]})["count"].tolist(), [0],
              "faces in a cup of coffee")


@case
def raw_body_and_base64_and_binary_give_the_same_answer():
    with serve(MODEL) as server:
        for name, (file, kind) in photographs().items():
            expected = ask(server, MODEL, {"IMAGE": [file]})
            same_answers(ask_picture(server, MODEL, file, kind), expected, f"{name} as the body")
            same_answers(ask(server, MODEL, {"IMAGE": [file]}, form=json_body), expected,
                         f"{name} in base64")
            tally("UltraFace: answers by body and base64", 2)


@case
def a_picture_and_its_turned_copy_have_the_same_faces():
    with serve(MODEL) as server:
        photos = photographs()
        upright = ask(server, MODEL, {"IMAGE": [photos["crowd.jpg"][0]]})
        turned = ask(server, MODEL, {"IMAGE": [photos["turned.jpg"][0]]})
        equal(turned["count"].tolist(), upright["count"].tolist(), "faces")
        # Another JPEG of the same scene: close, not the same.
        nearest = [np.abs(upright["boxes"][0] - box).max(axis=1).min() for box in turned["boxes"][0]]
        check(max(nearest) < 12, f"boxes {max(nearest)} pixels apart")


@case
def what_is_no_picture_is_an_error_that_says_so():
    with serve(MODEL) as server:
        whole = photographs()["rocket.jpg"][0]
        for file in (b"", b"not a picture at all", whole[:len(whole) // 3]):
            response = server.post(file, "/v2/models/ultraface/infer", [("Content-Type", "image/jpeg")])
            equal(response.status, 400, response.body)
            check(len(response.error()) > 10, response.body)
        equal(ask(server, MODEL, {"IMAGE": [whole]})["count"].shape, (1,), "shape after the errors")


main()
