#!/usr/bin/env python3
"""Trains the spam classifier from scratch on one thread (about 8 minutes), into a .pt file."""
import argparse
import random
import time

import torch
from torch import nn

import mails
from bert import Classifier

SEED = 7
BATCH = 32
LEARNING_RATE = 5e-4
WARMUP_STEPS = 50


def collate(rows):
    longest = max(len(ids) for ids, _ in rows)
    ids = torch.tensor([row + [0] * (longest - len(row)) for row, _ in rows])
    labels = torch.tensor([label for _, label in rows])
    return (ids, (ids != 0).long(), torch.zeros_like(ids)), labels


def evaluate(model, rows):
    model.eval()
    right = true_spam = called_spam = spam = 0
    with torch.no_grad():
        for start in range(0, len(rows), 64):
            inputs, labels = collate(rows[start:start + 64])
            guess = model(*inputs).argmax(1)
            right += (guess == labels).sum().item()
            true_spam += ((guess == 1) & (labels == 1)).sum().item()
            called_spam += (guess == 1).sum().item()
            spam += (labels == 1).sum().item()
    f1 = 2 * true_spam / max(1, called_spam + spam)
    return f"accuracy {right / len(rows):.4f}, F1 {f1:.4f} on {len(rows)} held-out mails"


def train(model, rows, epochs, report):
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=0.01)
    total, step = epochs * (len(rows) // BATCH), 0
    for epoch in range(epochs):
        model.train()
        random.shuffle(rows)
        for start in range(0, len(rows) - BATCH + 1, BATCH):
            inputs, labels = collate(rows[start:start + BATCH])
            # Linear warm-up, then linear decay to zero.
            rate = LEARNING_RATE * min(1, (step + 1) / WARMUP_STEPS) * (1 - step / (total + 1))
            optimizer.param_groups[0]["lr"] = rate
            loss = nn.functional.cross_entropy(model(*inputs), labels)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            step += 1
        report(epoch, loss.item())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mails", required=True, help="directory with ham/ and spam/")
    parser.add_argument("--tokenizer", required=True, help="tokenizer.json")
    parser.add_argument("--out", required=True, help="weights to write (.pt)")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--limit", type=int, help="train on that many mails only (a trial)")
    args = parser.parse_args()

    torch.set_num_threads(1)  # so that a run can be repeated
    torch.manual_seed(SEED)
    training, held_out = mails.load(args.mails, args.tokenizer, args.limit)
    print(f"{len(training)} mails to train on", flush=True)
    model = Classifier()
    began = time.monotonic()

    def report(epoch, loss):
        print(f"epoch {epoch}: loss {loss:.4f}, {evaluate(model, held_out)}, "
              f"{time.monotonic() - began:.0f} s", flush=True)
    train(model, training, args.epochs, report)
    torch.save(model.state_dict(), args.out)


if __name__ == "__main__":
    main()
