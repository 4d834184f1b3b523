"""Read and run a ``.pt2`` file where torch cannot be imported: ``hub_pt2_reader FOLDER``, started by hub_pt2_row."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

sys.modules["torch"] = None  # type: ignore[assignment]

import numpy as np  # noqa: E402

import graphc as gc  # noqa: E402
from benchmarks.harness.sweep import arrays_of, difference  # noqa: E402


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


def main(folder: Path) -> int:
    """Print errors and seconds, or the problem, with exit status 1."""
    args, kwargs, expected = read(folder)
    try:
        start = time.perf_counter()
        model = gc.from_pt2(folder / "model.pt2")
        read_in = time.perf_counter()
        with gc.no_grad():
            eager = arrays_of(model(*args, **kwargs))
            start_time = time.perf_counter()
            compiled = arrays_of(gc.compile(model)(*args, **kwargs))
    except gc.errors.GraphcError as error:
        print(" ".join(f"{type(error).__name__}: {error}".split()))
        return 1
    facts = {"read_s": read_in - start, "compile_s": time.perf_counter() - start_time}
    errors = {"eager": difference(eager, expected), "compiled": difference(compiled, expected)}
    print(json.dumps({"facts": facts, "errors": errors}))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
