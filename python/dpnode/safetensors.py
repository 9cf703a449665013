"""Safetensors files, read and written: u64 size of a JSON header, the header {name: {dtype, shape, data_offsets}}, the data.

Knows no framework: values are written and read through a mapping of the file.
"""

from __future__ import annotations

import contextlib
import errno
import json
import mmap
import os
import struct
import tempfile
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Tuple

from . import table
from .errors import Error, Mismatch
from .table import Row

HEADER_MAX = 4 << 20  # what dpnode reads (compute/format/safetensors_read.h)
ALIGN = 8
SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1,
         "U16": 2, "U32": 4, "U64": 8, "F8_E4M3": 1, "F8_E5M2": 1}


class Entry(NamedTuple):
    """A tensor of a file: dtype as in the file, and its range of bytes."""

    dtype: str
    shape: Tuple[int, ...]
    begin: int
    end: int


def layout(rows: Iterable[Row]) -> Tuple[bytes, Dict[str, Entry]]:
    """The beginning of a file with these tensors, and the place of each: larger numbers first, so all are aligned."""
    rows = sorted(rows, key=lambda row: (-table.TYPE_BYTES[row.type], row.name))
    header: Dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for row in rows:
        size = row.elements * table.TYPE_BYTES[row.type]
        header[row.name] = {"dtype": table.TYPE_NAMES[row.type], "shape": list(row.shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % ALIGN)
    if len(text) > HEADER_MAX:
        raise Mismatch(f"the header of the file would have {len(text)} bytes", f"dpnode reads {HEADER_MAX}",
                       "give modules shorter names")
    start = 8 + len(text)
    entries = {name: Entry(about["dtype"], tuple(about["shape"]), start + about["data_offsets"][0],
                           start + about["data_offsets"][1])
               for name, about in header.items() if name != "__metadata__"}
    return struct.pack("<Q", len(text)) + text, entries


class Writer:
    """A file under a temporary name, which gets its own when everything is in it. bytes(name) lends the room of a tensor."""

    def __init__(self, path: str, rows: Iterable[Row]) -> None:
        head, self.entries = layout(rows)
        self._path = os.path.abspath(path)
        self._size = max((entry.end for entry in self.entries.values()), default=len(head))
        try:
            if os.path.isdir(self._path):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            fd, self._temporary = tempfile.mkstemp(prefix=".dpnode-", dir=os.path.dirname(self._path))
            with self._or_nothing(), os.fdopen(fd, "r+b") as file:
                _reserve(file.fileno(), self._size)
                file.write(head)
                file.flush()
                self._map = mmap.mmap(file.fileno(), 0)
                os.fchmod(file.fileno(), 0o666 & ~_umask())
        except OSError as error:
            raise self._failure(error) from error

    @contextlib.contextmanager
    def _or_nothing(self) -> Iterator[None]:
        """After an error no file is left."""
        try:
            yield
        except BaseException:
            os.unlink(self._temporary)
            raise

    def _failure(self, error: OSError) -> Error:
        what, why = f"{self._path} cannot be written", error.strerror or str(error)
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EISDIR):
            return Mismatch(what, why, "name a file in a folder that exists")
        return Error(what, why, f"name a file in a folder where you may write, and with {self._size} bytes free")

    def bytes(self, name: str) -> memoryview:
        entry = self.entries[name]
        return memoryview(self._map)[entry.begin:entry.end]

    def __enter__(self) -> "Writer":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            os.unlink(self._temporary)
            return
        try:
            with self._or_nothing():
                self._map.flush()
                os.replace(self._temporary, self._path)
        except OSError as error:
            raise self._failure(error) from error


def _reserve(fd: int, size: int) -> None:
    """Room for the whole file: without it a full disk would end the script by SIGBUS when a value is written into the mapping."""
    try:
        os.posix_fallocate(fd, 0, size)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
            raise
        os.ftruncate(fd, size)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


class Reader:
    """A file that was checked: each range lies in it and has the size of its tensor. bytes(name) lends the values."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            with open(path, "rb") as file:
                is_empty = os.fstat(file.fileno()).st_size == 0
                # Private, since PyTorch warns of memory that cannot be written; a page that is only read is no copy.
                self._map: Any = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) if not is_empty else b""
        except OSError as error:
            raise Mismatch(f"{path} cannot be read", str(error), "dpnode ckpt export DIR writes DIR/model.safetensors") from error
        self.entries = self._read()

    def bytes(self, name: str) -> memoryview:
        entry = self.entries[name]
        return memoryview(self._map)[entry.begin:entry.end]

    def _bad(self, why: str) -> Mismatch:
        return Mismatch(f"{self.path} is no safetensors file", why, "dpnode ckpt export DIR writes DIR/model.safetensors")

    def _read(self) -> Dict[str, Entry]:
        size = len(self._map)
        if size < 8:
            raise self._bad(f"it has {size} bytes")
        header_bytes = struct.unpack_from("<Q", self._map)[0]
        if header_bytes > size - 8:
            raise self._bad("its header is longer than the file")
        try:
            header = json.loads(self._map[8:8 + header_bytes].decode())
            items: List[Tuple[str, Any]] = [item for item in header.items() if item[0] != "__metadata__"]
            return {name: self._entry(name, about, 8 + header_bytes, size) for name, about in items}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise self._bad(f"its header cannot be read: {error}") from None

    def _entry(self, name: str, about: Any, start: int, size: int) -> Entry:
        begin, end = about["data_offsets"]
        shape = tuple(about["shape"])
        if not all(isinstance(number, int) and number >= 0 for number in (begin, end, *shape)):
            raise self._bad(f"the place or shape of {name} are no numbers")
        wanted = SIZES.get(about["dtype"])
        if wanted is None:
            raise self._bad(f"{name} has numbers of the unknown type {about['dtype']!r}")
        for extent in shape:
            wanted *= extent
        if not 0 <= begin <= end <= size - start or end - begin != wanted:
            raise self._bad(f"{name} does not fit into the file")
        return Entry(about["dtype"], shape, start + begin, start + end)
