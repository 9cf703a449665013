"""The run of a script: a context manager that joins, hooks the optimizer and looks after each step.

    with dpnode.DiLoCo(model, optimizer) as run:
        for batch in run.shard(dataset, batch_size=8):
            loss = model(batch).loss
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            if run.should_stop:
                break
"""

from __future__ import annotations

import math
import os
import sys
from typing import Any, Callable, List, Optional, Sequence, Union

import torch

from .arguments import whole
from .batches import check_length
from .errors import Error, Mismatch
from .files import save_tensors
from .hooks import after_each_step
from .loader import Shard
from .meeting import session_of
from .parameters import Model, Tensors
from .place import Place

# Losses on a card that are fetched together: each fetch waits for the card.
LOSSES_FETCHED = 32


class DiLoCo:
    """A run of dpnode in this script.

    model: a module, or names and tensors (a dict, or named_parameters() of the plain module). Parameters with
    requires_grad travel, tied ones once.
    optimizer: a look follows each of its steps; of several, each step of the last. None: the script calls step.
    unit: tokens that a sample counts as; a run says this itself, and one that says another number is refused.
    samples_per_step: counted for each step, for loops that do not iterate over shard.
    buffers: floating buffers of the module that are saved travel too, but for running statistics, as those of
    BatchNorm; the run must have been created with them.
    dir: the node's directory; else DPNODE_DIR, else dpnode's default.
    timeout: seconds of the longest wait for the node, in each call.
    wait_while_paused: a look waits while the node is paused, at most the timeout; the step after it waits again.
    sync_every: steps of a round, after which a look waits until the round is decided, at most the timeout: no step is
    taken on weights that the round is about to move. The manifest says the same number (round.steps_max), so that an
    update is due then. None: nothing waits, and steps go on while a round is decided.
    offline: without a node: shard is a shuffled loader, looks do nothing.
    alone: this process is a member by itself, with a node of its own, although PyTorch's process group has others. Without
    it all processes of the group are one member: each uses the run as here, rank 0's machine has the node.
    """

    def __init__(self, model: Model, optimizer: Union[Any, Sequence[Any], None] = None, *, unit: Optional[int] = None,
                 samples_per_step: Optional[int] = None, buffers: bool = False, dir: Optional[str] = None,
                 timeout: float = 60.0, wait_while_paused: bool = True, offline: bool = False,
                 sync_every: Optional[int] = None, alone: bool = False) -> None:
        if buffers not in (True, False):
            raise Mismatch(f"buffers={buffers!r} cannot be used", "buffers travel (True) or stay local (False)")
        self._tensors = Tensors(model, buffers)
        self._optimizers: List[Any] = list(optimizer) if isinstance(optimizer, (list, tuple)) else \
            [optimizer] if optimizer is not None else []
        if isinstance(optimizer, (list, tuple)) and not optimizer:
            raise Mismatch("optimizer=[] cannot be used", "no step of it would be counted",
                           "give an optimizer; or leave it out, and call run.step(samples)")
        self._samples_per_step = None if samples_per_step is None else whole("samples_per_step", samples_per_step, 0)
        self._session = session_of(self._tensors, None if offline else Place(dir), timeout, wait_while_paused, unit,
                                   sync_every, alone)
        self._unhook: Optional[Callable[[], None]] = None
        self._pending = 0
        self._losses = _Losses()
        self._generation = 0

    # Beginning and end.

    def __enter__(self) -> "DiLoCo":
        return self.open()

    def __exit__(self, kind: Optional[type], *_: object) -> None:
        parting = self._session.parting() if kind is not None and issubclass(kind, KeyboardInterrupt) else ""
        self.close(give=kind is None)
        if parting:
            print(parting, file=sys.stderr, flush=True)

    def open(self) -> "DiLoCo":
        """Joins and sets the parameters to the weights of the run, as the with-block does; for scripts without one, which
        end with close().

        DPNODE_FIRST_WEIGHTS=FILE in the environment writes the tensors that will travel into FILE, and ends the script.
        """
        first = os.environ.get("DPNODE_FIRST_WEIGHTS")
        if first:
            save_tensors(self._tensors.named, first)
            print(f"the first weights are in {first}\nnext: dpnode run create RUN.yaml --from {first}")
            raise SystemExit(0)
        if self._unhook is not None:
            raise Error("the run is open already", "", "one with-block for each run")
        try:
            self._session.open()
            self._unhook = after_each_step(self._optimizers[-1], self._stepped) if self._optimizers else _nothing
        except BaseException:
            self._session.close()
            raise
        return self

    def close(self, give: bool = True) -> None:
        """Ends the connection; the optimizer is the script's alone again.

        give: the steps since the node's last copy are handed in first. After an exception they are not: the
        parameters may be anything.
        """
        if self._unhook is not None:
            self._unhook()
            self._unhook = None
        self._session.close(give)

    def __reduce__(self) -> Any:
        raise Error("a run cannot be sent to another process", "it is a connection of this one",
                    "use the run in the main process; data sets and collate_fn must not hold it")

    # Data, losses and steps.

    def shard(self, dataset: Any, batch_size: int = 1, *, batches: Optional[int] = None, **arguments: Any) -> Shard:
        """A loader of the samples that the run leases to this member, with the other arguments of a DataLoader.

        It has no end while the run has none. batches=N ends each iteration after N batches, for loops with epochs.
        """
        return Shard(self._session, dataset, batch_size, self._took, batches, **arguments)

    def randint(self, high: int, size: Sequence[int]) -> torch.Tensor:
        """In the place of torch.randint(high, size), for loops that pick their samples by such numbers.

        The numbers are those that the run leases to this member, so data.samples is high: each occurs once in a pass over
        all of them. They are samples of the step to come. Once the run is over, where steps count no more, they are random.
        """
        if not isinstance(high, int) or isinstance(size, int):
            raise Mismatch(f"randint({high!r}, {size!r}) cannot be drawn", "", "run.randint(high, (n,)), high as data.samples")
        check_length(self._session, range(high))
        numbers = self._session.draw(math.prod(size))
        self._took(len(numbers))
        rest = torch.randint(high, (math.prod(size) - len(numbers),))
        return torch.cat([torch.tensor(numbers, dtype=torch.int64), rest]).view(*size)

    def loss(self, value: Any) -> None:
        """Tells the loss of the step to come, a float or a tensor; of several, their mean is the step's.

        It is for people who watch the run (dpnode rounds, status). A step without one counts with the last one
        told, before any with 0. Of tensors on a card the mean of each 32 is fetched, so that most steps do not wait for it.
        """
        self._losses.tell(value)

    def step(self, samples: Optional[int] = None, loss: Any = None) -> None:
        """Counts an optimizer step and looks, for loops whose optimizer was not given.

        samples: in the step; without it, those that shard has handed out since the last step, or samples_per_step.
        """
        if self._optimizers:
            raise Error("steps are counted by the optimizer's hook", "so this one would count twice",
                        "do not call run.step; or DiLoCo(model) without the optimizer")
        self._count(None if samples is None else whole("samples", samples, 0), loss)

    def look(self) -> None:
        """Looks now, without a step: for instance before an evaluation, to have the newest weights."""
        self._session.look()

    # State.

    @property
    def round(self) -> int:
        """The round that steps are for."""
        return self._session.round

    @property
    def tokens(self) -> int:
        """Tokens that the run has trained on before this round, all members together: for schedules of the learning rate."""
        return self._session.tokens

    @property
    def tokens_total(self) -> int:
        """Tokens that the run is planned for (train.total_tokens); 0: none are."""
        return self._session.tokens_total

    @property
    def rate(self) -> float:
        """The learning rate that the manifest's schedule has now, in a run of a built-in model; 0 in a run of any model,
        whose manifest has none."""
        return self._session.rate

    @property
    def unit(self) -> int:
        """Tokens that a sample counts as."""
        return self._session.unit or 1

    @property
    def should_stop(self) -> bool:
        """The run has the tokens that it was planned for, or the node has ended and stays away."""
        return self.node_ended or 0 < self.tokens_total <= self.tokens

    @property
    def node_ended(self) -> bool:
        """The node has ended and stayed away for the timeout. The run may go on without it."""
        return self._session.over

    @property
    def paused(self) -> bool:
        """The node is paused (dpnode pause): steps are not wanted now."""
        return self._session.paused

    def on(self, event: str, handler: Callable[[int], object]) -> Callable[[int], object]:
        """Calls handler(round) within a look: "round" when a round has begun, "assign" when the weights were replaced,
        "weights" when they were replaced or moved by a round.

        After "assign" a script may want to drop its optimizer's moments. After "weights" one whose optimizer has a copy of
        the weights of its own makes that anew; it asks for the event before the run is opened.
        """
        events = {"round": self._session.on_round, "assign": self._session.on_assign, "weights": self._session.on_weights}
        if event not in events:
            raise Mismatch(f"there is no event {event!r}", f"events are {', '.join(events)}")
        events[event](handler)
        return handler

    # Counting.

    def _took(self, samples: int) -> None:
        if self._generation != self._session.generation:
            self._generation = self._session.generation
            self._pending = 0
        self._pending += samples

    def _stepped(self) -> None:
        self._count(None, None)

    def _count(self, samples: Optional[int], loss: Any) -> None:
        session = self._session
        pending, self._pending = self._pending, 0
        if loss is not None:
            self._losses.tell(loss)
        if samples is None:
            if pending > 0 and self._generation != session.generation:
                return  # The node came back meanwhile, and somebody draws these samples again.
            samples = pending or self._samples_per_step or 0
        if session.cover(samples):
            session.step(samples, self._losses.of_step())


class _Losses:
    """The loss of each step, without waiting for a card at each one."""

    def __init__(self) -> None:
        self._last = 0.0
        self._sum = 0.0
        self._count = 0
        self._waiting: Optional[torch.Tensor] = None
        self._n_waiting = 0
        self._fetched = False

    def tell(self, value: Any) -> None:
        if isinstance(value, torch.Tensor):
            value = value.detach().float().mean()
            if value.device.type != "cpu":
                self._waiting = value if self._waiting is None else self._waiting + value
                self._n_waiting += 1
                if self._n_waiting >= LOSSES_FETCHED or not self._fetched:
                    self._fetch()
                return
        number = float(value)
        if math.isfinite(number):
            self._sum += number
            self._count += 1

    def of_step(self) -> float:
        """The mean of what was told since the last step, or else of before."""
        if self._count > 0:
            self._last = self._sum / self._count
            self._sum, self._count = 0.0, 0
        return self._last

    def _fetch(self) -> None:
        assert self._waiting is not None
        number = float(self._waiting) / self._n_waiting
        self._waiting, self._n_waiting, self._fetched = None, 0, True
        if math.isfinite(number):
            self._sum += number
            self._count += 1


def _nothing() -> None:
    pass
