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

import os
import random
import time
import warnings
import weakref
from typing import Callable, Iterator, List, Optional

from . import errors, link, memory, table
from .errors import Error, Mismatch, ProtocolError, Refused, Timeout, WrongProcess
from .link import Link, Lost
from .memory import Memory
from .place import POLL_S, Place

# Time between two looks at the socket while the word is 0: a node that died cannot set it.
CHECK_S = 1.0
# How long "another script is connected" is waited for: the node may not have seen yet that the last one ended.
BUSY_S = 5.0
# Between two reads of the word while a round is waited for.
ROUND_POLL_S = 0.0005
# Cuts for slowness in a row, without an update copied between them, before the script gives up.
SLOW_MAX = 3
# Questions of one look; a node that asks on is broken.
ASKED_MAX = 1000
DRAW_AHEAD = 256

_live: "weakref.WeakSet[Session]" = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for session in list(_live):
        session.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


class Session:
    """place: None works without a node (offline). timeout: the longest wait for one answer, or for a node, in seconds."""

    def __init__(self, tensors, place: Optional[Place], timeout: float = 60.0, wait_while_paused: bool = True,
                 unit: Optional[int] = None, sync_every: Optional[int] = None) -> None:
        if not timeout > 0:
            raise Mismatch(f"timeout={timeout!r} cannot be used", "it is a number of seconds above 0")
        self._tensors = tensors
        if sync_every is not None and not sync_every >= 1:
            raise Mismatch(f"sync_every={sync_every!r} cannot be used", "it is a number of optimizer steps, 1 or more")
        self._place = place
        self._sync_every = sync_every
        self._steps_of_round = 0
        self._is_open = False
        self._table = b""
        self._timeout = float(timeout)
        self._wait_while_paused = wait_while_paused
        self._link: Optional[Link] = None
        self._memory = Memory()
        self._pid = os.getpid()
        self._handlers: List[Callable[[int], object]] = []
        self._assign_handlers: List[Callable[[int], object]] = []
        self._reserve: List[int] = []
        self._offline_order: Optional[Iterator[int]] = None
        self._slow = 0
        self._ends = False
        self._told_round = 0
        self._next_check = 0.0
        self.samples_of_pass: Optional[int] = None  # None until a node, or a data set, tells
        self.unit = unit
        self.tokens_total = 0
        self.over = False
        self.paused = False
        self.generation = 0  # of the connection: samples of an earlier one count no more
        self._start_counts()
        _live.add(self)

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

    @property
    def round(self) -> int:
        """The round that steps are for; while the node is paused its header may have 0, and this the last one."""
        return self._numbers[memory.ROUND] or self._told_round

    @property
    def tokens(self) -> int:
        """Tokens of the run before that round; without a node, those of this script."""
        if self._place is None:
            return self.samples * (self.unit or 1)
        return self._numbers[memory.TOKENS]

    def on_round(self, handler: Callable[[int], object]) -> None:
        self._handlers.append(handler)

    def on_assign(self, handler: Callable[[int], object]) -> None:
        self._assign_handlers.append(handler)

    # Opening and closing.

    def open(self) -> None:
        """Connects and sets the tensors to the weights of the run."""
        if self._place is None:
            return
        self._place.prepare(self._timeout)
        self._table = table.encode(self._tensors.rows)
        self._is_open = True
        self.over = self.paused = False
        self._reconnect(first=True)
        self._told_round = self.round

    def close(self, give: bool = False) -> None:
        """Ends the connection. give: hands in the steps that the node has not copied; else they are lost to the run, and
        their samples are drawn again."""
        if give and self._link is not None and self._link.is_open and self.steps > self._given:
            try:
                self._obey(self._link.look(link.GIVE))
            except (Error, Lost):
                pass  # They are lost, as they would be without it.
        self._drop()
        self._is_open = False
        self._memory.close()
        self._memory = Memory()
        self._memory.numbers[memory.ROUND] = self._told_round
        self._start_counts()

    def forget(self) -> None:
        """In a child of the script: lets the connection go, so that the node sees when the script ends. The next step raises."""
        self._drop()
        own = Memory()
        own.word[0] = memory.OVER
        self._word, self._numbers, self._reals = own.word, own.numbers, own.reals

    def _drop(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None

    # A step, and the look after it.

    def step(self, samples: int, loss: float) -> None:
        """Counts one optimizer step of so many samples and looks what the node wants."""
        self.steps += 1
        self.samples += samples
        self.loss += loss
        numbers = self._numbers
        numbers[8] = self.steps
        numbers[9] = self.samples
        self._reals[10] = self.loss
        if self._word[0] or numbers[1] != self._told_round:
            self._attend()
        elif time.monotonic() >= self._next_check:
            self._check()
        self._steps_of_round += 1
        if self._sync_every is not None and self._steps_of_round >= self._sync_every:
            self._wait_for_round()

    def look(self) -> None:
        """The same without a step: does what the node wants now."""
        self._attend()

    def _check(self) -> None:
        self._next_check = time.monotonic() + CHECK_S
        self._check_process()
        if self._is_open and not self.over and (self._link is None or self._link.is_readable()):
            self._attend()

    def check_open(self) -> None:
        if self._place is not None and not self._is_open:
            raise Error("the run is not open", "it has samples between its beginning and its end only",
                        "with dpnode.DiLoCo(...) as run: for batch in run.shard(...)")

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            raise WrongProcess("this process did not open the run", "it is a child of the process that did",
                               "use the run in the main process; data sets and collate_fn must not touch it")

    def _attend(self) -> None:
        self._check_process()
        if self._is_open and not self.over:
            try:
                self._converse()
            except BaseException:
                self._drop()  # Also after Ctrl-C or an error of the script's tensors: the node must not wait.
                raise
        self._tell_round()

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
            elif what == link.ASSIGN:
                for handler in self._assign_handlers:
                    handler(told.round)
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

    def _wait_for_round(self) -> None:
        """All steps of this round are taken: waits until it is decided and added, at most the timeout."""
        round_of_steps = self._told_round
        deadline = time.monotonic() + self._timeout
        while self._is_open and not self.over and self._told_round == round_of_steps and time.monotonic() < deadline:
            if self._word[0] or self._numbers[memory.ROUND] != self._told_round:
                self._attend()
            elif time.monotonic() >= self._next_check:
                self._check()
            else:
                time.sleep(ROUND_POLL_S)
        self._steps_of_round = 0

    def _tell_round(self) -> None:
        now = self.round
        if now != self._told_round:
            self._told_round = now
            self._steps_of_round = 0
            for handler in self._handlers:
                handler(now)

    # Connecting.

    def _reconnect(self, first: bool = False) -> None:
        """HELLO, WELCOME and the first look, until they succeed or the timeout has passed."""
        assert self._place is not None
        start = time.monotonic()
        while True:
            self._drop()
            try:
                self._connect(max(0.1, start + self._timeout - time.monotonic()))
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
        finally:
            os.close(fd)
        self._memory.close()
        self._memory = fresh
        self._start_counts()
        self.generation += 1
        self.samples_of_pass, self.unit, self.tokens_total = welcome.samples, welcome.unit, welcome.tokens_total
        told = opened.look()
        if told.what != link.ASSIGN:
            raise ProtocolError("the node gave no weights", f"it said {link.NAMES[told.what]} first", "dpnode why")
        opened.timeout = self._timeout
        self._ends = False
        self._obey(told)

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

    # Samples.

    def draw(self, n: int) -> List[int]:
        """The next n indices into the data set, in the order of use; fewer only when the run is over."""
        self._check_process()
        if self._place is None:
            return self._draw_offline(n)
        self.check_open()
        drawn: List[int] = []
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

    def _fetch(self, n: int) -> None:
        """Draws at least one index, and some in advance: an answer takes longer than a batch of a small model."""
        assert self.samples_of_pass is not None
        try:
            if self._link is None or not self._link.is_open:
                raise Lost("there was no connection")
            self._reserve = self._link.draw(min(max(n, DRAW_AHEAD), link.DRAW_MAX), self.samples_of_pass)
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

    def draw_for(self, samples: int) -> None:
        """Draws without looking at the indices until a step of so many more samples is covered."""
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


def _names(names: List[str]) -> str:
    if not names:
        return "the script's weights are finite now"
    more = f" and {len(names) - 3} others" if len(names) > 3 else ""
    return f"numbers that are not finite in {', '.join(names[:3])}{more}"
