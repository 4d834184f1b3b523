"""What holders hold at one time, and how that differs from what they hold at another, value by value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphc.monitor.difference import Difference, difference, largest
from graphc.monitor.holders import Holder
from graphc.monitor.packing import Packer, arrays_in
from graphc.tape.grad_mode import no_grad

Contents = tuple[str, str, Any]
"""Kind and name of a holder, and its contents as a packed tree."""


def contents_of(holders: Sequence[Holder]) -> list[Contents]:
    """The contents of holders; what one shares with another stands in the first of them."""
    packer = Packer(lenient=True)
    with no_grad():
        return [(h.kind, h.name, packer.pack(h.contents(), h.name)) for h in holders]


def compared(
    pairs: Sequence[tuple[Contents, Contents]],
    tolerance: float | None,
    before: Mapping[tuple[str, str], Any] | None = None,
) -> tuple[list[Difference], list[str]]:
    """All values that are in both contents of a pair, and the names of those that are in one only. Differences are
    measured by the largest element of the kind: all gradients of a model, all its tensors. ``before`` are contents of
    earlier: what has not changed since is left out then."""
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
            arrays = np.asarray(a[key]), np.asarray(b[key])
            if key in old and all(_is_same(array, np.asarray(old[key])) for array in arrays):
                continue
            values.append(difference(value_name(name, key), "", *arrays, tolerance, scales[key.partition("]")[0]]))
    return values, missing


def _is_same(array: np.ndarray, before: np.ndarray) -> bool:
    return array.shape == before.shape and array.dtype == before.dtype and array.tobytes() == before.tobytes()


def value_name(holder: str, key: str) -> str:
    """The name of ``['gradients']['0.weight']`` of a holder."""
    words = [part.strip("'") for part in key.removeprefix("[").removesuffix("]").split("][")] if key else []
    if holder == "result" or not words:
        return holder + key
    rest = ".".join(words[1:])
    if words[0] == "gradients":
        return f"gradient of {holder}.{rest}".removesuffix(".")
    return f"{holder}.{rest}".removesuffix(".") if words[0] == "tensors" else f"{holder} {words[0]} {rest}".rstrip()
