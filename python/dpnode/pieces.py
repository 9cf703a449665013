"""Tensors that are spread over ranks: of each parameter of fully_shard (a DTensor) a rank has one block.

The block is known from the tensor's placements, as DTensor cuts: of n ranks in an extent e each has ceil(e / n), the last
ones less or nothing. Has run on processors only.
"""

from __future__ import annotations

import hashlib
from typing import Any, Iterable, List, NamedTuple, Optional, Tuple

import torch

from .errors import Mismatch


class Piece(NamedTuple):
    """A block of a tensor: in each dimension where it starts and its extent, which may be 0."""

    starts: Tuple[int, ...]
    sizes: Tuple[int, ...]

    @property
    def elements(self) -> int:
        product = 1
        for size in self.sizes:
            product *= size
        return product

    def number(self) -> int:
        """A u64 that other blocks of the tensor do not have; not 0."""
        text = repr((self.starts, self.sizes)) if self.elements > 0 else "nothing"
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") | 1

    def of(self, whole: torch.Tensor) -> torch.Tensor:
        """The block of a tensor that has everything, as a view."""
        for dim, (start, size) in enumerate(zip(self.starts, self.sizes)):
            whole = whole.narrow(dim, start, size)
        return whole


def is_spread(tensor: Any) -> bool:
    return hasattr(tensor, "placements") and hasattr(tensor, "device_mesh")


def is_sharded_module(module: Any) -> bool:
    """Whether fully_shard was called on it."""
    return any(kind.__name__ == "FSDPModule" for kind in type(module).__mro__)


def own(tensor: torch.Tensor) -> torch.Tensor:
    """What this process has of the tensor: all of it, or its block. In its memory, without gradients."""
    if not is_spread(tensor):
        return tensor.data
    spread: Any = tensor
    with torch.no_grad():
        return spread.to_local().data


def piece_of(name: str, tensor: torch.Tensor) -> Optional[Piece]:
    """None: all of it. Mismatch names a tensor that is spread in a way that is not known here."""
    if not is_spread(tensor):
        return None
    spread: Any = tensor
    placements, mesh = spread.placements, spread.device_mesh
    kinds = [type(placement).__name__ for placement in placements]
    if "Shard" in kinds[:-1] or any(kind not in ("Shard", "Replicate") for kind in kinds):
        raise Mismatch(f"the parameter {name} cannot travel", f"it is spread as {tuple(placements)}, which is not built",
                       "fully_shard over one dimension of ranks, or replicated and then sharded; no tensor parallelism")
    starts, sizes = [0] * tensor.dim(), list(tensor.shape)
    if kinds[-1] == "Shard":
        dim, ranks, rank = placements[-1].dim % tensor.dim(), mesh.size(-1), mesh.get_local_rank(mesh.ndim - 1)
        most = -(-sizes[dim] // ranks)
        starts[dim] = min(rank * most, sizes[dim])
        sizes[dim] = min(most, sizes[dim] - starts[dim])
    piece = Piece(tuple(starts), tuple(sizes))
    if tuple(own(tensor).shape) != piece.sizes:
        raise Mismatch(f"the parameter {name} cannot travel", f"this rank has {tuple(own(tensor).shape)} of it, and by its "
                       f"placements {piece.sizes}", "shard it as fully_shard does")
    return piece if piece.sizes != tuple(tensor.shape) else None


def collect(model: torch.nn.Module) -> None:
    """Lets modules of fully_shard that have their whole parameters, as after an evaluation, go back to their blocks."""
    modules: Iterable[Any] = model.modules()
    for module in modules:
        if is_sharded_module(module):
            module.reshard()


def check_data_parallel(model: Any, named: List[Tuple[str, torch.Tensor]]) -> None:
    """Refuses tensor parallelism, in which ranks need the same samples: run.shard gives each its own."""
    if isinstance(model, torch.nn.Module) and not any(is_sharded_module(module) for module in model.modules()):
        for name, tensor in named:
            if is_spread(tensor):
                raise Mismatch(f"the parameter {name} cannot travel", "it is spread by other means than fully_shard, and "
                               "tensor parallelism is not built", "use fully_shard, or DistributedDataParallel")
