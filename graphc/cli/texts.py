"""``graphc run`` for models with texts or dictionaries: inputs as JSON or lines of a file, results as text."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.base.dtypes import dtype_of
from graphc.base.errors import ArgumentError, DTypeError, ShapeError
from graphc.base.sizes.size import is_size
from graphc.cli import console
from graphc.cli.arrays import read_value, split_binding
from graphc.files.manifest import TensorSpec

if TYPE_CHECKING:
    from graphc.models.model_file import LoadedModel

_OTHERS = ("fill", "seed", "mean", "std", "scale", "shape", "output", "expect", "atol", "rtol", "print_top", "taps")
"""Options of ``graphc run`` that apply to arrays of numbers only."""


def run(options: argparse.Namespace, model: LoadedModel) -> int:
    """Call the model and print its results. Raises UsageError, and the errors of ``read_value``."""
    wrong = next((name for name in _OTHERS if getattr(options, name, None)), None)
    if wrong is not None:
        raise console.UsageError(
            f"--{wrong.replace('_', '-')} applies to arrays of numbers, and this model has texts or dictionaries",
            remedy="leave the option out, or call the model in Python: graphc.load(path)",
        )
    parts = model.texts
    ports = {port.name: port for port in parts.ports}
    values: dict[str, Any] = {}
    for text in options.input:
        name, value = split_binding(text, list(ports))
        if name in values:
            raise ArgumentError(f"input {name!r} is given twice")
        values[name] = _read(value, ports[name])
    missing = [name for name in ports if name not in values]
    if missing:
        examples = " ".join(f"--input {name}={_example(ports[name])}" for name in missing)
        raise ArgumentError(f"no value for {', '.join(missing)}", remedy=f"pass {examples}")
    result = model(**values)
    named = dict(zip(parts.outputs, result if isinstance(result, tuple) else (result,), strict=True))
    plain = {name: v.tolist() if isinstance(v, np.ndarray) else v for name, v in named.items()}
    if options.json:
        console.emit_json({"model": model.name, "outputs": [{"name": n, "values": v} for n, v in plain.items()]})
    else:
        for name, value in named.items():
            console.emit(f"{name}: {_kind(value)} = {json.dumps(plain[name], ensure_ascii=False, default=str)}")
    return console.OK


def _kind(value: Any) -> str:
    if not isinstance(value, np.ndarray):
        return f"{len(value)} dictionaries" if isinstance(value, list) else "dictionary"
    sizes = ",".join(map(str, value.shape))
    return f"{'text' if value.dtype.kind == 'O' else dtype_of(value.dtype).name}[{sizes}]"


def _is_text(port: Any) -> bool:
    return port.element is not None and port.element.carrier is None


def _example(port: Any) -> str:
    if _is_text(port):
        return f"@{port.name}.txt"
    return "'{\"key\": 1}'" if port.kind == "map" else f"@{port.name}.npy"


def _read(text: str, port: Any) -> Any:
    """Read the value of one input: a dictionary in JSON, texts, or numbers."""
    if port.kind == "map":
        return _json(text, port.name)
    if not _is_text(port):
        shape = () if port.shape is None else port.shape
        return read_value(text, TensorSpec(port.name, port.element.carrier.name, shape))
    if text.startswith("@"):
        path = Path(text[1:])
        if not path.is_file():
            raise FileNotFoundError(2, "no such file", str(path))
        lines = np.array(path.read_text(encoding="utf-8").splitlines(), object)
        array = lines.reshape(-1, *[1] * (len(port.shape or (0,)) - 1))
    else:
        listed = _json(text, port.name) if text.startswith("[") else None
        array = np.array(listed, object) if listed is not None else np.full([1] * len(port.shape or ()), text, object)
    if not all(isinstance(value, str) for value in array.reshape(-1)):
        raise DTypeError(f"input {port.name!r}: {text[:80]!r} are not texts", remedy='write [["first"],["second"]]')
    if port.shape is not None and not _fits(array.shape, port.shape):
        raise ShapeError(f"input {port.name!r} has shape {list(array.shape)}, the model takes {list(port.shape)}")
    return array


def _fits(shape: tuple[int, ...], pattern: tuple[Any, ...]) -> bool:
    return len(shape) == len(pattern) and all(is_size(b) or a == b for a, b in zip(shape, pattern, strict=True))


def _json(text: str, name: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise console.UsageError(
            f"input {name!r}: {text[:80]!r} is not JSON", remedy='write [["first"],["second"]], or @file.txt'
        ) from None
