"""What a loaded model holds: weights that are constants of its programs, and params and states that calls change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.base.errors import StateDictError
from graphc.base.lazy import deferred
from graphc.files.model_content import Artifact
from graphc.runtime.fast_call import Gate

if TYPE_CHECKING:
    from graphc.tensors.tensor import Tensor

# Tensors are imported where there are some.
_array = deferred("graphc.models.model_tensors:array_of")
_tensor = deferred("graphc.models.model_tensors:tensor_of")


class ModelState:
    """The tensors of a loaded model by name, which its entries share."""

    def __init__(self, stored: Artifact, trainable: bool = False):
        """``trainable``: parameters are no constants, but tensors that require gradients."""
        self._records = {t.name: t for t in stored.manifest.weights}
        self._first = stored.weights
        self._constants = dict(stored.weights)
        self.is_changed = False
        """Whether constants are others than in the file."""
        self.tensors: dict[str, Tensor] = {}
        """What is given to programs in each call; everything else is a constant of theirs."""
        self.gate = Gate()
        """Keeps calls apart of which one writes what the other takes."""
        self.is_recorded = any(entry.spec.derivative is not None for entry in stored.entries)
        """Whether calls may be part of an autograd graph."""
        self.written = frozenset(path for entry in stored.entries for path in entry.spec.writes)
        self._params = [t.name for t in stored.manifest.weights if t.is_param and trainable]
        for name, record in self._records.items():
            if record.free or name in self._params:
                self.tensors[name] = _tensor(np.array(self._constants.pop(name)), name in self._params)

    @property
    def constants(self) -> Mapping[str, np.ndarray]:
        """The arrays that are constants of programs, by path."""
        return self._constants

    def arrays(self, paths: Iterable[str]) -> tuple[np.ndarray, ...]:
        """What programs are given for these paths."""
        return tuple([self.tensors[path]._data for path in paths])

    def values(self) -> dict[str, np.ndarray]:
        """All that is given to programs, by path."""
        return {name: tensor._data for name, tensor in self.tensors.items()}

    def array(self, path: str) -> np.ndarray:
        """What a tensor holds now, constant or not."""
        return self.tensors[path]._data if path in self.tensors else self._constants[path]

    def parameters(self) -> dict[str, Tensor]:
        """The parameters that require gradients, by name."""
        return {name: self.tensors[name] for name in self._params}

    def note_writes(self, paths: Iterable[str]) -> None:
        """Counts a write to each of these tensors, for those who keep them for a backward pass."""
        for path in paths:
            counter = self.tensors[path]._counter
            if counter is not None:
                counter[0] += 1

    def state_dict(self) -> dict[str, Tensor]:
        """Copies of all tensors, by name."""
        with self.gate.alone():
            return {name: _tensor(np.array(self.array(name))) for name in self._records}

    def reset(self) -> None:
        """All that calls change is as in the file."""
        with self.gate.alone():
            for name, tensor in self.tensors.items():
                if self._records[name].free:
                    np.copyto(tensor._data, self._first[name])
                    self.note_writes([name])

    def load(self, given: Mapping[str, Any], strict: bool) -> set[str]:
        """Takes tensors by name, all or nothing; returns the names of constants that are others now. Raises
        StateDictError."""
        found = self._checked(given, strict)
        changed = set()
        with self.gate.alone():
            for name, array in found.items():
                if name in self.tensors:
                    np.copyto(self.tensors[name]._data, array)
                    self.note_writes([name])
                elif not np.array_equal(_bytes(array), _bytes(self._constants[name])):
                    changed.add(name)
            # NOTE: programs that run now keep the arrays that they were made of.
            self._constants |= {name: found[name] for name in changed}
            self.is_changed = self.is_changed or bool(changed)
        return changed

    def swap(self, given: Mapping[str, Any]) -> set[str]:
        """As ``load``, for tensors of the element types of the model, of which there is one for all that calls do not
        change; names that the model does not have are passed over. Raises StateDictError, for anything but tensors by
        name too."""
        if not isinstance(given, Mapping):
            raise StateDictError(f"weights are tensors by name, got {type(given).__name__}")
        problems = [
            f"{name!r} is missing" for name, record in self._records.items() if not record.free and name not in given
        ]
        for name in self._records.keys() & given.keys():
            found, wanted = _array(given[name]).dtype, self.array(name).dtype
            if found != wanted:
                problems.append(f"{name!r} is {found} instead of {wanted}")
        if problems:
            problems.sort()
            raise StateDictError(
                f"the weights do not fit the model: {'; '.join(problems)}",
                remedy="a file with the names that state_dict() has",
            )
        return self.load(given, strict=False)

    def _checked(self, given: Mapping[str, Any], strict: bool) -> dict[str, np.ndarray]:
        """The arrays of what is given, of the types that the model takes."""
        missing = [name for name in self._records if name not in given]
        unknown = [name for name in given if name not in self._records]
        kinds = {"missing": missing, "unknown": unknown} if strict else {}
        problems = [f"{what} {', '.join(map(repr, names))}" for what, names in kinds.items() if names]
        found: dict[str, np.ndarray] = {}
        for name in (n for n in given if n in self._records):
            array, record = _array(given[name]), self._records[name]
            if array.shape != record.shape:
                problems.append(f"{name!r} has shape {list(array.shape)} instead of {list(record.shape)}")
            else:
                found[name] = array
        if problems:
            raise StateDictError(
                f"the state does not fit the model: {'; '.join(problems)}",
                remedy="what state_dict() gave, or strict=False for a part of it",
            )
        return {name: _cast(array, self.array(name).dtype) for name, array in found.items()}


def _bytes(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _cast(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    return np.array(array, dtype=dtype, order="C")
