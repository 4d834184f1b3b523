"""Tensors of a loaded model: weights as constants of its programs, and params and states changed by calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.base.errors import StateDictError
from graphc.base.lazy import deferred, imported
from graphc.files.model_content import Artifact
from graphc.runtime.fast_call import Gate

if TYPE_CHECKING:
    from graphc.tensors.tensor import Tensor

# Import tensors only where a model has some.
_array = deferred("graphc.models.model_tensors:array_of")
_tensor = deferred("graphc.models.model_tensors:tensor_of")


def prepare_tensors(stored: Artifact) -> None:
    """Import tensors where the model has some, while the digests of its file are computed."""
    if any(tensor.free for tensor in stored.manifest.weights):
        imported("graphc.models.model_tensors")


class ModelState:
    """The tensors of a loaded model by name. Its entries share them."""

    def __init__(self, stored: Artifact, trainable: bool = False):
        """``trainable`` makes parameters tensors that require gradients instead of constants."""
        self._records = {t.name: t for t in stored.manifest.weights}
        self._first = stored.weights
        self._constants = dict(stored.weights)
        self.is_changed = False
        """Whether constants differ from the file's."""
        self.tensors: dict[str, Tensor] = {}
        """Arguments of the programs in each call. All other tensors are constants of theirs."""
        self.gate = Gate()
        """Serializes calls of which one writes a state that the other reads."""
        self.is_recorded = any(entry.spec.derivative is not None for entry in stored.entries)
        """Whether calls may be recorded on the autograd tape."""
        self.written = frozenset(path for entry in stored.entries for path in entry.spec.writes)
        self._params = [t.name for t in stored.manifest.weights if t.is_param and trainable]
        for name, record in self._records.items():
            if record.free or name in self._params:
                first = self._constants.pop(name)
                # The pages of new zeros take memory once calls write them.
                own = np.zeros(first.shape, first.dtype) if record.zeros else np.array(first)
                self.tensors[name] = _tensor(own, name in self._params)

    @property
    def constants(self) -> Mapping[str, np.ndarray]:
        """The constant arrays of programs, by path."""
        return self._constants

    def arrays(self, paths: Iterable[str]) -> tuple[np.ndarray, ...]:
        """Return the programs' arguments for these paths."""
        return tuple([self.tensors[path]._data for path in paths])

    def values(self) -> dict[str, np.ndarray]:
        """Return all arguments of programs, by path."""
        return {name: tensor._data for name, tensor in self.tensors.items()}

    def array(self, path: str) -> np.ndarray:
        """Return the present content of a tensor, constant or not."""
        return self.tensors[path]._data if path in self.tensors else self._constants[path]

    def parameters(self) -> dict[str, Tensor]:
        """Return the parameters that require gradients, by name."""
        return {name: self.tensors[name] for name in self._params}

    def note_writes(self, paths: Iterable[str]) -> None:
        """Count a write to each of these tensors, so that backward passes notice that saved tensors changed."""
        for path in paths:
            counter = self.tensors[path]._counter
            if counter is not None:
                counter[0] += 1

    def state_dict(self) -> dict[str, Tensor]:
        """Return copies of all tensors, by name."""
        with self.gate.alone():
            return {name: _tensor(np.array(self.array(name))) for name in self._records}

    def reset(self) -> None:
        """Reset all tensors that calls change to the content of the file."""
        with self.gate.alone():
            for name, tensor in self.tensors.items():
                if self._records[name].free:
                    np.copyto(tensor._data, self._first[name])
                    self.note_writes([name])

    def load(self, source: Mapping[str, Any], strict: bool) -> set[str]:
        """Load tensors by name, all or nothing. Return the names of changed constants. Raise StateDictError."""
        arrays = self._checked(source, strict)
        changed = set()
        with self.gate.alone():
            for name, array in arrays.items():
                if name in self.tensors:
                    np.copyto(self.tensors[name]._data, array)
                    self.note_writes([name])
                elif not np.array_equal(_bytes(array), _bytes(self._constants[name])):
                    changed.add(name)
            # NOTE: replace the arrays, never write to them: programs that run now still use the old ones.
            self._constants |= {name: arrays[name] for name in changed}
            self.is_changed = self.is_changed or bool(changed)
        return changed

    def swap(self, source: Mapping[str, Any]) -> set[str]:
        """Load weights by name, which must have the model's element types and include all tensors that calls do not
        change.

        Names unknown to the model are ignored. Return the names of changed constants. Raise StateDictError,
        also for anything but a mapping.
        """
        if not isinstance(source, Mapping):
            raise StateDictError(f"weights are tensors by name, got {type(source).__name__}")
        problems = [
            f"{name!r} is missing" for name, record in self._records.items() if not record.free and name not in source
        ]
        for name in self._records.keys() & source.keys():
            actual, expected = _array(source[name]).dtype, self.array(name).dtype
            if actual != expected:
                problems.append(f"{name!r} is {actual} instead of {expected}")
        if problems:
            problems.sort()
            raise StateDictError(
                f"the weights do not fit the model: {'; '.join(problems)}",
                remedy="pass a file with the names of state_dict()",
            )
        return self.load(source, strict=False)

    def _checked(self, source: Mapping[str, Any], strict: bool) -> dict[str, np.ndarray]:
        """Return the arrays by name, converted to the element types of the model."""
        missing = [name for name in self._records if name not in source]
        unknown = [name for name in source if name not in self._records]
        kinds = {"missing": missing, "unknown": unknown} if strict else {}
        problems = [f"{what} {', '.join(map(repr, names))}" for what, names in kinds.items() if names]
        arrays: dict[str, np.ndarray] = {}
        for name in (n for n in source if n in self._records):
            array, record = _array(source[name]), self._records[name]
            if array.shape != record.shape:
                problems.append(f"{name!r} has shape {list(array.shape)} instead of {list(record.shape)}")
            else:
                arrays[name] = array
        if problems:
            raise StateDictError(
                f"the state does not fit the model: {'; '.join(problems)}",
                remedy="pass a result of state_dict(), or strict=False for some of its tensors",
            )
        return {name: _cast(array, self.array(name).dtype) for name, array in arrays.items()}


def _bytes(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _cast(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    return np.array(array, dtype=dtype, order="C")
