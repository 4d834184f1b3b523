"""Figures of the architecture: ``python -m tools.house`` prints the violations of each rule.

Counted are modules at the top of the package, import cycles of packages, packages without a floor, rules that name or
compare ops outside of `graphc/ops`, unnamed numbers in code that chooses between ways to compile, names for which the
field has other words, and names of processor families in code generation outside of the machine's package. ``--list``
shows each line, ``--json`` prints the figures as JSON.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import networkx as nx

from graphc.ir.op import REGISTRY
from graphc.ops import registry
from graphc.ops.define import OpFunction
from tools import plain_english
from tools.floors import FLOORS, FRONT_DOOR, LATE_EDGES, floor_of

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "graphc"
assert registry.FAMILIES, "the names of all ops"

SEE_OPS = (
    *("passes", "fusion", "lowering", "compiler", "eager", "tracing", "calls", "pages"),
    *("tape", "cli", "ir/graph", "steps", "models", "checks", "recompute", "control", "guards"),
)
"""Packages that see graphs: they must treat an op by its definition, not by its name. In all other packages, words that
are names of ops mean methods of tensors or operations of kernels."""
OPS = "ops"
"""The package that defines ops."""
REWRITES = (
    "control/counted",
    "control/pushforward",
    "control/step_values",
    "passes/batchnorm",
    "passes/byte_products",
    "passes/canonicalize",
    "passes/lifted_updates",
    "passes/masked_products",
    "passes/padded_sums",
    "passes/precision",
    "passes/read_codes",
    "passes/scalar_steps",
    "passes/scans",
    "passes/slice_updates",
    "passes/winograd",
    "streams/flat_rules",
    "streams/linear_attention",
    "streams/positions",
    "streams/table_rules",
    "streams/window_rules",
)
"""Modules with rewrite rules and their conditions: such a rule turns one pattern of ops into another, so it
names them."""
CHOOSE = ("fusion", "recompute", "codegen/schedule")
"""Packages that choose between ways to compile by prices and thresholds."""
FORMULAS = "codegen/schedule/expansion"
"""Numbers of formulas choose nothing."""
COMPILE = ("ir", "passes", "fusion", "lowering", "codegen", "compiler", "recompute", "checks")
"""Packages that compile."""
RETIRED = {
    **dict.fromkeys(("team", "teams", "meet", "meets", "meetings"), "thread plan, barrier"),
    **dict.fromkeys(("repeats", "siblings", "sibling"), "enclosing loops, horizontal fusion"),
    **dict.fromkeys(("climb", "climbed"), "look through views"),
    **dict.fromkeys(("realized", "forced"), "stored, materialized, pinned"),
    **dict.fromkeys(("streamed", "far_reads"), "non-temporal stores, narrow loads"),
    **dict.fromkeys(("prepared", "preparation"), "canonical form, prepacking"),
    **dict.fromkeys(("framing", "framed"), "pad fusion, halo"),
    **dict.fromkeys(("row_joins", "column_sums"), "vertical fusion, column reduction"),
}
"""Former names of this code, each with the field's word (docs/glossary.md)."""
CODE, MACHINE = "codegen", "codegen/machine"
"""Package that generates code, and the package in it that knows processor families."""
FAMILIES = re.compile(
    r"llvm\.(x86|aarch64|arm|riscv|wasm)\b|\b(x86[_-]64|aarch64|arm64|riscv64|rv64\w*|avx\w*|sse\d*|neon)\b",
    re.IGNORECASE,
)
"""Names of families, of their features, and of their instructions."""
_DOTTED = re.compile(r"(graphc(?:\.\w+)+)(?::[\w.]*|\.|)$")
"""Text that names a module, and perhaps an attribute of it."""
PLAIN = (-1, 0, 1, 2)
"""Numbers that may stay unnamed."""


@dataclass(frozen=True)
class Place:
    """A line that breaks a rule."""

    path: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.what}"


