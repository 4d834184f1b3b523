"""Reproducers: applications of ATen operators with known results, as programs to attach to a bug report."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from graphc.base.difference import difference
from graphc.interop.aten.graph import AtenGraph, Ref, Step, refs
from graphc.interop.aten.run import Runner
from graphc.tape.grad_mode import no_grad
from graphc.tensors.tensor import Tensor


def differing(actual: Any, expected: np.ndarray) -> str:
    """Describe how an array differs from the expected one. Empty where it is within tolerance."""
    comparison = difference("", np.asarray(actual), expected, same_dtype=True)
    return "" if comparison.is_within else str(comparison)


def fault_of(step: Step, values: Mapping[str, np.ndarray], expected: Sequence[np.ndarray | None]) -> str:
    """Describe how the rule of an operator differs from the expected results for these values of its Refs.

    ``expected`` has one entry for each result. Empty where the rule does not differ.
    """
    names = list(dict.fromkeys(refs((step.args, step.kwargs))))
    operands = [Tensor._wrap(np.array(values[n])) for n in names]
    try:
        with no_grad():
            actual = Runner(AtenGraph("main", names, [step], Ref(step.name)))(*operands)
    # NOTE: any exception of a rule is the fault to report.
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    results = actual if isinstance(actual, (list, tuple)) else [actual]
    for i, (ours, theirs) in enumerate(zip(results, expected, strict=False)):
        if isinstance(ours, Tensor) and theirs is not None and (what := differing(ours.numpy(), theirs)):
            return f"result {i}: {what}"
    return ""


def written(step: Step, values: Mapping[str, np.ndarray], expected: Sequence[np.ndarray | None], what: str) -> Path:
    """Write a program that shows the results of an operator's rule. Returns its path, in a new temporary folder.

    The arrays are in an ``.npz`` file next to it.
    """
    path = Path(tempfile.mkdtemp(prefix="graphc_report_")) / f"{step.target.replace('.', '_')}.py"
    data = {f"value_{n}": np.asarray(values[n]) for n in dict.fromkeys(refs((step.args, step.kwargs)))}
    data |= {f"result_{i}": e for i, e in enumerate(expected) if e is not None}
    np.savez_compressed(path.with_suffix(".npz"), **data)  # type: ignore[arg-type]
    text = f"Step({step.name!r}, {step.target!r}, {step.args!r}, {dict(step.kwargs)!r})"
    head = f"{step.target}: {what}".replace("\\", "/").replace('"""', "'''")
    path.write_text(_PROGRAM.format(head=head, step=text), encoding="utf-8")
    return path


_PROGRAM = '''"""{head}

``python {{this file}}`` shows it. The arrays, PyTorch's results among them, are in the .npz file next to it. It only
needs graphc.
"""

import sys
from math import inf, nan

import graphc
from graphc.interop.aten.graph import Ref, Step
from graphc.interop.aten.sample import replay

STEP = {step}

if __name__ == "__main__":
    sys.exit(replay(STEP, __file__))
'''


def replay(step: Step, file: str) -> int:
    """Run a written program: print how the rule differs. Returns 1, or 0 where it does not differ."""
    with np.load(Path(file).with_suffix(".npz")) as arrays:
        data = dict(arrays)
    values = {name.removeprefix("value_"): a for name, a in data.items() if name.startswith("value_")}
    count = 1 + max([int(n.removeprefix("result_")) for n in data if n.startswith("result_")], default=-1)
    what = fault_of(step, values, [data.get(f"result_{i}") for i in range(count)])
    print(what or "the results agree")
    return int(bool(what))
