"""Snapshots of holders' contents, and their comparison value by value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphc.base.difference import Difference, Tolerance, difference, largest, tolerance_for
from graphc.base.errors import ArgumentError
from graphc.monitor.holders import Holder
from graphc.monitor.packing import Packer, arrays_in
from graphc.tape.grad_mode import no_grad

Contents = tuple[str, str, Any]
"""Kind and name of a holder, and its contents as a packed tree (``Packer``)."""


def contents_of(holders: Sequence[Holder]) -> list[Contents]:
    """Pack the contents of holders. A tensor that several holders share is stored with the first of them."""
    packer = Packer(lenient=True)
    with no_grad():
        return [(h.kind, h.name, packer.pack(h.contents(), h.name)) for h in holders]


def check_tolerance(tolerance: float | None) -> None:
    """Raise ArgumentError unless the tolerance is None or a number of at least 0."""
    if tolerance is not None and not (isinstance(tolerance, (int, float)) and tolerance >= 0):
        raise ArgumentError(
            f"tolerance must be a number of at least 0, got {tolerance!r}",
            remedy="pass 1e-4, or None for the default of each element type",
        )


def scaled_difference(
    name: str, actual: np.ndarray, reference: np.ndarray, tolerance: float | None, scale: float = 0.0, module: str = ""
) -> Difference:
    """Compare two arrays; an element may differ by ``tolerance`` times the largest element of the reference.

    ``scale`` takes the place of the largest element where it is larger. The default tolerance is the relative one of
    the element type.
    """
    share = tolerance_for(actual, reference).rtol if tolerance is None else tolerance
    allowed = Tolerance(0.0, share * max(largest(reference), scale))
    return difference(name, actual, reference, allowed, module=module)


def compared(
    pairs: Sequence[tuple[Contents, Contents]],
    tolerance: float | None,
    before: Mapping[tuple[str, str], Any] | None = None,
) -> tuple[list[Difference], list[str]]:
    """Compare the values in both contents of each pair, and list the names of values in one of them only.

    The first contents are the reference. The tolerance is multiplied by the largest element of the same kind: of all
    gradients of a model, or of all its tensors. Values unchanged since ``before`` (earlier contents by kind and name)
    are skipped.
    """
    values: list[Difference] = []
    missing: list[str] = []
    for (kind, name, one), (_, _, other) in pairs:
        a, b = arrays_in(one), arrays_in(other)
        old = arrays_in(before[kind, name]) if before is not None and (kind, name) in before else {}
        missing += [value_name(name, key) for key in sorted(set(a) ^ set(b))]
        scales: dict[str, float] = {}
        for key, array in a.items():
            group = key.partition("]")[0]
            scales[group] = max(scales.get(group, 0.0), largest(np.asarray(array)))
        for key in [k for k in a if k in b]:
            reference, actual = np.asarray(a[key]), np.asarray(b[key])
            if key in old and all(_is_same(array, np.asarray(old[key])) for array in (reference, actual)):
                continue
            scale = scales[key.partition("]")[0]]
            values.append(scaled_difference(value_name(name, key), actual, reference, tolerance, scale))
    return values, missing


def _is_same(array: np.ndarray, before: np.ndarray) -> bool:
    return array.shape == before.shape and array.dtype == before.dtype and array.tobytes() == before.tobytes()


def value_name(holder: str, key: str) -> str:
    """Return the display name of a key: ``['gradients']['0.weight']`` of ``net`` is ``gradient of net.0.weight``."""
    words = [word.strip("'") for word in key.removeprefix("[").removesuffix("]").split("][")] if key else []
    if holder == "result" or not words:
        return holder + key
    rest = ".".join(words[1:])
    if words[0] == "gradients":
        return f"gradient of {holder}.{rest}".removesuffix(".")
    return f"{holder}.{rest}".removesuffix(".") if words[0] == "tensors" else f"{holder} {words[0]} {rest}".rstrip()


def row(difference: Difference) -> str:
    """Return a difference as a row below ``HEAD``."""
    name = f"{difference.path or '(model)'} ({difference.module})" if difference.module else difference.path
    figures = f"{difference.absolute:10.3g} {difference.relative:10.3g} {difference.ratio:10.3g}"
    verdict = "" if difference.is_within else "  <- differs"
    return f"{name:40} {list(difference.shape)!s:18} {figures}{verdict}"


HEAD = f"{'layer':40} {'shape':18} {'absolute':>10} {'relative':>10} {'of allowed':>10}"


def fields(difference: Difference) -> dict[str, Any]:
    """Return a difference as numbers and strings, for JSON."""
    state = {"is_within": difference.is_within, "is_equal": difference.is_equal}
    head = {"path": difference.path, "module": difference.module, "shape": difference.shape}
    return {**head, **difference.as_json(), **state}
