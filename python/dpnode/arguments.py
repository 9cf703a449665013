"""Checks of arguments that are numbers. Each raises Mismatch, which says what is wanted."""

from __future__ import annotations

import operator
from typing import Any

from .errors import Mismatch

# Five times this, a rank's wait for rank 0 (meeting.py), fits into the milliseconds of a socket.
TIMEOUT_MAX_S = 4 * 86400


def whole(name: str, value: Any, least: int) -> int:
    """A whole number; those of NumPy, and tensors of one, are too."""
    try:
        number = operator.index(value)
    except (TypeError, RuntimeError, ValueError):
        number = None
    if number is None or number < least:
        raise Mismatch(f"{name}={value!r} cannot be used", f"it is a whole number, {least} or more")
    return number


def seconds(name: str, value: Any) -> float:
    """A time to wait."""
    try:
        number = float(value) if not isinstance(value, (str, bytes)) else 0.0
    except (TypeError, ValueError):
        number = 0.0
    if not 0 < number <= TIMEOUT_MAX_S:
        raise Mismatch(f"{name}={value!r} cannot be used", f"it is a number of seconds above 0, at most {TIMEOUT_MAX_S} (four days)")
    return number
