"""Windows of a run's text as a data set: its token shards, mapped from the node's files, without a copy."""

from __future__ import annotations

import bisect
import mmap
import os
from typing import Any, Dict, List, Optional, Sequence, Tuple

from .errors import Error, ProtocolError

_MASKS = {2: 0xffff, 4: 0xffffffff}
NO_LOSS = -100  # ignore_index of PyTorch's cross_entropy


class Part:
    """A shard: tokens of token_bytes from offset on, the first `training` of them for training. fd becomes this object's.

    losses: where the bits of tokens with a loss begin; None: documents are not kept apart, and every token has one.
    """

    def __init__(self, fd: int, offset: int, token_bytes: int, tokens: int, training: int, losses: Optional[int] = None) -> None:
        self._fd = fd
        self._pid = os.getpid()
        self.offset, self.token_bytes, self.tokens, self.training = offset, token_bytes, tokens, training
        self.losses = losses
        size = os.fstat(fd).st_size
        end = offset + token_bytes * tokens if losses is None else losses + (tokens + 7) // 8
        if (token_bytes not in _MASKS or offset % token_bytes != 0 or training > tokens or
                offset + token_bytes * tokens > size or end > size):
            raise ProtocolError("the node's text is not as it says",
                                f"{tokens} tokens of {token_bytes} bytes at {offset} in a file of {size}", "dpnode why")
        # A private mapping that could be written: PyTorch warns about others. Nobody writes, so the pages are the node's.
        self._map = mmap.mmap(fd, size, access=mmap.ACCESS_COPY)

    def __del__(self) -> None:
        fd, self._fd = getattr(self, "_fd", -1), -1
        if fd >= 0:
            os.close(fd)

    def read(self, first: int, count: int) -> Any:
        """Tokens as an int64 tensor."""
        import torch

        kind = torch.int16 if self.token_bytes == 2 else torch.int32
        found = torch.frombuffer(self._map, dtype=kind, count=count, offset=self.offset + self.token_bytes * first)
        return found.to(torch.int64) & _MASKS[self.token_bytes]

    def targets(self, first: int, count: int) -> Any:
        """The same, with NO_LOSS where a token has no loss."""
        import torch

        tokens = self.read(first, count)
        if self.losses is None:
            return tokens
        skip = first % 8
        packed = torch.frombuffer(self._map, dtype=torch.uint8, count=(skip + count + 7) // 8, offset=self.losses + first // 8)
        bits = (packed.unsqueeze(1) >> torch.arange(8, dtype=torch.uint8)) & 1
        return torch.where(bits.flatten()[skip:skip + count] == 1, tokens, NO_LOSS)

    def __getstate__(self) -> Dict[str, Any]:
        """For a worker of a loader that is not forked: it opens the file of this process."""
        return {"path": f"/proc/{self._pid}/fd/{self._fd}", "numbers": (self.offset, self.token_bytes, self.tokens, self.training, self.losses)}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        try:
            fd = os.open(state["path"], os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise Error("the run's text cannot be opened in this process", str(error),
                        "use it in the script and its loaders' workers alone") from error
        self.__init__(fd, *state["numbers"])  # type: ignore[misc]


class Windows:
    """Windows side by side, none of which reaches from one part into the next (base/run/samples.h).

    Item i is (x, y): length tokens as int64, and those that follow each of them, or NO_LOSS. Held-out windows of documents that
    are kept apart begin at a multiple of their length.
    """

    def __init__(self, parts: Sequence[Part], length: int, held_out: bool) -> None:
        self._parts = list(parts)
        self._length = length
        self._begins: List[int] = []  # of each part: tokens before its first window
        self._ends: List[int] = []  # windows of the parts up to and with it
        total = 0
        for part in self._parts:
            start = part.training if part.losses is None else -(-part.training // length) * length
            begin, tokens = (start, max(0, part.tokens - start)) if held_out else (0, part.training)
            total += (tokens - 1) // length if tokens > 0 else 0
            self._begins.append(begin)
            self._ends.append(total)

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __getitem__(self, index: int) -> Tuple[Any, Any]:
        if not 0 <= index < len(self):
            raise IndexError(f"window {index} of {len(self)}")
        which = bisect.bisect_right(self._ends, index)
        inside = index - (self._ends[which - 1] if which > 0 else 0)
        part, first = self._parts[which], self._begins[which] + inside * self._length
        return part.read(first, self._length), part.targets(first + 1, self._length)
