"""Batches of leased indices. Knows no framework: loader.py gives them to a DataLoader."""

from __future__ import annotations

import collections
from typing import Deque, Iterator, List, Sized, Tuple

from .arguments import whole
from .errors import Mismatch
from .state import State


class Batches:
    """An endless batch sampler: lists of indices, drawn from the node in the process that iterates, until the run is over.

    drawn: the batches that were given out and not taken yet, each with the generation of its connection. After a
    reconnect the batches of before are stale: their samples are drawn again by somebody. What a loader has fetched
    ahead and nobody takes, as it begins anew or is gone, is drawn next.
    """

    def __init__(self, session: State, batch_size: int) -> None:
        self._drawn: Deque[Tuple[int, List[int]]] = collections.deque()
        self._session = session
        self.batch_size = whole("batch_size", batch_size, 1)

    def __del__(self) -> None:
        self._give_back()

    def _give_back(self) -> None:
        while self._drawn:
            self._session.give_back(*self._drawn.pop())

    def __iter__(self) -> Iterator[List[int]]:
        self._give_back()
        while not self._session.over:
            indices = self._session.draw(self.batch_size)
            if not indices:
                return
            self._drawn.append((self._session.generation, indices))
            yield indices

    def take(self) -> int:
        """The samples of the oldest batch not taken yet; 0 if it is stale, or if there is none."""
        if not self._drawn:
            return 0
        generation, indices = self._drawn.popleft()
        return len(indices) if generation == self._session.generation else 0


def check_length(session: State, dataset: Sized) -> None:
    """The data set of every member has as many items as the run says."""
    session.check_open()
    try:
        length = len(dataset)
    except TypeError:
        raise Mismatch("the data set has no length", "the run leases samples by their numbers",
                       "give a data set with __len__ and __getitem__; or train without run.shard, with "
                       "samples_per_step=N") from None
    if length == 0:
        raise Mismatch("the data set is empty", "", "give the data that the run is to train on")
    if session.samples_of_pass is None:
        session.samples_of_pass = length
    elif length != session.samples_of_pass:
        raise Mismatch(f"the data set has {length} items", f"the run has {session.samples_of_pass} samples",
                       "use the same data on every machine; a new run takes data: {samples: " + f"{length}" + "}")
