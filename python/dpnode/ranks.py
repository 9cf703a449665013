"""What the ranks of one script tell one another, over sockets of this machine. Rank 0 has the node; it is the hub, and
each other rank is a spoke.

All ranks meet at points: the beginning, a look, a draw of samples, the end. At a point each rank says that it is there
(HERE). Then rank 0 speaks with the node and gives ORDERs, each of which every rank answers, and END; FAIL ends the point
with an error for all. Numbers are little-endian, packets of SOCK_SEQPACKET.

    INTRO   u32 1 | u32 rank | digest of the table of tensors                    spoke, first
    BOARD_OF u32 2 | u32 ranks | u32 tensors | u32 0, and its descriptor (board.py)
    HERE    u32 3 | u32 point | u64 steps | u64 points before | u64 samples      spoke
    ORDER   u32 4 | u32 what | u64 flag                                          what: see below
    MEMORY  u32 5 | u32 0 | u64 elements | u64 samples | u64 unit | u64 tokens_total | u64 offset | u64 bytes, and the
            descriptor of the memory of the node (docs/TRAINER.md)
    ANSWER  u32 6 | u32 failed | text                                            spoke, to ORDER and MEMORY
    DEALT   u32 7 | u32 n | n times u64 index
    END     u32 8 | u32 1 paused, 2 over | u64 round | u64 tokens
    FAIL    u32 9 | u32 0 | JSON: class, code, what, why, fix of an error
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import socket
import struct
import time
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

from . import errors, packets, table
from .board import Board
from .errors import Error, Mismatch, RankLost
from .link import Welcome

# The longest wait for another rank; PyTorch's own is 10 minutes with NCCL, 30 with gloo.
WAIT_S = 600.0

INTRO, BOARD_OF, HERE, ORDER, MEMORY, ANSWER, DEALT, END, FAIL = range(1, 10)
ASSIGN, ADD, COPY, NAMES = range(1, 5)  # of ORDER; COPY with flag 1 sums the bits, too
OPEN, STEP, LOOK, ROUND, DRAW, CLOSE = range(6)  # points
POINTS = ("the beginning of the run", "the look after a step", "a look without a step", "the wait for a round",
          "a draw of samples", "the end of the run")
TEXT_MAX = 4000
BACKLOG = 4096  # anybody of this machine may connect, and is let go
DEALT_MAX = 8000

_WORDS = struct.Struct("<II")
_BOARD = struct.Struct("<IIII")
_HERE = struct.Struct("<IIQQQ")
_ORDER = struct.Struct("<IIQ")
_MEMORY = struct.Struct("<IIQQQQQQ")
_END = struct.Struct("<IIQQd")
_CREDENTIALS = struct.Struct("3i")

SAME_STEPS = "let every rank take the same batches, steps and looks, and leave the loop after the same step"


class Here(NamedTuple):
    """Where a rank is: the point, its optimizer steps, its points before this one, and samples that it draws."""

    point: int
    steps: int
    points: int
    samples: int


def digest_of(rows: Sequence[table.Row]) -> bytes:
    return hashlib.blake2b(table.encode(rows), digest_size=16).digest()


def copy_own(board: Board, rank: int, tensors: Any, floats: Any, check: bool) -> None:
    """Writes the pieces that this rank has to write. check: and to the board the sums of all that it has."""
    if check:
        board.sum_up(rank, tensors.sums())
    owned = board.owned(rank)
    if any(owned):
        tensors.copy(floats, owned)


def kind_of(packet: bytes) -> int:
    return int(_WORDS.unpack_from(packet)[0]) if len(packet) >= _WORDS.size else 0


def memory_of(packet: bytes) -> Welcome:
    return Welcome(*_MEMORY.unpack(packet)[2:])


def order_of(packet: bytes) -> Tuple[int, int]:
    _, what, flag = _ORDER.unpack(packet)
    return what, flag


def end_of(packet: bytes) -> Tuple[bool, bool, int, int, float]:
    """paused, over, round, tokens, rate"""
    _, bits, round_, tokens, rate = _END.unpack(packet)
    return bool(bits & 1), bool(bits & 2), round_, tokens, rate


def dealt_of(packet: bytes) -> Sequence[int]:
    return struct.unpack_from(f"<{_WORDS.unpack_from(packet)[1]}Q", packet, _WORDS.size)


def fail_packet(error: BaseException) -> bytes:
    if isinstance(error, Error):
        about = [type(error).__name__, getattr(error, "code", 0), error.what, error.why, error.fix]
    else:
        about = ["Error", 0, "rank 0 of the script has failed", repr(error), "see what rank 0 wrote"]
    text = json.dumps([word[:TEXT_MAX] if isinstance(word, str) else word for word in about], ensure_ascii=False)
    return _WORDS.pack(FAIL, 0) + text.encode("utf-8", "replace")


def failure_of(packet: bytes) -> Error:
    name, code, what, why, fix = json.loads(packet[_WORDS.size:].decode())
    kind = getattr(errors, name, Error)
    return kind(code, what, why, fix) if kind is errors.Refused else kind(what, why, fix)


def _is_own(sock: socket.socket) -> bool:
    """Sockets without a file have no owner, so each side looks who the other is."""
    user = _CREDENTIALS.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))[1]
    return user in (os.geteuid(), 0)


class _End:
    """A socket to another rank. Whatever goes wrong closes it: a rank that was lost is lost for the run."""

    def __init__(self, sock: socket.socket, name: str) -> None:
        self._socket: Optional[socket.socket] = sock
        self.name = name

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def is_readable(self, wait_s: float) -> bool:
        return self._socket is None or packets.is_readable(self._socket, wait_s)

    def send(self, packet: bytes, wait_s: float, fd: int = -1) -> None:
        try:
            if self._socket is None:
                raise BrokenPipeError
            self._socket.settimeout(wait_s)
            packets.send(self._socket, packet, fd)
        except OSError as error:
            self.close()
            raise self.lost() from error
        except BaseException:
            self.close()
            raise

    def receive(self, deadline: float, wanted: str) -> Tuple[bytes, int]:
        """A packet and its descriptor, or -1, which is the caller's."""
        try:
            if self._socket is None:
                raise ConnectionError
            packet, fds = packets.receive(self._socket, deadline)
            packets.close_all(fds[1:])
        except (socket.timeout, BlockingIOError) as error:
            self.close()
            raise RankLost(f"{self.name} has not come to {wanted}", "the time for that has passed", SAME_STEPS) from error
        except OSError as error:
            self.close()
            raise self.lost() from error
        except BaseException:
            self.close()
            raise
        if not packet:
            self.close()
            raise self.lost()
        return packet, fds[0] if fds else -1

    def lost(self) -> RankLost:
        return RankLost(f"{self.name} of the script has left the run", "it ended, failed, or was killed",
                        f"see what {self.name} wrote, and start the script again; torchrun --max-restarts N does so")


