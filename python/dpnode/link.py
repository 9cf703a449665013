"""The socket to the node and its packets, as docs/TRAINER.md draws them. One question, one answer.

A link has one state, open or closed. Whatever goes wrong in a question closes it, since question and
answer could be out of step afterwards; session.py opens another.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from typing import List, NamedTuple, Optional, Tuple

from . import errors, packets
from .errors import ProtocolError, Timeout

VERSION = 1
DRAW_MAX = 8000

HELLO, WELCOME, REFUSED, LOOK, DO, DONE, DRAW, DRAWN, READ, GIVEN = range(1, 11)
GO, ASSIGN, ADD, COPY, PAUSED = range(5)
WAIT, GIVE = 1, 2  # flags of LOOK
NAMES = ("GO", "ASSIGN", "ADD", "COPY", "PAUSED")

_WORDS = struct.Struct("<II")
_WELCOME = struct.Struct("<IIQQQQQQ")
_DO = struct.Struct("<IIQQ")
_DONE = struct.Struct("<IIQQd")
_GIVEN = struct.Struct("<IIQ")

Welcome = NamedTuple("Welcome", [("elements", int), ("samples", int), ("unit", int), ("tokens_total", int),
                                 ("offset", int), ("bytes", int)])
Do = NamedTuple("Do", [("what", int), ("round", int), ("tokens", int)])


class Lost(Exception):
    """The connection ended: the node went away, or closed it without a word."""


class Link:
    """A connection to the worker. Raises Lost, Timeout, Refused or ProtocolError, and is then closed."""

    def __init__(self, path: str, timeout: float) -> None:
        """Connects; an OSError says why not."""
        self.timeout = timeout
        self._socket: Optional[socket.socket] = socket.socket(socket.AF_UNIX, packets.KIND)
        try:
            self._socket.settimeout(timeout)
            packets.connect(self._socket, path)
        except BaseException:
            self.close()
            raise

    @property
    def is_open(self) -> bool:
        return self._socket is not None

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def hello(self, table: bytes) -> Tuple[Welcome, int]:
        """Introduces the script. Returns the answer and the descriptor of the memory, which the caller closes."""
        fd = packets.file_of(table)
        try:
            answer, fds = self._ask(_WORDS.pack(HELLO, VERSION), fd)
        finally:
            os.close(fd)
        try:
            kind, version, *rest = self._unpack(_WELCOME, WELCOME, answer)
            if version != VERSION or len(fds) != 1:
                raise self._broken(f"a WELCOME of version {version} with {len(fds)} descriptors")
        except BaseException:
            packets.close_all(fds)
            raise
        return Welcome(*rest), fds[0]

    def look(self, flags: int = 0) -> Do:
        return self._told(_WORDS.pack(LOOK, flags))

    def done(self, what: int, steps: int, samples: int, loss: float) -> Do:
        return self._told(_DONE.pack(DONE, what, steps, samples, loss))

    def draw(self, n: int, below: int) -> List[int]:
        """At most n indices, each below `below`."""
        answer, fds = self._ask(_WORDS.pack(DRAW, n))
        packets.close_all(fds)
        if len(answer) < 8 or len(answer) != 8 + 8 * _WORDS.unpack_from(answer)[1]:
            raise self._broken("a packet of wrong size instead of DRAWN")
        kind, count = _WORDS.unpack_from(answer)
        indices = struct.unpack_from(f"<{count}Q", answer, 8)
        if kind != DRAWN or count > n or (count > 0 and max(indices) >= below):
            raise self._broken(f"{count} indices for {n}, or one that is not below {below}")
        return list(indices)

    def read(self, file: int) -> Tuple[int, int]:
        """A file about the run: its bytes and its descriptor, which the caller closes; (0, -1) if there is none."""
        answer, fds = self._ask(_WORDS.pack(READ, file))
        try:
            kind, number, size = self._unpack(_GIVEN, GIVEN, answer)
            if number != file or len(fds) != int(size > 0):
                raise self._broken(f"file {number} of {size} bytes with {len(fds)} descriptors")
        except BaseException:
            packets.close_all(fds)
            raise
        return size, fds[0] if fds else -1

    def is_readable(self, wait_s: float = 0.0) -> bool:
        """Whether something has come. Without a question open, that can only be the end of the connection."""
        if self._socket is None:
            return True
        return packets.is_readable(self._socket, wait_s)

    def _told(self, question: bytes) -> Do:
        answer, fds = self._ask(question)
        packets.close_all(fds)
        _, *rest = self._unpack(_DO, DO, answer)
        told = Do(*rest)
        if told.what > PAUSED:
            raise self._broken(f"DO {told.what}")
        return told

    def _unpack(self, layout: struct.Struct, kind: int, packet: bytes) -> tuple:
        if len(packet) != layout.size or _WORDS.unpack_from(packet)[0] != kind:
            raise self._broken(f"{len(packet)} bytes instead of message {kind}")
        return layout.unpack(packet)

    def _broken(self, what: str) -> ProtocolError:
        self.close()
        return ProtocolError("the node answered with bytes that the protocol does not have", what,
                             errors.SAME_VERSION)

    def _ask(self, question: bytes, fd: int = -1) -> Tuple[bytes, List[int]]:
        try:
            return self._exchange(question, fd)
        except BaseException:
            self.close()  # Also after Ctrl-C: the answer may still come.
            raise

    def _exchange(self, question: bytes, fd: int) -> Tuple[bytes, List[int]]:
        if self._socket is None:
            raise Lost("the connection is closed")
        deadline = time.monotonic() + self.timeout
        try:
            self._socket.settimeout(self.timeout)
            try:
                packets.send(self._socket, question, fd)
            except (BrokenPipeError, ConnectionResetError):
                pass  # A REFUSED from before may still be there to be read.
            packet, fds = packets.receive(self._socket, deadline)
        except (socket.timeout, BlockingIOError) as error:
            raise Timeout(f"the node did not answer within {self.timeout:g} s", "",
                          "dpnode why; a larger timeout=... if the machine is only slow") from error
        except OSError as error:
            raise Lost(str(error)) from error
        if not packet:
            raise Lost("the node closed the connection")
        if len(packet) >= 8 and _WORDS.unpack_from(packet)[0] == REFUSED:
            packets.close_all(fds)
            raise errors.refused(_WORDS.unpack_from(packet)[1], packet[8:].decode("utf-8", "replace"))
        return packet, fds
