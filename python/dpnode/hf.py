"""Hugging Face's Trainer as a member of a run: Trainer(..., callbacks=[dpnode.hf.Callback()]). And the model of a run of a
built-in one: dpnode.hf.model(dpnode.about()).
"""

from __future__ import annotations

from typing import Any, Iterator, Optional

import torch
from transformers import AutoConfig, AutoModelForCausalLM, TrainerCallback

from .about_run import About
from .batches import check_length
from .diloco import DiLoCo
from .errors import Mismatch
from .meeting import n_ranks
from .state import State


def model(about: About, **arguments: Any) -> torch.nn.Module:
    """The run's model, of transformers' class. Its weights are random until a run begins. arguments: of the class, such as
    attn_implementation.

    Mismatch: transformers has no such model (model.softcap, or a Llama without gates).
    """
    if about.config is None:
        raise Mismatch("transformers has no model of this run", "it has a soft cap, or is a Llama without gates",
                       "build it in the script, with the names and shapes of docs/PYTORCH.md")
    config = AutoConfig.for_model(**about.config)
    return AutoModelForCausalLM.from_config(config, **arguments).to(torch.float32)


class Leased(torch.utils.data.Sampler):
    """The sampler of a Trainer's loader: so many indices in an epoch, drawn from the node."""

    def __init__(self, session: State, length: int) -> None:
        self._session = session
        self._length = length

    def __iter__(self) -> Iterator[int]:
        for _ in range(self._length):
            index = self._session.draw(1)
            if not index:
                return
            yield index[0]

    def __len__(self) -> int:
        return self._length


class Callback(TrainerCallback):
    """Joins when training begins, looks after each optimizer step, ends training when the run ends.

    The order of samples is the run's if the data set has its length; with leases=False the Trainer's own
    order stays, and members may train on the same samples. The loss of a step is the one that the Trainer
    logged last. Arguments are those of DiLoCo.
    """

    def __init__(self, leases: bool = True, **arguments: Any) -> None:
        self._leases = leases
        self._arguments = arguments
        self._samples = 0  # since the last step
        self._left = 0  # in this epoch
        self._length = 0
        self._batch_size = 0
        self._stepped = False
        self.run: Optional[DiLoCo] = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.run is not None:
            self.run.close(give=False)  # A train() that raised has not closed it.
        if args.world_size != n_ranks():
            raise Mismatch(f"{args.world_size} processes cannot be one member of a run",
                           f"PyTorch's process group has {n_ranks()}", "use torchrun; or one script and one node for each process")
        self.run = DiLoCo(kwargs["model"], **self._arguments)
        self.run.open()
        loader = kwargs["train_dataloader"]
        self._length = self._samples = 0
        self._batch_size = _batch_size(loader) or args.train_batch_size  # auto_find_batch_size leaves args as they are.
        if self._leases:
            self._lease(loader, args.world_size)
            args.ignore_data_skip = True  # A training that is resumed has no samples to skip: the run gives the next ones.

    def _lease(self, loader: Any, ranks: int) -> None:
        """Of several ranks each draws its own samples, as many as each other one in an epoch."""
        assert self.run is not None
        batches: Any = getattr(loader, "batch_sampler", None)
        if ranks > 1 and hasattr(batches, "batch_sampler") and hasattr(batches, "num_processes"):
            # Accelerate's wrapper gives a rank its part of the batches of all; here all are of this rank.
            batches.num_processes, batches.process_index, batches.even_batches = 1, 0, False
            batches = batches.batch_sampler
        if not hasattr(batches, "sampler") or isinstance(loader.dataset, torch.utils.data.IterableDataset):
            raise Mismatch("the Trainer's loader has no sampler that could be replaced", type(loader).__name__,
                           "dpnode.hf.Callback(leases=False)")
        session = self.run._session
        check_length(session, loader.dataset)
        self._length = len(loader.dataset) // ranks
        if batches.drop_last:
            self._length -= self._length % batches.batch_size
        batches.sampler = Leased(session, self._length)

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._left = self._length

    def on_substep_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._take()

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._stepped = True
        self._step()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if not self._stepped:
            self._step()  # A Trainer of before 2024 has no on_optimizer_step.
        self._stepped = False
        if self.run is not None and self.run.should_stop:
            control.should_training_stop = True

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        if self.run is not None and isinstance((logs or {}).get("loss"), (int, float)):
            self.run.loss(logs["loss"])

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.run is not None:
            # The best checkpoint's weights, which are loaded by now, are no work on the run's.
            self.run.close(give=not args.load_best_model_at_end)

    def _take(self) -> None:
        """Counts one batch; the last of an epoch may be smaller."""
        size = min(self._batch_size, self._left) if self._length > 0 else self._batch_size
        self._left -= size
        self._samples += size

    def _step(self) -> None:
        self._take()
        samples, self._samples = self._samples, 0
        if self.run is not None:
            self.run.step(samples)


def _batch_size(loader: Any) -> Any:
    """None if the loader does not say."""
    return getattr(getattr(loader, "batch_sampler", None), "batch_size", None) or getattr(loader, "batch_size", None)
