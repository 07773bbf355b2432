"""The training and held-out mails as token ids.

Reads what scripts/setup made: MAILS/{ham,spam}/*.txt. The split is part of the model:
scripts/make_mails writes the same one to heldout.txt.
"""
import os
import random

from wordpiece import WordPiece

TRAINING_SHARE = 0.85
SPLIT_SEED = 7


def load(mails, tokenizer, limit=None):
    """-> (training, held_out), lists of (ids, label); label 1 is spam"""
    encode = WordPiece(tokenizer).encode
    names = sorted(f"{kind}/{name}" for kind in ("ham", "spam")
                   for name in os.listdir(os.path.join(mails, kind)))
    random.seed(SPLIT_SEED)
    random.shuffle(names)
    count = int(TRAINING_SHARE * len(names))
    training, held_out = names[:count], names[count:]
    if limit:
        training, held_out = training[:limit], held_out[:max(1, limit // 5)]

    def read(name):
        with open(os.path.join(mails, name), encoding="utf-8") as file:
            return encode(file.read()), int(name.startswith("spam/"))
    return [read(name) for name in training], [read(name) for name in held_out]
