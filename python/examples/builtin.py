#!/usr/bin/env python3
"""A model of dpnode's own (GPT-2, Llama, Qwen3), trained by PyTorch in a run that others train with dpnode's trainer.

    dpnode join TOKEN       # this machine's node, which trains by itself until the script comes, and when it is gone
    python3 builtin.py
"""

import argparse

import torch
from torch.nn import functional as F

import dpnode
import dpnode.hf


@torch.no_grad()
def loss_of(model, windows, most):
    """Mean loss per token of the first windows."""
    losses = [F.cross_entropy(model(x[None]).logits[0], y).item() for x, y in (windows[i] for i in range(min(most, len(windows))))]
    return sum(losses) / max(1, len(losses))


def main():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--steps", type=int, help="end after so many")
    words.add_argument("--evaluate", type=int, default=0, help="windows of the held-out text at the beginning")
    given = words.parse_args()

    torch.set_num_threads(1)
    about = dpnode.about()
    model = dpnode.hf.model(about)
    numbers = about.numbers
    optimizer = torch.optim.AdamW(model.parameters(), lr=numbers["lr"], betas=(numbers["beta1"], numbers["beta2"]),
                                  weight_decay=numbers["weight_decay"])
    steps = 0
    with dpnode.DiLoCo(model, optimizer) as run:
        if given.evaluate:
            print(f"held-out loss {loss_of(model, about.held_out, given.evaluate):.6f}", flush=True)
        for x, y in run.shard(about.text, batch_size=numbers["batch"]):
            loss = F.cross_entropy(model(x).logits.flatten(0, 1), y.flatten())
            loss.backward()
            run.loss(loss)
            torch.nn.utils.clip_grad_norm_(model.parameters(), numbers["clip"] or float("inf"))
            for group in optimizer.param_groups:
                group["lr"] = run.rate
            optimizer.step()
            optimizer.zero_grad()
            steps += 1
            if run.should_stop or steps == given.steps:
                break
    print(f"{steps} steps")


if __name__ == "__main__":
    main()
