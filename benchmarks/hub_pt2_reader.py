"""Read and run a ``.pt2`` file where torch cannot be imported: a child process of ``hub_pt2``."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

sys.modules["torch"] = None  # type: ignore[assignment]

import numpy as np  # noqa: E402

import graphc as gc  # noqa: E402
from benchmarks.harness.results import arrays_of, difference  # noqa: E402


def read(folder: Path) -> tuple[list[Any], dict[str, Any], list[np.ndarray]]:
    """Return positional and named arguments of the call, and PyTorch's results."""
    names = json.loads((folder / "names.json").read_text(encoding="utf-8"))
    with np.load(folder / "arrays.npz") as arrays:
        count = names["positional"] + len(names["named"])
        inputs = [
            gc.tensor(arrays[name]) if (name := f"argument {i}") in arrays else names["others"][str(i)]
            for i in range(count)
        ]
        results = [arrays[f"result {i}"] for i in range(names["results"])]
    first = inputs[: names["positional"]]
    return first, dict(zip(names["named"], inputs[len(first) :], strict=True)), results


def read_and_run(folder: str) -> dict[str, Any]:
    """Return errors and seconds of reading, and of the first compiled call."""
    path = Path(folder)
    args, kwargs, expected = read(path)
    start = time.perf_counter()
    model = gc.from_pt2(path / "model.pt2")
    read_s = time.perf_counter() - start
    with gc.no_grad():
        eager = arrays_of(model(*args, **kwargs))
        start = time.perf_counter()
        compiled = arrays_of(gc.compile(model)(*args, **kwargs))
    facts = {"read_s": read_s, "compile_s": time.perf_counter() - start}
    errors = {"eager": difference(eager, expected), "compiled": difference(compiled, expected)}
    return {"facts": facts, "errors": errors}
