#!/usr/bin/env python3
"""A small network that tells the arms of a spiral apart, trained by the members of a run.

    DPNODE_FIRST_WEIGHTS=spirals.safetensors python3 spirals.py   # once: the first weights
    dpnode run create spirals.yaml --from spirals.safetensors     # docs/PYTORCH.md has spirals.yaml
    python3 spirals.py                                            # on each machine of the run
"""

import argparse
import math

import torch
from torch import nn

import dpnode

SAMPLES = 30_000
ARMS = 3


class Spirals(torch.utils.data.Dataset):
    """The same points on every machine: item i is point i."""

    def __init__(self):
        draw = torch.Generator().manual_seed(1)
        arm = torch.arange(SAMPLES) % ARMS
        radius = torch.rand(SAMPLES, generator=draw)
        angle = 4 * radius + 2 * math.pi * arm / ARMS + 0.1 * torch.randn(SAMPLES, generator=draw)
        self.points = torch.stack([radius * angle.sin(), radius * angle.cos()], dim=1)
        self.arms = arm

    def __len__(self):
        return SAMPLES

    def __getitem__(self, index):
        return self.points[index], self.arms[index]


def network():
    return nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, ARMS))


def main():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--steps", type=int, help="end after so many")
    words.add_argument("--offline", action="store_true", help="without a node")
    given = words.parse_args()

    torch.set_num_threads(1)
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    steps = 0
    with dpnode.DiLoCo(model, optimizer, offline=given.offline) as run:
        run.on("round", lambda number: print(f"round {number}: loss {loss.item():.3f}, {run.tokens} samples", flush=True))
        for points, arms in run.shard(Spirals(), batch_size=64):
            loss = nn.functional.cross_entropy(model(points), arms)
            loss.backward()
            run.loss(loss)
            optimizer.step()
            optimizer.zero_grad()
            steps += 1
            if run.should_stop or steps == given.steps:
                break
    print(f"{steps} steps, the last loss is {loss.item():.3f}")


if __name__ == "__main__":
    main()
