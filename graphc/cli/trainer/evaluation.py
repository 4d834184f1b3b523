"""Evaluation of an entry on held-out data: compare its outputs with targets, or average its scalar outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError
from graphc.base.sizes.size import bounds, is_size
from graphc.cli.trainer.entry_step import batch_of, batch_size, with_short_names
from graphc.cli.trainer.measures import Make, default_measure
from graphc.cli.trainer.named_arrays import NamedArrays
from graphc.files.manifest import TensorSpec
from graphc.metrics import Mean
from graphc.models.model_file import LoadedEntry, LoadedModel
from graphc.tensors.creation import as_tensor
from graphc.training.history import VALID

LARGEST = 256
"""Samples in a batch if the entry takes any size."""


class Evaluation:
    """Measurement of an entry on data.

    If the entry takes all inputs of the training, its scalar outputs are averaged. Otherwise its first output is
    compared with the only remaining input, the target.
    """

    def __init__(
        self,
        entry: LoadedEntry,
        data: NamedArrays,
        inputs: Sequence[TensorSpec],
        measures: Mapping[str, Make] | None = None,
    ):
        """``data`` has been fitted to ``inputs``, the inputs of the training. Raises ArgumentError if the entry does
        not match."""
        self.entry, self.data = entry, data
        self._inputs = _match_inputs(entry, inputs)
        unused = [spec for spec in inputs if spec.name not in self._inputs]
        self._target = unused[0].name if unused else ""
        if len(unused) > 1:
            names = ", ".join(spec.name for spec in unused)
            raise ArgumentError(f"{entry.name} does not take {names}, and an output is compared with one of them only")
        if not unused and measures:
            raise ArgumentError(f"{entry.name} takes all of the data, so there is no target to compare outputs with")
        measures = measures or (default_measure(unused[0]) if unused else {})
        self.measures = {name: make(entry.outputs[0]) for name, make in measures.items()}
        self._numbers = {o.name: i for i, o in enumerate(entry.outputs) if o.shape == ()}
        if not unused and not self._numbers:
            raise ArgumentError(f"{entry.name} returns no number that could be averaged")
        batch = batch_of(entry.inputs, entry.name)
        self._is_fixed = not is_size(batch)
        low, high = bounds(batch)
        self._batch = batch_size(batch, min(high, max(low, min(len(data), LARGEST))))
        # NOTE: the entry averages over a fixed batch, so an incomplete one cannot be used.
        self._count = len(data) - (len(data) % self._batch if self._is_fixed and not unused else 0)
        if not self._count:
            raise ArgumentError(f"{len(data)} samples are fewer than a batch of {self._batch}")

    @property
    def names(self) -> list[str]:
        """Columns of the measures."""
        return [f"{VALID}{name}" for name in self.measures or self._numbers]

    def __call__(self) -> dict[str, float]:
        """Return the measures over all samples, by column."""
        for measure in self.measures.values():
            measure.reset()
        means = {name: Mean() for name in ([] if self.measures else self._numbers)}
        for start in range(0, self._count, self._batch):
            self._add(list(range(start, min(start + self._batch, self._count))), means)
        return {f"{VALID}{name}": metric.compute() for name, metric in (self.measures or means).items()}

    def _add(self, rows: list[int], means: Mapping[str, Mean]) -> None:
        """Add some samples to the measures; a batch of fixed size is padded with the last one."""
        filled = rows + rows[-1:] * (self._batch - len(rows)) if self._is_fixed else rows
        batch = self.data.take(filled)
        outputs = self.entry.run([batch[name] for name in self._inputs])
        for name, mean in means.items():
            mean(float(outputs[self._numbers[name]]), len(rows))
        if self.measures:
            output, target = np.asarray(outputs[0])[: len(rows)], batch[self._target][: len(rows)]
            if output.size == target.size and len(output) == len(target):
                output = output.reshape(target.shape)  # dimensions of size 1
            for measure in self.measures.values():
                measure(as_tensor(output), as_tensor(target))


def entry_to_evaluate(model: LoadedModel, trained: str, name: str | None) -> LoadedEntry:
    """Return the entry with a name; without one, the first other entry without writes. Raises ArgumentError."""
    if name is not None:
        return model.entry(name)
    candidate = next((e for n, e in model.entries.items() if n != trained and not e.spec.writes), None)
    if candidate is None:
        raise ArgumentError(
            f"the file has no entry other than {trained} that could be measured",
            remedy='export one: graphc.export({"infer": gc.Entry(model, x, train=False), "train_step": '
            "gc.Entry(step, x, y)}, ...)",
        )
    return candidate


def _match_inputs(entry: LoadedEntry, inputs: Sequence[TensorSpec]) -> list[str]:
    """Return the names of an entry's inputs in the training, in its order: matched by name, else by position."""
    by_name = {spec.name: spec for spec in inputs}
    own = with_short_names(entry.inputs)
    names = [spec.name if spec.name in by_name else _at(inputs, i) for i, spec in enumerate(own)]
    wrong = [spec for spec, name in zip(own, names, strict=True) if not name or not _fits(spec, by_name[name])]
    if wrong or len(set(names)) != len(names):
        listed = ", ".join(map(str, wrong or own))
        raise ArgumentError(f"{entry.name} takes {listed}, which is not in the data of the training")
    return names


def _at(inputs: Sequence[Any], position: int) -> str:
    return inputs[position].name if position < len(inputs) else ""


def _fits(spec: TensorSpec, reference: TensorSpec) -> bool:
    return spec.dtype == reference.dtype and len(spec.shape) == len(reference.shape)