class Hub:
    """Rank 0's end. Calls raise RankLost, after which the others can be told (fail) and nothing else."""

    def __init__(self, ranks: int, wait_s: float = WAIT_S) -> None:
        self.ranks = ranks
        self.wait_s = wait_s
        self.address = "dpnode-ranks-" + secrets.token_hex(16)
        self._ends: List[_End] = []
        self._listener: Optional[socket.socket] = socket.socket(socket.AF_UNIX, packets.KIND)
        try:
            self._listener.bind("\0" + self.address)
            self._listener.listen(BACKLOG)
        except BaseException:
            self.close()
            raise

    def admit(self, digest: bytes, board_fd: int, tensors: int) -> None:
        """Waits for all other ranks, which have the table of that digest, and gives them the board."""
        assert self._listener is not None
        deadline = time.monotonic() + self.wait_s
        while len(self._ends) < self.ranks - 1:
            self._listener.settimeout(max(0.001, deadline - time.monotonic()))
            try:
                sock, _ = self._listener.accept()
            except OSError as error:
                raise RankLost("not all ranks of the script have come", f"{len(self._ends) + 1} of {self.ranks} are here",
                               "see what the others wrote; begin the run in every rank") from error
            if not _is_own(sock):
                sock.close()  # The name of the socket is no secret to this machine: that is no rank.
                continue
            self._ends.append(_End(sock, "a rank"))
            packet, _ = self._ends[-1].receive(deadline, POINTS[OPEN])
            if kind_of(packet) != INTRO:
                raise RankLost("a rank of the script spoke out of turn", f"message {kind_of(packet)}", "start the script again")
            self._ends[-1].name = f"rank {_WORDS.unpack_from(packet)[1]}"
            if packet[_WORDS.size:] != digest:
                raise Mismatch(f"{self._ends[-1].name} has other tensors than rank 0", "their names, types or shapes differ",
                               "build the same model in every rank")
        self._ends.sort(key=lambda end: int(end.name.split()[1]))
        self._listener.close()
        self.tell(_BOARD.pack(BOARD_OF, self.ranks, tensors, 0), board_fd)

    def gather(self, here: Here, wait_s: Optional[float] = None) -> None:
        """Returns when all ranks are at the point where rank 0 is."""
        deadline = time.monotonic() + (self.wait_s if wait_s is None else wait_s)
        for end in self._ends:
            packet, _ = end.receive(deadline, POINTS[here.point])
            if kind_of(packet) != HERE:
                raise RankLost(f"{end.name} spoke out of turn", f"message {kind_of(packet)}", "start the script again")
            other = Here(*_HERE.unpack(packet)[1:])
            if other._replace(samples=0) != here._replace(samples=0):
                raise RankLost(f"{end.name} and rank 0 do different things",
                               f"{end.name} is at {POINTS[other.point]} after {other.steps} steps, rank 0 at "
                               f"{POINTS[here.point]} after {here.steps}", SAME_STEPS)
            if other.samples != here.samples:
                raise Mismatch(f"{end.name} draws {other.samples} samples, and rank 0 {here.samples}",
                               "samples are dealt to all ranks alike", "use the same batch_size in every rank")

    def tell(self, packet: bytes, fd: int = -1) -> None:
        for end in self._ends:
            end.send(packet, self.wait_s, fd)

    def order(self, what: int, flag: int = 0) -> None:
        self.tell(_ORDER.pack(ORDER, what, flag))

    def give_memory(self, welcome: Welcome, fd: int) -> None:
        self.tell(_MEMORY.pack(MEMORY, 0, *welcome), fd)

    def answers(self) -> List[str]:
        """The text of each rank's answer to an order. All are read before one that failed is an error."""
        deadline = time.monotonic() + self.wait_s
        texts, failed = [], ""
        for end in self._ends:
            packet, _ = end.receive(deadline, "an answer to rank 0")
            if kind_of(packet) != ANSWER:
                raise RankLost(f"{end.name} spoke out of turn", f"message {kind_of(packet)}", "start the script again")
            text = packet[_WORDS.size:].decode("utf-8", "replace")
            if _WORDS.unpack_from(packet)[1] and not failed:
                failed = f"{end.name}: {text}"
            texts.append(text)
        if failed:
            raise Error("a rank of the script could not do what the run needs", failed, "see what that rank wrote")
        return texts

    def deal(self, indices: Sequence[int]) -> None:
        """Gives rank r of n the indices r, r + n, ..., so that what all have used is a beginning of what was drawn."""
        for rank, end in enumerate(self._ends, 1):
            part = indices[rank::self.ranks]
            for at in range(0, len(part), DEALT_MAX):
                some = part[at:at + DEALT_MAX]
                end.send(_WORDS.pack(DEALT, len(some)) + struct.pack(f"<{len(some)}Q", *some), self.wait_s)

    def end(self, paused: bool, over: bool, round_: int, tokens: int, rate: float) -> None:
        self.tell(_END.pack(END, paused | over << 1, round_, tokens, rate))

    def fail(self, error: BaseException) -> None:
        """Tells all ranks that are still there; never raises."""
        packet = fail_packet(error)
        for end in self._ends:
            try:
                end.send(packet, 1.0)
            except RankLost:
                pass

    def close(self) -> None:
        for end in self._ends:
            end.close()
        if self._listener is not None:
            self._listener.close()
            self._listener = None


