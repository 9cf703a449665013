"""The conversation of a script with its node: counts of work, looks, samples, and reconnecting.

Knows no framework. The tensors are an object with

    rows             the table's rows, in order
    assign(floats)   sets the tensors to the floats of the shared memory (a memoryview of C floats)
    add(floats)      adds them
    copy(floats)     writes the tensors there
    not_finite()     names of tensors with a number that is not finite

A session is for one thread of one process. Its states: connected; lost, to be connected again by the next
look that has something to do; over.
"""

from __future__ import annotations

import gc
import os
import random
import threading
import time
import warnings
from typing import Any, Iterator, List, Optional, Tuple

from . import errors, link, memory, table
from .connection import Connection
from .errors import Error, Mismatch, Refused
from .link import Lost
from .memory import Memory
from .place import POLL_S, Place

# Time between two looks at the socket while the word is 0: a node that died cannot set it.
CHECK_S = 1.0
# Between two reads of the word while a round is waited for.
ROUND_POLL_S = 0.0005
DRAW_AHEAD = 256


class Session(Connection):
    """The session of a script of one process; leader.py has that of several."""

    def __init__(self, tensors: Any, place: Optional[Place], timeout: float = 60.0, wait_while_paused: bool = True,
                 unit: Optional[int] = None, sync_every: Optional[int] = None) -> None:
        super().__init__(tensors, place, timeout, unit, sync_every)
        self._wait_while_paused = wait_while_paused
        self._offline_order: Optional[Iterator[int]] = None
        self._returned: List[Tuple[int, List[int]]] = []  # of batches that nobody took, the newest first
        self._next_check = 0.0

    @property
    def round(self) -> int:
        """The round that steps are for; while the node is paused its header may have 0, and this the last one."""
        return self._numbers[memory.ROUND] or self._told_round

    @property
    def tokens(self) -> int:
        own = self.samples * (self.unit or 1) if self._place is None else 0
        return self._numbers[memory.TOKENS] + own

    @property
    def rate(self) -> float:
        return self._reals[memory.RATE]

    # Opening and closing.

    def open(self) -> None:
        self._begin()
        self._tell()

    def _begin(self) -> None:
        self._thread = threading.get_ident()
        if self._place is None:
            return
        self._check_alone()
        self._place.prepare(self._timeout)
        self._table = table.encode(self._tensors.rows)
        self._is_open = True
        self.over = self.paused = False
        self._reconnect(first=True)
        self._told_round = self.round

    def _check_alone(self) -> None:
        """The node would refuse a second run of this script as another script's."""
        if self._others():
            gc.collect()  # One that nobody has any more is closed by this.
        if self._others():
            raise Error("this script has a run of this node open already", "a node trains with one at a time",
                        "end the with-block of the first one, or run.close()")

    def close(self, give: bool = False) -> None:
        lost = self._hand_in() if give and self._is_open else ""
        self._drop()
        self._is_open = False
        last = Memory()  # What the run has told is still there to be read.
        last.numbers[memory.ROUND], last.numbers[memory.TOKENS] = self.round, self.tokens
        last.reals[memory.RATE] = self.rate
        self._memory.close()
        self._memory = last
        self._start_counts()
        if lost:
            warnings.warn(lost, RuntimeWarning, stacklevel=4)

    def _hand_in(self) -> str:
        """A sentence about the steps that are lost, since they cannot be handed in; "" if there are none."""
        cause: object = "the node is away"
        try:
            self._meet_to_give()
        except (Error, Lost) as error:
            cause = error
        lost = self.steps - self._given
        is_refused = isinstance(cause, Refused) and cause.code == errors.NOT_FINITE  # perhaps a copy that it had before
        if lost == 0 and not is_refused:
            return ""
        which = f"last {lost} of {self.steps} steps" if lost > 0 else "last steps"
        return f"the node does not have the {which}, and their samples are drawn again: {cause}"

    def _meet_to_give(self) -> None:
        self._give()

    def _give(self) -> None:
        if self._link is not None and self._link.is_open and self.steps > 0:
            self._obey(self._link.look(link.GIVE if self.steps > self._given else 0))

    def forget(self) -> None:
        self._drop()
        own = Memory()
        own.word[0] = memory.OVER
        self._word, self._numbers, self._reals = own.word, own.numbers, own.reals

    # A step, and the look after it.

    def step(self, samples: int, loss: float) -> None:
        self.steps += 1
        self.samples += samples
        self.loss += loss
        numbers = self._numbers
        numbers[8] = self.steps
        numbers[9] = self.samples
        self._reals[10] = self.loss
        if self._word[0] or numbers[1] != self._told_round:
            self._attend()
        elif self._is_check_due():
            self._attend()
        if self._ends_round():
            self._check_process()
            self._serve_round()
            self._tell()

    def look(self) -> None:
        self._check_thread()
        self._attend()

    def _is_check_due(self) -> bool:
        """Now and then, whether the connection is gone: a node that died could not write the word."""
        now = time.monotonic()
        if now < self._next_check:
            return False
        self._next_check = now + CHECK_S
        self._check_process()
        return self._is_open and not self.over and (self._link is None or self._link.is_readable())

    def _attend(self) -> None:
        self._check_process()
        self._serve()
        self._tell()

    def _serve(self) -> None:
        """Does what the node wants now, and tells nobody."""
        if self._is_open and not self.over:
            try:
                self._converse()
            except BaseException:
                self._drop()  # Also after Ctrl-C or an error of the script's tensors: the node must not wait.
                raise

    def _converse(self) -> None:
        try:
            if self._link is None or not self._link.is_open:
                raise Lost("there was no connection")
            self._obey(self._link.look())
        except Lost:
            self._reconnect()
        except Refused as refused:
            self._bear(refused)
        if self.paused and self._wait_while_paused:
            self._wait()

    def _serve_round(self) -> None:
        """All steps of this round are taken: waits until it is decided and added, at most the timeout."""
        before = self._told_round
        deadline = time.monotonic() + self._timeout
        while self._is_open and not self.over and time.monotonic() < deadline:
            if self._word[0] or self._numbers[memory.ROUND] != before or self._is_check_due():
                self._serve()
                moved = self._word[0] & (memory.ADD_DUE | memory.ASSIGN_DUE)
                if not moved and (self._numbers[memory.ROUND] or before) != before:
                    return
            time.sleep(ROUND_POLL_S)

    def _wait(self) -> None:
        """While the node is paused, at most the timeout. The loop turns over then, and the next look waits again."""
        deadline = time.monotonic() + self._timeout
        while self.paused and not self.over and time.monotonic() < deadline:
            try:
                if self._link is None:
                    raise Lost("there was no connection")
                if self._word[0] != memory.PAUSED or self._link.is_readable(POLL_S):
                    self._obey(self._link.look())
                    time.sleep(POLL_S if self.paused else 0)
            except Lost:
                self._reconnect()
            except Refused as refused:
                self._bear(refused)

    # Samples.

    def draw(self, n: int) -> List[int]:
        self._check_thread()
        self.check_open()
        drawn = self._draw(n)
        if self._changes:
            self._tell()
        return drawn

    def _draw(self, n: int) -> List[int]:
        if self._place is None:
            return self._draw_offline(n)
        drawn: List[int] = []
        while self._returned:
            generation, indices = self._returned.pop(0)
            if generation == self.generation:
                self._reserve[:0] = indices
        while len(drawn) < n and not self.over:
            if not self._reserve:
                generation = self.generation
                self._fetch(n - len(drawn))
                if generation != self.generation:
                    drawn.clear()
            take = n - len(drawn)
            drawn += self._reserve[:take]
            del self._reserve[:take]
        return drawn

    def give_back(self, generation: int, indices: List[int]) -> None:
        if self._place is not None:
            self._returned.append((generation, indices))

    def _fetch(self, n: int) -> None:
        """Draws at least one index, and some in advance: an answer takes longer than a batch of a small model."""
        try:
            self._reserve = self._ask_for(n)
            if not self._reserve and self.steps > self._given:
                # Samples that are drawn and in no copy have a limit: a copy makes room.
                assert self._link is not None
                self._obey(self._link.look(link.GIVE))
                self._reserve = self._ask_for(n)
        except Lost:
            self._reconnect()
            return
        except Refused as refused:
            self._bear(refused)
            return
        except BaseException:
            self._drop()
            raise
        if not self._reserve:
            raise Error(f"{self.drawn - self.samples} samples are drawn and not used", "the node gives no more",
                        "batches of run.shard are for training: take others for evaluation, and step the optimizer")
        self.drawn += len(self._reserve)

    def _ask_for(self, n: int) -> List[int]:
        assert self.samples_of_pass is not None
        if self._link is None or not self._link.is_open:
            raise Lost("there was no connection")
        return self._link.draw(min(max(n, DRAW_AHEAD), link.DRAW_MAX), self.samples_of_pass)

    def cover(self, samples: int) -> bool:
        if self.samples + samples <= self.drawn:
            return True
        generation = self.generation
        self._draw_for(samples)
        if self._changes:
            self._tell()
        return generation == self.generation

    def _draw_for(self, samples: int) -> None:
        generation = self.generation
        while (self._is_open and not self.over and generation == self.generation
               and self.samples + samples > self.drawn):
            self._fetch(self.samples + samples - self.drawn)
            self._reserve.clear()

    def _draw_offline(self, n: int) -> List[int]:
        if self._offline_order is None:
            if self.samples_of_pass is None:
                raise Mismatch("there is no data set to draw from", "offline, a run learns its size from run.shard(dataset)",
                               "call run.shard(dataset, ...) first")
            self._offline_order = _passes(self.samples_of_pass)
        drawn = [next(self._offline_order) for _ in range(n)]
        self.drawn += n
        return drawn


def _passes(samples: int) -> Iterator[int]:
    """Every index once in each pass, in an order of its own."""
    chance = random.Random(os.urandom(8))
    order = list(range(samples))
    while True:
        chance.shuffle(order)
        yield from order
