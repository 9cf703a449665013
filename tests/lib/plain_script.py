#!/usr/bin/env python3
"""A script of python/dpnode without PyTorch: fits a line by lists of numbers, with the session that dpnode.DiLoCo has below it. For tests on
machines that have no framework. DPNODE_FIRST_WEIGHTS=FILE writes the first weights; --steps N ends after N; --sync N waits for the round after N
steps; --slow S sleeps so many seconds in each step. Prints the loss."""

import argparse
import os
import struct
import sys
import time

from dpnode import table
from dpnode.place import Place
from dpnode.safetensors import Writer
from dpnode.session import Session

BATCH = 16
RATE = 0.02


class Line:
    """y = slope x + offset, as a session's tensors."""

    def __init__(self):
        self.values = {"line.offset": [0.0], "line.slope": [0.0]}
        self.rows = table.sort(table.Row(name, table.F32, (1,)) for name in self.values)

    def assign(self, floats):
        for at, row in enumerate(self.rows):
            self.values[row.name][0] = floats[at]

    def add(self, floats):
        for at, row in enumerate(self.rows):
            self.values[row.name][0] += floats[at]

    def copy(self, floats):
        for at, row in enumerate(self.rows):
            floats[at] = self.values[row.name][0]

    def not_finite(self):
        return [name for name, (value,) in self.values.items() if value != value or abs(value) == float("inf")]

    def step(self, samples):
        """One of gradient descent on y = 2 x - 1 +- 0.05 at these samples' x, so that the loss ends near 0.0025. Returns that before it."""
        offset, slope = self.values["line.offset"], self.values["line.slope"]
        loss = by_offset = by_slope = 0.0
        for sample in samples:
            x = (sample * 7919 % 1000) / 500 - 1
            error = slope[0] * x + offset[0] - (2 * x - 1 + (0.05 if sample % 2 else -0.05))
            loss += error * error / len(samples)
            by_offset += 2 * error / len(samples)
            by_slope += 2 * error * x / len(samples)
        offset[0] -= RATE * by_offset
        slope[0] -= RATE * by_slope
        return loss

    def write(self, path):
        with Writer(path, self.rows) as file:
            for name, (value,) in self.values.items():
                file.bytes(name)[:] = struct.pack("<f", value)


def main():
    words = argparse.ArgumentParser()
    words.add_argument("--steps", type=int, default=1 << 60)
    words.add_argument("--sync", type=int)
    words.add_argument("--slow", type=float, default=0.001)
    options = words.parse_args()
    line = Line()
    if os.environ.get("DPNODE_FIRST_WEIGHTS"):
        line.write(os.environ["DPNODE_FIRST_WEIGHTS"])
        return
    session = Session(line, Place(), sync_every=options.sync)
    session.open()
    try:
        for step in range(options.steps):
            loss = line.step(session.draw(BATCH))
            session.step(BATCH, loss)
            if step % 500 == 0:
                print(f"round {session.round}, step {step}, loss {loss:.6f}", flush=True)
            time.sleep(options.slow)
            if session.over:
                break
    except KeyboardInterrupt:
        print(session.parting(), file=sys.stderr)
        session.close()
        sys.exit(130)
    session.close(give=True)


if __name__ == "__main__":
    main()
