"""What a model is worth on data that it is not trained on: an entry's outputs beside what they should be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError
from graphc.base.sizes.size import bounds, is_size
from graphc.cli.trainer.entry_step import batch_of, batch_size, with_short_names
from graphc.cli.trainer.measures import MEASURES, Measure
from graphc.cli.trainer.named_arrays import NamedArrays
from graphc.files.manifest import TensorSpec
from graphc.models.model_file import LoadedEntry, LoadedModel

LARGEST = 256
"""Samples in a batch of open size."""


class Evaluation:
    """Measures an entry on data. Where it takes all inputs of the training, the numbers that it gives are averaged;
    else its first output is compared with the one input that it does not take."""

    def __init__(
        self,
        entry: LoadedEntry,
        data: NamedArrays,
        inputs: Sequence[TensorSpec],
        measures: Mapping[str, Measure] | None = None,
    ):
        """``data`` was fitted to ``inputs``, those of the training. Raises ArgumentError where the entry does not
        fit."""
        self.entry, self.data = entry, data
        self._taken = _taken(entry, inputs)
        left = [spec for spec in inputs if spec.name not in self._taken]
        self._wanted = left[0].name if left else ""
        if len(left) > 1:
            names = ", ".join(spec.name for spec in left)
            raise ArgumentError(f"{entry.name} leaves {names}, and outputs are compared with one of them")
        if not left and measures:
            raise ArgumentError(f"{entry.name} takes all of the data, so that there is nothing to compare outputs with")
        usual = "accuracy" if left and left[0].dtype.startswith("i") else "mse"
        self.measures = dict(measures or ({usual: MEASURES[usual]} if left else {}))
        self._numbers = {o.name: i for i, o in enumerate(entry.outputs) if o.shape == ()}
        if not left and not self._numbers:
            raise ArgumentError(f"{entry.name} gives no number that could be averaged")
        batch = batch_of(entry.inputs, entry.name)
        self._is_fixed = not is_size(batch)
        low, high = bounds(batch)
        self._batch = batch_size(batch, min(high, max(low, min(len(data), LARGEST))))
        # NOTE: numbers of a whole batch say nothing of a part of it.
        self._count = len(data) - (len(data) % self._batch if self._is_fixed and not left else 0)
        if not self._count:
            raise ArgumentError(f"{len(data)} samples are less than a batch of {self._batch}")

    @property
    def names(self) -> list[str]:
        """What is measured."""
        return list(self.measures) or list(self._numbers)

    def __call__(self) -> dict[str, float]:
        """The means over all samples."""
        sums = dict.fromkeys(self.names, 0.0)
        for start in range(0, self._count, self._batch):
            rows = list(range(start, min(start + self._batch, self._count)))
            for name, value in self._measure(rows).items():
                sums[name] += value
        return {name: total / self._count for name, total in sums.items()}

    def _measure(self, rows: list[int]) -> dict[str, float]:
        """Sums over some samples; a batch of a fixed size is filled with the last of them."""
        filled = rows + rows[-1:] * (self._batch - len(rows)) if self._is_fixed else rows
        batch = self.data.take(filled)
        found = self.entry.run([batch[name] for name in self._taken])
        if not self._wanted:
            return {name: float(found[i]) * len(rows) for name, i in self._numbers.items()}
        output, wanted = np.asarray(found[0])[: len(rows)], batch[self._wanted][: len(rows)]
        return {name: measure(output, wanted) for name, measure in self.measures.items()}


def entry_to_evaluate(model: LoadedModel, trained: str, name: str | None) -> LoadedEntry:
    """The entry of a name; without one the first that is not trained and writes nothing. Raises ArgumentError."""
    if name is not None:
        return model.entry(name)
    found = next((e for n, e in model.entries.items() if n != trained and not e.spec.writes), None)
    if found is None:
        raise ArgumentError(
            f"the file has no entry beside {trained} that could be measured",
            remedy='graphc.export({"infer": gc.Entry(model, x, train=False), "train_step": gc.Entry(step, x, y)}, ...)',
        )
    return found


def _taken(entry: LoadedEntry, inputs: Sequence[TensorSpec]) -> list[str]:
    """The names of the inputs of a training that an entry takes, in its order: by name, else by place."""
    known = {spec.name: spec for spec in inputs}
    own = with_short_names(entry.inputs)
    names = [spec.name if spec.name in known else _at(inputs, i) for i, spec in enumerate(own)]
    wrong = [spec for spec, name in zip(own, names, strict=True) if not name or not _fits(spec, known[name])]
    if wrong or len(set(names)) != len(names):
        told = ", ".join(map(str, wrong or own))
        raise ArgumentError(f"{entry.name} takes {told}, which is not in the data of the training")
    return names


def _at(inputs: Sequence[Any], place: int) -> str:
    return inputs[place].name if place < len(inputs) else ""


def _fits(spec: TensorSpec, known: TensorSpec) -> bool:
    return spec.dtype == known.dtype and len(spec.shape) == len(known.shape)
