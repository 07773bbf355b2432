"""The node tests of ONNX as Debian's libonnx-testdata installs them: a model, its inputs, what it
should answer. Tensors stay as bytes, little endian, so that every type goes through unchanged.

Needs python3-onnx and python3-numpy. Read next: onnx_wire.py, which asks a server.
"""
import glob
import os
import struct

import numpy as np
import onnx
from onnx import TensorProto

DATA = "/usr/share/libonnx-testdata/data"

# ONNX's number of a type -> the protocol's name, NumPy's type. bfloat16 has none in NumPy.
TYPES = {
    TensorProto.BOOL: ("BOOL", np.dtype("?")),
    TensorProto.UINT8: ("UINT8", np.dtype("<u1")), TensorProto.UINT16: ("UINT16", np.dtype("<u2")),
    TensorProto.UINT32: ("UINT32", np.dtype("<u4")), TensorProto.UINT64: ("UINT64", np.dtype("<u8")),
    TensorProto.INT8: ("INT8", np.dtype("<i1")), TensorProto.INT16: ("INT16", np.dtype("<i2")),
    TensorProto.INT32: ("INT32", np.dtype("<i4")), TensorProto.INT64: ("INT64", np.dtype("<i8")),
    TensorProto.FLOAT16: ("FP16", np.dtype("<f2")), TensorProto.FLOAT: ("FP32", np.dtype("<f4")),
    TensorProto.DOUBLE: ("FP64", np.dtype("<f8")), TensorProto.BFLOAT16: ("BF16", np.dtype("<u2")),
    TensorProto.STRING: ("BYTES", None),
}
BY_NAME = {name: (number, dtype) for number, (name, dtype) in TYPES.items()}
FLOATS = {"FP16", "FP32", "FP64", "BF16"}
# ONNX's own back-end tests use these.
RELATIVE, ABSOLUTE = 1e-3, 1e-7
MOST_ROWS = 16  # of a model whose rows are asked for one by one


class Tensor:
    """name, datatype (the protocol's), shape, data (BYTES: each element a u32 length and bytes)"""

    def __init__(self, name, datatype, shape, data):
        self.name, self.datatype = name, datatype
        self.shape, self.data = [int(dim) for dim in shape], bytes(data)

    def strings(self):
        out, at = [], 0
        while at < len(self.data):
            size = struct.unpack_from("<I", self.data, at)[0]
            out.append(self.data[at + 4:at + 4 + size])
            at += 4 + size
        return out

    def array(self):
        """values as NumPy's array; bfloat16 becomes float32"""
        if self.datatype == "BYTES":
            return np.array(self.strings(), dtype=object).reshape(self.shape)
        flat = np.frombuffer(self.data, BY_NAME[self.datatype][1])
        if self.datatype == "BF16":
            flat = (flat.astype("<u4") << 16).view("<f4")
        return flat.reshape(self.shape)

    def rows(self):
        """one Tensor of shape [1, ...] a row"""
        count = self.shape[0]
        if self.datatype == "BYTES":
            texts = self.strings()
            size = len(texts) // count
            parts = [pack_strings(texts[i * size:(i + 1) * size]) for i in range(count)]
        else:
            size = len(self.data) // count
            parts = [self.data[i * size:(i + 1) * size] for i in range(count)]
        return [Tensor(self.name, self.datatype, [1, *self.shape[1:]], part) for part in parts]

    def is_finite(self):
        return self.datatype not in FLOATS or bool(np.isfinite(self.array()).all())

    def is_utf8(self):
        try:
            return self.datatype != "BYTES" or all(text.decode() is not None
                                                   for text in self.strings())
        except UnicodeDecodeError:
            return False


def pack_strings(strings):
    return b"".join(struct.pack("<I", len(text)) + text for text in strings)


def from_proto(proto, name):
    """a TensorProto as a Tensor"""
    datatype, dtype = TYPES[proto.data_type]
    if datatype == "BYTES":
        data = pack_strings(proto.string_data)
    elif proto.HasField("raw_data"):
        data = proto.raw_data
    elif datatype in ("FP16", "BF16"):
        data = np.array(proto.int32_data, "<u2").tobytes()
    else:
        field = {"FP32": "float_data", "FP64": "double_data", "INT64": "int64_data",
                 "UINT64": "uint64_data", "UINT32": "uint64_data"}.get(datatype, "int32_data")
        data = np.array(getattr(proto, field)).astype(dtype).tobytes()
    return Tensor(name, datatype, proto.dims, data)


