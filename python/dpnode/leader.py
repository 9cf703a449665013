"""The session of rank 0 of a script of several processes: the others (follower.py) do with their tensors what the node
wants, at the same step.

Its tensors, and those of the other ranks, are as session.py says, and have

    pieces()              of each row: which piece of the tensor this rank has (a number; 0: all of it), and its elements
    sums()                of each row a sum of the bits of that piece, a u64
    copy(floats, which)   writes the rows for which `which` is true, a list; assign and add take what this rank has

A look costs no message between ranks while it has nothing to do. Rank 0 says after its step n, by a word in shared
memory, whether all look after step n + 1; a rank reads that after its step n + 1, when rank 0 has long written it.
"""

from __future__ import annotations

from typing import Any, Callable, List, Optional

from . import link, memory, ranks, session
from .board import Board
from .errors import Error, Mismatch, RankLost
from .place import Place
from .ranks import Here, Hub
from .session import Session


class _OfAll:
    """The tensors of all ranks, as the session sees them: an order is done when every rank has done it."""

    def __init__(self, tensors: Any) -> None:
        self.own = tensors
        self.rows = tensors.rows
        self.hub: Optional[Hub] = None
        self.board: Optional[Board] = None
        self.round = 0  # of the node
        self._checked = -1  # the last round in which replicas were found equal

    def assign(self, floats: Any) -> None:
        self._all(ranks.ASSIGN, 0, lambda: self.own.assign(floats))

    def add(self, floats: Any) -> None:
        self._all(ranks.ADD, 0, lambda: self.own.add(floats))

    def copy(self, floats: Any) -> None:
        board, round_ = self.board, self.round
        check = round_ != self._checked
        assert board is not None
        self._all(ranks.COPY, int(check), lambda: ranks.copy_own(board, 0, self.own, floats, check))
        if check:
            self._compare(board)
            self._checked = round_

    def not_finite(self) -> List[str]:
        names: List[str] = []
        texts = self._all(ranks.NAMES, 0, lambda: names.extend(self.own.not_finite()))
        for text in texts:
            names += [name for name in text.split("\n") if name and name not in names]
        return names

    def _all(self, what: int, flag: int, own: Callable[[], object]) -> List[str]:
        assert self.hub is not None
        self.hub.order(what, flag)
        try:
            own()
        except Exception:
            try:
                self.hub.answers()
            except Error:
                pass  # The first error is told.
            raise
        return self.hub.answers()

    def _compare(self, board: Board) -> None:
        found = board.differing(board.twins())
        if found is not None:
            tensor, rank, other = found
            raise Mismatch(f"the replicas of {self.rows[tensor].name} differ", f"ranks {other} and {rank} have other bits there",
                           "average gradients (DistributedDataParallel does), and give every rank the same optimizer, "
                           "learning rate and clipping; processes that are members of their own: DiLoCo(..., alone=True)")


