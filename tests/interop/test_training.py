#!/usr/bin/env python3
"""Twenty steps of AdamW from one folder give the same losses here and in Hugging Face's transformers with torch, for each family,
and the folder that we write then gives the same logits there. test_training.py FOLDER_OF_BINARIES; says what is missing and
ends with 77 where transformers are not installed."""

import os
import sys
import tempfile

from test_transformers import KINDS
from transformers_kit import apart, class_of, engine, ready

STEPS, ROWS, LENGTH, VOCAB = 20, 2, 24, 271  # as in engine_logits.c
LOSS_LIMIT, LOGIT_LIMIT = 2e-5, 1e-3


def tokens():
    """Inputs and targets, as engine_logits.c makes them."""
    import torch

    line = torch.tensor([(i * i * 3 + i * 7) % VOCAB for i in range(ROWS * LENGTH + 1)])
    return line[:-1].reshape(ROWS, LENGTH), line[1:].reshape(ROWS, LENGTH)


def losses_of(model):
    """Those of each step; decay is of matrices alone."""
    import torch

    x, y = tokens()
    groups = [{"params": [w for w in model.parameters() if w.dim() > 1], "weight_decay": 0.1},
              {"params": [w for w in model.parameters() if w.dim() == 1], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95), eps=1e-8)
    losses = []
    model.train()
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x).logits.flatten(0, 1), y.flatten())
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


def compare(binaries, kind, folder):
    """How far losses and logits are apart; None where this version of transformers has no such class."""
    import torch

    engine(binaries, kind, folder)
    theirs, _ = class_of(os.path.join(folder, "config.json"))
    if theirs is None:
        return None
    ours = engine(binaries, "train", folder)
    losses = losses_of(theirs.from_pretrained(folder, torch_dtype=torch.float32))
    trained = theirs.from_pretrained(os.path.join(folder, "trained"), torch_dtype=torch.float32)
    if not losses[-1] < losses[0]:
        raise SystemExit(f"{kind}: nothing is learned: {losses}")
    return max(abs(a - b) for a, b in zip(losses, ours["losses"], strict=True)), apart(trained, ours["trained"])


def main():
    if not ready():
        return 77
    failed = 0
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as folder:
            off = compare(sys.argv[1], kind, folder)
        good = off is None or (off[0] <= LOSS_LIMIT and off[1] <= LOGIT_LIMIT)
        failed += not good
        print(f"{kind:16} " + ("no such class in this version" if off is None else f"losses {off[0]:.2e}, logits {off[1]:.2e}"),
              "" if good else "ABOVE", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
