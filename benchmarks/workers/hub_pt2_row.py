"""One model as a ``.pt2`` file, written in a process of its own, read and run in another one: see hub_pt2."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.harness.sweep import OWN, Result, arrays_of
from benchmarks.hub_pt2 import EXPORT
from benchmarks.models import hub
from benchmarks.workers import hub_row
from benchmarks.workers.peer import first_line

FILE, ARRAYS, NAMES = "model.pt2", "arrays.npz", "names.json"
"""Files in the folder that both processes share: the model, arguments and results, and the names of arguments."""


def run(key: str, peers: Sequence[str], rounds: int, seconds: float, weights: str = "live") -> Result:
    """Return a model's row; its only times are those of reading and compiling."""
    module, args, kwargs = hub.MODELS[key].build()
    with tempfile.TemporaryDirectory(prefix="graphc-pt2-") as folder:
        folder_path = Path(folder)
        try:
            write(folder_path, module, args, kwargs)
        except Exception as error:  # there is no file to read if PyTorch cannot export the model
            return Result(key, {}, problems={EXPORT: first_line(error)})
        answer = subprocess.run(
            [sys.executable, "-m", "benchmarks.workers.hub_pt2_reader", folder], stdout=subprocess.PIPE, text=True
        )
        facts = {"mb": (folder_path / FILE).stat().st_size / 1e6}
    if answer.returncode != 0:
        return Result(key, facts, problems={OWN: answer.stdout.strip() or f"status {answer.returncode}"})
    answer_fields = json.loads(answer.stdout)
    return Result(key, facts | answer_fields["facts"], errors=answer_fields["errors"])


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


if __name__ == "__main__":
    sys.exit(hub_row.main(sys.argv[1:], run))
