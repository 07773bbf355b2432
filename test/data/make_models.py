#!/usr/bin/env python3
"""Writes the small ONNX models of the tests, each beside this file. Standard library only.

    python3 test/data/make_models.py
"""
import os
import struct

import onnx_writer
from onnx_writer import (BF16, BOOL, DOUBLE, FLOAT, FLOAT8, FP16, INT64, INT8, STRING, UINT64,
                         attribute, node, sequence, tensor, value)


def write(file, *parts, **more):
    onnx_writer.write(os.path.join(os.path.dirname(os.path.abspath(__file__)), file), *parts, **more)


ONE = tensor("one", FLOAT, [1], struct.pack("<f", 1))

write("add.onnx", [node("Add", ["INPUT0", "one"], ["OUTPUT0"])],
      [value("INPUT0", FLOAT, ["batch", 16])], [value("OUTPUT0", FLOAT, ["batch", 16])], [ONE])
# The same with a fixed batch.
write("add_fixed.onnx", [node("Add", ["INPUT0", "one"], ["OUTPUT0"])],
      [value("INPUT0", FLOAT, [1, 16])], [value("OUTPUT0", FLOAT, [1, 16])], [ONE])
# Three of its weights are subnormal.
write("subnormal.onnx", [node("Mul", ["X", "w"], ["Y"])],
      [value("X", FLOAT, ["n", 16])], [value("Y", FLOAT, ["n", 16])],
      [tensor("w", FLOAT, [16], struct.pack("<16f", 1e-39, -1e-45, 1.1e-38, *range(13)))])
write("strings.onnx", [node("Identity", ["S"], ["T"])],
      [value("S", STRING, ["n"])], [value("T", STRING, ["n"])])
KINDS = [("BOOL", BOOL), ("FP16", FP16), ("BF16", BF16), ("INT8", INT8), ("UINT64", UINT64), ("FP64", DOUBLE)]
write("kinds.onnx", [node("Identity", ["in_" + k], ["out_" + k]) for k, _ in KINDS],
      [value("in_" + k, t, ["n", 2]) for k, t in KINDS],
      [value("out_" + k, t, ["n", 2]) for k, t in KINDS])
write("cast.onnx", [node("Cast", ["X"], ["Y"], attributes=[attribute("to", INT64)])],
      [value("X", FLOAT, ["n"])], [value("Y", INT64, ["n"])])
write("scalar.onnx", [node("Add", ["X", "X"], ["Y"])], [value("X", FLOAT, [])], [value("Y", FLOAT, [])])
# An output whose shape depends on the values.
write("nonzero.onnx", [node("NonZero", ["X"], ["Y"])],
      [value("X", FLOAT, ["n", "m"])], [value("Y", INT64, [2, ""])])
# Fails where n is not a multiple of 3.
write("reshape.onnx", [node("Reshape", ["X", "to"], ["Y"], name="fold")],
      [value("X", FLOAT, ["n"])], [value("Y", FLOAT, ["k", 3])],
      [tensor("to", INT64, [2], struct.pack("<qq", -1, 3))])
# Fails where an index is out of range.
write("gather.onnx", [node("Gather", ["table", "I"], ["Y"], name="look_up")],
      [value("I", INT64, ["n"])], [value("Y", FLOAT, ["n", 2])],
      [tensor("table", FLOAT, [3, 2], struct.pack("<6f", *range(6)))])
# "one" may be overridden, and need not.
write("overridable.onnx", [node("Add", ["X", "one"], ["Y"])],
      [value("X", FLOAT, ["n"]), value("one", FLOAT, [1])], [value("Y", FLOAT, ["n"])], [ONE])
# Declares an output as long as its input, and keeps to it only while every value is positive.
write("promise.onnx", [node("Greater", ["X", "zero"], ["keep"]), node("Compress", ["X", "keep"], ["Y"])],
      [value("X", FLOAT, ["n"])], [value("Y", FLOAT, ["n"])],
      [tensor("zero", FLOAT, [1], struct.pack("<f", 0))])
write("any_shape.onnx", [node("Neg", ["X"], ["Y"])], [value("X", FLOAT, None)], [value("Y", FLOAT, None)])
# Not to be loaded: what is not a tensor, too many dimensions, a type that the protocol lacks.
write("sequence.onnx", [node("SequenceLength", ["Q"], ["Y"])],
      [sequence("Q", FLOAT, ["n"])], [value("Y", INT64, [])])
write("rank9.onnx", [node("Neg", ["X"], ["Y"])], [value("X", FLOAT, ["a"] * 9)], [value("Y", FLOAT, ["a"] * 9)])
write("float8.onnx", [node("Cast", ["X"], ["Y"], attributes=[attribute("to", FLOAT)])],
      [value("X", FLOAT8, ["n"])], [value("Y", FLOAT, ["n"])], opset=19)

# Pictures: what a pipeline made of them comes back as it is; of one size, unbatched, of any size.
for name, shape in [("picture", ["n", 3, 4, 6]), ("picture_one", [1, 3, 4, 6]),
                    ("picture_any", ["n", 3, "h", "w"])]:
    write(name + ".onnx", [node("Identity", ["pixels"], ["same"])],
          [value("pixels", FLOAT, shape)], [value("same", FLOAT, shape)])
# Each line of each channel is an anchor of a YOLOv5 head with one class.
write("picture_boxes.onnx", [node("Reshape", ["pixels", "shape"], ["head"])],
      [value("pixels", FLOAT, ["n", 3, 4, 6])], [value("head", FLOAT, ["n", 12, 6])],
      [tensor("shape", INT64, [3], struct.pack("<3q", 0, 12, 6))])
# Two anchors of three classes and their boxes, under the names that a pipeline's detect gives: the
# first 6 numbers of red, and the 8 after them.
write("picture_pair.onnx", [node("Reshape", ["pixels", "flat"], ["line"]),
                            node("Split", ["line", "parts"], ["a", "b", "rest"], attributes=[attribute("axis", 1)]),
                            node("Reshape", ["a", "two_by_3"], ["scores"]),
                            node("Reshape", ["b", "two_by_4"], ["boxes"])],
      [value("pixels", FLOAT, ["n", 3, 4, 6])],
      [value("scores", FLOAT, ["n", 2, 3]), value("boxes", FLOAT, ["n", 2, 4])],
      [tensor("flat", INT64, [2], struct.pack("<2q", 0, 72)),
       tensor("parts", INT64, [3], struct.pack("<3q", 6, 8, 58)),
       tensor("two_by_3", INT64, [3], struct.pack("<3q", 0, 2, 3)),
       tensor("two_by_4", INT64, [3], struct.pack("<3q", 0, 2, 4))])
# Texts: the ids and the mask as they are.
write("tokens.onnx", [node("Identity", ["input_ids"], ["ids"]),
                      node("Identity", ["attention_mask"], ["mask"])],
      [value("input_ids", INT64, ["n", "length"]), value("attention_mask", INT64, ["n", "length"])],
      [value("ids", INT64, ["n", "length"]), value("mask", INT64, ["n", "length"])])
