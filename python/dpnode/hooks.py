"""Calls a function after each step of an optimizer: by its hook, or by wrapping step where PyTorch has no hook (before 2.0)."""

from __future__ import annotations

import functools
import types
from typing import Any, Callable

from .errors import Mismatch


def after_each_step(optimizer: Any, call: Callable[[], None]) -> Callable[[], None]:
    """Returns the function that ends it."""
    optimizer = _inner(optimizer)
    if not callable(getattr(optimizer, "step", None)):
        raise Mismatch(f"{type(optimizer).__name__} is no optimizer", "it has no step()",
                       "give a torch.optim.Optimizer; or none, and call run.step(samples)")
    if hasattr(optimizer, "register_step_post_hook"):
        return optimizer.register_step_post_hook(lambda *_: call()).remove
    return _wrap(optimizer, call)


def _inner(optimizer: Any) -> Any:
    """Accelerate's wrapper has no hooks of its own, and calls the optimizer inside."""
    if type(optimizer).__name__ == "AcceleratedOptimizer":
        return optimizer.optimizer
    return optimizer


def _wrap(optimizer: Any, call: Callable[[], None]) -> Callable[[], None]:
    step = optimizer.step
    is_on = True

    @functools.wraps(step)
    def stepped(_: Any, *args: Any, **kwargs: Any) -> Any:
        result = step(*args, **kwargs)
        if is_on:
            call()
        return result

    def end() -> None:
        nonlocal is_on
        is_on = False  # A scheduler may have wrapped it once more, so step stays as it is.

    # A bound method, as schedulers of that time want one.
    optimizer.step = types.MethodType(stepped, optimizer)
    return end
