"""Input arguments of the command line: types for tracing, and values for running."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from graphc.base.dtypes import ALL, BY_NAME, DType, bfloat16, elements, numbers
from graphc.base.errors import ArgumentError, DTypeError, ShapeError
from graphc.base.lazy import deferred
from graphc.base.sizes.named_dims import Dim, dimensions, parse_size
from graphc.base.sizes.size import Dimension, at, bounds, hint, is_size
from graphc.cli.console import UsageError
from graphc.files.container import MAX_BYTES
from graphc.files.manifest import MAX_RANK, TensorSpec
from graphc.files.numpy_file import parse_npy, read_npy, read_npz

random_array = deferred("graphc.compiler.example_arrays:random_array")

_TYPE = re.compile(r"(?P<name>[^:=]+):(?P<dtype>\w+)(?:\[(?P<dims>[^\[\]]*)\])?")
_NUMBER = re.compile(r"(?P<name>[^:=]+):int(?:=(?P<size>.+))?")
_RANGE = re.compile(r"\d+\.\.\d+")
_DIM = re.compile(r"(?:(?P<factor>\d+)\*)?(?P<name>[A-Za-z_]\w*)=(?P<low>\d+)\.\.(?P<high>\d+)")
Dimensions = dict[str, Dimension]


def parse_types(texts: Sequence[str]) -> list[TensorSpec]:
    """Parse types such as ``x:f32[batch=1..64,28]``; later ones may name dimensions that earlier ones declare.

    Raises UsageError.
    """
    declared: Dimensions = {}
    return [parse_type(text, declared) for text in texts]


def _parse_size(text: str, declared: Dimensions) -> Any:
    """Parse a number, ``batch=1..64``, ``16*side=1..40``, or an expression of declared dimensions."""
    if text.isdigit():
        return int(text)
    match = _DIM.fullmatch(text)
    if match is None:
        size = parse_size(text, declared)
        if bounds(size)[0] < 0:
            raise ArgumentError(f"{text} may be negative")
        return size
    size = Dim(match["name"], int(match["low"]), int(match["high"]))
    for name, dimension in dimensions([size]).items():
        if declared.setdefault(name, dimension) != dimension:
            raise ArgumentError(f"dimension {name} is declared twice, with different ranges")
    return int(match["factor"] or 1) * size


def parse_type(text: str, declared: Dimensions | None = None) -> TensorSpec:
    """Parse a type such as ``x:f32[1,28]``, and add its named dimensions to ``declared``. Raises UsageError."""
    declared = {} if declared is None else declared
    if number := _NUMBER.fullmatch(text.strip()):
        return _parse_number(text, number["name"].strip(), (number["size"] or "").strip(), declared)
    match = _TYPE.fullmatch(text.strip())
    if match is None:
        remedy = "write NAME:TYPE[DIMS], such as x:f32[1,28], or pos:int=0..511"
        raise UsageError(f"--input {text!r} is not an input type", remedy=remedy)
    dtype = BY_NAME.get(match["dtype"])
    if dtype not in ALL:
        names = ", ".join(sorted(d.name for d in ALL))
        raise UsageError(f"--input {text!r}: unknown element type {match['dtype']!r}", remedy=f"choose one of {names}")
    entries = [d.strip() for d in match["dims"].split(",")] if (match["dims"] or "").strip() else []
    try:
        shape = tuple([_parse_size(d, declared) for d in entries])
    except ArgumentError as error:
        remedy = "write dimensions such as [1,28], or [batch=1..64,28]"
        raise UsageError(
            f"--input {text!r}: {match['dims']!r} are not dimensions: {error.what}", remedy=remedy
        ) from None
    if len(shape) > MAX_RANK or prod(max(hint(d), 1) for d in shape) * dtype.itemsize > MAX_BYTES:
        raise UsageError(f"--input {text!r}: the shape is too large")
    return TensorSpec(match["name"].strip(), dtype.name, shape)


def _parse_number(text: str, name: str, size: str, declared: Dimensions) -> TensorSpec:
    """Parse ``pos:int=0..511``, an integer input that declares a dimension, or ``stop:int=pos + 1``, another size."""
    try:
        equals = _parse_size(f"{name}={size}" if _RANGE.fullmatch(size) else size, declared)
        if is_size(equals):
            return TensorSpec(name, "i64", (), equals=equals)
        problem = "it is a constant"
    except ArgumentError as error:
        problem = error.what
    raise UsageError(f"--input {text!r}: {size!r} is not a size: {problem}", remedy=f"pass --input {name}:int=0..511")


def specs_at(specs: Sequence[TensorSpec], sizes: Mapping[str, int]) -> list[TensorSpec]:
    """Substitute sizes for named dimensions in specs; dimensions not in ``sizes`` get their expected size.

    Raises UsageError for an unknown dimension, and for a size out of its range.
    """
    declared = dimensions(n for spec in specs for n in spec.pattern)
    for name, size in sizes.items():
        if name not in declared:
            names = ", ".join(declared)
            raise UsageError(f"unknown dimension {name!r}", remedy=f"choose one of {names}" if names else None)
        if not declared[name].low <= size <= declared[name].high:
            raise UsageError(f"{name} is {size}, out of its range {declared[name].low}..{declared[name].high}")
    values = {d: sizes.get(name, d.hint) for name, d in declared.items()}
    return [_spec_at(s, values) for s in specs]


def _spec_at(spec: TensorSpec, values: Mapping[Dimension, int]) -> TensorSpec:
    equals = None if spec.equals is None else at(spec.equals, values)
    return TensorSpec(spec.name, spec.dtype, tuple([at(n, values) for n in spec.shape]), equals=equals)


def split_binding(text: str, names: Sequence[str]) -> tuple[str, str]:
    """Split ``x=value`` into name and value; with a single input, ``@file`` alone is its value."""
    name, equals, value = text.partition("=")
    if not equals or (len(names) == 1 and text.startswith("@") and name not in names):
        if len(names) != 1:
            raise UsageError(
                f"--input {text!r} names no input", remedy=f"write NAME=VALUE with a name of {', '.join(names)}"
            )
        return names[0], text
    if name not in names:
        # NOTE: an ONNX input named input.1 is the parameter input_1 of forward.
        spelled = re.sub(r"\W", "_", name)
        if spelled not in names:
            raise ArgumentError(
                f"unknown input {name!r}", remedy=f"choose one of {', '.join(names)}" if names else None
            )
        return spelled, value
    return name, value


Reader = Callable[[str, TensorSpec, TensorSpec], Any]
"""Function from the text of a value, the input's spec, and the same spec with numbers for named dimensions to a
value."""


class Fill(NamedTuple):
    """Generator of missing inputs."""

    kind: str
    """``zeros``, ``ones`` or ``random``."""
    seed: int = 0
    """Random seed of the first input; each further input uses the next number."""


def read_inputs(
    texts: Sequence[str],
    specs: Sequence[TensorSpec],
    sizes: Mapping[str, int] | None = None,
    fill: Fill | None = None,
    read: Reader | None = None,
) -> list[Any]:
    """Return one array for each input, from ``x=VALUE`` texts.

    ``sizes`` are the named dimensions of generated values, and of missing integer inputs. ``fill`` generates the other
    missing inputs.

    Raises UsageError (syntax), ArgumentError (unknown, missing or repeated name), ArtifactError (damaged file),
    FileNotFoundError, ShapeError and DTypeError.
    """
    by_name = {spec.name: spec for spec in specs}
    concrete = {spec.name: spec for spec in specs_at(specs, sizes or {})}
    values: dict[str, Any] = {}
    for text in texts:
        name, value = split_binding(text, list(by_name))
        if name in values:
            raise ArgumentError(f"input {name!r} is given twice")
        array = (read or read_value)(value, by_name[name], concrete[name])
        values[name] = array if by_name[name].equals is None else int(array)
    for i, (name, spec) in enumerate(by_name.items()):
        if name in values:
            continue
        if spec.equals is not None and (fill or dimensions([spec.equals]).keys() <= (sizes or {}).keys()):
            values[name] = concrete[name].equals
        elif fill is not None:
            values[name] = filled(concrete[name], fill.kind, fill.seed + i)
    missing = [spec for name, spec in by_name.items() if name not in values]
    if missing:
        raise ArgumentError(
            f"no value for {', '.join(map(str, missing))}",
            remedy="pass "
            + " ".join(f"--input {spec.name}={fitting_value(spec)}" for spec in missing)
            + ", or --fill random for all",
        )
    return [values[name] for name in by_name]


SHORT = 8
"""Largest number of elements for which a message suggests to write the numbers themselves."""


def fitting_value(spec: TensorSpec) -> str:
    """Return an example value for an input of this type and shape, as the user would write it."""
    if spec.equals is not None:
        return "3"
    shape = tuple(map(hint, spec.shape))
    kind = BY_NAME[spec.dtype].numpy.kind
    if kind in "fu" and len(shape) == 4 and (shape[1] in (1, 3, 4) or shape[3] in (1, 3, 4)):
        return "@picture.png"
    if prod(shape) <= SHORT and not any(map(is_size, spec.shape)):
        array = np.full(shape, {"f": 0.5, "b": True}.get(kind, 1))
        return json.dumps(array.tolist()).replace(" ", "")
    return f"@{spec.name}.npy"


def filled(spec: TensorSpec, kind: str, seed: int = 0) -> Any:
    """Return an array of zeros, ones, or random numbers of a seed."""
    if kind == "random":
        return random_array(spec, seed)
    return elements(np.full(spec.shape, kind == "ones"), BY_NAME[spec.dtype])


def read_value(text: str, spec: TensorSpec, concrete: TensorSpec | None = None) -> np.ndarray:
    """Read ``@file.npy``, ``@file.npz:key``, ``-``, ``zeros``, ``ones``, ``random[:SEED]`` or JSON numbers as an array.

    ``concrete`` is the spec with numbers for named dimensions, as generated values need.
    """
    concrete = concrete or spec
    dtype = BY_NAME[spec.dtype]
    if text.startswith("@"):
        return fit(read_array(text[1:]), spec, text)
    if text == "-":
        return fit(_standard_input(spec.name), spec, "standard input")
    if text in ("zeros", "ones"):
        return filled(concrete, text)
    if text == "random" or text.startswith("random:"):
        seed = text.partition(":")[2] or "0"
        if not seed.isdigit():
            raise UsageError(f"{text!r}: the seed is not a number", remedy="write random:1")
        return random_array(concrete, int(seed))
    try:
        value = _numbers(json.loads(text))
    except ValueError:
        raise UsageError(
            f"input {spec.name!r}: {text!r} is not a value",
            remedy="write @file.npy, - (standard input), zeros, ones, random, or numbers such as [1,2]",
        ) from None
    if value.dtype.kind not in "biuf":
        raise DTypeError(f"input {spec.name!r}: {text!r} are not numbers")
    if value.dtype.kind == "f" and not dtype.is_differentiable:
        raise DTypeError(f"input {spec.name!r}: {text!r} are not integers, and its element type is {spec.dtype}")
    return fit(elements(value, dtype), spec, text)


def _standard_input(name: str) -> np.ndarray:
    """Read a .npy file from standard input."""
    data = sys.stdin.buffer.read()
    if not data:
        raise UsageError(
            f"input {name!r}: standard input is empty",
            remedy=f"pipe one .npy file, for one input: graphc run model.gcm --input {name}=- < {name}.npy",
        )
    return parse_npy(np.frombuffer(bytearray(data), np.uint8), "standard input")


def _numbers(value: Any) -> np.ndarray:
    """Convert nested lists to an array; integers on both sides of 2**63 become u64, where numpy would choose floats."""
    array = np.asarray(value)
    if array.dtype.kind != "f":
        return array
    exact = np.asarray(value, object)
    return exact.astype(np.uint64) if all(type(v) is int and v >= 0 for v in exact.flat) else array


def read_array(text: str) -> np.ndarray:
    """Read ``file.npy``, ``file.npz`` (with a single array) or ``file.npz:KEY``, without unpickling anything."""
    name, key = text, ""
    if ".npz:" in text:
        name, _, key = text.rpartition(":")
    if not Path(name).is_file():
        raise FileNotFoundError(2, "no such file", name)
    if not name.endswith((".npy", ".npz")):
        raise UsageError(f"{name!r} is not an array file", remedy="pass a file that ends in .npy or .npz")
    if name.endswith(".npz"):
        arrays = read_npz(name)
        if not key and len(arrays) == 1:
            return next(iter(arrays.values()))
        if key not in arrays:
            raise UsageError(f"{name} has no array {key!r}", remedy=f"write {name}:KEY with one of {', '.join(arrays)}")
        return arrays[key]
    return read_npy(name)


def of_file(array: np.ndarray, dtype: DType) -> np.ndarray:
    """Convert a float32 array from a file to bf16, which array files cannot hold, if the input is bf16."""
    return elements(array, dtype) if dtype is bfloat16 and array.dtype == np.float32 else array


def fit(array: np.ndarray, spec: TensorSpec, source: str) -> np.ndarray:
    """Check an array, read from ``source``, against the spec, and return it. Raises ShapeError and DTypeError."""
    fixed = [(a, b) for a, b in zip(array.shape, spec.shape, strict=False) if not is_size(b)]
    if array.ndim != len(spec.shape) or any(a != b for a, b in fixed):
        raise ShapeError(
            f"input {spec.name!r} ({source}) has shape {list(array.shape)}, the model takes {list(spec.shape)}",
            remedy=f"pass an array of shape {list(spec.shape)}",
        )
    element_type = BY_NAME[spec.dtype]
    array = of_file(array, element_type)
    if array.dtype.newbyteorder("=") != element_type.numpy:
        raise DTypeError(
            f"input {spec.name!r} ({source}) has element type {array.dtype.name}, the model takes "
            f"{element_type.long_name}",
            remedy=f"save array.astype(np.{numbers(np.empty(0, element_type.numpy)).dtype.name})",
        )
    return array
