"""Checks of call arguments, the same on every device: counts of arrays, shapes, element types, overlaps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from graphc.base.dtypes import BY_NAME
from graphc.base.errors import ArgumentError, DTypeError, GraphcError, ShapeError
from graphc.files.manifest import BufferSpec, Manifest
from graphc.runtime.call_sizes import numpy_type


class Checks:
    """Checks of the arguments of one program."""

    takes: ClassVar[tuple[type, ...]] = (np.ndarray, np.generic)
    """Array types that calls accept."""
    takes_text: ClassVar[str] = "a NumPy array"
    """Description of these types for messages."""

    def __init__(self, manifest: Manifest):
        self.manifest = manifest
        self.inputs = manifest.of_class("input")
        """Inputs of ``run``, in order."""
        self.bound = manifest.of_class("param", "state")
        """Params and states of ``run``, in order."""
        self.outputs = manifest.of_class("output")
        """Outputs of ``run``, in order."""

    def check(self, spec: BufferSpec, value: Any) -> None:
        """Raise unless a value is an array of the declared shape and element type."""
        if not isinstance(value, self.takes):
            raise ArgumentError(
                f"{title(spec)} is a {type(value).__name__}, {self.manifest.name} takes {self.takes_text}",
                where=self.signature,
                remedy=f"convert it: np.asarray(..., dtype=np.{BY_NAME[spec.dtype].long_name})",
            )
        array: Any = value
        if array.shape != spec.shape:
            raise ShapeError(
                f"{title(spec)} has shape {list(array.shape)}, {self.manifest.name} takes {list(spec.shape)}",
                where=self.signature,
                remedy="pass an array of that shape, or compile the model for this one",
            )
        if array.dtype.newbyteorder("=") != numpy_type(spec):
            long = BY_NAME[spec.dtype].long_name
            raise DTypeError(
                f"{title(spec)} has element type {array.dtype.name}, {self.manifest.name} takes {long}",
                where=self.signature,
                remedy=f"convert it: {spec.name if spec.name.isidentifier() else 'array'}.astype(np.{long})",
            )

    def check_spans(self, spans: Sequence[tuple[int, int, BufferSpec]]) -> None:
        """Raise ArgumentError if a written param or state shares memory with another one. ``spans`` holds (start, stop,
        buffer) of each, in order of start."""
        reach: tuple[int, int, BufferSpec] | None = None
        written: tuple[int, int, BufferSpec] | None = None
        for span in spans:
            other = reach if span[2].written else written
            if other is not None and span[0] < other[1]:
                raise ArgumentError(
                    f"{title(span[2])} and {title(other[2])} share memory, and {self.manifest.name} writes to it",
                    remedy="give each its own array",
                )
            reach = span if reach is None or span[1] > reach[1] else reach
            if span[2].written:
                written = span if written is None or span[1] > written[1] else written

    def wrong_count(self, kind: str, specs: tuple[BufferSpec, ...], count: int) -> GraphcError:
        """Return the error for a wrong number of arrays of one kind."""
        names = ", ".join(b.path or b.name for b in specs) or "none"
        return ArgumentError(
            f"{self.manifest.name} takes {len(specs)} {kind} arrays ({names}), got {count}", where=self.signature
        )

    @property
    def signature(self) -> str:
        """Name, inputs and outputs on one line."""
        inputs, outputs = (", ".join(map(str, specs)) for specs in (self.inputs, self.outputs))
        return f"{self.manifest.name}({inputs}) -> ({outputs})"


def title(spec: BufferSpec) -> str:
    """Return the name of a buffer for messages."""
    return f"{spec.cls} {spec.path or spec.name!r}"


def scalar(spec: BufferSpec, value: bool | int | float) -> np.ndarray:
    """Return a Python scalar as an array, of the declared type if its kind fits."""
    kinds = {bool: "b", int: "iuf", float: "f"}.get(type(value), "")
    try:
        return np.asarray(value, numpy_type(spec) if BY_NAME[spec.dtype].kind in kinds else None)
    except OverflowError as error:
        raise ArgumentError(f"{title(spec)}: {error}") from None
