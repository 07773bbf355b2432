"""What the end-to-end tests of pipelines share: models, pictures, and requests as NumPy arrays.

They need NumPy, Pillow and OpenCV, which Debian's Python has and a user's own may not: the first
import starts the test again under Debian's where that is so. What is missing after that skips.
"""
import atexit
import base64
import json
import os
import sys

DEBIAN = "/usr/bin/python3"
try:
    import cv2
    import numpy as np
    import PIL.Image
    import PIL.ImageOps
except ImportError as error:
    if os.path.realpath(sys.executable) != os.path.realpath(DEBIAN) and os.path.exists(DEBIAN):
        os.execv(DEBIAN, [DEBIAN, *sys.argv])
    print(f"skipped: {error}: scripts/setup test")
    sys.exit(77)

from _harness import ONNXRUNTIME, ROOT, Server, Skip, check, equal

DEPS = os.path.join(ROOT, ".deps")
PICTURES = os.path.join(DEPS, "samples", "pictures")
SOUNDS = os.path.join(DEPS, "samples", "sounds")
TYPES = {"FP32": np.float32, "FP64": np.float64, "INT64": np.int64, "INT32": np.int32,
         "UINT8": np.uint8, "BOOL": np.bool_}
NAMES = {np.dtype(kind): name for name, kind in TYPES.items()}


TALLY = {}


def tally(kind, count):
    """Counts comparisons that came out the same, for the table of scripts/check_prep; one that does
    not ends its case, and the table counts failed cases."""
    TALLY[kind] = TALLY.get(kind, 0) + count


@atexit.register
def print_tally():
    for kind, count in TALLY.items():
        print(f"{kind}: {count} same, 0 different")


def need(path):
    if not os.path.exists(path):
        raise Skip(f"no {os.path.relpath(path, ROOT)}: scripts/setup test")
    return path


def serve(model, *options, raw=False):
    """A server of that model of examples/: with its pipeline, or (raw) its tensors alone."""
    if not ONNXRUNTIME or not os.path.exists(ONNXRUNTIME):
        raise Skip("TELLTALE_ONNXRUNTIME names no library")
    path = need(os.path.join(DEPS, "models", model, "1", "model.onnx"))
    more = ["--pipeline", "none"] if raw else []
    return Server("--model", path, "--instances", "1", *more, *options, simulate=None)


def path_of(model):
    return f"/v2/models/{model}/infer"


def bytes_tensor(elements):
    return b"".join(len(element).to_bytes(4, "little") + element for element in elements)


def binary_body(inputs, outputs=None):
    """(body, headers). inputs: name to array, or to a list of bytes (shape [n])."""
    tensors, data = [], []
    for name, value in inputs.items():
        if isinstance(value, list):
            kind, shape, raw = "BYTES", [len(value)], bytes_tensor(value)
        else:
            kind, shape, raw = NAMES[value.dtype], list(value.shape), np.ascontiguousarray(value).tobytes()
        tensors.append({"name": name, "datatype": kind, "shape": shape,
                        "parameters": {"binary_data_size": len(raw)}})
        data.append(raw)
    head = {"inputs": tensors, "parameters": {"binary_data_output": True}}
    if outputs:
        head["outputs"] = [{"name": name} for name in outputs]
    text = json.dumps(head).encode()
    return text + b"".join(data), [("Inference-Header-Content-Length", len(text))]


def json_body(inputs, outputs=None):
    """The same as text; bytes that are no text go as base64."""
    tensors = []
    for name, value in inputs.items():
        if isinstance(value, list):
            kind, shape = "BYTES", [len(value)]
            data = [item if isinstance(item, str) else base64.b64encode(item).decode() for item in value]
        else:
            kind, shape, data = NAMES[value.dtype], list(value.shape), value.ravel().tolist()
        tensors.append({"name": name, "datatype": kind, "shape": shape, "data": data})
    body = {"inputs": tensors}
    if outputs:
        body["outputs"] = [{"name": name} for name in outputs]
    return json.dumps(body).encode(), []


def arrays(response, what="answer"):
    """Outputs by name: arrays; BYTES ones object arrays of bytes."""
    equal(response.status, 200, f"{what}: {response.body[:300]!r}")
    size = int(response.headers.get("inference-header-content-length", len(response.body)))
    head, at, out = json.loads(response.body[:size]), size, {}
    for tensor in head["outputs"]:
        length = tensor.get("parameters", {}).get("binary_data_size")
        raw = None if length is None else response.body[at:at + length]
        at += length or 0
        out[tensor["name"]] = _array(tensor, raw)
    equal(at, len(response.body), "bytes used of the body")
    return out


def _array(tensor, raw):
    kind, shape = tensor["datatype"], tensor["shape"]
    if kind != "BYTES":
        flat = np.array(tensor["data"], TYPES[kind]) if raw is None else np.frombuffer(raw, TYPES[kind])
        return flat.reshape(shape)
    items = []
    if raw is None:
        items = [item.encode() for item in tensor["data"]]
    else:
        at = 0
        while at < len(raw):
            end = at + 4 + int.from_bytes(raw[at:at + 4], "little")
            items.append(raw[at + 4:end])
            at = end
    out = np.empty(len(items), object)
    out[:] = items
    return out.reshape(shape)


def ask(server, model, inputs, outputs=None, form=binary_body):
    body, headers = form(inputs, outputs)
    return arrays(server.post(body, path_of(model), headers), model)


def ask_picture(server, model, file, kind):
    """A picture as the raw body."""
    return arrays(server.post(file, path_of(model), [("Content-Type", kind)]), model)


def pixels_of(file):
    """(height, width, 3) RGB, upright, as Pillow reads it: file is a path or a file object."""
    picture = PIL.ImageOps.exif_transpose(PIL.Image.open(file))
    return np.asarray(picture.convert("RGB"))


def same_answers(got, expected, what):
    equal(sorted(got), sorted(expected), f"outputs of {what}")
    for name, value in expected.items():
        equal(got[name].shape, value.shape, f"shape of {name}, {what}")
        check((got[name] == value).all(), f"{name} differs, {what}: {got[name]} {value}")


def closest(got, expected, most, what):
    """A failure where the arrays differ by more than most; returns by how much they do."""
    equal(got.shape, expected.shape, f"shape of {what}")
    difference = float(np.abs(got.astype(float) - expected.astype(float)).max()) if got.size else 0.0
    check(difference <= most, f"{what}: differs by {difference}, more than {most}")
    return difference
