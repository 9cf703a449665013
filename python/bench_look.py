#!/usr/bin/env python3
"""What a look costs in which the node wants nothing, which is nearly every one: microseconds for each optimizer step.

With PyTorch also the whole of what DiLoCo adds to optimizer.step(), with its hook. The header is in a memfd, as a node's
is, with a word that stays 0; no node is needed.
"""

import fcntl
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from dpnode.memory import HEADER_BYTES, Memory  # noqa: E402
from dpnode.session import Session  # noqa: E402

STEPS = 200_000
REPEATS = 5


def share(session):
    """Gives the session shared memory of a model with one element."""
    fd = os.memfd_create("bench_look", os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, HEADER_BYTES + 4)
    fcntl.fcntl(fd, 1033, 2 | 4) # F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW
    session._memory = Memory(fd, HEADER_BYTES + 4, HEADER_BYTES, 1)
    session._start_counts()
    os.close(fd)


def microseconds(call, steps=STEPS):
    """The best and the median of some repetitions."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        for _ in range(steps):
            call()
        times.append((time.perf_counter() - start) / steps * 1e6)
    times.sort()
    return times[0], times[len(times) // 2]


def told(name, best, median):
    print(f"{name:<46} {best:6.2f} us, median {median:.2f}")


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), "unknown")


def main():
    print(f"{processor()}, Python {sys.version.split()[0]}")
    session = Session(None, None)
    share(session)
    told("look with nothing due (session.step)", *microseconds(lambda: session.step(8, 1.0)))
    try:
        import torch
    except ImportError:
        print("without PyTorch the hook is not measured")
        return
    import dpnode

    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0) # no gradients: step has nothing to do
    before = microseconds(optimizer.step, STEPS // 10)
    with dpnode.DiLoCo(model, optimizer, offline=True, samples_per_step=8) as run:
        share(run._session)
        after = microseconds(optimizer.step, STEPS // 10)
    told(f"optimizer.step of torch {torch.__version__}, nothing to do", *before)
    told("the same with the hook of DiLoCo", *after)
    print(f"{'added by DiLoCo to a step':<46} {after[0] - before[0]:6.2f} us, median {after[1] - before[1]:.2f}")


if __name__ == "__main__":
    main()
