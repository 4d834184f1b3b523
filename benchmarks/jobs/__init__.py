"""Ordinary jobs of small projects with PyTorch, next to the same jobs with graphc in ``examples/jobs``."""

from __future__ import annotations

import ast
import io
import tokenize
from pathlib import Path

from benchmarks.harness.process import ROOT

GRAPHC = ROOT / "examples" / "jobs"
PYTORCH = ROOT / "benchmarks" / "jobs"


def job_names() -> list[str]:
    """Return the names of the jobs: the programs in ``examples/jobs``."""
    return sorted(path.stem for path in GRAPHC.glob("*.py"))


def peer_of(name: str) -> Path | None:
    """Return the program of a job with PyTorch, or None if PyTorch has no usual way to do it."""
    path = PYTORCH / f"{name}.py"
    return path if path.exists() else None


def count_lines(path: Path) -> int:
    """Count the logical lines of a program without docstrings: a statement over several lines is one, and comments
    and blank lines are none."""
    source = path.read_text("utf-8")
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    nodes = ast.walk(ast.parse(source))
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = sum(isinstance(node, owners) and ast.get_docstring(node) is not None for node in nodes)
    return sum(token.type == tokenize.NEWLINE for token in tokens) - docstrings
