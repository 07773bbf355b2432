#!/usr/bin/env python3
"""Writes trained weights as an ONNX model with free batch and sequence dimensions."""
import argparse

import torch

from bert import Classifier

INPUTS = ["input_ids", "attention_mask", "token_type_ids"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("weights", help=".pt, from train.py")
    parser.add_argument("model", help=".onnx to write")
    args = parser.parse_args()

    model = Classifier()
    model.load_state_dict(torch.load(args.weights))
    model.eval()
    ids = torch.randint(0, 1000, (2, 16))
    example = (ids, torch.ones_like(ids), torch.zeros_like(ids))
    axes = {name: {0: "batch", 1: "seq"} for name in INPUTS}
    axes["logits"] = {0: "batch"}
    torch.onnx.export(model, example, args.model, input_names=INPUTS, output_names=["logits"],
                      dynamic_axes=axes, opset_version=14, do_constant_folding=True)


if __name__ == "__main__":
    main()
