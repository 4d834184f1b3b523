"""Automatic named dimensions (``dims="auto"``): a size of an argument becomes one when it takes a second value."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

from graphc.base import config
from graphc.base.dtypes import DType
from graphc.base.errors import ShapeError
from graphc.base.sizes.named_dims import Dim
from graphc.base.sizes.shape_patterns import ShapePatterns
from graphc.base.sizes.size_text import LOOP
from graphc.tensors.structure import Structure
from graphc.tracing.dims import Dims

_Position = tuple[int, int]
"""Index of a tensor, and index of one of its dimensions."""


class _Learned:
    """Sizes observed for arguments of one form."""

    def __init__(self, titles: Sequence[str], shapes: Sequence[tuple[int, ...]]):
        self.titles = titles
        self.first = shapes
        """The shapes of the first call."""
        self.named: dict[_Position, Any] = {}
        """The dimensions named so far."""

    def patterns(self, shapes: Sequence[tuple[int, ...]]) -> ShapePatterns:
        """Return the shapes with dimensions for the sizes that vary."""
        with_dims = [tuple([self.named.get((i, d), n) for d, n in enumerate(s)]) for i, s in enumerate(shapes)]
        return ShapePatterns(with_dims, self.titles)


class AutoDims:
    """The dimensions of a function's arguments, inferred from its calls.

    Sizes that change together from one equal number to another are one dimension, until they differ.
    """

    def __init__(self, name: str, function: Callable[..., Any], names: Sequence[str] = ()):
        """``name`` names the function in messages. ``names`` are its arguments where they differ from its signature."""
        self._name = name
        self._titles = functools.partial(Dims.titles, function, names=names)
        self._forms: dict[Any, _Learned] = {}
        self.changes = 0
        """Number of changes to the dimensions. While it stays the same, equal shapes have equal patterns."""

    def patterns(
        self, structure: Structure | int, types: Sequence[tuple[DType, tuple[int, ...]]]
    ) -> ShapePatterns | None:
        """Return the shapes of a call with dimensions in them, for element types and shapes of its tensors.

        Return None where no size has varied yet, and for a call with a size of 0.
        """
        shapes = [shape for _, shape in types]
        if any(0 in shape for shape in shapes):
            return None
        form = (structure, tuple([(dtype, len(shape)) for dtype, shape in types]))
        learned = self._forms.get(form)
        if learned is None:
            self._forms[form] = _Learned(self._titles(structure), shapes)
            self.changes += 1
            return None
        self._look(learned, shapes)
        return learned.patterns(shapes) if learned.named else None

    def _look(self, learned: _Learned, shapes: Sequence[tuple[int, ...]]) -> None:
        """Name dimensions that vary for the first time, and split dimensions whose sizes now differ."""
        groups: dict[tuple[int, int], Any] = {}
        for i, (before, now) in enumerate(zip(learned.first, shapes, strict=True)):
            for d, (a, b) in enumerate(zip(before, now, strict=True)):
                if a != b and (i, d) not in learned.named:
                    if (a, b) not in groups:
                        groups[a, b] = _dimension(learned, (i, d), b)
                        self._tell(f"dimension {d} of {learned.titles[i]} takes a second size, {a} -> {b}: now named")
                        self.changes += 1
                    learned.named[i, d] = groups[a, b]
        try:
            learned.patterns(shapes).solve(shapes)
        except ShapeError as error:
            self._tell(f"{error.what}: each becomes a separate dimension")
            self.changes += 1
            for position in learned.named:
                learned.named[position] = _dimension(learned, position, shapes[position[0]][position[1]])

    def _tell(self, what: str) -> None:
        if config.read().explain_recompiles:
            config.logger("recompiles").warning("%s: %s", self._name, what)


def _dimension(learned: _Learned, position: _Position, size: int) -> Any:
    title = re.sub(r"[^0-9A-Za-z]+", "_", learned.titles[position[0]]).strip("_")
    name = f"{'arg' if title[0].isdigit() else ''}{title}_{position[1]}"
    return Dim(f"{name}_" if LOOP.fullmatch(name) else name, hint=size)
