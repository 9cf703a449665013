"""An optimizer in the shape of hivemind's: one object that steps, counts and looks. Replaces it in a script line by line."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional

import torch

from .diloco import DiLoCo
from .errors import Mismatch
from .parameters import Model, named_tensors


class Optimizer(torch.optim.Optimizer):
    """Wraps a PyTorch optimizer and takes part in the run of this machine's node.

    optimizer: one, or a function that makes one from parameters.
    params: the model itself, or parameters with names, as named_parameters() of the plain one; names are what members agree
    on.
    batch_size_per_step: samples of each step, if step is given no other number.
    scheduler: one, or a function that makes one from the optimizer; stepped once in each round.
    Other arguments as in DiLoCo: dir, timeout, unit, buffers, offline, wait_while_paused.

    The weights are those of the run as soon as it is made. In contrast to hivemind's, each step changes the
    parameters at once; a round comes in when the run has one, and nothing waits for other members.
    """

    # A GradScaler unscales the gradients itself, and steps only if they are finite: a fused optimizer inside would do both,
    # and nobody would know of a step that it skipped.
    _step_supports_amp_scaling = False

    def __init__(self, *, optimizer: Any, params: Model, batch_size_per_step: Optional[int] = None, scheduler: Any = None,
                 **arguments: Any) -> None:
        if not isinstance(params, torch.nn.Module):
            params = list(params.items() if isinstance(params, Mapping) else params)
        is_made = isinstance(optimizer, torch.optim.Optimizer)
        if not is_made and not callable(optimizer):
            raise Mismatch(f"optimizer={optimizer!r} cannot be used", "",
                           "give an optimizer, or a function: lambda params: torch.optim.AdamW(params)")
        self._scheduler = None
        self.run = DiLoCo(params, samples_per_step=batch_size_per_step, **arguments)
        self.run.open()
        try:
            # One that keeps a copy of the weights begins with the run's.
            self.inner: torch.optim.Optimizer = \
                optimizer if is_made else optimizer([tensor for _, tensor in named_tensors(params)])
            if scheduler is not None:
                self._scheduler = scheduler(self.inner) if callable(scheduler) else scheduler
                self._follow(self.run.round)
                self.run.on("round", self._follow)
        except BaseException:
            self.shutdown()
            raise

    def step(self, closure: Optional[Callable[[], Any]] = None, batch_size: Optional[int] = None,  # type: ignore[override]
             grad_scaler: Any = None) -> Any:
        """One step of the optimizer inside, and a look. Returns the closure's loss.

        batch_size: samples of this step; else what run.shard has handed out since the last one, or
        batch_size_per_step. grad_scaler: a GradScaler of PyTorch; a step that it skips is not counted. Its unscale_ takes
        this object, and scaler.step(this object) does the same as the argument.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
            self.run.loss(loss)
        if grad_scaler is not None:
            grad_scaler.step(self, batch_size=batch_size)  # Calls this once more, if the gradients are finite.
            return loss
        self.inner.step()
        self.run.step(batch_size)
        return loss

    def _follow(self, round_now: int) -> None:
        """The scheduler counts rounds, so one who comes late has the rate of now."""
        while self._scheduler.last_epoch < round_now:  # type: ignore[union-attr]
            self._scheduler.step()  # type: ignore[union-attr]

    @property
    def local_epoch(self) -> int:
        """The round that steps are for: the same for all members, so schedules can follow it."""
        return self.run.round

    @property
    def should_stop(self) -> bool:
        return self.run.should_stop

    def load_state_from_peers(self, **_: Any) -> None:
        """Takes what rounds have moved since the last step. The weights are the run's from the beginning."""
        self.run.look()

    def is_alive(self) -> bool:
        return not self.run.should_stop

    def shutdown(self) -> None:
        """Ends the connection."""
        self.run.close()

    def __enter__(self) -> "Optimizer":
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()

    # Attributes that other programs read from an optimizer are those of the one inside.

    def zero_grad(self, *arguments: Any, **named: Any) -> None:
        self.inner.zero_grad(*arguments, **named)

    def state_dict(self) -> Dict[str, Any]:
        return self.inner.state_dict()

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        self.inner.load_state_dict(state_dict)

    def add_param_group(self, param_group: Dict[str, Any]) -> None:
        raise Mismatch("parameters cannot be added to a run", "its table of tensors is fixed", "create another run")

    @property
    def param_groups(self) -> List[Dict[str, Any]]:  # type: ignore[override]
        return self.inner.param_groups

    @property
    def state(self) -> Any:  # type: ignore[override]
        return self.inner.state

    @property
    def defaults(self) -> Dict[str, Any]:  # type: ignore[override]
        return self.inner.defaults

    def __getattr__(self, name: str) -> Any:
        if name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)  # Hooks of an optimizer, for instance, are kept by the one inside.

    def __repr__(self) -> str:
        return f"dpnode.Optimizer(round={self.run.round}, {self.inner!r})"

    def __reduce__(self) -> Any:
        return self.run.__reduce__()
