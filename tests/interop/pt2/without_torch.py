"""Runs the ``.pt2`` files of a folder where torch cannot be imported, and prints how far each is from PyTorch."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.modules["torch"] = None  # type: ignore[assignment]

import graphc as gc  # noqa: E402


def distance(result: Any, expected: Any) -> float:
    """The largest difference, relative for numbers above 1; infinite for other nesting, types and shapes."""
    if _is_array(expected):
        array, expected_result = (
            result.numpy() if isinstance(result, gc.Tensor) else np.empty(0, object),
            _array(expected),
        )
        if array.shape != expected_result.shape or array.dtype != expected_result.dtype:
            return float("inf")
        error = np.abs(array.astype(np.float64) - expected_result)
        return float((error / np.maximum(np.abs(expected_result), 1)).max(initial=0))
    if isinstance(expected, dict):
        same = isinstance(result, dict) and list(result) == list(expected)
        return max([distance(result[k], v) for k, v in expected.items()], default=0) if same else float("inf")
    if isinstance(expected, (list, tuple)):
        same = isinstance(result, (list, tuple)) and len(result) == len(expected)
        pairs = zip(result, expected, strict=True)
        return max([distance(a, b) for a, b in pairs], default=0) if same else float("inf")
    return 0 if result == expected else float("inf")


def _is_array(tree: Any) -> bool:
    return isinstance(tree, dict) and tree.keys() == {"dtype", "data"}


def _array(tree: Any) -> np.ndarray:
    return np.array(tree["data"], tree["dtype"])


def tensors(tree: Any) -> Any:
    """The tree with tensors in the places of arrays."""
    if _is_array(tree):
        return gc.tensor(_array(tree))
    if isinstance(tree, dict):
        return {k: tensors(v) for k, v in tree.items()}
    return list(map(tensors, tree)) if isinstance(tree, list) else tree


def compare(place: Path, compiled: bool) -> float:
    """The largest difference of all calls, their arguments after them, and the state after the last."""
    expected = json.loads(place.with_suffix(".json").read_text(encoding="utf-8"))
    model = gc.from_pt2(place)
    call = gc.compile(model, dims=model.dims) if compiled else model
    collected = []
    with gc.no_grad():
        for args, kwargs, results, after in expected["calls"]:
            given = tensors(args)
            collected.append(distance(call(*given, **kwargs), results))
            if not compiled:  # what compiled code writes to its arguments is not seen outside
                collected.append(distance(given, after))
    collected.append(distance(dict(model.state_dict()), expected["state"]))
    return max(collected)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    results: dict[str, Any] = {}
    for place in sorted(folder.glob("*.pt2")):
        for compiled in (False, True):
            name = f"{place.stem}{' compiled' if compiled else ''}"
            try:
                results[name] = compare(place, compiled)
            except gc.errors.GraphcError as error:
                results[name] = f"{type(error).__name__}: {error}"
    print(json.dumps(results))
