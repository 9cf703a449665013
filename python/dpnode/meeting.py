"""How the ranks of a script find one another: by PyTorch's process group, once. What they say then is in ranks.py.

Rank 0 alone has the node. All ranks are processes of one machine, as they share the node's memory.
"""

from __future__ import annotations

import datetime
import functools
from typing import Any, List, Optional, Union

import torch

from . import ranks
from .arguments import seconds
from .errors import Mismatch, RankLost
from .follower import Follower
from .leader import Leader
from .place import Place
from .ranks import Hub, Spoke
from .session import Session

ADDRESS_MAX = 64


def session_of(tensors: Any, place: Optional[Place], timeout: float, wait_while_paused: bool, unit: Optional[int],
               sync_every: Optional[int], alone: bool) -> Union[Session, Follower]:
    """The session of this process: one of several ranks where PyTorch's process group has several, unless it is alone."""
    timeout = seconds("timeout", timeout)
    n = n_ranks()
    if alone and n > 1:
        tensors.check_alone()
    if alone or n == 1:
        return Session(tensors, place, timeout, wait_while_paused, unit, sync_every)
    rank = torch.distributed.get_rank()
    wait_s = max(timeout, ranks.WAIT_S)
    if rank == 0:
        return Leader(tensors, place, timeout, wait_while_paused, unit, sync_every, functools.partial(_host, n, wait_s))
    # Within a point rank 0 may wait for the node some times.
    join = functools.partial(_join, rank, n, wait_s + 4 * timeout)
    return Follower(tensors, place, timeout, unit, sync_every, rank, join)


def n_ranks() -> int:
    """The processes of this script."""
    distributed = getattr(torch, "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return 1
    return int(distributed.get_world_size())


def _host(n: int, wait_s: float) -> Hub:
    hub = Hub(n, wait_s)
    try:
        _exchange(hub.address, 0, n, wait_s)
    except BaseException:
        hub.close()
        raise
    return hub


def _join(rank: int, n: int, wait_s: float, digest: bytes) -> Spoke:
    found = _exchange(None, rank, n, wait_s, digest)
    assert found is not None
    return found


def _exchange(address: Optional[str], rank: int, n: int, wait_s: float, digest: bytes = b"") -> Optional[Spoke]:
    """Rank 0 tells its address; the others connect, and all hear who could."""
    distributed = torch.distributed
    spoke: Optional[Spoke] = None
    try:
        group = _group(wait_s)
        told = torch.tensor(list((address or "").encode().ljust(ADDRESS_MAX)), dtype=torch.uint8)
        distributed.broadcast(told, 0, group=group)
        if rank != 0:
            try:
                spoke = Spoke(bytes(told.tolist()).decode().strip(), rank, digest, wait_s)
            except OSError:
                pass
        here = torch.tensor([int(rank == 0 or spoke is not None)])
        all_here = [torch.zeros_like(here) for _ in range(n)]
        distributed.all_gather(all_here, here, group=group)
    except RuntimeError as error:
        if spoke is not None:
            spoke.close()
        raise RankLost("the ranks of the script did not find one another", str(error).split("\n")[0],
                       "begin the run in every rank; PyTorch's gloo backend must work between them") from error
    _check_all([i for i, one in enumerate(all_here) if not int(one)], spoke)
    return spoke


_made: List[Any] = [None, None]


def _group(wait_s: float) -> Any:
    """A gloo group of all ranks, as the script's own may have no CPU tensors; one for each process group of the script."""
    world = torch.distributed.group.WORLD
    if _made[0] is not world:
        _made[:] = [world, torch.distributed.new_group(backend="gloo", timeout=datetime.timedelta(seconds=wait_s))]
    return _made[1]


def _check_all(away: List[int], spoke: Optional[Spoke]) -> None:
    if away:
        if spoke is not None:
            spoke.close()
        which = f"rank {away[0]} is" if len(away) == 1 else f"ranks {', '.join(map(str, away))} are"
        raise Mismatch(f"{which} not on the machine of rank 0",
                       "the ranks of one member share the memory of one node",
                       "run a node and a script (torchrun --nnodes 1) on each machine: each is a member of the run")
