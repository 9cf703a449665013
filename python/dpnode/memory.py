"""The memory that a script shares with its node: a header of numbers and the buffer of floats.

docs/TRAINER.md, section 2, draws both. Each number is aligned and has one writer; a read or a write
of one is a single load or store.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from typing import Any, Optional

from .errors import ProtocolError

HEADER_BYTES = 4096

# Bits of the word. 0: a look has nothing to do.
COPY_DUE = 1
ADD_DUE = 2
ASSIGN_DUE = 4
PAUSED = 8
OVER = 16

# Numbers of 8 bytes, by index.
ROUND, TOKENS, ROUND_OF_WEIGHTS, RATE = 1, 2, 3, 4  # written by the worker
STEPS, SAMPLES, LOSS = 8, 9, 10  # written by the script

_F_GET_SEALS = getattr(fcntl, "F_GET_SEALS", 1034)
_F_SEAL_SHRINK = getattr(fcntl, "F_SEAL_SHRINK", 2)


class Memory:
    """The header and, if there is a node, the buffer.

    word: u32s, of which the first is the word; numbers: u64s; reals: the same bytes as f64s. floats: the
    buffer as a memoryview of C floats, or None. Without a descriptor the header is private memory: the
    script's code is then the same without a node.
    """

    def __init__(self, fd: int = -1, size: int = HEADER_BYTES, offset: int = 0, elements: int = 0) -> None:
        self._map: Optional[mmap.mmap] = None
        self.floats: Any = None
        if fd >= 0:
            self._map = _map(fd, size, offset, elements)
            whole = memoryview(self._map)
            if elements > 0:
                self.floats = whole[offset:offset + 4 * elements].cast("f")
        else:
            whole = memoryview(bytearray(HEADER_BYTES))
        header = whole[:HEADER_BYTES]
        self.word = header.cast("I")
        self.numbers = header.cast("Q")
        self.reals = header.cast("d")

    def close(self) -> None:
        """Gives the mapping back, as soon as nothing refers to it: tensors may still do so."""
        self.floats = None
        del self.word, self.numbers, self.reals
        if self._map is not None:
            try:
                self._map.close()
            except BufferError:
                pass  # The last view unmaps it.
            self._map = None


def _map(fd: int, size: int, offset: int, elements: int) -> mmap.mmap:
    """Checks what the node said about the memory; a memory that can shrink could kill the script (SIGBUS)."""
    there = os.fstat(fd).st_size
    if offset < HEADER_BYTES or offset % 8 != 0 or offset + 4 * elements > size or size > there:
        raise ProtocolError("the node's shared memory is not as it says",
                            f"{there} bytes, said to be {size}, with {elements} floats at {offset}", "dpnode why")
    try:
        seals = fcntl.fcntl(fd, _F_GET_SEALS)
    except OSError as error:
        raise ProtocolError("the node's shared memory is not sealed", str(error), "dpnode why") from error
    if not seals & _F_SEAL_SHRINK:
        raise ProtocolError("the node's shared memory is not sealed", "it could shrink", "dpnode why")
    return mmap.mmap(fd, size)
