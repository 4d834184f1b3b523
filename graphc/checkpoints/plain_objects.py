"""Pure data other than tensors in checkpoints: NumPy scalars, namespaces, sets, paths."""

from __future__ import annotations

import argparse
import posixpath
from collections import Counter
from typing import Any

import numpy as np

from graphc.base.errors import ArtifactError
from graphc.checkpoints.pickle_machine import KEYS, Built, Constant, Known, Token
from graphc.nn.module_state import StateDict

_DTYPES = ("float16", "bfloat16", "float32", "float64", "uint8", "int8", "int16", "int32", "int64", "bool")
_NUMBERS = "?biuf"


def plain_names() -> dict[str, Known | Constant]:
    """Return the known names of such objects in pickles. Each function builds one from checked numbers and strings, and
    calls nothing else."""
    calls = {
        "collections.OrderedDict": _new_dict,
        "collections.Counter": _counts,
        "collections.defaultdict": _default_dict,
        "argparse.Namespace": _Namespace,
        "_codecs.encode": _bytes,
        "numpy.dtype": _NumberType.of,
        "torch.device": _device,
        **{f"{module}.multiarray.scalar": _number for module in ("numpy.core", "numpy._core")},
        **{f"{module}.{kind.__name__}": _set_of(kind) for module in _BUILTINS for kind in (set, frozenset)},
        **{f"{module}.PosixPath": _path for module in ("pathlib", "pathlib._local")},
    }
    tokens = {f"{module}.{name}": None for module in _BUILTINS for name in ("list", "dict", "int", "float")}
    known: dict[str, Known | Constant] = {name: Known(name, call) for name, call in (calls | tokens).items()}
    return known | {f"torch.{name}": Constant(f"torch.{name}") for name in _DTYPES}


_BUILTINS = ("builtins", "__builtin__")


class _Namespace(argparse.Namespace, Built):
    """Command-line arguments of the program that wrote the checkpoint."""

    def __init__(self) -> None:
        super().__init__()

    def set_state(self, state: Any) -> None:
        if not isinstance(state, dict) or not all(isinstance(k, str) and not k.startswith("__") for k in state):
            raise ArtifactError("a Namespace has attributes without names")
        self.__dict__.update(state)


class _NumberType(Token, Built):
    """NumPy element type of the scalar that follows."""

    name = "numpy.dtype"

    def __init__(self, dtype: np.dtype):
        self.dtype = dtype

    @staticmethod
    def of(text: Any, *rest: Any) -> _NumberType:
        dtype = np.dtype(text) if isinstance(text, str) and len(text) <= 3 else None
        if dtype is None or dtype.kind not in _NUMBERS:
            raise ArtifactError(f"it has the element type {text!r} of NumPy, which is not numeric")
        return _NumberType(dtype)

    def set_state(self, state: Any) -> None:
        if not isinstance(state, tuple) or len(state) < 2 or state[1] not in ("<", ">", "|", "="):
            raise ArtifactError("an element type of NumPy has no byte order")
        self.dtype = self.dtype.newbyteorder(state[1])


def _number(kind: Any, data: Any) -> Any:
    if not isinstance(kind, _NumberType) or not isinstance(data, bytes) or len(data) != kind.dtype.itemsize:
        raise ArtifactError("a number of NumPy does not have the bytes of its type")
    return np.frombuffer(data, kind.dtype)[0].item()


def _bytes(text: Any, encoding: Any) -> bytes:
    if not isinstance(text, str) or encoding != "latin1":
        raise ArtifactError("bytes are written in an encoding other than Latin-1")
    return text.encode("latin-1")


def _new_dict(entries: Any = ()) -> StateDict:
    if entries:
        raise ArtifactError("an OrderedDict is constructed with entries")
    return StateDict()


def _default_dict(make: Any = None) -> dict[Any, Any]:
    if make is not None and not isinstance(make, Known):
        raise ArtifactError("a defaultdict has an unknown factory")
    return {}


def _counts(counts: Any = None) -> Counter[Any]:
    if not isinstance(counts, dict | None):
        raise ArtifactError("a Counter is not made from a dictionary")
    return Counter(counts)


def _set_of(kind: type) -> Any:
    def build(items: Any = ()) -> Any:
        if not isinstance(items, list | tuple) or not all(isinstance(item, KEYS) for item in items):
            raise ArtifactError("a set holds values other than numbers and strings")
        return kind(items)

    return build


def _path(*components: Any) -> str:
    if not all(isinstance(component, str) for component in components):
        raise ArtifactError("a path has components other than strings")
    return posixpath.join("", *components)


def _device(kind: Any, index: Any = None) -> str:
    if not isinstance(kind, str) or not (index is None or (type(index) is int and index >= 0)):
        raise ArtifactError("a torch.device has no name")
    return kind if index is None else f"{kind}:{index}"
