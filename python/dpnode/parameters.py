"""The tensors of a PyTorch model that travel, and the arithmetic between them and the shared floats.

Only this module and those above it import torch. A tensor on a card is copied through a pinned staging
tensor; that path has never run on a GPU.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

import torch

from . import table
from .errors import Mismatch
from .pieces import check_data_parallel, collect, is_sharded_module, own, piece_of

TYPES = {torch.float32: table.F32, torch.float16: table.F16, torch.bfloat16: table.BF16}

# Statistics that a layer follows within some steps. An outer step longer than 1 makes them swing wider in every round,
# and they then fill the updates in the place of weights, so they never travel.
STATISTICS = ("running_mean", "running_var")

Model = Union[torch.nn.Module, Mapping[str, torch.Tensor], Iterable[Tuple[str, torch.Tensor]]]


def unwrap(model: Any) -> Any:
    """The module inside DistributedDataParallel, DataParallel and what torch.compile makes."""
    while True:
        kind = type(model).__name__
        if kind in ("FullyShardedDataParallel", "DeepSpeedEngine"):
            raise Mismatch(f"a model in {kind} cannot be a member of a run", "its parameters are pieces without their shapes",
                           "use DistributedDataParallel, or fully_shard of PyTorch 2.4 and later")
        if kind in ("DistributedDataParallel", "DataParallel"):
            model = model.module
        elif kind == "OptimizedModule":
            model = model._orig_mod
        else:
            return model


def is_shared(model: Any) -> bool:
    """Whether several processes train the model together."""
    return isinstance(model, torch.nn.Module) and any(
        type(module).__name__ == "DistributedDataParallel" or is_sharded_module(module) for module in model.modules())


def clean_name(name: str) -> str:
    """The name without what torch.compile puts before it."""
    return name.replace("_orig_mod.", "")


def named_tensors(model: Model, buffers: bool = False) -> List[Tuple[str, torch.Tensor]]:
    """What travels, by name: parameters with requires_grad, tied ones once.

    With buffers also floating buffers that are saved, but for running statistics.
    """
    model = unwrap(model)
    if not isinstance(model, torch.nn.Module):
        pairs = list(model.items() if isinstance(model, Mapping) else model)
        if any(isinstance(pair, torch.nn.Module) for pair in pairs):
            raise Mismatch("several modules have no common names", "", 'give them names: torch.nn.ModuleDict({"one": ...})')
        if not all(isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) for pair in pairs):
            raise Mismatch("parameters without names cannot travel", "every member must know which is which",
                           "give the model, or model.named_parameters()")
        return [(clean_name(name), tensor) for name, tensor in pairs if tensor.requires_grad]
    collect(model)
    found: List[Tuple[str, torch.Tensor]] = [(clean_name(name), tensor) for name, tensor in model.named_parameters()
                                             if tensor.requires_grad]
    if buffers:
        saved = model.state_dict(keep_vars=True)
        found += [(clean_name(name), tensor) for name, tensor in model.named_buffers()
                  if name in saved and tensor.is_floating_point() and name.rsplit(".", 1)[-1] not in STATISTICS]
    return found


def check_tensor(name: str, tensor: torch.Tensor) -> None:
    """Refuses a tensor that cannot travel, by name."""
    if isinstance(tensor, getattr(torch.nn.parameter, "UninitializedTensorMixin", ())):
        raise Mismatch(f"the parameter {name} cannot travel", "it has no shape before the first forward pass",
                       "run the model once before")
    tensor = own(tensor)
    if tensor.dtype not in TYPES:
        raise Mismatch(f"the parameter {name} cannot travel", f"its numbers are {tensor.dtype}",
                       "convert it, as in model.float(), or freeze it: parameter.requires_grad_(False)")
    if tensor.device.type == "meta" or tensor.layout != torch.strided:
        raise Mismatch(f"the parameter {name} cannot travel", "it has no numbers, or is sparse", "make it a dense tensor")
    if tensor.numel() > 1 and any(extent > 1 and stride == 0 for extent, stride in zip(tensor.shape, tensor.stride())):
        raise Mismatch(f"the parameter {name} cannot travel", "several of its elements are one number in memory",
                       "make it contiguous: parameter.data = parameter.data.contiguous()")


def rows_of(named: Iterable[Tuple[str, torch.Tensor]]) -> List[table.Row]:
    """The rows of the table, in its order."""
    named = list(named)
    for name, tensor in named:
        check_tensor(name, tensor)
    return table.sort(table.Row(name, TYPES[tensor.dtype], tuple(tensor.shape)) for name, tensor in named)


def check_apart(named: Iterable[Tuple[str, torch.Tensor]]) -> None:
    """Refuses two tensors in one piece of memory: an addition would count twice there."""
    ends: Dict[torch.device, List[Tuple[int, int, str]]] = {}
    for name, tensor in named:
        tensor = own(tensor)
        if tensor.numel() == 0:
            continue  # A piece that another rank has.
        span = 1 + sum((extent - 1) * stride for extent, stride in zip(tensor.shape, tensor.stride()))
        start = tensor.data_ptr()
        ends.setdefault(tensor.device, []).append((start, start + span * tensor.element_size(), name))
    for ranges in ends.values():
        ranges.sort()
        for (_, end, one), (start, _, other) in zip(ranges, ranges[1:]):
            if start < end:
                raise Mismatch(f"the parameters {one} and {other} share memory", "only one of both could travel",
                               f"make them one parameter: module.{other.rsplit('.', 1)[-1]} = the parameter {one}")


class _Slot:
    """A tensor and its place in the vector. piece: what this process has of it, None: all.

    rest: what rounding to 16 bits has taken from that, as fp32 on the CPU, or None.
    """

    __slots__ = ("name", "tensor", "offset", "elements", "shape", "piece", "rest")

    def __init__(self, name: str, tensor: torch.Tensor, offset: int) -> None:
        self.name = name
        self.tensor = tensor
        self.offset = offset
        self.elements = tensor.numel()
        self.shape = tensor.shape
        self.piece = piece_of(name, tensor)
        self.rest: Optional[torch.Tensor] = None


class Tensors:
    """The tensors of a session (session.py) over a model."""

    def __init__(self, model: Model, buffers: bool = False) -> None:
        if not isinstance(model, (torch.nn.Module, Mapping)):
            model = list(model)  # An iterator can be read once.
            if len(model) == 1 and isinstance(model[0], torch.nn.Module):
                model = model[0]
        self._model: Model = model
        self._buffers = buffers
        named = named_tensors(self._model, buffers)
        check_data_parallel(unwrap(self._model), named)
        self.rows = rows_of(named)
        check_apart(named)
        by_name = dict(named)
        self._slots: List[_Slot] = []
        offset = 0
        for row in self.rows:
            self._slots.append(_Slot(row.name, by_name[row.name], offset))
            offset += row.elements
        self._staging: Optional[torch.Tensor] = None

    @property
    def named(self) -> List[Tuple[str, torch.Tensor]]:
        """The tensors with their names, in the order of the rows."""
        return [(slot.name, slot.tensor) for slot in self._slots]

    def assign(self, floats: memoryview) -> None:
        for slot, given in self._pairs(floats):
            tensor = own(slot.tensor)
            tensor.copy_(self._staged(given, tensor))
            slot.rest = given - _wide(tensor) if tensor.dtype != torch.float32 else None

    def add(self, floats: memoryview) -> None:
        for slot, given in self._pairs(floats):
            tensor = own(slot.tensor)
            if tensor.dtype == torch.float32:
                tensor.add_(self._staged(given, tensor).to(tensor.device))
                slot.rest = None
            else:
                exact = _wide(tensor) + given
                if slot.rest is not None:
                    exact += slot.rest
                tensor.copy_(exact)
                slot.rest = exact - _wide(tensor)

    def copy(self, floats: memoryview, which: Optional[Sequence[bool]] = None) -> None:
        """The tensors with what rounding took from them: else each round would publish its own rounding as work.

        which: of each row, whether it is written; all are without it.
        """
        for index, (slot, room) in enumerate(self._pairs(floats)):
            if which is not None and not which[index]:
                continue
            tensor = own(slot.tensor)
            if tensor.device.type == "cuda":
                staged = self._stage(tensor)
                staged.copy_(tensor)
                room.copy_(staged)
            else:
                room.copy_(tensor)
            if slot.rest is not None and tensor.dtype != torch.float32:
                room.add_(slot.rest)

    def check_alone(self) -> None:
        """Refuses a model that several processes train together, for one that is to be a member by itself."""
        if is_shared(self._model):
            raise Mismatch("alone=True cannot be used with this model", "several processes train it together",
                           "leave alone away: they are one member; or give the plain model in each process")

    def pieces(self) -> List[Tuple[int, int]]:
        """Of each row: which piece of the tensor this process has (0: all of it), and its elements."""
        return [(0, slot.elements) if slot.piece is None else (slot.piece.number(), slot.piece.elements)
                for slot in self._slots]

    def sums(self) -> List[int]:
        """Of each row the sum of the numbers' bits, as u64; taken where the tensors are, so it is cheap on a card."""
        self._check_model()
        found = [_bits(own(slot.tensor)) for slot in self._slots]
        of_device: Dict[torch.device, List[int]] = {}
        for index, one in enumerate(found):
            of_device.setdefault(one.device, []).append(index)
        sums = [0] * len(found)
        for indices in of_device.values():
            for index, number in zip(indices, torch.stack([found[i] for i in indices]).tolist()):
                sums[index] = number & (1 << 64) - 1
        return sums

    def not_finite(self) -> List[str]:
        return [slot.name for slot in self._slots if not bool(torch.isfinite(own(slot.tensor)).all())]

    def _pairs(self, floats: memoryview) -> List[Tuple[_Slot, torch.Tensor]]:
        """Each tensor with its floats as a CPU tensor of the shape that this process has."""
        self._check_model()
        flat = torch.frombuffer(floats, dtype=torch.float32)
        wholes = [(slot, flat[slot.offset:slot.offset + slot.elements].view(slot.shape)) for slot in self._slots]
        return [(slot, whole if slot.piece is None else slot.piece.of(whole)) for slot, whole in wholes]

    def _check_model(self) -> None:
        """The model still has the tensors that the session began with."""
        now = dict(named_tensors(self._model, self._buffers))
        everything = self._everything()
        for slot in self._slots:
            tensor = everything.get(slot.name)
            if tensor is not slot.tensor:
                gone = "it is gone from the model" if tensor is None else "the model has another tensor of that name"
                raise Mismatch(f"the parameter {slot.name} was replaced after the run began", gone,
                               "build, move, convert and compile the model before the run begins")
            if tensor.shape != slot.shape or tensor.dtype not in TYPES:
                raise Mismatch(f"the parameter {slot.name} was changed after the run began",
                               f"it is {tuple(tensor.shape)} {tensor.dtype}", "build the model before the run begins")
        if len(now) > len(self._slots):
            known = {slot.name for slot in self._slots}
            for name in now:
                if name not in known:
                    raise Mismatch(f"the parameter {name} became trainable after the run began",
                                   "it is not in the table of the run", "unfreeze what will be trained before "
                                   "the run is created")

    def _everything(self) -> Dict[str, torch.Tensor]:
        """All tensors by name, also those that are frozen now, as one half of a GAN is half of the time."""
        model = unwrap(self._model)
        if not isinstance(model, torch.nn.Module):
            return {clean_name(name): tensor for name, tensor in
                    (model.items() if isinstance(model, Mapping) else model)}
        found: Dict[str, torch.Tensor] = {clean_name(name): tensor for name, tensor in model.named_parameters()}
        if self._buffers:
            found.update((clean_name(name), tensor) for name, tensor in model.named_buffers())
        return found

    def _staged(self, given: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
        """given, or for a card the same in pinned memory, from which it is copied at full speed."""
        if tensor.device.type != "cuda":
            return given
        return self._stage(tensor).copy_(given)

    def _stage(self, tensor: torch.Tensor) -> torch.Tensor:
        if self._staging is None:
            largest = max(slot.elements for slot in self._slots)
            self._staging = torch.empty(largest, dtype=torch.float32, pin_memory=True)
        return self._staging[:tensor.numel()].view(tensor.shape)


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """The sum of the bits, eight bytes at a time, as an int64 on the tensor's device; the last ones by themselves."""
    flat = tensor.contiguous().view(-1)
    per_word = 8 // flat.element_size()
    if flat.storage_offset() % per_word != 0:
        flat = flat.clone()
    whole = flat.numel() - flat.numel() % per_word
    small = torch.int32 if flat.element_size() == 4 else torch.int16
    return flat[:whole].view(torch.int64).sum() + flat[whole:].view(small).sum()


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    """A copy as fp32 on the CPU."""
    return tensor.to(device="cpu", dtype=torch.float32, copy=True)
