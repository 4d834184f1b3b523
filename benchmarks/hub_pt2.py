"""Public models as ``.pt2`` files, read and run without PyTorch: ``python -m benchmarks.hub_pt2``."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.process import call_in_child
from benchmarks.harness.results import OWN, Result, arrays_of, cell, first_line, format_problems, format_table
from benchmarks.hub import Command, hub_models, torch

TOLERANCE = 1e-5
"""Largest difference of a result, relative to its largest magnitude."""
EXPORT = "torch.export"
"""The name of the problem of a model that PyTorch itself does not write to a file."""
COLUMNS = ("model", "MB", "eager error", "compiled error", "read s", "compile s")


def agrees(result: Result) -> bool:
    """Return whether the file's results agree with PyTorch's eager mode, eagerly and compiled."""
    return not result.problems and max(result.errors.values()) <= TOLERANCE


def is_exportable(result: Result) -> bool:
    """Return whether PyTorch writes the model to a file."""
    return EXPORT not in result.problems


FILE, ARRAYS, NAMES = "model.pt2", "arrays.npz", "names.json"
"""Files in the folder that both processes share: the model, arguments and results, and the names of arguments."""


def measure_model(key: str, peers: Sequence[str], rounds: int, seconds: float, weights: str) -> dict[str, Any]:
    """Return a model's row: errors of its file, and seconds of reading and compiling it in a process without torch."""
    del peers, rounds, seconds, weights
    module, args, kwargs = hub_models.MODELS[key].build()
    with tempfile.TemporaryDirectory(prefix="graphc-pt2-") as folder:
        path = Path(folder)
        try:
            write(path, module, args, kwargs)
        except Exception as error:  # there is no file to read if PyTorch cannot export the model
            return vars(Result(key, problems={EXPORT: first_line(error)}))
        answer = call_in_child("benchmarks.hub_pt2_reader:read_and_run", os.environ, 900.0, folder=folder)
        facts = {"mb": (path / FILE).stat().st_size / 1e6}
    if "error" in answer:
        return vars(Result(key, facts, problems={OWN: answer["error"]}))
    return vars(Result(key, facts | answer["facts"], errors=answer["errors"]))


def write(folder: Path, module: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Write the exported model, the arrays of a call, and its results in PyTorch's eager mode."""
    with torch.no_grad():
        program = torch.export.export(module, tuple(args), kwargs)
        torch.export.save(program, folder / FILE)
        results = arrays_of(module(*args, **kwargs))
    inputs = [*args, *kwargs.values()]
    arrays = {f"argument {i}": value.numpy() for i, value in enumerate(inputs) if isinstance(value, torch.Tensor)}
    np.savez(folder / ARRAYS, **arrays, **{f"result {i}": array for i, array in enumerate(results)})
    others = {str(i): value for i, value in enumerate(inputs) if not isinstance(value, torch.Tensor)}
    names = {"positional": len(args), "named": list(kwargs), "others": others, "results": len(results)}
    (folder / NAMES).write_text(json.dumps(names), encoding="utf-8")


def format_row(result: Result) -> list[str]:
    return [
        result.name,
        cell(result.facts.get("mb"), ".0f"),
        *(cell(result.errors.get(mode), ".1e") for mode in ("eager", "compiled")),
        *(cell(result.facts.get(what), ".2f") for what in ("read_s", "compile_s")),
    ]


def format_rows(results: Sequence[Result]) -> str:
    exportable = [result for result in results if is_exportable(result)]
    said = f"{len(exportable)} of {len(results)} can be exported, {sum(map(agrees, exportable))} of them agree"
    return "\n".join([format_table(COLUMNS, map(format_row, results)), "", said, *format_problems(results)])


PT2 = Command(
    *("benchmarks.hub_pt2", __doc__, "MODELS", "benchmarks.hub_pt2:measure_model", agrees, format_rows),
    timed=False,
    exempt=lambda result: not is_exportable(result),
)

if __name__ == "__main__":
    sys.exit(PT2.main())
