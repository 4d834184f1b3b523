"""Functions, modules and classes that messages of the code advise exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import graphc
from graphc.errors import UnsupportedError
from graphc.nn import functional

PACKAGE = Path(graphc.__file__).parent
ROOTS = {"graphc": graphc, "gc": graphc, "nn": graphc.nn, "F": functional, "optim": graphc.optim}
KEYS = {f"graphc.{name}" for name in ("assumptions", "module", "random", "recording", "tree")}
KEYS |= {"graphc.linear_of_codes", "graphc.convolution_of_codes"}
"""Keys of records in files, and operators of an imported graph, which look like names of modules."""

_NAME = re.compile(r"(?<![\w.])((?:graphc|gc|nn|F|optim)(?:\.[A-Za-z_]\w*)+)")


def texts(source: str) -> Iterator[str]:
    """The literals of a module that are no docstrings."""
    tree = ast.parse(source)
    documented = [n for n in ast.walk(tree) if isinstance(n, (ast.Module, ast.ClassDef, ast.FunctionDef)) and n.body]
    docs = {id(n.body[0].value) for n in documented if isinstance(n.body[0], ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value


def exists(name: str) -> bool:
    root, *parts = name.split(".")
    result: Any = ROOTS[root]
    for part in parts:
        try:
            result = getattr(result, part)
        except AttributeError:
            return is_module(parts) or is_module(parts[:-1])
        except UnsupportedError:  # PyTorch's modules load only where that is installed
            return True
    return True


def is_module(parts: list[str]) -> bool:
    path = PACKAGE.joinpath(*parts)
    return bool(parts) and (path.is_dir() or path.with_suffix(".py").exists())


def test_names_in_messages_exist():
    results = {n: p.name for p in PACKAGE.rglob("*.py") for t in texts(p.read_text("utf-8")) for n in _NAME.findall(t)}
    assert len(results) > 100
    assert {name: file for name, file in results.items() if name not in KEYS and not exists(name)} == {}


def test_a_name_that_is_not_there_is_found():
    assert _NAME.findall(next(texts("x = 'use graphc.no_such(x), not F.relu'"))) == ["graphc.no_such", "F.relu"]
    assert not exists("graphc.no_such") and exists("F.relu") and exists("graphc.ops.movement.shape")
