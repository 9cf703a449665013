"""What a script sees of its run, whichever process of it: round and tokens, events, and that only this process may ask."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any, Callable, List, Optional, Tuple

from .arguments import seconds, whole
from .errors import Error, WrongProcess
from .place import Place

_live: "weakref.WeakSet[State]" = weakref.WeakSet()


def live() -> List[State]:
    """Those of this process, and those of its parent at the fork."""
    return list(_live)


def _after_fork_in_child() -> None:
    for state in live():
        state.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


class State:
    """tensors: those of session.py. place: None works without a node (offline). timeout: the longest wait for one answer of
    the node, or for a node, in seconds. sync_every: steps after which a round is waited for; None: none is."""

    def __init__(self, tensors: Any, place: Optional[Place], timeout: float, unit: Optional[int],
                 sync_every: Optional[int]) -> None:
        self._sync_every = None if sync_every is None else whole("sync_every", sync_every, 1)
        self._steps_of_round = 0
        self._tensors = tensors
        self._place = place
        self._timeout = seconds("timeout", timeout)
        self._is_open = False
        self._pid = os.getpid()
        self._thread: Optional[int] = None  # that has opened it
        self._handlers: List[Callable[[int], object]] = []
        self._assign_handlers: List[Callable[[int], object]] = []
        self._weights_handlers: List[Callable[[int], object]] = []
        # Changes of the weights that no handler has heard of: whether they were replaced, or else moved, and the round.
        self._changes: List[Tuple[bool, int]] = []
        self._told_round = 0
        self.samples_of_pass: Optional[int] = None  # None until a node, or a data set, tells
        self.unit = unit
        self.tokens_total = 0
        self.over = False
        self.paused = False
        self.generation = 0  # of the connection: samples of an earlier one count no more
        _live.add(self)

    @property
    def round(self) -> int:
        """The round that steps are for."""
        raise NotImplementedError

    @property
    def tokens(self) -> int:
        """Tokens of the run before that round; without a node, those of this script."""
        raise NotImplementedError

    @property
    def rate(self) -> float:
        """The learning rate that the run's schedule has now; 0 where the manifest has none."""
        raise NotImplementedError

    def open(self) -> None:
        """Connects and sets the tensors to the weights of the run."""
        raise NotImplementedError

    def close(self, give: bool = False) -> None:
        """Ends the connection. give: hands in the steps that the node has not copied; else they are lost to the run, and
        their samples are drawn again."""
        raise NotImplementedError

    def parting(self) -> str:
        """A sentence for the person who interrupts the script: what the node has of its steps, and what is dropped. None of
        ranks but the first, and without a node."""
        return ""

    def step(self, samples: int, loss: float) -> None:
        """Counts one optimizer step of so many samples and looks what the node wants."""
        raise NotImplementedError

    def look(self) -> None:
        """The same without a step: does what the node wants now."""
        raise NotImplementedError

    def draw(self, n: int) -> List[int]:
        """The next n indices into the data set, in the order of use; fewer only when the run is over."""
        raise NotImplementedError

    def give_back(self, generation: int, indices: List[int]) -> None:
        """Samples that were drawn in that generation, and will not be used: they are drawn next. May be called at any moment.
        Ranks keep none, as not all may have dropped the same ones."""

    def cover(self, samples: int) -> bool:
        """Draws without looking at the indices until a step of so many more samples is covered. False: the node came back
        meanwhile, and its weights have replaced what the step did."""
        raise NotImplementedError

    def forget(self) -> None:
        """In a child of the script: lets connections go, so that their other ends see when the script ends. The next step
        raises."""
        raise NotImplementedError

    def on_round(self, handler: Callable[[int], object]) -> None:
        self._handlers.append(handler)

    def on_assign(self, handler: Callable[[int], object]) -> None:
        self._assign_handlers.append(handler)

    def on_weights(self, handler: Callable[[int], object]) -> None:
        self._weights_handlers.append(handler)

    def check_open(self) -> None:
        if self._place is not None and not self._is_open:
            raise Error("the run is not open", "it has samples between its beginning and its end only",
                        "with dpnode.DiLoCo(...) as run: for batch in run.shard(...)")

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            raise WrongProcess("this process did not open the run", "it is a child of the process that did",
                               "use the run in the main process; data sets and collate_fn must not touch it")

    def _check_thread(self) -> None:
        """For what asks the node in any case. Steps are not checked: backward may take them in threads of PyTorch's."""
        self._check_process()
        if self._thread not in (None, threading.get_ident()):
            raise WrongProcess("this thread did not open the run", "its questions to the node and those of the thread that trains "
                               "would mix, and new weights could come in the middle of a step",
                               "open the run, iterate over run.shard and train in one thread; to load data ahead: "
                               "run.shard(..., num_workers=2)")

    def _ends_round(self) -> bool:
        """Counts a step: it was the last one before the round is waited for."""
        if self._sync_every is None:
            return False
        self._steps_of_round += 1
        if self._steps_of_round < self._sync_every:
            return False
        self._steps_of_round = 0
        return True

    def _tell(self) -> None:
        """Calls the handlers of what has happened."""
        while self._changes:
            replaced, number = self._changes.pop(0)
            for handler in (self._assign_handlers if replaced else []) + self._weights_handlers:
                handler(number)
        now = self.round
        if now != self._told_round:
            self._told_round = now
            self._steps_of_round = 0
            for handler in self._handlers:
                handler(now)
