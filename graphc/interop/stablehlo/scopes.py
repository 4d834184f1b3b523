"""Check that each value is defined before it is used, and which values of enclosing blocks a block reads."""

from __future__ import annotations

from graphc.base.errors import ParseError
from graphc.interop.stablehlo.graph import Block, Operation, Program, Symbol, every_operation

CALLEES = ("callee", "decomposition")
"""Attributes that name a function."""


def check_scopes(program: Program) -> None:
    """Set ``captured`` of all blocks. Raises ParseError for names that are not defined, or defined twice, for functions
    that call themselves, and for another number of results than a function's type has."""
    for function in program.functions.values():
        _check_block(function.body, frozenset())
        counts = len(function.body.returned), len(function.results)
        if counts[0] != counts[1]:
            raise ParseError(
                f"line {function.line}: {function.name[:60]} returns {counts[0]} values, its type has {counts[1]}"
            )
    _check_calls(program)


def _check_block(block: Block, enclosing: frozenset[str]) -> None:
    defined: dict[str, None] = {}
    captured: dict[str, None] = {}

    def use(names: tuple[str, ...], operation: Operation | None) -> None:
        for name in names:
            if name in defined:
                continue
            if name not in enclosing:
                where = f"line {operation.line}" if operation is not None else "the end of a region"
                raise ParseError(f"{where}: {name[:60]} is used before it is computed")
            captured[name] = None

    def define(names: list[str] | tuple[str, ...], line: str) -> None:
        for name in names:
            if name in defined or name in enclosing:
                raise ParseError(f"{line}: there are two values {name[:60]}")
            defined[name] = None

    define(block.arguments, "the arguments of a region")
    for operation in block.operations:
        use(operation.operands, operation)
        for inner in operation.blocks:
            _check_block(inner, enclosing | defined.keys())
            use(inner.captured, operation)
        define(operation.results, f"line {operation.line}")
    use(block.returned, None)
    block.captured = tuple(captured)


def called(operation: Operation) -> list[str]:
    """Return the names of the functions that an operation calls."""
    attributes = operation.attributes
    return [s.name for key in CALLEES if isinstance(s := attributes.get(key), Symbol)]


def _check_calls(program: Program) -> None:
    """Raise ParseError for calls of functions that do not exist, and for circles of calls."""
    callees: dict[str, set[str]] = {}
    for function in program.functions.values():
        names: set[str] = set()
        for operation in every_operation(function.body):
            for name in called(operation):
                if name not in program.functions:
                    raise ParseError(f"line {operation.line}: there is no function {name[:60]!r}")
                names.add(name)
        callees[function.name] = names
    finished: set[str] = set()
    while len(finished) < len(callees):
        ready = {name for name, names in callees.items() if name not in finished and names <= finished}
        if not ready:
            circle = next(name for name in callees if name not in finished)
            raise ParseError(f"the function {circle[:60]!r} calls itself")
        finished |= ready
