"""Applications of ATen operators whose results are known, as programs that can be attached to a report."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from graphc.checks.check import are_close
from graphc.interop.aten.graph import AtenGraph, Ref, Step, refs
from graphc.interop.aten.run import Runner
from graphc.tape.grad_mode import no_grad
from graphc.tensors.tensor import Tensor


def differing(found: Any, expected: np.ndarray) -> str:
    """How an array differs from what is expected; nothing where it does by no more than is allowed."""
    found = np.asarray(found)
    if (found.shape, found.dtype) != (expected.shape, expected.dtype):
        return f"{found.dtype}{list(found.shape)} in place of {expected.dtype}{list(expected.shape)}"
    close = are_close(found, expected)
    if close.all():
        return ""
    at = tuple(map(int, np.argwhere(~close)[0]))
    return f"{np.count_nonzero(~close)} of {close.size} elements differ, {found[at]} in place of {expected[at]} at {at}"


def fault_of(step: Step, values: Mapping[str, np.ndarray], expected: Sequence[np.ndarray | None]) -> str:
    """How the rule of an operator, for these values of its Refs, gives something else than what is expected, one entry
    for each result; nothing where it does not."""
    names = list(dict.fromkeys(refs((step.args, step.kwargs))))
    given = [Tensor._wrap(np.array(values[n])) for n in names]
    try:
        with no_grad():
            found = Runner(AtenGraph("main", names, [step], Ref(step.name)))(*given)
    # NOTE: whatever a rule raises is how it is wrong.
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    results = found if isinstance(found, (list, tuple)) else [found]
    for i, (ours, theirs) in enumerate(zip(results, expected, strict=False)):
        if isinstance(ours, Tensor) and theirs is not None and (what := differing(ours.numpy(), theirs)):
            return f"result {i}: {what}"
    return ""


def written(step: Step, values: Mapping[str, np.ndarray], expected: Sequence[np.ndarray | None], what: str) -> Path:
    """Writes a program that shows what the rule of an operator gives; returns its path, in a new folder for temporary
    files. The arrays stand beside it."""
    path = Path(tempfile.mkdtemp(prefix="graphc_report_")) / f"{step.target.replace('.', '_')}.py"
    data = {f"value_{n}": np.asarray(values[n]) for n in dict.fromkeys(refs((step.args, step.kwargs)))}
    data |= {f"result_{i}": e for i, e in enumerate(expected) if e is not None}
    np.savez_compressed(path.with_suffix(".npz"), **data)  # type: ignore[arg-type]
    text = f"Step({step.name!r}, {step.target!r}, {step.args!r}, {dict(step.kwargs)!r})"
    head = f"{step.target}: {what}".replace("\\", "/").replace('"""', "'''")
    path.write_text(_PROGRAM.format(head=head, step=text), encoding="utf-8")
    return path


_PROGRAM = '''"""{head}

``python {{this file}}`` shows it; the arrays, PyTorch's results among them, stand in the file .npz beside it. It needs
graphc alone.
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
    """What a written program does: prints how the rule differs; returns 1, or 0 where it does not."""
    with np.load(Path(file).with_suffix(".npz")) as arrays:
        data = dict(arrays)
    values = {name.removeprefix("value_"): a for name, a in data.items() if name.startswith("value_")}
    count = 1 + max([int(n.removeprefix("result_")) for n in data if n.startswith("result_")], default=-1)
    what = fault_of(step, values, [data.get(f"result_{i}") for i in range(count)])
    print(what or "nothing is wrong")
    return int(bool(what))