class Leader(Session):
    """meet: makes a hub whose address all other ranks know; called by open, in all ranks at once."""

    def __init__(self, tensors: Any, place: Optional[Place], timeout: float, wait_while_paused: bool, unit: Optional[int],
                 sync_every: Optional[int], meet: Callable[[], Hub]) -> None:
        self._hub: Optional[Hub] = None
        self._board: Optional[Board] = None
        self._own_samples = 0
        self._own_loss = 0.0
        super().__init__(_OfAll(tensors), place, timeout, wait_while_paused, unit, sync_every)
        self._meet = meet
        self._round = 0
        self._tokens = 0
        self._rate = 0.0
        self._dealt: List[int] = []
        self._passed = 0
        self._points = 0
        self._looks_at = -1  # the step after which all look

    def _start_counts(self) -> None:
        super()._start_counts()
        self._own_samples, self._own_loss = 0, 0.0
        self._write_counts()

    def _write_counts(self) -> None:
        if self._board is not None:
            self._board.samples[0] = self._own_samples
            self._board.losses[0] = self._own_loss

    # Agreed on by all ranks: schedules of the learning rate must be the same in each.

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
        hub = self._hub = self._meet()
        try:
            rows = self._tensors.rows
            board = self._board = Board(hub.ranks, len(rows))
            self._tensors.hub, self._tensors.board = hub, board
            board.describe(0, self._tensors.own.pieces())
            try:
                hub.admit(ranks.digest_of(rows), board.fd, len(rows))
            finally:
                board.close()
            self._passed = self._points = 0
            self._looks_at = -1
            self._dealt.clear()
            self._together(ranks.OPEN, self._begin_all, tell=False)
        except BaseException as error:
            hub.fail(error)
            self._part()
            raise
        self._told_round = self.round
        self._tell()

    def _begin_all(self) -> None:
        assert self._board is not None
        for index, row in enumerate(self._tensors.rows):
            held = self._board.elements(index)
            if held != row.elements:
                raise Mismatch(f"the pieces of {row.name} are not the whole", f"all ranks together hold {held} of "
                               f"{row.elements} elements", "shard it over all ranks of the script")
        self._begin()

    def close(self, give: bool = False) -> None:
        try:
            super().close(give)  # It may warn, and a warning may be an error.
        finally:
            self._part()

    def _meet_to_give(self) -> None:
        if self._hub is not None and not self.over:
            self._hub.wait_s = self._timeout  # A rank that failed does not come.
            self._together(ranks.CLOSE, self._give, tell=False)

    def _part(self) -> None:
        if self._hub is not None:
            self._hub.close()
            self._hub = None

    def forget(self) -> None:
        super().forget()
        if self._hub is not None:
            self._hub.close()

    def _welcomed(self, welcome: link.Welcome, fd: int) -> None:
        assert self._hub is not None
        self._dealt.clear()
        self._hub.give_memory(welcome, fd)
        self._hub.answers()

    # Steps, looks and samples.

    def step(self, samples: int, loss: float) -> None:
        self._check_process()
        self.steps += 1
        self._own_samples += samples
        self._own_loss += loss
        self._passed += 1
        board = self._board
        if board is None:
            return
        self._write_counts()
        if not self._is_open or self.over:
            return
        self._sum_counts(board)
        now = self._passed
        if now == self._looks_at:
            try:
                self._together(ranks.STEP, self._serve)
            except RankLost:
                raise  # Ranks that are not here yet shall come, and hear of it.
            except BaseException:
                self._announce(board, now)
                raise
        self._announce(board, now)
        if self._ends_round() and not self.over:
            self._together(ranks.ROUND, self._serve_round)

    def _announce(self, board: Board, now: int) -> None:
        is_due = bool(self._word[0]) or self._numbers[memory.ROUND] != self._told_round or self._is_check_due()
        self._looks_at = now + 1 if is_due else -1
        board.word[0] = 2 * now + is_due

    def _sum_counts(self, board: Board) -> None:
        """Of all ranks. Exact at a point; after a step some may not be there yet, or further."""
        self._numbers[memory.STEPS] = self.steps
        self._numbers[memory.SAMPLES] = self.samples = sum(board.samples)
        self._reals[memory.LOSS] = self.loss = sum(board.losses) / len(board.sums)

    def look(self) -> None:
        self._check_thread()
        if self._is_open and not self.over:
            self._together(ranks.LOOK, self._serve)

    def cover(self, samples: int) -> bool:
        """Samples that were not drawn are drawn for all ranks, when all look."""
        return True

    def draw(self, n: int) -> List[int]:
        self._check_thread()
        self.check_open()
        drawn: List[int] = []
        while len(drawn) < n and not self.over:
            if not self._dealt:
                generation = self.generation
                self._together(ranks.DRAW, lambda: self._deal(n), n)
                if generation != self.generation:
                    drawn.clear()
            take = n - len(drawn)
            drawn += self._dealt[:take]
            del self._dealt[:take]
        return drawn

    def give_back(self, generation: int, indices: List[int]) -> None:
        pass

    def _deal(self, n: int) -> None:
        """Draws for all ranks, and some in advance."""
        hub = self._hub
        assert hub is not None
        indices = self._draw(max(n, session.DRAW_AHEAD // n * n) * hub.ranks)
        if not self.over:
            hub.deal(indices)
            self._dealt = indices[::hub.ranks]

    # Points.

    def _together(self, point: int, act: Callable[[], None], samples: int = 0, tell: bool = True) -> None:
        """Acts when all ranks are here; they do what the node wants meanwhile."""
        hub, board = self._hub, self._board
        if hub is None or board is None:
            raise Error("the run is not open", "its ranks meet between its beginning and its end only",
                        "with dpnode.DiLoCo(...) as run: for batch in run.shard(...)")
        try:
            here = Here(point, self._passed, self._points, samples)
            self._points += 1
            hub.gather(here)
            self._sum_counts(board)
            self._tensors.round = int(self._numbers[memory.ROUND])
            if self.samples > self.drawn and self._link is not None:
                self._draw_for(0)
            act()
            self._agree()
            hub.end(self.paused, self.over, self._round, self._tokens, self._rate)
        except BaseException as error:
            self._drop()  # The node must not wait.
            hub.fail(error)
            raise
        if tell:
            self._tell()

    def _agree(self) -> None:
        """What the header says now is what all ranks see until they meet again."""
        self._round = int(self._numbers[memory.ROUND]) or self._round
        self._tokens = self.samples * (self.unit or 1) if self._place is None else int(self._numbers[memory.TOKENS])
        self._rate = float(self._reals[memory.RATE])
