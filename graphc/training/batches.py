"""Batches of a loader in each epoch, in an order that a resumed training repeats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from graphc.base.errors import ArgumentError
from graphc.tensors.random.generator import Generator, default_generator


class LoaderBatches:
    """Batches of a DataLoader, or of anything else that can be iterated in each epoch.

    To resume in the middle of an epoch, the random generators get their states from its beginning, and the completed
    batches are read again and dropped.
    """

    count = None
    """The end of an epoch is where the loader ends, whatever its length says."""

    def __init__(self, loader: Any):
        if not isinstance(loader, Iterable) or isinstance(loader, Iterator):
            raise ArgumentError(
                f"fit: {type(loader).__name__} cannot be read in each epoch", remedy="pass a DataLoader or a list"
            )
        self.loader: Any = loader
        batch_sampler = getattr(loader, "batch_sampler", None)
        inside = [getattr(loader, "sampler", None), batch_sampler, getattr(batch_sampler, "sampler", None)]
        self._parts: list[Any] = [loader, *inside]
        own = [getattr(part, "generator", None) for part in self._parts]
        self._generators = [g for g in dict.fromkeys([default_generator, *own]) if isinstance(g, Generator)]
        self._begun: list[Any] = []

    @property
    def length(self) -> int:
        """Number of batches of an epoch as the loader says; 0 if it does not."""
        try:
            return len(self.loader)
        except TypeError:
            return 0

    def epoch(self, number: int, start: int) -> Iterator[Any]:
        """Yield the batches of an epoch, counted from 0, from index ``start`` on."""
        for part in self._parts:
            if hasattr(part, "set_epoch"):
                part.set_epoch(number)
        present = self._states()
        if start:
            self._put(self._begun)
        else:
            self._begun = present
        batches = iter(self.loader)
        if start:
            for _ in islice(batches, start):
                pass
            self._put(present)
        return batches

    def state_dict(self) -> dict[str, Any]:
        """Return the states of the generators now, and at the beginning of the epoch."""
        return {"present": self._states(), "begun": self._begun}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state of ``state_dict``. Raise ArgumentError for the state of another loader."""
        if len(state["present"]) != len(self._generators):
            raise ArgumentError(
                f"the checkpoint has {len(state['present'])} random generators, and the loader {len(self._generators)}",
                remedy="pass the same loader, or use another folder",
            )
        self._put(state["present"])
        self._begun = list(state["begun"])

    def _states(self) -> list[Any]:
        return [generator.get_state() for generator in self._generators]

    def _put(self, states: Iterable[Any]) -> None:
        for generator, state in zip(self._generators, states, strict=True):
            generator.set_state(state)
