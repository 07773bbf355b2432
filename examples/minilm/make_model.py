#!/usr/bin/env python3
"""Writes an encoder of MiniLM-L6's shape with seeded random weights: for loads, not for meaning.

    make_model.py OUT.onnx [LAYERS]

6 layers, 384 wide, 12 heads, 30,522 tokens, 512 positions: 22.6 million weights, 90 MB, and the
arithmetic of all-MiniLM-L6. Needs python3-onnx and python3-numpy, nothing else.
"""
import math
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

VOCABULARY, POSITIONS, TYPES = 30522, 512, 2
WIDTH, HEADS, INNER = 384, 12, 1536
EPSILON = 1e-12
MASKED = -10000.0  # added to the score of a filled-up position: its weight is then 0 in float32


class Graph:
    """Nodes and weights as they are added; every value is called by its name."""

    def __init__(self, seed):
        self.nodes, self.weights = [], []
        self.random = np.random.RandomState(seed)  # whose stream never changes

    def add(self, kind, *inputs, name, **attributes):
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        return name

    def constant(self, name, values, dtype=np.float32):
        self.weights.append(numpy_helper.from_array(np.asarray(values, dtype), name))
        return name

    def drawn(self, name, *shape):
        return self.constant(name, 0.02 * self.random.standard_normal(shape))

    def linear(self, x, name, inputs, outputs):
        product = self.add("MatMul", x, self.drawn(f"{name}.weight", inputs, outputs),
                           name=f"{name}.product")
        return self.add("Add", product, self.constant(f"{name}.bias", np.zeros(outputs)), name=name)

    def normal(self, x, name):
        return self.add("LayerNormalization", x, self.constant(f"{name}.scale", np.ones(WIDTH)),
                        self.constant(f"{name}.shift", np.zeros(WIDTH)), name=name,
                        axis=-1, epsilon=EPSILON)


def embeddings(graph):
    word = graph.add("Gather", graph.drawn("word.weight", VOCABULARY, WIDTH), "input_ids", name="word")
    kind = graph.add("Gather", graph.drawn("type.weight", TYPES, WIDTH), "token_type_ids", name="type")
    shape = graph.add("Shape", "input_ids", name="length", start=1, end=2)
    place = graph.add("Slice", graph.drawn("position.weight", POSITIONS, WIDTH),
                      graph.constant("zero", [0], np.int64), shape, name="position")
    both = graph.add("Add", word, kind, name="word_and_type")
    return graph.normal(graph.add("Add", both, place, name="embedded"), "embedding")


def attention_bias(graph):
    """(batch, 1, 1, length): 0 for a token, MASKED for a filled-up position"""
    mask = graph.add("Cast", "attention_mask", name="mask", to=TensorProto.FLOAT)
    gone = graph.add("Sub", graph.constant("one", 1.0), mask, name="not_a_token")
    bias = graph.add("Mul", gone, graph.constant("masked", MASKED), name="bias_flat")
    return graph.add("Unsqueeze", bias, graph.constant("axes", [1, 2], np.int64), name="bias")


def attention(graph, x, bias, name):
    def heads(what, order):
        value = graph.linear(x, f"{name}.{what}", WIDTH, WIDTH)
        split = graph.add("Reshape", value, "split_shape", name=f"{name}.{what}.split")
        return graph.add("Transpose", split, name=f"{name}.{what}.heads", perm=order)
    query, key, value = heads("query", [0, 2, 1, 3]), heads("key", [0, 2, 3, 1]), heads("value", [0, 2, 1, 3])
    scores = graph.add("MatMul", query, key, name=f"{name}.scores")
    scaled = graph.add("Div", scores, "head_scale", name=f"{name}.scaled")
    seen = graph.add("Add", scaled, bias, name=f"{name}.seen")
    weights = graph.add("Softmax", seen, name=f"{name}.weights", axis=-1)
    mixed = graph.add("MatMul", weights, value, name=f"{name}.mixed")
    back = graph.add("Transpose", mixed, name=f"{name}.back", perm=[0, 2, 1, 3])
    joined = graph.add("Reshape", back, "joined_shape", name=f"{name}.joined")
    return graph.linear(joined, f"{name}.out", WIDTH, WIDTH)


def gelu(graph, x, name):
    ratio = graph.add("Div", x, "root_of_two", name=f"{name}.ratio")
    erf = graph.add("Erf", ratio, name=f"{name}.erf")
    more = graph.add("Add", erf, "one", name=f"{name}.more")
    return graph.add("Mul", graph.add("Mul", x, more, name=f"{name}.twice"), "half", name=name)


def encoder(layers):
    graph = Graph(1234)
    x, bias = embeddings(graph), attention_bias(graph)
    graph.constant("half", 0.5)
    graph.constant("root_of_two", math.sqrt(2))
    graph.constant("head_scale", math.sqrt(WIDTH // HEADS))
    graph.constant("split_shape", [0, 0, HEADS, WIDTH // HEADS], np.int64)
    graph.constant("joined_shape", [0, 0, WIDTH], np.int64)
    for index in range(layers):
        name = f"layer{index}"
        attended = graph.add("Add", x, attention(graph, x, bias, f"{name}.attention"),
                             name=f"{name}.attended")
        x = graph.normal(attended, f"{name}.first_norm")
        inner = gelu(graph, graph.linear(x, f"{name}.inner", WIDTH, INNER), f"{name}.gelu")
        fed = graph.add("Add", x, graph.linear(inner, f"{name}.outer", INNER, WIDTH), name=f"{name}.fed")
        last = "last_hidden_state" if index == layers - 1 else f"{name}.second_norm"
        x = graph.normal(fed, last)
    names = ("input_ids", "attention_mask", "token_type_ids")
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "seq"]) for name in names]
    output = helper.make_tensor_value_info(x, TensorProto.FLOAT, ["batch", "seq", WIDTH])
    return helper.make_model(
        helper.make_graph(graph.nodes, "minilm_l6_shaped", inputs, [output], graph.weights),
        producer_name="make_model.py", ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__.split("\n\n")[1].strip())
    model = encoder(int(sys.argv[2]) if len(sys.argv) == 3 else 6)
    onnx.checker.check_model(model)
    onnx.save(model, sys.argv[1])


if __name__ == "__main__":
    main()