@dataclass(frozen=True)
class Module:
    """A module of the package."""

    path: str
    source: str

    @cached_property
    def tree(self) -> ast.Module:
        """Return the syntax tree."""
        return ast.parse(self.source)

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Return all nodes of its syntax; every figure reads them."""
        return tuple(ast.walk(self.tree))

    @property
    def name(self) -> str:
        """Return the dotted name, without ``__init__``."""
        names = Path(self.path).with_suffix("").parts
        return ".".join(names[:-1] if names[-1] == "__init__" else names)


def read_modules(root: Path = ROOT) -> list[Module]:
    """Return all modules of the package."""
    paths = sorted((root / PACKAGE).rglob("*.py"))
    return [Module(p.relative_to(root).as_posix(), p.read_text(encoding="utf-8")) for p in paths]


def modules_at_the_top(modules: Sequence[Module]) -> list[Place]:
    """Return modules beside the packages whose import path users do not know."""
    tops = (m for m in modules if m.path.count("/") == 1)
    return [Place(m.path, 1, "belongs into a package") for m in tops if Path(m.path).stem not in FRONT_DOOR]


def without_floor(modules: Sequence[Module]) -> list[Place]:
    """Return modules whose package has no row in tools/floors.py."""
    violations = []
    for module in modules:
        try:
            floor_of(module.name)
        except KeyError:
            violations.append(Place(module.path, 1, "no floor"))
    return violations


def circles(modules: Sequence[Module]) -> list[Place]:
    """Return packages with a floor that import each other, when they are loaded or for types only."""
    graph = nx.DiGraph()
    names = {m.name for m in modules}
    for module in modules:
        here = floor_of(module.name)
        for there in _imported(module, names):
            other = floor_of(there)
            if here and other and here != other:
                graph.add_edge(here, other)
    cycles = (sorted(component) for component in nx.strongly_connected_components(graph) if len(component) > 1)
    return [Place(PACKAGE, 1, f"circle of {', '.join(component)}") for component in sorted(cycles)]


def _imported(module: Module, names: set[str]) -> Iterator[str]:
    for node in module.nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name for name in inner if name in names)
            if node.module in names and not all(name in names for name in inner):
                yield node.module


def names_of_ops(modules: Sequence[Module]) -> list[Place]:
    """Return tables keyed by names of ops in packages that see graphs; comparisons with such names, and look-ups of
    them, outside of the ops."""
    return [violation for module in _outside_of_ops(modules) for violation in _named_ops(module)]


def _sees_ops(module: Module) -> bool:
    return module.path.startswith(tuple(f"{PACKAGE}/{p}/" for p in SEE_OPS))


def _outside_of_ops(modules: Sequence[Module]) -> list[Module]:
    return [m for m in modules if not m.path.startswith(f"{PACKAGE}/{OPS}/")]


def _named_ops(module: Module) -> Iterator[Place]:
    for node in module.nodes:
        if isinstance(node, ast.Compare) and _asks_for_name(node):
            yield Place(module.path, node.lineno, ast.unparse(node))
        if isinstance(node, ast.Subscript) and _looks_up_name(node):
            yield Place(module.path, node.lineno, ast.unparse(node))
        if not _sees_ops(module) or not isinstance(node, ast.Dict | ast.Set | ast.Tuple | ast.List):
            continue
        keys = node.keys if isinstance(node, ast.Dict) else node.elts
        texts = [k.value for k in keys if isinstance(k, ast.Constant) and isinstance(k.value, str)]
        if len(texts) > 1 and sum(t in REGISTRY for t in texts) > len(texts) // 2:
            yield Place(module.path, node.lineno, f"table of {', '.join(sorted(texts))}")


def _asks_for_name(node: ast.Compare) -> bool:
    """Return whether an expression identifies an op by name, such as ``node.op.name == "conv"`` or ``node.op is
    CONV``."""
    sides = (node.left, *node.comparators)
    asks = any(isinstance(s, ast.Attribute) and s.attr == "name" and "op" in ast.unparse(s.value) for s in sides)
    literals = (c.value for s in sides for c in ast.walk(s) if isinstance(c, ast.Constant))
    return asks and any(isinstance(text, str) and text in REGISTRY for text in literals)


def _looks_up_name(node: ast.Subscript) -> bool:
    return isinstance(node.slice, ast.Constant) and ast.unparse(node.value).endswith("REGISTRY")


def ops_by_identity(modules: Sequence[Module]) -> list[Place]:
    """Return uses of ``cast.op``, which invites comparisons, and collections of ops, outside of the ops and of rewrite
    rules. Applying an op is allowed, and so are tables of ops to apply."""
    rewrites = {f"{PACKAGE}/{name}.py" for name in REWRITES}
    examined = [m for m in _outside_of_ops(modules) if m.path not in rewrites]
    return [violation for module in examined for violation in _identities(module)]


def _identities(module: Module) -> Iterator[Place]:
    imported = _imported_from_ops(module)

    def is_op(node: ast.AST | None) -> bool:
        """Return whether an expression is an imported op, or an op of an imported module."""
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return isinstance(getattr(imported.get(node.value.id), node.attr, None), OpFunction)
        return isinstance(node, ast.Name) and isinstance(imported.get(node.id), OpFunction)

    applied = {id(child) for node in module.nodes if _emits(node) for child in ast.walk(node)}
    for node in module.nodes:
        if isinstance(node, ast.Attribute) and node.attr == "op" and is_op(node.value) and id(node) not in applied:
            yield Place(module.path, node.lineno, ast.unparse(node))
        elif isinstance(node, ast.Dict | ast.Set | ast.Tuple | ast.List):
            looks_up = isinstance(node, ast.Dict | ast.Set)
            elements = node.keys if isinstance(node, ast.Dict) else node.elts
            if (looks_up or _sees_ops(module)) and any(is_op(e) for e in elements):
                yield Place(module.path, node.lineno, f"collection {ast.unparse(node)}")


def _emits(node: ast.AST) -> bool:
    """Return whether an expression is ``emit(graph, cast.op, ...)`` or ``tracer.apply(cast.op, ...)``: an op is
    applied."""
    return isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in ("emit", "apply")


def _imported_from_ops(module: Module) -> dict[str, object]:
    """Return the names that a module imports from the ops, by their local name."""
    imported: dict[str, object] = {}
    for node in module.nodes:
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(f"{PACKAGE}.{OPS}."):
            package = importlib.import_module(str(node.module))
            imported.update({a.asname or a.name: getattr(package, a.name) for a in node.names})
    return imported


def loose_numbers(modules: Sequence[Module]) -> list[Place]:
    """Return numbers without a name that reach a comparison or a price where ways to compile are chosen."""
    choosing = [m for m in modules if m.path.startswith(tuple(f"{PACKAGE}/{p}/" for p in CHOOSE))]
    choosing = [m for m in choosing if not m.path.startswith(f"{PACKAGE}/{FORMULAS}/")]
    return [violation for module in choosing for violation in _loose_numbers(module)]


def _loose_numbers(module: Module) -> Iterator[Place]:
    functions = (n for n in module.nodes if isinstance(n, ast.FunctionDef | ast.Lambda))
    visited: set[ast.AST] = set()
    for function in functions:
        for node in ast.walk(function):
            if isinstance(node, ast.Compare | ast.BinOp) and node not in visited:
                visited.update(ast.walk(node))
                numbers = [c.value for c in _operands(node) if c.value not in PLAIN]
                if numbers:
                    yield Place(module.path, node.lineno, f"{', '.join(map(str, numbers))} in {ast.unparse(node)}")


def _operands(node: ast.AST) -> Iterator[ast.Constant]:
    """Yield numbers of a comparison or an arithmetic expression; those within calls and subscripts count too."""
    for child in ast.walk(node):
        if (
            isinstance(child, ast.Constant)
            and isinstance(child.value, int | float)
            and not isinstance(child.value, bool)
        ):
            yield child


def retired_words(modules: Sequence[Module]) -> list[Place]:
    """Return names of functions, classes, arguments, variables and fields in compiling packages that differ from the
    field's words."""
    compiling = [m for m in modules if m.path.startswith(tuple(f"{PACKAGE}/{p}/" for p in COMPILE))]
    return [violation for module in compiling for violation in _retired_words(module)]


