"""A connection of a script to its node: HELLO, what DO orders, refusals, and connecting again.

The lower half of a session (session.py), which has its states, its steps and its samples.
"""

from __future__ import annotations

import os
import time
import warnings
from typing import Any, List, Optional

from . import errors, link, memory, table
from .errors import Error, Mismatch, ProtocolError, Refused, Timeout
from .link import Link, Lost
from .memory import Memory
from .place import POLL_S, Place
from .state import State, live

# How long "another script is connected" is waited for: the node may not have seen yet that the last one ended.
BUSY_S = 5.0
# Cuts for slowness in a row, without an update copied between them, before the script gives up.
SLOW_MAX = 3
# Questions of one look; a node that asks on is broken.
ASKED_MAX = 1000


class Connection(State):
    """The connection of the one process that speaks with the node."""

    def __init__(self, tensors: Any, place: Optional[Place], timeout: float, unit: Optional[int],
                 sync_every: Optional[int]) -> None:
        super().__init__(tensors, place, timeout, unit, sync_every)
        self._table = b""
        self._link: Optional[Link] = None
        self._memory = Memory()
        self._reserve: List[int] = []
        self._slow = 0
        self._ends = False
        self._away = False  # a connection to the node is being made again
        self._start_counts()

    # Counts of this connection.

    def _start_counts(self) -> None:
        self.steps = 0
        self._given = 0  # of steps: those that the node has
        self.samples = 0
        self.loss = 0.0
        self.drawn = 0
        self._reserve.clear()
        header = self._memory
        self._word, self._numbers, self._reals = header.word, header.numbers, header.reals
        self._numbers[memory.STEPS] = self._numbers[memory.SAMPLES] = 0
        self._reals[memory.LOSS] = 0.0

    def _others(self) -> bool:
        """Whether another one of this process is connected to the same node."""
        return any(isinstance(other, Connection) and other is not self and other._pid == os.getpid()
                   and other._link is not None and other._link.is_open and other._place is not None
                   and self._place is not None and other._place.socket == self._place.socket for other in live())

    def _drop(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None

    def parting(self) -> str:
        if self._place is None or not self._is_open:
            return ""
        dropped = self.steps - self._given
        rest = "" if dropped == 0 else \
            f"; the last {dropped}, taken since it copied the weights, are dropped and their samples drawn again"
        return (f"dpnode: interrupted{', while the node was away' if self._away else ''}: {self._given} of {self.steps} steps "
                f"since the node was connected are the node's, which publishes those that no round has counted yet{rest}")

    # Orders of the node.

    def _obey(self, told: link.Do) -> None:
        """Does what DO says until it is GO or PAUSED."""
        assert self._link is not None
        floats, tensors = self._memory.floats, self._tensors
        self.paused = False
        for _ in range(ASKED_MAX):
            if told.what == link.GO:
                return
            if told.what == link.PAUSED:
                self.paused = True
                return
            if told.what == link.ASSIGN:
                tensors.assign(floats)
            elif told.what == link.ADD:
                tensors.add(floats)
            else:
                self._check_counts()
                tensors.copy(floats)
            what = told.what
            told = self._link.done(what, self.steps, self.samples, self.loss)
            if what != link.ADD:
                self._given = self.steps
            if what == link.COPY:
                self._slow = 0
            else:
                self._changes.append((what == link.ASSIGN, told.round))
        raise ProtocolError("the node asks without end", f"{ASKED_MAX} copies and additions in one look", "dpnode why")

    def _check_counts(self) -> None:
        if self.steps > 0 and self.samples == 0:
            raise Mismatch("the optimizer's steps used no samples of the run", "so the run would not count this work",
                           "take batches from run.shard(dataset, ...); or DiLoCo(..., samples_per_step=N); or call "
                           "run.step(samples)")

    def _bear(self, refused: Refused) -> None:
        """Comes back to a node that ends or was too slow to wait for, and tells all other refusals.

        A node that ends may be restarting, so it is waited for; one that stays away has left the run.
        """
        self._drop()
        if refused.code == errors.RUN_OVER:
            self._ends = True
            self._reconnect()
            return
        if refused.code == errors.TOO_SLOW and self._slow < SLOW_MAX:
            self._slow += 1
            warnings.warn(f"the node cut the script off: {refused.what}; connecting again", RuntimeWarning, stacklevel=5)
            self._reconnect()
            return
        if refused.code == errors.NOT_FINITE:
            names = self._tensors.not_finite()
            raise errors.refused(refused.code, refused.what, _names(names)) from None
        raise refused

    # Connecting.

    def _reconnect(self, first: bool = False) -> None:
        """HELLO, WELCOME and the first look, until they succeed or the timeout has passed."""
        assert self._place is not None
        start = time.monotonic()
        self._away = True
        while True:
            self._drop()
            try:
                self._connect(max(0.1, start + self._timeout - time.monotonic()))
                self._away = False
                return
            except PermissionError as error:
                raise Error("the node's socket cannot be opened", str(error),
                            "run the script as the user that runs dpnoded, or as root") from error
            except (Lost, OSError, Refused) as error:
                if isinstance(error, Refused) and not self._may_try_again(error, time.monotonic() - start):
                    raise
                if time.monotonic() - start >= self._timeout:
                    self._give_up(error, first)
                    return
            time.sleep(POLL_S)

    def _give_up(self, cause: Exception, first: bool) -> None:
        assert self._place is not None
        self._drop()
        if self._ends and not first:
            self.over = True
            return
        if isinstance(cause, Refused):
            raise cause
        raise Timeout(f"the node has been away for {self._timeout:g} s", f"{self._place.socket}: {cause}",
                      "dpnode up; dpnode status; a larger timeout=... outlasts longer restarts") from cause

    def _may_try_again(self, refused: Refused, waited_s: float) -> bool:
        if refused.code == errors.TOO_SLOW:
            self._slow += 1
            return self._slow <= SLOW_MAX
        if refused.code == errors.RUN_OVER:
            self._ends = True
            return True
        return refused.code == errors.ANOTHER_SCRIPT and waited_s < min(BUSY_S, self._timeout)

    def _connect(self, timeout: float) -> None:
        assert self._place is not None
        opened = self._link = Link(self._place.socket, timeout)
        welcome, fd = opened.hello(self._table)
        try:
            self._check_welcome(welcome)
            fresh = Memory(fd, welcome.bytes, welcome.offset, welcome.elements)
            self._memory.close()
            self._memory = fresh
            self._start_counts()
            self.generation += 1
            self.samples_of_pass, self.unit, self.tokens_total = welcome.samples, welcome.unit, welcome.tokens_total
            self._welcomed(welcome, fd)
        finally:
            os.close(fd)
        told = opened.look()
        if told.what != link.ASSIGN:
            raise ProtocolError("the node gave no weights", f"it said {link.NAMES[told.what]} first", "dpnode why")
        opened.timeout = self._timeout
        self._ends = False
        self._obey(told)

    def _welcomed(self, welcome: link.Welcome, fd: int) -> None:
        """A new connection has its memory. fd: the same, borrowed."""

    def _check_welcome(self, welcome: link.Welcome) -> None:
        elements = table.elements_of(self._tensors.rows)
        if welcome.elements != elements or welcome.samples == 0 or welcome.unit == 0:
            raise ProtocolError("the node's WELCOME does not fit what it accepted",
                                f"{welcome.elements} elements for {elements}, {welcome.samples} samples", "dpnode why")
        if self.unit is not None and welcome.unit != self.unit:
            raise Mismatch(f"unit={self.unit} is not that of the run", f"a sample counts as {welcome.unit} tokens there",
                           f"leave unit away, or write {welcome.unit}")
        if self.samples_of_pass is not None and welcome.samples != self.samples_of_pass:
            raise Mismatch("the node is in another run now",
                           f"its data have {welcome.samples} samples, and had {self.samples_of_pass}", "start again")


def _names(names: List[str]) -> str:
    if not names:
        return "the script's weights are finite now"
    more = f" and {len(names) - 3} others" if len(names) > 3 else ""
    return f"numbers that are not finite in {', '.join(names[:3])}{more}"
