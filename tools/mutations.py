"""Mechanical changes of a source: one flipped comparison, shifted number, dropped statement ... at a time."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

_COMPARISONS: dict[type[ast.cmpop], str] = {
    **{ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "=="},
    **{ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is"},
}
_OPERATORS: dict[type[ast.operator], str] = {
    **{ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.FloorDiv: "*", ast.Div: "*", ast.Mod: "//"},
    **{ast.BitAnd: "|", ast.BitOr: "&", ast.LShift: ">>", ast.RShift: "<<"},
}
_TEXTS: dict[type[ast.operator], str] = {ast.Sub: "-", ast.FloorDiv: "//", ast.Div: "/", ast.Mod: "%"}
"""Operators whose operands make a difference when they are swapped."""
_FUNCTIONS = {"min": "max", "max": "min", "any": "all", "all": "any"}
_SILENT = (ast.JoinedStr, ast.Raise, ast.Assert, ast.Import, ast.ImportFrom)


@dataclass(frozen=True)
class Mutation:
    """One change: the characters ``start..stop`` of a source become ``text``."""

    kind: str
    line: int
    start: int
    stop: int
    text: str

    def apply(self, source: str) -> str:
        """Return the changed source."""
        return source[: self.start] + self.text + source[self.stop :]

    def describe(self, source: str) -> str:
        """Return ``old -> new`` on one line."""
        old = " ".join(source[self.start : self.stop].split())
        return f"{old} -> {' '.join(self.text.split())}"


class _Finder:
    """All changes of one source."""

    def __init__(self, source: str):
        self.source = source
        self.tree = ast.parse(source)
        self.lines = [0]
        for line in source.encode().splitlines(keepends=True):
            self.lines.append(self.lines[-1] + len(line))
        self.bytes = source.encode()

    def _offset(self, line: int, column: int) -> int:
        return len(self.bytes[: self.lines[line - 1] + column].decode())

    def text(self, node: ast.AST) -> str:
        """Return the source of a node."""
        return self.source[slice(*self._span(node))]

    def _span(self, node: ast.AST) -> tuple[int, int]:
        n: ast.expr = node  # type: ignore[assignment]
        return self._offset(n.lineno, n.col_offset), self._offset(n.end_lineno or 0, n.end_col_offset or 0)

    def change(self, kind: str, node: ast.AST, text: str) -> Mutation:
        """Return the change of a whole node."""
        start, stop = self._span(node)
        return Mutation(kind, node.lineno, start, stop, text)  # type: ignore[attr-defined]

    def find(self) -> Iterator[Mutation]:
        """Change in the order of the source."""
        stack: list[ast.AST] = [self.tree]
        while stack:
            node = stack.pop()
            yield from self._changes(node)
            stack.extend(reversed(list(self._parts(node))))

    def _parts(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the children of a node that have an effect: neither annotations nor texts nor messages of errors."""
        skipped: set[int] = set()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            skipped = {id(child) for child in (*node.decorator_list, node.returns)}
        elif isinstance(node, ast.ClassDef):
            skipped = {id(child) for child in (*node.decorator_list, *node.bases)}
        elif isinstance(node, ast.AnnAssign):
            skipped = {id(node.annotation)}
        for child in ast.iter_child_nodes(node):
            # NOTE: expressions inside of f-strings have no places of their own before Python 3.12.
            if id(child) in skipped or isinstance(
                child, (ast.JoinedStr, ast.Raise, ast.Assert, ast.Import, ast.ImportFrom)
            ):
                continue
            if isinstance(node, ast.arg):
                continue
            yield child

    def _changes(self, node: ast.AST) -> Iterator[Mutation]:
        for name, cls in (
            ("compare", ast.Compare),
            ("binary", ast.BinOp),
            ("boolean", ast.BoolOp),
            ("negation", ast.UnaryOp),
            ("constant", ast.Constant),
            ("condition", (ast.If, ast.IfExp, ast.While)),
            ("filter", ast.comprehension),
            ("statement", ast.stmt),
            ("call", ast.Call),
            ("returned", ast.Return),
        ):
            if isinstance(node, cls):
                yield from getattr(self, f"_{name}")(node)

    def _compare(self, node: ast.Compare) -> Iterator[Mutation]:
        operands = [node.left, *node.comparators]
        for i, op in enumerate(node.ops):
            start, stop = self._span(operands[i])[1], self._span(operands[i + 1])[0]
            between = self.source[start:stop]
            if between.strip("() \n") == "" or "#" in between:
                continue
            old = between.strip(" ()\n")
            yield Mutation("compare", node.lineno, start, stop, between.replace(old, _COMPARISONS[type(op)]))

    def _binary(self, node: ast.BinOp) -> Iterator[Mutation]:
        left_text, right = self.text(node.left), self.text(node.right)
        if type(node.op) in _OPERATORS:
            yield self.change("operator", node, f"(({left_text}) {_OPERATORS[type(node.op)]} ({right}))")
        if type(node.op) in _TEXTS:
            yield self.change("swap", node, f"(({right}) {_TEXTS[type(node.op)]} ({left_text}))")

    def _boolean(self, node: ast.BoolOp) -> Iterator[Mutation]:
        values = [f"({self.text(value)})" for value in node.values]
        word = "or" if isinstance(node.op, ast.And) else "and"
        yield self.change("and/or", node, f"({f' {word} '.join(values)})")
        operator = "and" if isinstance(node.op, ast.And) else "or"
        for i in range(len(values)):
            yield self.change("part", node, f"({f' {operator} '.join(values[:i] + values[i + 1 :])})")

    def _negation(self, node: ast.UnaryOp) -> Iterator[Mutation]:
        if isinstance(node.op, (ast.Not, ast.USub)):
            yield self.change("negation", node, f"({self.text(node.operand)})")

    def _constant(self, node: ast.Constant) -> Iterator[Mutation]:
        value = node.value
        if isinstance(value, bool):
            yield self.change("constant", node, str(not value))
        elif isinstance(value, int):
            yield self.change("constant", node, str(value + 1))
            yield self.change("constant", node, f"({value - 1})")
        elif isinstance(value, float):
            yield self.change("constant", node, repr(2 * value + 1))

    def _condition(self, node: ast.If | ast.IfExp | ast.While) -> Iterator[Mutation]:
        if not isinstance(node, ast.While):
            yield self.change("condition", node.test, "True")
        yield self.change("condition", node.test, "False")

    def _filter(self, node: ast.comprehension) -> Iterator[Mutation]:
        for test in node.ifs:
            yield self.change("filter", test, "True")

    def _statement(self, node: ast.stmt) -> Iterator[Mutation]:
        dropped = isinstance(node, (ast.AugAssign, ast.Continue, ast.Break))
        dropped |= isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
        if isinstance(node, ast.Assign):
            dropped = all(isinstance(target, (ast.Attribute, ast.Subscript)) for target in node.targets)
        if dropped:
            yield self.change("dropped", node, "pass")

    def _call(self, node: ast.Call) -> Iterator[Mutation]:
        if isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
            yield self.change("function", node.func, _FUNCTIONS[node.func.id])
        if len(node.args) >= 2 and not any(isinstance(a, ast.Starred) for a in node.args[:2]):
            first, second = node.args[:2]
            start, middle, stop = self._span(first)[0], self._span(first)[1], self._span(second)[1]
            between = self.source[middle : self._span(second)[0]]
            if self.text(first) != self.text(second) and between.strip() == ",":
                text = self.text(second) + between + self.text(first)
                yield Mutation("arguments", node.lineno, start, stop, text)

    def _returned(self, node: ast.Return) -> Iterator[Mutation]:
        if node.value is not None and not isinstance(node.value, ast.Constant):
            yield self.change("returned", node.value, "None")


def find_mutations(source: str) -> list[Mutation]:
    """Return all changes of a source, in order; some of them may be no Python (see ``is_python``)."""
    return list(_Finder(source).find())


def is_python(source: str) -> bool:
    """Return whether Python reads it."""
    try:
        compile(source, "<mutant>", "exec")
    except SyntaxError:
        return False
    return True
