"""Snapshots of holders' contents, and their comparison value by value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphc.monitor.difference import Difference, difference, largest
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


def compared(
    pairs: Sequence[tuple[Contents, Contents]],
    tolerance: float | None,
    before: Mapping[tuple[str, str], Any] | None = None,
) -> tuple[list[Difference], list[str]]:
    """Compare the values in both contents of each pair, and list the names of values in one of them only.

    Differences are relative to the largest element of the same kind: of all gradients of a model, or of all its
    tensors. Values unchanged since ``before`` (earlier contents by kind and name) are skipped.
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
            arrays = np.asarray(a[key]), np.asarray(b[key])
            if key in old and all(_is_same(array, np.asarray(old[key])) for array in arrays):
                continue
            values.append(difference(value_name(name, key), "", *arrays, tolerance, scales[key.partition("]")[0]]))
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