class Case:
    """One model and one set of data. inputs and expected are None where one is no tensor."""

    def __init__(self, name, model, inputs, expected):
        self.name, self.model, self.inputs, self.expected = name, model, inputs, expected


def read_files(directory, kind, values):
    """[Tensor], by position; None where a file holds something else"""
    out = []
    for i, value in enumerate(values):
        path = os.path.join(directory, f"{kind}_{i}.pb")
        if not os.path.exists(path):
            break
        if value.type.WhichOneof("value") != "tensor_type":
            return None
        with open(path, "rb") as file:
            tensor = from_proto(TensorProto.FromString(file.read()), value.name)
        # The files have bfloat16's bits as uint16.
        if value.type.tensor_type.elem_type == TensorProto.BFLOAT16:
            tensor.datatype = "BF16"
        out.append(tensor)
    return out


def read_case(directory, name):
    model = os.path.join(directory, "model.onnx")
    graph = onnx.load(model).graph
    fixed = {tensor.name for tensor in graph.initializer}
    given = [value for value in graph.input if value.name not in fixed]
    data = os.path.join(directory, "test_data_set_0")
    return Case(name, model, read_files(data, "input", given),
                read_files(data, "output", graph.output))


def all_names(data=DATA):
    """[(name, directory)], sorted; models without a file (to be downloaded) are left out"""
    out = {}
    for directory in sorted(glob.glob(os.path.join(data, "*", "*"))):
        if os.path.exists(os.path.join(directory, "model.onnx")):
            name = os.path.basename(directory)
            if name in out:
                name = f"{os.path.basename(os.path.dirname(directory))}-{name}"
            out[name] = directory
    return sorted(out.items())


def free_rows(case, outputs, path):
    """The model with a free first dimension, written to path; None where its inputs and outputs
    (as they were given and came) have not one number of rows."""
    counts = {tensor.shape[0] if tensor.shape else 0 for tensor in case.inputs + outputs}
    if len(counts) != 1 or not 2 <= min(counts) <= MOST_ROWS:
        return None
    model = onnx.load(case.model)
    fixed = {tensor.name for tensor in model.graph.initializer}
    for value in [*model.graph.input, *model.graph.output]:
        dims = value.type.tensor_type.shape.dim
        if value.name in fixed:
            continue
        if not dims:
            return None
        dims[0].Clear()
        dims[0].dim_param = "rows"
    del model.graph.value_info[:]
    onnx.save(model, path)
    return Case(case.name + ".rows", path, case.inputs, outputs)


def difference(got, expected):
    """what is different, or None; both are lists of Tensors"""
    if len(got) != len(expected):
        return f"{len(got)} outputs, not {len(expected)}"
    for ours, theirs in zip(got, expected):
        what = f"output {theirs.name}"
        if (ours.name, ours.datatype, ours.shape) != (theirs.name, theirs.datatype, theirs.shape):
            return f"{what}: {ours.name} {ours.datatype} {ours.shape}, not " \
                   f"{theirs.datatype} {theirs.shape}"
        if theirs.datatype not in FLOATS:
            if ours.data != theirs.data:
                return f"{what}: {theirs.datatype} values differ"
            continue
        a, b = ours.array().astype("f8"), theirs.array().astype("f8")
        if not np.allclose(a, b, RELATIVE, ABSOLUTE, equal_nan=True):
            finite = np.isfinite(a) & np.isfinite(b)
            largest = np.abs(a - b)[finite].max() if finite.any() else float("nan")
            return f"{what}: {theirs.datatype} values differ, by up to {largest:.3g}"
    return None


def is_same_form(got, expected):
    """the same names, types and shapes, whatever the values: for models that draw numbers"""
    def form(tensors):
        return [(tensor.name, tensor.datatype, tensor.shape) for tensor in tensors]
    return form(got) == form(expected)
