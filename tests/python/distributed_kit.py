"""Processes with a process group of PyTorch, as ranks of one script."""

import os

import dpnode
import kit
from rank_kit import Group

if kit.has("torch"):
    import torch
    from torch import nn
    if hasattr(torch, "compile"):
        import torch._dynamo # Takes seconds, in each rank if it were left to them.


class Numbers:
    """A data set of 100 items; each is its own index."""

    def __len__(self):
        return 100

    def __getitem__(self, index):
        return torch.tensor([float(index)])


class DistributedTest(kit.Test):
    def ranks(self, body, n=2, **options):
        """body(rank) with a process group."""
        met = os.path.join(self.dir, "met")

        def whole(rank):
            torch.set_num_threads(1)
            torch.distributed.init_process_group("gloo", init_method=f"file://{met}", rank=rank, world_size=n)
            yield from body(rank)

        return Group(self, n, whole)

    def network(self, rank):
        torch.manual_seed(rank) # The run's weights make them equal.
        return nn.Sequential(nn.Linear(1, 3), nn.Tanh(), nn.Linear(3, 1))

    def run_of(self, model, optimizer=None, **options):
        return dpnode.DiLoCo(model, optimizer, **{"dir": self.dir, "timeout": 20, **options})
