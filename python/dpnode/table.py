"""The table of tensors: names, number types and shapes of what travels, as the bytes of HELLO.

The bytes are those of compute/model/tensor_table.h (docs/FORMATS.md, section 3):

    offset size
         0    4  "DPX1"
         4    2  version 1
         6    2  0
         8    4  tensors n, at least 1
        12    4  0
        16    8  elements of all tensors
        24    -  n rows, in ascending order of names

A row: u8 number type | u8 dimensions d | u8 bytes of the name | the name | d times u32 extent.
"""

from __future__ import annotations

import struct
from typing import Iterable, List, NamedTuple, Tuple

from .errors import Mismatch

F32, F16, BF16 = 1, 2, 3
TYPE_NAMES = {F32: "F32", F16: "F16", BF16: "BF16"}
TYPE_BYTES = {F32: 4, F16: 2, BF16: 2}

TENSORS_MAX = 1 << 16
DIMS_MAX = 8
NAME_MAX = 255
EXTENT_MAX = (1 << 32) - 1
ELEMENTS_MAX = 1 << 36
BYTES_MAX = 4 << 20

_HEAD = struct.Struct("<4sHHIIQ")
_ROW = struct.Struct("<BBB")


class Row(NamedTuple):
    """One tensor. shape: row-major, without elements never; type: F32, F16 or BF16."""

    name: str
    type: int
    shape: Tuple[int, ...]

    @property
    def elements(self) -> int:
        product = 1
        for extent in self.shape:
            product *= extent
        return product


def elements_of(rows: Iterable[Row]) -> int:
    return sum(row.elements for row in rows)


def _is_name(name: str) -> bool:
    return (0 < len(name) <= NAME_MAX and name != "__metadata__"
            and all(" " < letter <= "~" and letter not in '"\\' for letter in name))


def _check_row(row: Row) -> None:
    if not _is_name(row.name):
        raise Mismatch(f"the tensor {row.name!r} cannot travel",
                       f"names are 1 to {NAME_MAX} printable ASCII characters without quotes, backslashes and blanks",
                       "rename the module or the parameter")
    if row.type not in TYPE_NAMES:
        raise Mismatch(f"the tensor {row.name} cannot travel", "its numbers are not float32, float16 or bfloat16",
                       "convert it, as in model.float(), or freeze it: parameter.requires_grad_(False)")
    if len(row.shape) > DIMS_MAX:
        raise Mismatch(f"the tensor {row.name} cannot travel",
                       f"it has {len(row.shape)} dimensions; the most is {DIMS_MAX}", "reshape it")
    if row.elements == 0:
        raise Mismatch(f"the tensor {row.name} cannot travel", "it has no elements",
                       "freeze it: parameter.requires_grad_(False)")
    if max(row.shape, default=1) > EXTENT_MAX:
        raise Mismatch(f"the tensor {row.name} cannot travel", "an extent has more than 32 bits", "reshape it")


def sort(rows: Iterable[Row]) -> List[Row]:
    """The rows in the order of the table; Mismatch names the first that cannot stand in one."""
    ordered = sorted(rows, key=lambda row: row.name)
    if not ordered:
        raise Mismatch("there is nothing to train", "no parameter has requires_grad",
                       "give the model whose parameters the optimizer has")
    for row in ordered:
        _check_row(row)
    for before, row in zip(ordered, ordered[1:]):
        if before.name == row.name:
            raise Mismatch(f"two tensors have the name {row.name}", "each name is in the table once",
                           "rename one of both modules")
    if len(ordered) > TENSORS_MAX:
        raise Mismatch(f"the model has {len(ordered)} tensors", f"the most is {TENSORS_MAX}", "freeze some of them")
    if elements_of(ordered) > ELEMENTS_MAX:
        raise Mismatch(f"the model has {elements_of(ordered)} elements", f"the most is {ELEMENTS_MAX}",
                       "freeze a part of it")
    return ordered


def encode(rows: Iterable[Row]) -> bytes:
    """The bytes of the table. Mismatch names the first row that cannot stand in one."""
    ordered = sort(rows)
    parts = [_HEAD.pack(b"DPX1", 1, 0, len(ordered), 0, elements_of(ordered))]
    for row in ordered:
        name = row.name.encode("ascii")
        parts.append(_ROW.pack(row.type, len(row.shape), len(name)) + name)
        parts.append(struct.pack(f"<{len(row.shape)}I", *row.shape))
    data = b"".join(parts)
    if len(data) > BYTES_MAX:
        raise Mismatch(f"the table of {len(ordered)} tensors has {len(data)} bytes", f"the most is {BYTES_MAX}",
                       "give modules shorter names")
    return data
