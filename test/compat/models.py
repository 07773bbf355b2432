"""The models that Triton's public examples ask for, made small: names, inputs and outputs are what
those clients expect, the work is as little as will give the right numbers.

    test/compat/models.py DIRECTORY     writes NAME/1/model.onnx and NAME/config.pbtxt there

Needs python3-onnx. Seven models, since one of the examples counts them.
"""
import os
import sys

from onnx import TensorProto, checker, helper, save


def value(name, dtype, shape):
    return helper.make_tensor_value_info(name, dtype, shape)


def sum_and_difference(dtype):
    """OUTPUT0 = INPUT0 + INPUT1, OUTPUT1 = INPUT0 - INPUT1; through int32 where dtype cannot"""
    inner = [["INPUT0", "INPUT1"], ["OUTPUT0", "OUTPUT1"]]
    nodes = []
    if dtype != TensorProto.INT32:
        inner = [["a", "b"], ["c", "d"]]
        nodes = [helper.make_node("Cast", [f"INPUT{i}"], [inner[0][i]], to=TensorProto.INT32)
                 for i in range(2)]
    nodes += [helper.make_node("Add", inner[0], [inner[1][0]]),
              helper.make_node("Sub", inner[0], [inner[1][1]])]
    if dtype != TensorProto.INT32:
        nodes += [helper.make_node("Cast", [inner[1][i]], [f"OUTPUT{i}"], to=dtype)
                  for i in range(2)]
    shape = ["batch", 16]
    return nodes, [value("INPUT0", dtype, shape), value("INPUT1", dtype, shape)], \
        [value("OUTPUT0", dtype, shape), value("OUTPUT1", dtype, shape)], []


def identity(dtype):
    shape = ["batch", "length"]
    return [helper.make_node("Identity", ["INPUT0"], ["OUTPUT0"])], \
        [value("INPUT0", dtype, shape)], [value("OUTPUT0", dtype, shape)], []


def picture():
    """a picture's first thousand numbers as scores: a stand-in for a classifier"""
    ends = [helper.make_tensor(name, TensorProto.INT64, dims, numbers) for name, dims, numbers in
            (("all", [1], [-1]), ("from", [1], [0]), ("to", [1], [1000]))]
    nodes = [helper.make_node("Reshape", ["data_0", "all"], ["flat"]),
             helper.make_node("Slice", ["flat", "from", "to"], ["fc6_1"])]
    return nodes, [value("data_0", TensorProto.FLOAT, [3, 224, 224])], \
        [value("fc6_1", TensorProto.FLOAT, [1000])], ends


def plus_one():
    one = helper.make_tensor("one", TensorProto.FLOAT, [1], [1.0])
    return [helper.make_node("Add", ["INPUT0", "one"], ["OUTPUT0"])], \
        [value("INPUT0", TensorProto.FLOAT, ["batch", 16])], \
        [value("OUTPUT0", TensorProto.FLOAT, ["batch", 16])], [one]


BATCHED = 'platform: "onnxruntime_onnx"\nmax_batch_size: 8\ndynamic_batching { }\n'
PICTURE = """platform: "onnxruntime_onnx"
max_batch_size: 0
input [ { name: "data_0" data_type: TYPE_FP32 format: FORMAT_NCHW dims: [ 3, 224, 224 ] } ]
output [ { name: "fc6_1" data_type: TYPE_FP32 dims: [ 1000 ] label_filename: "labels.txt" } ]
"""
MODELS = {
    "simple": (sum_and_difference(TensorProto.INT32), BATCHED),
    "simple_int8": (sum_and_difference(TensorProto.INT8), BATCHED),
    "simple_string": (sum_and_difference(TensorProto.STRING), BATCHED),
    "simple_identity": (identity(TensorProto.STRING), BATCHED),
    "custom_identity_int32": (identity(TensorProto.INT32), BATCHED),
    "densenet_onnx": (picture(), PICTURE),
    "add_one": (plus_one(), BATCHED),
}


def write(directory):
    for name, ((nodes, inputs, outputs, constants), config) in MODELS.items():
        graph = helper.make_graph(nodes, name, inputs, outputs, constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        model.ir_version = 8
        checker.check_model(model)
        os.makedirs(os.path.join(directory, name, "1"), exist_ok=True)
        save(model, os.path.join(directory, name, "1", "model.onnx"))
        with open(os.path.join(directory, name, "config.pbtxt"), "w", encoding="ascii") as file:
            file.write(config)
    with open(os.path.join(directory, "densenet_onnx", "labels.txt"), "w", encoding="ascii") as file:
        file.writelines(f"class {i}\n" for i in range(1000))


if __name__ == "__main__":
    write(sys.argv[1])
