"""ONNX models from the standard library alone: a model is a handful of protobuf fields, numbered
in onnx.proto, and these are all that the tests and benchmarks need."""

FLOAT, UINT8, INT8, UINT16, INT16, INT32, INT64, STRING, BOOL, FP16, DOUBLE, UINT32, UINT64 = range(1, 14)
BF16, FLOAT8 = 16, 17


def varint(n):
    out = b""
    while n > 0x7F:
        out += bytes([n & 0x7F | 0x80])
        n >>= 7
    return out + bytes([n])


def integer(field, n):
    return varint(field << 3) + varint(n)


def blob(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def tensor(name, dtype, dims, raw):  # TensorProto
    return b"".join(integer(1, d) for d in dims) + integer(2, dtype) + blob(8, name) + blob(9, raw)


def tensor_type(dtype, dims):  # TypeProto.tensor_type; dims None: no rank, "": unnamed, "n": named
    shape = b""
    if dims is not None:
        for d in dims:
            shape += blob(1, integer(1, d) if isinstance(d, int) else blob(2, d) if d else b"")
        shape = blob(2, shape)
    return blob(1, integer(1, dtype) + shape)


def value(name, dtype, dims):  # ValueInfoProto
    return blob(1, name) + blob(2, tensor_type(dtype, dims))


def sequence(name, dtype, dims):
    return blob(1, name) + blob(2, blob(4, blob(1, tensor_type(dtype, dims))))


def attribute(name, n):  # AttributeProto, an integer
    return blob(1, name) + integer(3, n) + integer(20, 2)


def node(op, inputs, outputs, name="", attributes=()):
    return (b"".join(blob(1, i) for i in inputs) + b"".join(blob(2, o) for o in outputs) +
            blob(3, name) + blob(4, op) + b"".join(blob(5, a) for a in attributes))


def write(path, nodes, inputs, outputs, constants=(), opset=17):
    graph = (b"".join(blob(1, n) for n in nodes) + blob(2, "g") +
             b"".join(blob(5, c) for c in constants) + b"".join(blob(11, i) for i in inputs) +
             b"".join(blob(12, o) for o in outputs))
    model = integer(1, 9) + blob(2, "telltale tests") + blob(7, graph) + blob(8, integer(2, opset))
    with open(path, "wb") as f:
        f.write(model)
