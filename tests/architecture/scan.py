"""Reads the Python sources of the repository once: syntax trees, module names, imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("graphc", "tests", "benchmarks", "examples", "tools")


@dataclass(frozen=True)
class Import:
    """One imported module, with where and how."""

    module: str
    """Absolute dotted name; for ``from a import b`` both ``a`` and ``a.b`` are listed."""
    line: int
    nested: bool
    """Inside a function or class body."""
    typing_only: bool
    """Below ``if TYPE_CHECKING:``."""


@dataclass(frozen=True)
class Source:
    """One Python file: its path relative to the repository root and its text."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, filename=self.path)

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All nodes of the tree."""
        return tuple(ast.walk(self.tree))

    @cached_property
    def module(self) -> str:
        """Dotted name, without ``__init__``."""
        parts = Path(self.path).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def package(self) -> str:
        """Dotted name of the package against which relative imports resolve."""
        return self.module if self.path.endswith("__init__.py") else self.module.rpartition(".")[0]

    @cached_property
    def imports(self) -> tuple[Import, ...]:
        return tuple(_walk_imports(self))

    @cached_property
    def functions(self) -> tuple[ast.FunctionDef | ast.AsyncFunctionDef, ...]:
        return tuple(n for n in self.nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))


def read_sources(root: Path = ROOT, folders: tuple[str, ...] = FOLDERS) -> list[Source]:
    """Return every Python file below the given folders of the repository, by path."""
    paths = sorted(path for folder in folders for path in (root / folder).rglob("*.py"))
    return [Source(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")) for path in paths]


def _walk_imports(source: Source) -> Iterator[Import]:
    stack: list[tuple[ast.AST, bool, bool]] = [(source.tree, False, False)]
    while stack:
        node, nested, typing_only = stack.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            for name in _imported_names(node, source.package):
                yield Import(name, node.lineno, nested, typing_only)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            nested = True
        if isinstance(node, ast.If) and _tests_type_checking(node.test):
            stack.extend((child, nested, True) for child in node.body)
            stack.extend((child, nested, typing_only) for child in node.orelse)
        else:
            stack.extend((child, nested, typing_only) for child in ast.iter_child_nodes(node))


def _imported_names(node: ast.Import | ast.ImportFrom, package: str) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    base = node.module or ""
    if node.level:
        parents = package.split(".")
        parents = parents[: len(parents) - (node.level - 1)]
        base = ".".join([*parents, base] if base else parents)
    return [base, *(f"{base}.{alias.name}" for alias in node.names if alias.name != "*")]


def _tests_type_checking(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )
