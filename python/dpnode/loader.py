"""A DataLoader over the samples that the run leases to this member."""

from __future__ import annotations

from typing import Any, Callable, Iterator, Optional

import torch
import torch.utils.data

from .arguments import whole
from .batches import Batches, check_length
from .errors import Error, Mismatch
from .state import State

# Arguments of DataLoader that say which samples come in which order. The run says so.
ORDER = ("sampler", "batch_sampler", "drop_last", "generator")


class Shard:
    """Batches until the run is over; with batches=N, N of them in each iteration, which goes on where the last one stopped.

    Iterating draws samples in this process only, so workers of the loader never touch the run. took: called
    with the number of samples of each batch that is handed out.
    """

    def __init__(self, session: State, dataset: Any, batch_size: int, took: Callable[[int], None],
                 batches: Optional[int] = None, shuffle: Optional[bool] = None, **arguments: Any) -> None:
        # shuffle is what a loader of before may have had; the order of samples is the run's.
        if isinstance(dataset, torch.utils.data.IterableDataset):
            raise Mismatch("a data set without indices cannot be leased", "it is an IterableDataset",
                           "iterate over it yourself, with DiLoCo(..., samples_per_step=N)")
        for name in ORDER:
            if arguments.pop(name, None):
                raise Mismatch(f"{name} cannot be given to run.shard", "the run says which samples come, and in which order",
                               f"leave {name} away")
        if arguments.get("in_order", True) is False:
            raise Mismatch("in_order=False cannot be given to run.shard", "samples are counted in the order in which they "
                           "were drawn", "leave in_order away")
        check_length(session, dataset)
        self._session = session
        self._took = took
        self._batches = Batches(session, batch_size)
        self._per_iteration = None if batches is None else whole("batches", batches, 1)
        self._going: Optional[Iterator[Any]] = None
        self.dataset = dataset
        self.batch_size = batch_size
        self.loader: torch.utils.data.DataLoader = torch.utils.data.DataLoader(
            dataset, batch_sampler=self._batches, **arguments)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Any]:
        given = 0
        if self._going is None:
            self._going = iter(self.loader)
        while not self._session.over and (self._per_iteration is None or given < self._per_iteration):
            try:
                batch = next(self._going)
            except StopIteration:
                self._going = None
                return
            except BaseException as error:
                self._going = None  # An iterator that has raised may have lost a batch.
                if isinstance(error, Exception) and not isinstance(error, Error):
                    self._took(self._batches.take())  # It cannot be loaded, and would fail again.
                raise
            samples = self._batches.take()
            if samples > 0:
                self._took(samples)
                given += 1
                yield batch

    def __len__(self) -> int:
        if self._per_iteration is None:
            raise TypeError("a shard has no end; with run.shard(..., batches=N) each iteration has N batches")
        return self._per_iteration