class Spoke:
    """The end of another rank than 0. OSError: no rank 0 is at that address of this machine."""

    def __init__(self, address: str, rank: int, digest: bytes, wait_s: float = WAIT_S) -> None:
        self.wait_s = wait_s
        sock = socket.socket(socket.AF_UNIX, packets.KIND)
        self._end = _End(sock, "rank 0")
        try:
            sock.settimeout(wait_s)
            sock.connect("\0" + address)
            if not _is_own(sock):
                raise RankLost("rank 0 of the script runs as another user", f"this one runs as user {os.geteuid()}",
                               "start all ranks as one user")
        except BaseException:
            self.close()
            raise
        self._end.send(_WORDS.pack(INTRO, rank) + digest, wait_s)

    def board(self) -> Tuple[int, int, int]:
        """The descriptor of the board, which is the caller's, the ranks and the tensors of it."""
        packet, fd = self.receive(POINTS[OPEN])
        if kind_of(packet) == FAIL:
            raise failure_of(packet)
        _, ranks, tensors, _ = _BOARD.unpack(packet)
        return fd, ranks, tensors

    def here(self, here: Here) -> None:
        self._end.send(_HERE.pack(HERE, *here), self.wait_s)

    def receive(self, wanted: str) -> Tuple[bytes, int]:
        return self._end.receive(time.monotonic() + self.wait_s, wanted)

    def answer(self, text: str = "", failed: bool = False) -> None:
        self._end.send(_WORDS.pack(ANSWER, failed) + text.encode()[:TEXT_MAX], self.wait_s)

    def is_readable(self, wait_s: float) -> bool:
        return self._end.is_readable(wait_s)

    def lost(self) -> RankLost:
        return self._end.lost()

    def close(self) -> None:
        self._end.close()
