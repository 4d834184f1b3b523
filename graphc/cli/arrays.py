"""Inputs as the command line names them: types for tracing, and values for running."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from graphc.base.dtypes import ALL, BY_NAME, DType, bfloat16, elements, numbers
from graphc.base.errors import ArgumentError, DTypeError, ShapeError
from graphc.base.sizes.named_dims import Dim, dimensions, parse_size
from graphc.base.sizes.size import Dimension, at, bounds, hint, is_size
from graphc.cli.console import UsageError
from graphc.files.container import MAX_BYTES
from graphc.files.manifest import MAX_RANK, TensorSpec
from graphc.files.numpy_file import read_npy, read_npz

_TYPE = re.compile(r"(?P<name>[^:=]+):(?P<dtype>\w+)(?:\[(?P<dims>[^\[\]]*)\])?")
_NUMBER = re.compile(r"(?P<name>[^:=]+):int(?:=(?P<size>.+))?")
_RANGE = re.compile(r"\d+\.\.\d+")
_DIM = re.compile(r"(?:(?P<factor>\d+)\*)?(?P<name>[A-Za-z_]\w*)=(?P<low>\d+)\.\.(?P<high>\d+)")
Known = dict[str, Dimension]


def parse_types(texts: Sequence[str]) -> list[TensorSpec]:
    """``x:f32[batch=1..64,28]`` and the like as specs; a dimension that one of them declares, the next ones know by its
    name. Raises UsageError."""
    known: Known = {}
    return [parse_type(text, known) for text in texts]


def _parse_extent(text: str, known: Known) -> Any:
    """A number, ``batch=1..64``, ``16*side=1..40``, or a size of dimensions that were declared before."""
    if text.isdigit():
        return int(text)
    match = _DIM.fullmatch(text)
    if match is None:
        size = parse_size(text, known)
        if bounds(size)[0] < 0:
            raise ArgumentError(f"{text} may be negative")
        return size
    size = Dim(match["name"], int(match["low"]), int(match["high"]))
    for name, dimension in dimensions([size]).items():
        if known.setdefault(name, dimension) != dimension:
            raise ArgumentError(f"dimension {name} is declared twice, with other ranges")
    return int(match["factor"] or 1) * size


def parse_type(text: str, known: Known | None = None) -> TensorSpec:
    """``x:f32[1,28]`` as a spec; ``known`` are named dimensions, to which it adds. Raises UsageError."""
    known = {} if known is None else known
    if number := _NUMBER.fullmatch(text.strip()):
        return _parse_number(text, number["name"].strip(), (number["size"] or "").strip(), known)
    match = _TYPE.fullmatch(text.strip())
    if match is None:
        remedy = "NAME:TYPE[DIMS], such as x:f32[1,28], or pos:int=0..511"
        raise UsageError(f"--input {text!r} is no input type", remedy=remedy)
    dtype = BY_NAME.get(match["dtype"])
    if dtype not in ALL:
        names = ", ".join(sorted(d.name for d in ALL))
        raise UsageError(f"--input {text!r}: there is no element type {match['dtype']!r}", remedy=f"one of {names}")
    entries = [d.strip() for d in match["dims"].split(",")] if (match["dims"] or "").strip() else []
    try:
        shape = tuple([_parse_extent(d, known) for d in entries])
    except ArgumentError as error:
        remedy = "such as [1,28], or [batch=1..64,28]"
        raise UsageError(
            f"--input {text!r}: {match['dims']!r} are no dimensions: {error.what}", remedy=remedy
        ) from None
    if len(shape) > MAX_RANK or prod(max(hint(d), 1) for d in shape) * dtype.itemsize > MAX_BYTES:
        raise UsageError(f"--input {text!r}: the shape is too large")
    return TensorSpec(match["name"].strip(), dtype.name, shape)


def _parse_number(text: str, name: str, size: str, known: Known) -> TensorSpec:
    """``pos:int=0..511``, a whole number that is a dimension of that name; ``stop:int=pos + 1`` is another size."""
    try:
        equals = _parse_extent(f"{name}={size}" if _RANGE.fullmatch(size) else size, known)
        if is_size(equals):
            return TensorSpec(name, "i64", (), equals=equals)
        problem = "it is the same in each call"
    except ArgumentError as error:
        problem = error.what
    raise UsageError(f"--input {text!r}: {size!r} is no size: {problem}", remedy=f"{name}:int=0..511")


def specs_at(specs: Sequence[TensorSpec], sizes: Mapping[str, int]) -> list[TensorSpec]:
    """Specs with these sizes of named dimensions, and those that are expected for the others. Raises UsageError for a
    name that there is not, and for a size outside of the range."""
    known = dimensions(n for spec in specs for n in spec.pattern)
    for name, size in sizes.items():
        if name not in known:
            names = ", ".join(known)
            raise UsageError(f"there is no dimension {name!r}", remedy=f"one of {names}" if names else None)
        if not known[name].low <= size <= known[name].high:
            raise UsageError(f"{name} is {size}, outside of {known[name].low}..{known[name].high}")
    values = {d: sizes.get(name, d.hint) for name, d in known.items()}
    return [_spec_at(s, values) for s in specs]


def _spec_at(spec: TensorSpec, values: Mapping[Dimension, int]) -> TensorSpec:
    equals = None if spec.equals is None else at(spec.equals, values)
    return TensorSpec(spec.name, spec.dtype, tuple([at(n, values) for n in spec.shape]), equals=equals)


def split_binding(text: str, names: Sequence[str]) -> tuple[str, str]:
    """(name, value) of ``x=value``; of a lone ``@file`` when there is one input only."""
    name, equals, value = text.partition("=")
    if not equals or (len(names) == 1 and text.startswith("@") and name not in names):
        if len(names) != 1:
            raise UsageError(f"--input {text!r} names no input", remedy=f"NAME=VALUE with {', '.join(names)}")
        return names[0], text
    if name not in names:
        # NOTE: an input of ONNX may be called input.1, which forward knows as input_1.
        spelled = re.sub(r"\W", "_", name)
        if spelled not in names:
            raise ArgumentError(f"there is no input {name!r}", remedy=f"one of {', '.join(names) or 'none'}")
        return spelled, value
    return name, value


Reader = Callable[[str, TensorSpec, TensorSpec], Any]
"""What makes a value of its text, for a spec that may have named dimensions and the same one with numbers for them."""


class Fill(NamedTuple):
    """What inputs are that are not given."""

    kind: str
    """``zeros``, ``ones`` or ``random``."""
    seed: int = 0
    """Of the first input; each other one has the next number."""


def read_inputs(
    texts: Sequence[str],
    specs: Sequence[TensorSpec],
    sizes: Mapping[str, int] | None = None,
    fill: Fill | None = None,
    read: Reader | None = None,
) -> list[Any]:
    """One array per input from ``x=VALUE`` texts; what VALUE makes has these ``sizes`` of named dimensions. So have
    whole numbers that are not given, and what ``fill`` makes of other inputs that are not.

    Raises UsageError (syntax), ArgumentError (unknown, missing or repeated name), ArtifactError (damaged file),
    FileNotFoundError, ShapeError and DTypeError.
    """
    by_name = {spec.name: spec for spec in specs}
    made = {spec.name: spec for spec in specs_at(specs, sizes or {})}
    found: dict[str, Any] = {}
    for text in texts:
        name, value = split_binding(text, list(by_name))
        if name in found:
            raise ArgumentError(f"input {name!r} is given twice")
        array = (read or read_value)(value, by_name[name], made[name])
        found[name] = array if by_name[name].equals is None else int(array)
    for i, (name, spec) in enumerate(by_name.items()):
        if name in found:
            continue
        if spec.equals is not None and (fill or dimensions([spec.equals]).keys() <= (sizes or {}).keys()):
            found[name] = made[name].equals
        elif fill is not None:
            found[name] = filled(made[name], fill.kind, fill.seed + i)
    missing = [spec for name, spec in by_name.items() if name not in found]
    if missing:
        raise ArgumentError(
            f"no value for {', '.join(map(str, missing))}",
            remedy=" ".join(f"--input {spec.name}={fitting_value(spec)}" for spec in missing)
            + "; or --fill random for all",
        )
    return [found[name] for name in by_name]


SHORT = 8
"""Up to how many elements an input is told to be given in numbers."""


def fitting_value(spec: TensorSpec) -> str:
    """A value as a user would give one for an input of this type and shape."""
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
    """``zeros``, ``ones``, or ``random`` numbers of a seed."""
    if kind == "random":
        return random_array(spec, seed)
    return elements(np.full(spec.shape, kind == "ones"), BY_NAME[spec.dtype])


def read_value(text: str, spec: TensorSpec, made: TensorSpec | None = None) -> np.ndarray:
    """The array that ``@file.npy``, ``@file.npz:key``, ``zeros``, ``ones``, ``random[:SEED]`` or JSON stands for;
    ``made`` has numbers for the named dimensions of the spec."""
    made = made or spec
    dtype = BY_NAME[spec.dtype]
    if text.startswith("@"):
        return fit(read_array(text[1:]), spec, text)
    if text in ("zeros", "ones"):
        return filled(made, text)
    if text == "random" or text.startswith("random:"):
        seed = text.partition(":")[2] or "0"
        if not seed.isdigit():
            raise UsageError(f"{text!r}: the seed is no number", remedy="random:1")
        return random_array(made, int(seed))
    try:
        value = _numbers(json.loads(text))
    except ValueError:
        raise UsageError(
            f"input {spec.name!r}: {text!r} is no value",
            remedy="@file.npy, zeros, ones, random, or numbers such as [1,2]",
        ) from None
    if value.dtype.kind not in "biuf":
        raise DTypeError(f"input {spec.name!r}: {text!r} are no numbers")
    if value.dtype.kind == "f" and not dtype.is_differentiable:
        raise DTypeError(f"input {spec.name!r}: {text!r} are no integers, it has element type {spec.dtype}")
    return fit(elements(value, dtype), spec, text)


def _numbers(value: Any) -> np.ndarray:
    """Nested lists as an array; whole numbers on both sides of 2**63, of which numpy makes floats, as u64."""
    found = np.asarray(value)
    if found.dtype.kind != "f":
        return found
    exact = np.asarray(value, object)
    return exact.astype(np.uint64) if all(type(v) is int and v >= 0 for v in exact.flat) else found


def random_array(spec: TensorSpec, seed: int) -> Any:
    """Normal floats, or zeros and ones for integers (small numbers are valid indices of most things); of the expected
    sizes where the shape has named dimensions, and of numbers that are sizes these."""
    if spec.equals is not None:
        return hint(spec.equals)
    generator = np.random.default_rng(seed)
    dtype, shape = BY_NAME[spec.dtype], tuple(map(hint, spec.shape))
    made = generator.standard_normal(shape) if dtype.is_floating_point else generator.integers(0, 2, shape)
    return elements(made, dtype)


def read_array(text: str) -> np.ndarray:
    """The array of ``file.npy``, ``file.npz`` (if it holds one) or ``file.npz:KEY``; nothing in them is executed."""
    name, key = text, ""
    if ".npz:" in text:
        name, _, key = text.rpartition(":")
    if not Path(name).is_file():
        raise FileNotFoundError(2, "no such file", name)
    if not name.endswith((".npy", ".npz")):
        raise UsageError(f"{name!r} is no file of arrays", remedy="a file that ends with .npy or .npz")
    if name.endswith(".npz"):
        arrays = read_npz(name)
        if not key and len(arrays) == 1:
            return next(iter(arrays.values()))
        if key not in arrays:
            raise UsageError(f"{name} has no array {key!r}", remedy=f"{name}:KEY with one of {', '.join(arrays)}")
        return arrays[key]
    return read_npy(name)


def of_file(array: np.ndarray, dtype: DType) -> np.ndarray:
    """An array of a file for an input of a type: bf16, which such files have not, is rounded from float32."""
    return elements(array, dtype) if dtype is bfloat16 and array.dtype == np.float32 else array


def fit(array: np.ndarray, spec: TensorSpec, source: str) -> np.ndarray:
    """The array, which came from ``source``; raises ShapeError and DTypeError where it is not as the spec says."""
    fixed = [(a, b) for a, b in zip(array.shape, spec.shape, strict=False) if not is_size(b)]
    if array.ndim != len(spec.shape) or any(a != b for a, b in fixed):
        raise ShapeError(
            f"input {spec.name!r} ({source}) has shape {list(array.shape)}, the model takes {list(spec.shape)}",
            remedy=f"an array of shape {list(spec.shape)}",
        )
    wanted = BY_NAME[spec.dtype]
    array = of_file(array, wanted)
    if array.dtype.newbyteorder("=") != wanted.numpy:
        raise DTypeError(
            f"input {spec.name!r} ({source}) has element type {array.dtype.name}, the model takes {wanted.long_name}",
            remedy=f"save array.astype(np.{numbers(np.empty(0, wanted.numpy)).dtype.name})",
        )
    return array