def _retired_words(module: Module) -> Iterator[Place]:
    for node in module.nodes:
        name = _given_name(node).strip("_").lower()
        if name in RETIRED:
            yield Place(module.path, getattr(node, "lineno", 1), f"{name}: the field says {RETIRED[name]}")


def _given_name(node: ast.AST) -> str:
    """Return the name that a definition, an argument or an assignment binds; empty for another node."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return node.name
    if isinstance(node, ast.arg):
        return node.arg
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) else ""


def families_outside(modules: Sequence[Module]) -> list[Place]:
    """Return names of processor families and their instructions in strings of code generation, outside of the machine's
    package."""
    making = [m for m in modules if m.path.startswith(f"{PACKAGE}/{CODE}/")]
    making = [m for m in making if not m.path.startswith(f"{PACKAGE}/{MACHINE}/")]
    return [violation for module in making for violation in _families(module)]


def _families(module: Module) -> Iterator[Place]:
    documented = {id(n.value) for n in module.nodes if isinstance(n, ast.Expr)}
    for node in module.nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented:
            match = FAMILIES.search(node.value)
            if match:
                yield Place(module.path, node.lineno, match[0])


def late_edges(modules: Sequence[Module]) -> list[Place]:
    """Return the texts that name a module of a higher package, to import it at run time: ``deferred("graphc.x:y")``,
    ``import_module("graphc.x")``. `tools.floors.LATE_EDGES` lists those that are allowed."""
    return [
        Place(module.path, line, f"{here} imports {there} at run time")
        for module in modules
        for line, here, there in _late_edges(module)
        if (here, there) not in LATE_EDGES
    ]


def unused_late_edges(modules: Sequence[Module]) -> list[Place]:
    """Return edges that `tools.floors.LATE_EDGES` lists, and that no module makes any more."""
    edges = {(here, there) for module in modules for _, here, there in _late_edges(module)}
    return [
        Place("tools/floors.py", 1, f"{here} -> {there}") for here, there in LATE_EDGES if (here, there) not in edges
    ]


def _late_edges(module: Module) -> Iterator[tuple[int, str, str]]:
    """Yield line, package of the module and package that it names, for each text that names a module of a higher
    package."""
    here = floor_of(module.name)
    if here is None:
        return
    order = list(FLOORS)
    documented = {id(n.value) for n in module.nodes if isinstance(n, ast.Expr)}
    for node in module.nodes:
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in documented:
            continue
        target = _DOTTED.match(node.value)
        if target is None:
            continue
        try:
            there = floor_of(target[1])
        except KeyError:
            continue
        if there is not None and order.index(there) > order.index(here):
            yield node.lineno, here, there


def long_folders(modules: Sequence[Module]) -> list[Place]:
    """Return folders with more files than a reader can survey."""
    counts = plain_english.long_folders([Path(m.path) for m in modules])
    return [Place(folder.as_posix(), 1, f"{count} files") for folder, count in counts.items()]


def shared_class_names(modules: Sequence[Module]) -> list[Place]:
    """Return class names that three or more modules define."""
    homes = plain_english.shared_class_names({Path(m.path): m.tree for m in modules})
    return [Place(paths[0].as_posix(), 1, f"{name}, in {len(paths)} modules") for name, paths in homes.items()]


FIGURES = {
    "modules at the top": modules_at_the_top,
    "packages without a floor": without_floor,
    "circles of packages": circles,
    "ops by name outside of ops": names_of_ops,
    "ops by identity outside of ops": ops_by_identity,
    "numbers without a name": loose_numbers,
    "retired words": retired_words,
    "families of processors outside of the machine's room": families_outside,
    "imports at run time that floors.py does not list": late_edges,
    "imports at run time that floors.py lists in vain": unused_late_edges,
    "folders of more than 30 files": long_folders,
    "class names with three meanings": shared_class_names,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Print the figures; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.house", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--list", action="store_true", help="show each violation")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args(argv)
    modules = read_modules()
    violations = {name: figure(modules) for name, figure in FIGURES.items()}
    if options.json:
        print(json.dumps({name: len(entries) for name, entries in violations.items()}))
        return 0
    for name, entries in violations.items():
        print(f"{len(entries):5} {name}")
        if options.list:
            for violation in entries:
                print(f"      {violation}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
