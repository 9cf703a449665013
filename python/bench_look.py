#!/usr/bin/env python3
"""What a look costs in which the node wants nothing, which is nearly every one: microseconds for each optimizer step.

With PyTorch also the whole of what DiLoCo adds to optimizer.step(), with its hook. The header is in a memfd, as a node's
is, with a word that stays 0; no node is needed. Then the same for a script of 2 and 4 processes (ranks) that train by
DistributedDataParallel over gloo, and, to compare, a broadcast of one number over gloo.
"""

import fcntl
import multiprocessing
import os
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from dpnode.memory import HEADER_BYTES, Memory  # noqa: E402
from dpnode.session import Session  # noqa: E402

STEPS = 200_000
DDP_STEPS = 3_000
REPEATS = 5
RANKS = (2, 4)


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


def told(name, one, other, one_is="best", other_is="median"):
    print(f"{name:<46} {one_is} {one:6.2f} us, {other_is} {other:.2f}", flush=True)


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), "unknown")


class Times:
    """Times of a call, as it is called by others."""

    def __init__(self, call):
        self.call = call
        self.us = []

    def __call__(self, *arguments):
        start = time.perf_counter()
        result = self.call(*arguments)
        self.us.append((time.perf_counter() - start) * 1e6)
        return result

    def told(self):
        """Median and mean."""
        self.us.sort()
        return self.us[len(self.us) // 2], sum(self.us) / len(self.us)


def rank_of(rank, ranks, folder, results):
    """A rank that trains, whose looks find nothing to do."""
    import torch
    import dpnode
    from dpnode import session as session_module

    session_module.CHECK_S = 1e9 # There is no node whose end could be seen.
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/met", rank=rank, world_size=ranks)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    run = dpnode.DiLoCo(model, optimizer, samples_per_step=8, dir=folder)
    session = run._session
    if rank == 0:
        session._begin = lambda: (share(session), setattr(session, "_is_open", True))
        session._next_check = time.monotonic() + 1e9
    number, given = torch.zeros(1, dtype=torch.int64), torch.ones(8, 64)
    with run:
        looks = session.step = Times(session.step)
        for _ in range(DDP_STEPS):
            model(given).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        broadcast = Times(lambda: torch.distributed.broadcast(number, 0))
        for _ in range(DDP_STEPS):
            model(given).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
            broadcast()
    results.put((rank, looks.told(), broadcast.told()))
    results.close()
    results.join_thread()
    os._exit(0)


def with_ranks(ranks):
    """The look and the broadcast, in each rank."""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        processes = [context.Process(target=rank_of, args=(rank, ranks, folder, results)) for rank in range(ranks)]
        for process in processes:
            process.start()
        for rank, look, broadcast in sorted(results.get(timeout=600) for _ in processes):
            told(f"{ranks} ranks, rank {rank}: look after a step of DDP", look[0], look[1], "median", "mean")
            told(f"{ranks} ranks, rank {rank}: a broadcast instead", broadcast[0], broadcast[1], "median", "mean")
        for process in processes:
            process.join()


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
    told("added by DiLoCo to a step", after[0] - before[0], after[1] - before[1])
    for ranks in RANKS:
        with_ranks(ranks)


if __name__ == "__main__":
    main()
