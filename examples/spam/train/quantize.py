#!/usr/bin/env python3
"""Turns an fp32 ONNX model into int8: weights now, activations as they come.

MatMul and Gemm with constant weights become MatMulInteger (symmetric, a scale for each
output column; activations by DynamicQuantizeLinear); large embeddings are kept in int8
and dequantized after the look-up. Needs python3-onnx and numpy only.
"""
import argparse
from collections import Counter

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LARGE_EMBEDDING_ROWS = 1000  # below that the saving is not worth the rounding


def round_to_int8(values):
    return np.clip(np.round(values), -127, 127).astype(np.int8)


class Quantizer:
    def __init__(self, graph):
        self.graph = graph
        self.initializers = {tensor.name: tensor for tensor in graph.initializer}
        self.uses = Counter(name for node in graph.node for name in node.input)
        self.nodes, self.added, self.dropped = [], [], set()
        self.quantized_inputs = set()

    def run(self):
        for node in self.graph.node:
            if self._is_constant_product(node):
                self._product(node)
            elif self._is_large_embedding(node):
                self._embedding(node)
            else:
                self.nodes.append(node)
        kept = [t for t in self.graph.initializer if t.name not in self.dropped]
        del self.graph.node[:]
        self.graph.node.extend(self.nodes)
        del self.graph.initializer[:]
        self.graph.initializer.extend(kept + self.added)
        del self.graph.value_info[:]

    def _is_constant_product(self, node):
        if node.op_type not in ("MatMul", "Gemm") or node.input[1] not in self.initializers:
            return False
        return node.op_type == "Gemm" or len(self.initializers[node.input[1]].dims) == 2

    def _is_large_embedding(self, node):
        weights = self.initializers.get(node.input[0]) if node.op_type == "Gather" else None
        return (weights is not None and weights.data_type == TensorProto.FLOAT
                and len(weights.dims) == 2 and weights.dims[0] > LARGE_EMBEDDING_ROWS)

    def _constant(self, name, value):
        self.added.append(numpy_helper.from_array(value, name))

    def _node(self, kind, inputs, output, **attributes):
        self.nodes.append(helper.make_node(kind, inputs, [output], **attributes))

    def _drop_if_unused(self, weights):
        if self.uses[weights] == 1:
            self.dropped.add(weights)

    def _quantize_input(self, name):
        if name not in self.quantized_inputs:
            self.quantized_inputs.add(name)
            self.nodes.append(helper.make_node(
                "DynamicQuantizeLinear", [name], [f"{name}_dq", f"{name}_ds", f"{name}_dz"],
                name=f"{name}_DQL"))

    def _product(self, node):
        weights = numpy_helper.to_array(self.initializers[node.input[1]]).astype(np.float32)
        is_gemm = node.op_type == "Gemm"
        if is_gemm:
            attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
            if attributes.get("transB", 0):
                weights = weights.T
        scale = np.maximum(np.abs(weights).max(0), 1e-12) / 127.0
        source, output = node.input[0], node.output[0]
        stem = f"{output}_q"
        self._quantize_input(source)
        self._constant(f"{stem}_w", round_to_int8(weights / scale))
        self._constant(f"{stem}_s", scale.astype(np.float32))
        self._node("MatMulInteger", [f"{source}_dq", f"{stem}_w", f"{source}_dz"], f"{stem}_i",
                   name=f"{stem}_MMI")
        self._node("Cast", [f"{stem}_i"], f"{stem}_f", to=TensorProto.FLOAT)
        self._node("Mul", [f"{source}_ds", f"{stem}_s"], f"{stem}_ss")
        product = f"{stem}_m" if is_gemm else output
        self._node("Mul", [f"{stem}_f", f"{stem}_ss"], product)
        if is_gemm:
            self._node("Add", [product, node.input[2]], output)
        self._drop_if_unused(node.input[1])

    def _embedding(self, node):
        weights = numpy_helper.to_array(self.initializers[node.input[0]])
        scale = np.float32(np.abs(weights).max() / 127.0)
        output = node.output[0]
        stem = f"{output}_q"
        self._constant(f"{stem}_w", round_to_int8(weights / scale))
        self._constant(f"{stem}_s", np.array(scale, np.float32))
        self._constant(f"{stem}_z", np.array(0, np.int8))
        self._node("Gather", [f"{stem}_w", node.input[1]], f"{stem}_g", axis=0)
        self._node("DequantizeLinear", [f"{stem}_g", f"{stem}_s", f"{stem}_z"], output)
        self._drop_if_unused(node.input[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("fp32", help=".onnx to read")
    parser.add_argument("int8", help=".onnx to write")
    args = parser.parse_args()
    model = onnx.load(args.fp32)
    Quantizer(model.graph).run()
    onnx.checker.check_model(model)
    onnx.save(model, args.int8)


if __name__ == "__main__":
    main()
