"""What a node tells of its run of a built-in model: the model in Hugging Face's words, its numbers, its text.

    about = dpnode.about()
    model = dpnode.hf.model(about)
    with dpnode.DiLoCo(model, optimizer) as run:
        for x, y in run.shard(about.text, batch_size=8):
            ...

Knows no framework until an item of the text is read.
"""

from __future__ import annotations

import json
import mmap
import os
import time
from typing import Any, Callable, Dict, Optional, TypeVar

from . import errors
from .arguments import seconds
from .connection import BUSY_S
from .errors import Error, Mismatch, ProtocolError, Refused, Timeout
from .link import Link, Lost
from .place import POLL_S, Place
from .windows import Part, Windows

# Numbers of files (docs/TRAINER.md, section 6).
ABOUT, CONFIG, TOKENIZER, SHARDS = range(4)

Found = TypeVar("Found")


class About:
    """config: config.json of Hugging Face, as a dict; None: transformers has no such model.

    numbers: of the manifest: context, vocab, samples, batch (sequences of a step of the built-in trainer), total_tokens, lr
    (the highest), beta1, beta2, weight_decay, clip (0: none).
    tokenizer: the bytes of tokenizer.json.
    text: a data set for run.shard: (x, y) of window i, x its tokens as int64 [context], y those that follow each. In a run
    of prompts and answers y is -100 where a token has no loss, as PyTorch's cross_entropy wants it.
    held_out: the same of the part of the text that nobody trains on.
    """

    def __init__(self, config: Optional[Dict[str, Any]], numbers: Dict[str, Any], tokenizer: bytes, text: Windows,
                 held_out: Windows) -> None:
        self.config = config
        self.numbers = numbers
        self.tokenizer = tokenizer
        self.text = text
        self.held_out = held_out


def about(dir: Optional[str] = None, timeout: float = 60.0) -> About:
    """Asks the node of this machine, which joins a run first if it has none and there is a token (as DiLoCo does).

    Mismatch: the run's model is not built in (model.arch external). dir, timeout: as in DiLoCo.
    """
    timeout = seconds("timeout", timeout)
    place = Place(dir)
    place.prepare(timeout)
    deadline = time.monotonic() + timeout
    return _retry(lambda: _ask(place, timeout), place, deadline, min(BUSY_S, timeout))


def _retry(ask: Callable[[], Found], place: Place, deadline: float, busy_s: float) -> Found:
    """Other ranks of the script ask as well, and the node hears one at a time."""
    start = time.monotonic()
    while True:
        try:
            return ask()
        except PermissionError as error:
            raise Error("the node's socket cannot be opened", str(error),
                        "run the script as the user that runs dpnoded, or as root") from error
        except (Lost, OSError, Refused) as error:
            may = not isinstance(error, Refused) or error.code == errors.RUN_OVER or (
                error.code == errors.ANOTHER_SCRIPT and time.monotonic() - start < busy_s)
            if not may:
                raise
            if time.monotonic() >= deadline:
                raise Timeout("the node told nothing of its run", f"{place.socket}: {error}",
                              "dpnode status; a larger timeout=...") from error
        time.sleep(POLL_S)


def _ask(place: Place, timeout: float) -> About:
    link = Link(place.socket, timeout)
    try:
        told = _bytes(link, ABOUT)
        if not told:
            raise Mismatch("the run's model is not built in", "model.arch is external, so the script alone knows the model "
                           "and its data", "build the model and the data set in the script, and leave dpnode.about away")
        numbers = json.loads(told)
        config = _bytes(link, CONFIG)
        tokenizer = _bytes(link, TOKENIZER)
        shards = numbers.pop("shards")
        parts = [_part(link, SHARDS + i, shard) for i, shard in enumerate(shards)]
    finally:
        link.close()
    length = numbers["context"]
    text = Windows(parts, length, held_out=False)
    if len(text) != numbers["samples"]:
        raise ProtocolError("the node's text is not as it says", f"{len(text)} windows, said to be {numbers['samples']}",
                            errors.SAME_VERSION)
    return About(json.loads(config) if config else None, numbers, tokenizer, text, Windows(parts, length, held_out=True))


def _bytes(link: Link, file: int) -> bytes:
    size, fd = link.read(file)
    if fd < 0:
        return b""
    try:
        with mmap.mmap(fd, size, access=mmap.ACCESS_READ) as opened:  # Its offset is that of all who have the file.
            return opened[:]
    finally:
        os.close(fd)


def _part(link: Link, file: int, shard: Dict[str, int]) -> Part:
    size, fd = link.read(file)
    if fd < 0:
        raise ProtocolError("the node has no text", f"file {file} is missing", "dpnode why")
    return Part(fd, shard["offset"], shard["token_bytes"], shard["tokens"], shard["training"], shard.get("losses"))
