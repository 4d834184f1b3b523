"""An entry of a loaded model as what a training calls: batches by name in, the loss and other numbers out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError, ArtifactError, StateDictError
from graphc.base.sizes.size import bounds, hint, is_size
from graphc.cli.trainer.loop import Batch
from graphc.files.manifest import TensorSpec
from graphc.models.model_file import LoadedEntry, LoadedModel

USUAL = "train_step"
"""What an entry that trains is called where nobody says otherwise."""
RANDOM = "graphc.random"
"""The name of the random state among the states of a model."""
_FIRST = ".0"


class EntryStep:
    """Trains a model by calls of one of its entries, whose first output that is one number is the loss."""

    def __init__(self, model: LoadedModel, entry: LoadedEntry):
        """Raises ArgumentError for an entry that writes no states, that gives no number, or whose inputs have no batch
        as their first dimension."""
        self.model, self.entry = model, entry
        self.inputs = tuple(with_short_names(entry.inputs))
        """What it takes of the data: ``x`` for an input ``x.0``, the only one of that name."""
        if not entry.spec.writes:
            raise ArgumentError(
                f"the entry {entry.name} writes no parameters, so that its calls train nothing",
                remedy=f"--entry {' or '.join(trained_by(model)) or 'of a file with the export of a compile_step'}",
            )
        self._numbers = [i for i, o in enumerate(entry.outputs) if o.shape == () and o.dtype.startswith(("f", "i"))]
        if not self._numbers:
            raise ArgumentError(f"the entry {entry.name} gives no number that could be a loss")
        names = [_last(entry.outputs[i].name) for i in self._numbers[1:]]
        self.names: tuple[str, ...] = tuple(_unique(["loss", *names]))
        self.batch = batch_of(self.inputs, entry.name)
        """The size of batches that it takes: a number, or a dimension."""

    def __call__(self, batch: Batch) -> tuple[float, ...]:
        found = self.entry.run([batch[spec.name] for spec in self.inputs])
        return tuple([float(found[i]) for i in self._numbers])

    def state(self) -> dict[str, np.ndarray]:
        """Copies of all that calls are given and may change, by name."""
        return {name: np.array(array) for name, array in self.model.states.items()}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Goes on from a state; raises ArtifactError where it is that of another model."""
        held = {name: (a.dtype, a.shape) for name, a in self.model.states.items()}
        if {name: (a.dtype, a.shape) for name, a in state.items()} != held:
            raise ArtifactError("the checkpoint has other parameters or states than the model")
        self.model.load_state_dict(state, strict=False)

    def put(self, name: str, value: float) -> list[str]:
        """Gives a number to the states of a name, or of which it is the last part (``lr`` of every group); which ones.
        Raises ArgumentError where there is none."""
        states = self.model.states
        found = [n for n in states if states[n].shape == () and (n == name or n.endswith(f".{name}"))]
        if not found:
            known = [n for n in states if states[n].shape == ()]
            raise ArgumentError(
                f"the model has no number {name!r} that can be set",
                remedy=f"one of {', '.join(known)}" if known else None,
            )
        try:
            self.model.load_state_dict({n: np.array(value, states[n].dtype) for n in found}, strict=False)
        except (StateDictError, OverflowError) as error:
            raise ArgumentError(f"{name} cannot be {value}: {error}") from None
        return found

    def seed(self, seed: int) -> None:
        """Has the random numbers of the model begin with a seed, where it draws any."""
        if RANDOM in self.model.states:
            state = np.array([seed, 0], np.uint64).view(np.int64)
            self.model.load_state_dict({RANDOM: state}, strict=False)


def trained_by(model: LoadedModel) -> list[str]:
    """The entries that write parameters, or states of an optimizer."""
    return [name for name, entry in model.entries.items() if entry.spec.writes]


def entry_to_train(model: LoadedModel, name: str | None) -> LoadedEntry:
    """The entry of a name; without one that which is called USUAL, or the only one that writes states. Raises
    ArgumentError."""
    if name is not None:
        return model.entry(name)
    if USUAL in model.entries:
        return model.entry(USUAL)
    found = trained_by(model)
    if len(found) == 1:
        return model.entry(found[0])
    remedy = f"--entry {' or '.join(found)}" if found else "graphc.export of a step of compile_step"
    raise ArgumentError(f"the file has {len(found) or 'no'} entries that train, and none is named", remedy=remedy)


def batch_of(inputs: Sequence[TensorSpec], entry: str) -> Any:
    """The first dimension of all inputs: a number, or a dimension. Raises ArgumentError where they have no common
    one."""
    found = {spec.shape[0] if spec.shape else None for spec in inputs}
    if len(found) != 1 or None in found:
        told = ", ".join(map(str, inputs)) or "none"
        raise ArgumentError(f"the inputs of {entry} have no common batch as their first dimension: {told}")
    return next(iter(found))


def batch_size(batch: Any, wanted: int | None) -> int:
    """The size of batches for a first dimension; what is ``wanted``, if anything is. Raises ArgumentError where it
    cannot be."""
    size = hint(batch) if wanted is None else wanted
    low, high = bounds(batch)
    if not low <= size <= high:
        takes = f"{low} to {high}" if is_size(batch) else str(batch)
        raise ArgumentError(f"the entry takes batches of {takes}, not of {size}", remedy="a file with open sizes")
    return size


def with_short_names(inputs: Sequence[TensorSpec]) -> list[TensorSpec]:
    """Inputs with ``.0`` taken off their names where no other one begins like it."""
    short = [spec.name.removesuffix(_FIRST) for spec in inputs]
    heads = [spec.name.partition(".")[0] for spec in inputs]
    return [
        replace(spec, name=name) if heads.count(name) == 1 else spec for spec, name in zip(inputs, short, strict=True)
    ]


def _last(name: str) -> str:
    """The part of an output's name that says most: ``accuracy`` of ``output.1.accuracy``."""
    part = name.rpartition(".")[2]
    return name if part.isdigit() else part


def _unique(names: Sequence[str]) -> list[str]:
    found: list[str] = []
    for name in names:
        found.append(name if name not in found else f"{name}_{len(found)}")
    return found
