"""A PyTorch model to and from safetensors files: for dpnode run create --from, and of dpnode ckpt export."""

from __future__ import annotations

import os
from typing import Iterable, Tuple

import torch

from .errors import Mismatch
from .parameters import Model, check_apart, named_tensors, rows_of
from .pieces import is_spread, own, piece_of
from .safetensors import Reader, Writer

DTYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


def save_model(model: Model, path: str, buffers: bool = False) -> None:
    """Writes exactly the tensors that will travel in a run of this model, in their number types.

    dpnode run create run.yaml --from PATH begins such a run. buffers: as in DiLoCo.
    """
    save_tensors(named_tensors(model, buffers), path)


def save_tensors(named: Iterable[Tuple[str, torch.Tensor]], path: str) -> None:
    """Writes tensors that can travel, by their names."""
    named = list(named)
    for name, tensor in named:
        if is_spread(tensor):
            raise Mismatch("a model of fully_shard cannot be written", f"this process has a piece of {name}",
                           "write the first weights in one process, before fully_shard; dpnode ckpt export DIR writes later ones")
    rows = rows_of(named)
    check_apart(named)
    by_name = dict(named)
    with Writer(path, rows) as file:
        for row in rows:
            tensor = by_name[row.name].data
            torch.frombuffer(file.bytes(row.name), dtype=tensor.dtype).view(tensor.shape).copy_(tensor)


def load_model(model: Model, path: str, buffers: bool = False) -> None:
    """Sets the tensors that travel to those of the file, or of DIR/model.safetensors if path is a folder.

    Every one must be there with its shape; number types are converted. Mismatch names the first that is not,
    and then nothing is changed. Other tensors of the file are left alone.
    """
    if os.path.isdir(path):
        path = os.path.join(path, "model.safetensors")
    file = Reader(path)
    named = named_tensors(model, buffers)
    for name, tensor in named:
        entry = file.entries.get(name)
        if entry is None:
            raise Mismatch(f"{path} is not of this model", f"it has no tensor {name}", "build the model that the run has")
        if entry.shape != tuple(tensor.shape) or entry.dtype not in DTYPES:
            raise Mismatch(f"{path} is not of this model",
                           f"{name} is {list(entry.shape)} {entry.dtype} there, and {list(tensor.shape)} in the model",
                           "build the model that the run has")
    for name, tensor in named:
        entry = file.entries[name]
        if tensor.numel() > 0:
            values = torch.frombuffer(file.bytes(name), dtype=DTYPES[entry.dtype])
            piece = piece_of(name, tensor)
            whole = values.view(tensor.shape)
            own(tensor).copy_(whole if piece is None else piece.of(whole))


