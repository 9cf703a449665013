"""The session of a rank that has no node: it takes part in what rank 0 (leader.py) does with its own, at the same points.

Has the calls of a Session (session.py), and its tensors may be pieces of the run's (pieces, sums; see leader.py).
"""

from __future__ import annotations

import os
import threading
import time
from typing import Any, Callable, List, Optional

from . import ranks
from .board import Board
from .errors import Error, RankLost
from .memory import Memory
from .place import Place
from .ranks import Here, Spoke
from .state import State

# Of a step in which rank 0 is behind: short waits first, as it mostly is about to come.
TURNS = 50
TURN_S = 0.001


class Follower(State):
    """meet: connects to rank 0, given the digest of the table; called by open, in all ranks at once."""

    def __init__(self, tensors: Any, place: Optional[Place], timeout: float, unit: Optional[int],
                 sync_every: Optional[int], rank: int, meet: Callable[[bytes], Spoke]) -> None:
        super().__init__(tensors, place, timeout, unit, sync_every)
        self._rank = rank
        self._meet = meet
        self._spoke: Optional[Spoke] = None
        self._board: Optional[Board] = None
        self._memory = Memory()
        self._round = 0
        self._tokens = 0
        self._rate = 0.0
        self._changed: List[bool] = []  # as _changes, of this point
        self._dealt: List[int] = []
        self._failed: Optional[Exception] = None
        self._passed = 0  # optimizer steps since open, as rank 0 counts them
        self._points = 0
        self._start_counts()

    def _start_counts(self) -> None:
        self.samples = 0
        self.loss = 0.0
        if self._board is not None:
            self._board.samples[self._rank] = 0
            self._board.losses[self._rank] = 0.0

    @property
    def round(self) -> int:
        return self._round

    @property
    def tokens(self) -> int:
        return self._tokens

    @property
    def rate(self) -> float:
        return self._rate

    # Opening and closing.

    def open(self) -> None:
        self._thread = threading.get_ident()
        self._spoke = self._meet(ranks.digest_of(self._tensors.rows))
        try:
            self._begin(self._spoke)
        except BaseException:
            self.close()
            raise
        self._told_round = self.round
        self._tell()

    def _begin(self, spoke: Spoke) -> None:
        fd, n_ranks, n_tensors = spoke.board()
        try:
            self._board = Board(n_ranks, n_tensors, fd)
        finally:
            os.close(fd)
        self._board.describe(self._rank, self._tensors.pieces())
        self._is_open = self._place is not None
        self.over = self.paused = False
        self._passed = self._points = 0
        self._dealt.clear()
        self._start_counts()
        self._attend(ranks.OPEN, tell=False)

    def close(self, give: bool = False) -> None:
        if give and self._is_open and not self.over and self._spoke is not None:
            try:
                self._attend(ranks.CLOSE, tell=False)
            except Error:
                pass  # As with a lone script: its last steps are lost.
        self._is_open = False
        if self._spoke is not None:
            self._spoke.close()
            self._spoke = None
        self._memory.close()
        self._memory = Memory()

    def forget(self) -> None:
        if self._spoke is not None:
            self._spoke.close()

    # Steps, looks and samples.

    def step(self, samples: int, loss: float) -> None:
        self._check_process()
        self.samples += samples
        self.loss += loss
        self._passed += 1
        board = self._board
        if board is None:
            return
        board.samples[self._rank] = self.samples
        board.losses[self._rank] = self.loss
        if not self._is_open or self.over:
            return
        before = self._passed - 1
        word = board.word[0]
        if word >> 1 < before:
            word = self._await(board, before)
        if word == 2 * before + 1:
            self._attend(ranks.STEP)
        if self._ends_round() and not self.over:
            self._attend(ranks.ROUND)

    def _await(self, board: Board, steps: int) -> int:
        """Rank 0 has taken so many steps: only then it is known whether all look after the next one."""
        assert self._spoke is not None
        deadline = time.monotonic() + self._spoke.wait_s
        for turn in range(1 << 62):
            word = int(board.word[0])
            if word >> 1 >= steps:
                return word
            if turn < TURNS:
                time.sleep(0)
            elif self._spoke.is_readable(TURN_S):
                # Nothing is asked between points: rank 0 is gone, or tells of an error of its own.
                packet, _ = self._spoke.receive("a step")
                raise ranks.failure_of(packet) if ranks.kind_of(packet) == ranks.FAIL else self._out_of_turn(packet)
            if time.monotonic() > deadline:
                raise RankLost(f"rank 0 has not taken step {steps}", "the time for that has passed", ranks.SAME_STEPS)
        raise AssertionError

    def look(self) -> None:
        self._check_thread()
        if self._is_open and not self.over:
            self._attend(ranks.LOOK)

    def cover(self, samples: int) -> bool:
        """Rank 0 draws for all, when it next looks."""
        return True

    def draw(self, n: int) -> List[int]:
        self._check_thread()
        self.check_open()
        drawn: List[int] = []
        while len(drawn) < n and not self.over:
            if not self._dealt:
                generation = self.generation
                self._attend(ranks.DRAW, n)
                if generation != self.generation:
                    drawn.clear()
            take = n - len(drawn)
            drawn += self._dealt[:take]
            del self._dealt[:take]
        return drawn

    # Points.

    def _attend(self, point: int, samples: int = 0, tell: bool = True) -> None:
        """Does what rank 0 says until the point is over."""
        spoke = self._spoke
        if spoke is None:
            raise Error("the run is not open", "its ranks meet between its beginning and its end only",
                        "with dpnode.DiLoCo(...) as run: for batch in run.shard(...)")
        spoke.here(Here(point, self._passed, self._points, samples))
        self._points += 1
        self._failed = None
        while self._obey(spoke, *spoke.receive(ranks.POINTS[point])):
            pass
        if self._failed is not None:
            raise self._failed
        if tell:
            self._tell()

    def _obey(self, spoke: Spoke, packet: bytes, fd: int) -> bool:
        """False: the point is over."""
        try:
            kind = ranks.kind_of(packet)
            if kind == ranks.END:
                self.paused, self.over, self._round, self._tokens, self._rate = ranks.end_of(packet)
                self._changes += [(replaced, self._round) for replaced in self._changed]
                self._changed.clear()
                return False
            if kind == ranks.FAIL:
                raise self._failed or ranks.failure_of(packet)
            if kind == ranks.DEALT:
                self._dealt += ranks.dealt_of(packet)
            elif kind in (ranks.ORDER, ranks.MEMORY):
                self._answer(spoke, packet, fd)
            else:
                spoke.close()
                raise self._out_of_turn(packet)
        finally:
            if fd >= 0:
                os.close(fd)
        return True

    def _answer(self, spoke: Spoke, packet: bytes, fd: int) -> None:
        """Rank 0 hears of an error before this rank raises it, so that all leave the point together."""
        try:
            text = self._take_memory(packet, fd) if ranks.kind_of(packet) == ranks.MEMORY else self._do(packet)
        except Exception as error:
            self._failed = error
            spoke.answer(str(error) or repr(error), failed=True)
            return
        except BaseException:
            spoke.close()
            raise
        spoke.answer(text)

    def _do(self, packet: bytes) -> str:
        what, flag = ranks.order_of(packet)
        floats, tensors = self._memory.floats, self._tensors
        if what == ranks.ASSIGN:
            tensors.assign(floats)
            self._changed.append(True)
        elif what == ranks.ADD:
            tensors.add(floats)
            self._changed.append(False)
        elif what == ranks.COPY:
            assert self._board is not None
            ranks.copy_own(self._board, self._rank, tensors, floats, check=flag == 1)
        elif what == ranks.NAMES:
            return "\n".join(tensors.not_finite())
        return ""

    def _take_memory(self, packet: bytes, fd: int) -> str:
        """The node has a new connection, or another: work on the weights of before counts no more."""
        welcome = ranks.memory_of(packet)
        fresh = Memory(fd, welcome.bytes, welcome.offset, welcome.elements)
        self._memory.close()
        self._memory = fresh
        self.samples_of_pass, self.unit, self.tokens_total = welcome.samples, welcome.unit, welcome.tokens_total
        self.generation += 1
        self._dealt.clear()
        self._start_counts()
        return ""

    def _out_of_turn(self, packet: bytes) -> RankLost:
        return RankLost("rank 0 spoke out of turn", f"message {ranks.kind_of(packet)}", "start the script again")
