"""Runs of PyTorch scripts unchanged and with graphc in their import lines, and a comparison of their results."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import json
import re
import sys
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

from tests.scripts.compiled import with_compiled

FOLDER = Path(__file__).parent / "torch"
CURVES = Path(__file__).parent / "curves.json"
TOLERANCE = 1e-4  # of a loss, relative or absolute

_IMPORT = re.compile(r"^(\s*)(import|from) torch\b(.*)$", re.MULTILINE)


def names() -> list[str]:
    """The scripts by name, in order."""
    return sorted(path.stem for path in FOLDER.glob("*.py"))


def with_graphc(source: str) -> str:
    """Return a script in which the lines that import torch import graphc; nothing else differs."""
    return _IMPORT.sub(_import_line, source)


def _import_line(match: re.Match[str]) -> str:
    indent, verb, rest = match.groups()
    return f"{indent}import graphc as torch" if (verb, rest) == ("import", "") else f"{indent}{verb} graphc{rest}"


def curve(name: str, library: str, compiled: bool = False) -> list[float]:
    """Return what ``main`` of a script returns, run with ``"torch"`` as it is or with ``"graphc"``.

    ``compiled`` adds the lines that compile its models.
    """
    path = FOLDER / f"{name}.py"
    source = path.read_text(encoding="utf-8")
    source = with_compiled(name, source) if compiled else source
    with _module(f"script_{name}_{library}") as module:
        exec(compile(source if library == "torch" else with_graphc(source), str(path), "exec"), module.__dict__)
        return module.main()


@contextlib.contextmanager
def _module(name: str) -> Iterator[ModuleType]:
    module = sys.modules[name] = ModuleType(name)
    try:
        yield module
    finally:
        del sys.modules[name]


def worst(found: Sequence[float], expected: Sequence[float]) -> float:
    """Return the largest difference of two curves, relative where numbers are large: |a - b| / max(1, |b|)."""
    if len(found) != len(expected):
        return float("inf")
    gaps = [abs(a - b) / max(1.0, abs(b)) for a, b in zip(found, expected, strict=True)]
    return float("inf") if any(gap != gap for gap in gaps) else max(gaps)


def recorded() -> dict[str, list[float]]:
    """Return the recorded losses of PyTorch by script, for machines without it."""
    return json.loads(CURVES.read_text(encoding="utf-8"))


def _record(chosen: Sequence[str]) -> None:
    curves = recorded() if CURVES.exists() else {}
    curves.update({name: [float(f"{x:.7g}") for x in curve(name, "torch")] for name in chosen})
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(curves[name])}" for name in sorted(curves))
    CURVES.write_text("{\n" + lines + "\n}\n", encoding="utf-8")


def _row(name: str, compiled: bool, full: bool) -> bool:
    quiet = not full
    talk = contextlib.redirect_stdout(io.StringIO()) if quiet else contextlib.nullcontext()
    here = importlib.util.find_spec("torch") is not None
    with talk:
        expected, began = (curve(name, "torch") if here else recorded()[name]), time.perf_counter()
    try:
        with talk:
            gap = worst(curve(name, "graphc", compiled), expected)
    except Exception as error:  # a table of all scripts goes on after any failure
        if full:
            traceback.print_exc()
        print(f"{name:18} fails    {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
        return False
    verdict = "equal" if gap <= TOLERANCE else "differs"
    print(f"{name:18} {verdict:8} by {gap:.1e} after {len(expected)} numbers, {time.perf_counter() - began:.1f} s")
    return gap <= TOLERANCE


def main() -> int:
    """The command line; its exit status is 1 where a script fails or differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.scripts.run", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"scripts; all without: {', '.join(names())}")
    parser.add_argument("--record", action="store_true", help="write what PyTorch computes to curves.json")
    parser.add_argument("--compiled", action="store_true", help="with models that graphc compiles")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    chosen = args.names or names()
    if args.record:
        _record(chosen)
        return 0
    return 0 if all([_row(name, args.compiled, len(chosen) == 1) for name in chosen]) else 1


if __name__ == "__main__":
    sys.exit(main())
