"""The memory that the ranks of a script share with one another: how far rank 0 has come, and what each rank counts.

    offset       size
         0          8  u64: 2 * steps that rank 0 has taken, + 1 if all look after the next one; rank 0 writes it
        64   64 each   of each rank: u64 samples, f64 sum of losses, since the connection to the node began
         -    8 each   of each rank: u64 of each tensor, a sum of the bits that the rank has of it
         -   16 each   of each rank: of each tensor u64 which piece of it the rank has (0: all), u64 elements of the piece

A number has one writer, and is written and read by a single store and load. The sums and pieces are written before a
message that tells of them.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
from typing import Any, List, Optional, Sequence, Tuple

_F_ADD_SEALS = getattr(fcntl, "F_ADD_SEALS", 1033)
_SEALS = 1 | 2 | 4  # further seals, shrinking, growing
_SLOT = 8  # numbers of a rank's line


class Board:
    """fd: of a board that another rank has made; it stays the caller's."""

    def __init__(self, ranks: int, tensors: int, fd: int = -1) -> None:
        lines = _SLOT * (1 + ranks)
        size = 8 * (lines + 3 * ranks * tensors)
        self.fd = -1
        self._owned: Optional[List[bool]] = None  # of the rank of this process
        if fd < 0:
            fd = self.fd = os.memfd_create("dpnode-ranks", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            os.ftruncate(fd, size)
            fcntl.fcntl(fd, _F_ADD_SEALS, _SEALS)
        self._map: Optional[mmap.mmap] = mmap.mmap(fd, size)
        whole = memoryview(self._map)
        self.word: Any = whole.cast("Q")
        self.samples: Any = whole[:8 * lines].cast("Q")[_SLOT::_SLOT]
        self.losses: Any = whole[:8 * lines].cast("d")[_SLOT + 1::_SLOT]
        numbers = whole.cast("Q")
        self.sums: List[Any] = [numbers[lines + i * tensors:lines + (i + 1) * tensors] for i in range(ranks)]
        lines += ranks * tensors
        self.pieces: List[Any] = [numbers[lines + 2 * i * tensors:lines + 2 * (i + 1) * tensors] for i in range(ranks)]

    def close(self) -> None:
        """The descriptor; the memory stays as long as the object."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def describe(self, rank: int, pieces: Sequence[Tuple[int, int]]) -> None:
        """The rank has these pieces: which, and of how many elements."""
        self.pieces[rank][:] = memoryview(struct.pack(f"{2 * len(pieces)}Q", *(number for piece in pieces for number in piece))
                                          ).cast("Q")

    def sum_up(self, rank: int, sums: Sequence[int]) -> None:
        self.sums[rank][:] = memoryview(struct.pack(f"{len(sums)}Q", *sums)).cast("Q")

    def owned(self, rank: int) -> List[bool]:
        """Of each tensor: no rank before this one has the same piece of it, so this one writes it."""
        if self._owned is None:
            self._owned = [self._owner(rank, tensor) == rank for tensor in range(len(self.sums[0]))]
        return self._owned

    def elements(self, tensor: int) -> int:
        """Of all pieces of the tensor, each counted once."""
        pieces = {of_rank[2 * tensor]: of_rank[2 * tensor + 1] for of_rank in self.pieces}
        return sum(pieces.values())

    def twins(self) -> List[Tuple[int, int, int]]:
        """(tensor, a rank, the first rank that has the same piece of it) wherever these are two."""
        pairs = [(tensor, rank, self._owner(rank, tensor)) for tensor in range(len(self.sums[0]))
                 for rank in range(1, len(self.sums))]
        return [pair for pair in pairs if pair[1] != pair[2]]

    def differing(self, twins: List[Tuple[int, int, int]]) -> Optional[Tuple[int, int, int]]:
        """The first of these whose sums differ."""
        first = bytes(self.sums[0])
        if all(bytes(sums) == first for sums in self.sums[1:]):
            return None
        return next((twin for twin in twins if self.sums[twin[1]][twin[0]] != self.sums[twin[2]][twin[0]]), None)

    def _owner(self, rank: int, tensor: int) -> int:
        piece = self.pieces[rank][2 * tensor]
        return next(other for other in range(rank + 1) if self.pieces[other][2 * tensor] == piece)
