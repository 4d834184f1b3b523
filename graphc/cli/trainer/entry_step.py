"""Training step by an entry of a loaded model: batches by name in, the loss and other numbers out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError, ArtifactError, StateDictError
from graphc.base.sizes.size import bounds, hint, is_size
from graphc.files.manifest import TensorSpec
from graphc.models.model_file import LoadedEntry, LoadedModel

USUAL = "train_step"
"""Default name of the entry to train."""
RANDOM = "graphc.random"
"""Name of the random state among a model's states."""
_FIRST = ".0"


class EntryStep:
    """Training of a model by calls of one of its entries, whose first scalar output is the loss."""

    def __init__(self, model: LoadedModel, entry: LoadedEntry):
        """Raises ArgumentError for an entry that writes no states or returns no scalar, or without a common batch
        dimension."""
        self.model, self.entry = model, entry
        self.inputs = tuple(with_short_names(entry.inputs))
        """Inputs with names as in the data: ``x`` for an input ``x.0`` if it is the only one of that name."""
        if not entry.spec.writes:
            others = " or ".join(trained_by(model))
            raise ArgumentError(
                f"the entry {entry.name} writes no parameters, so its calls train nothing",
                remedy=f"pass --entry {others}" if others else "export the step of a compile_step to the file",
            )
        self._numbers = [i for i, o in enumerate(entry.outputs) if o.shape == () and o.dtype.startswith(("f", "i"))]
        if not self._numbers:
            raise ArgumentError(f"the entry {entry.name} returns no number that could be a loss")
        names = [_last(entry.outputs[i].name) for i in self._numbers[1:]]
        self.names: tuple[str, ...] = tuple(_unique(["loss", *names]))
        self.batch = batch_of(self.inputs, entry.name)
        """Size of a batch: a number, or a dimension."""

    def __call__(self, batch: Mapping[str, np.ndarray]) -> tuple[float, ...]:
        outputs = self.entry.run([batch[spec.name] for spec in self.inputs])
        return tuple([float(outputs[i]) for i in self._numbers])

    def state(self) -> dict[str, np.ndarray]:
        """Return copies of all arrays that calls may change, by name."""
        return {name: np.array(array) for name, array in self.model.states.items()}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Continue from a state; raises ArtifactError for the state of another model."""
        expected = {name: (a.dtype, a.shape) for name, a in self.model.states.items()}
        if {name: (a.dtype, a.shape) for name, a in state.items()} != expected:
            raise ArtifactError("the checkpoint has other parameters or states than the model")
        self.model.load_state_dict(state, strict=False)

    def put(self, name: str, value: float) -> list[str]:
        """Set the scalar states with a name, or whose name ends with it (``lr`` of every group), and return their
        names.

        Raises ArgumentError if there are none.
        """
        states = self.model.states
        matches = [n for n in states if states[n].shape == () and (n == name or n.endswith(f".{name}"))]
        if not matches:
            scalars = [n for n in states if states[n].shape == ()]
            raise ArgumentError(
                f"the model has no number {name!r} that can be set",
                remedy=f"set one of {', '.join(scalars)}" if scalars else None,
            )
        try:
            self.model.load_state_dict({n: np.array(value, states[n].dtype) for n in matches}, strict=False)
        except (StateDictError, OverflowError) as error:
            raise ArgumentError(f"{name} cannot be {value}: {error}") from None
        return matches

    def seed(self, seed: int) -> None:
        """Seed the model's random numbers, if it draws any."""
        if RANDOM in self.model.states:
            state = np.array([seed, 0], np.uint64).view(np.int64)
            self.model.load_state_dict({RANDOM: state}, strict=False)


def trained_by(model: LoadedModel) -> list[str]:
    """Return the names of the entries that write parameters or optimizer states."""
    return [name for name, entry in model.entries.items() if entry.spec.writes]


def entry_to_train(model: LoadedModel, name: str | None) -> LoadedEntry:
    """Return the entry with a name; without one, the entry USUAL, or the only one that writes states.

    Raises ArgumentError.
    """
    if name is not None:
        return model.entry(name)
    if USUAL in model.entries:
        return model.entry(USUAL)
    candidates = trained_by(model)
    if len(candidates) == 1:
        return model.entry(candidates[0])
    remedy = (
        f"pass --entry {' or '.join(candidates)}" if candidates else "export the step of a compile_step to the file"
    )
    raise ArgumentError(
        f"the file has {len(candidates) or 'no'} entries that train, and no name was given", remedy=remedy
    )


def batch_of(inputs: Sequence[TensorSpec], entry: str) -> Any:
    """Return the common first dimension of all inputs, a number or a dimension; raises ArgumentError if it differs."""
    sizes = {spec.shape[0] if spec.shape else None for spec in inputs}
    if len(sizes) != 1 or None in sizes:
        listed = ", ".join(map(str, inputs)) or "none"
        raise ArgumentError(f"the inputs of {entry} have no common batch as their first dimension: {listed}")
    return next(iter(sizes))


def batch_size(batch: Any, requested: int | None) -> int:
    """Return the requested size of batches, or a default, for a first dimension; raises ArgumentError if it does not
    fit."""
    size = hint(batch) if requested is None else requested
    low, high = bounds(batch)
    if not low <= size <= high:
        allowed = f"{low} to {high}" if is_size(batch) else str(batch)
        raise ArgumentError(
            f"the entry takes batches of {allowed}, not of {size}",
            remedy="export the entry with a dimension (graphc.Dim) as batch",
        )
    return size


def with_short_names(inputs: Sequence[TensorSpec]) -> list[TensorSpec]:
    """Return inputs without the suffix ``.0`` of their names, unless another name has the same head."""
    short = [spec.name.removesuffix(_FIRST) for spec in inputs]
    heads = [spec.name.partition(".")[0] for spec in inputs]
    return [
        replace(spec, name=name) if heads.count(name) == 1 else spec for spec, name in zip(inputs, short, strict=True)
    ]


def _last(name: str) -> str:
    """Return the most specific component of an output's name: ``accuracy`` of ``output.1.accuracy``."""
    tail = name.rpartition(".")[2]
    return name if tail.isdigit() else tail


def _unique(names: Sequence[str]) -> list[str]:
    unique: list[str] = []
    for name in names:
        unique.append(name if name not in unique else f"{name}_{len(unique)}")
    return unique
