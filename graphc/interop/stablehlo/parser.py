"""Parser of StableHLO text in MLIR's generic form, and of the structure that both forms share."""

from __future__ import annotations

from typing import Any

from graphc.base.errors import ParseError, UnsupportedError
from graphc.interop.stablehlo.attributes import AttributeReader, unquoted
from graphc.interop.stablehlo.graph import Block, FunctionType, HloFunction, Operation, Program
from graphc.interop.stablehlo.lexer import Cursor
from graphc.interop.stablehlo.pretty import Pretty
from graphc.interop.stablehlo.scopes import check_scopes

MOST_NESTED = 64
"""Nesting levels of the regions of operations."""
RETURNS = frozenset({"stablehlo.return", "func.return", "return", "mhlo.return"})
_DECLARATIONS = frozenset({"sdy.mesh"})
_BYTECODE = "ML\xefR"


def parse_program(text: str) -> Program:
    """Parse the text of a module: its functions, in the generic or the short form.

    Raises ParseError for a damaged text, naming the line; UnsupportedError for types, attributes and control flow that
    graphc lacks.
    """
    if text.startswith(_BYTECODE) or "\0" in text[:1000]:
        raise ParseError(
            "the module is in MLIR's binary form, which is not read", remedy="pass exported.mlir_module(), its text"
        )
    try:
        program = ModuleParser(Cursor(text)).program()
    except RecursionError:
        raise ParseError("the text is nested too deeply") from None
    if not program.functions:
        raise ParseError("the text has no function", remedy="pass the text of a module with a func.func")
    check_scopes(program)
    return program


class ModuleParser:
    """Parser of one text."""

    def __init__(self, cursor: Cursor):
        self.cursor = cursor
        self.attributes = AttributeReader(cursor)
        self.pretty = Pretty(self)
        self.functions: dict[str, HloFunction] = {}
        self.depth = 0

    # Modules and functions

    def program(self) -> Program:
        name = "main"
        while self.cursor.peek().kind != "end":
            if self.cursor.peek().kind == "alias":
                self._alias()
            elif self.cursor.accept("module") or self.cursor.accept("builtin.module"):
                name = self._module(name)
            elif self.cursor.peek().text == '"builtin.module"':
                name = self._generic_module(name)
            else:
                self._declaration()
        return Program(name, self.functions)

    def _alias(self) -> None:
        token = self.cursor.next()
        self.cursor.expect("=")
        is_type = token.text.startswith("!")
        self.attributes.aliases[token.text] = self.attributes.type() if is_type else self.attributes.attribute()

    def _module(self, name: str) -> str:
        if self.cursor.peek().kind == "symbol":
            name = self.attributes.symbol().name
        if self.cursor.accept("attributes"):
            self.cursor.skip_group()
        self.cursor.expect("{")
        while not self.cursor.accept("}"):
            self._declaration()
        return name

    def _generic_module(self, name: str) -> str:
        module = self.operation()
        for operation in module.blocks[0].operations if module.blocks else ():
            if operation.name != "func.func" or not operation.blocks:
                continue
            attributes = operation.attributes
            function_type = attributes.get("function_type")
            if not isinstance(attributes.get("sym_name"), str) or not isinstance(function_type, FunctionType):
                raise ParseError(f"line {operation.line}: the function has no name or no type")
            public = attributes.get("sym_visibility") != "private"
            function = HloFunction(
                attributes["sym_name"], operation.blocks[0], function_type.results, public, operation.line
            )
            self._define(function)
        return str(module.attributes.get("sym_name", name))

    def _declaration(self) -> None:
        if self.cursor.at("func.func", "func"):
            self._function()
        elif self.cursor.peek().text in _DECLARATIONS:
            self.cursor.next()
            self.attributes.symbol()
            self.cursor.expect("=")
            while self.cursor.at("<", "{"):
                self.cursor.skip_group()
        else:
            self.cursor.fail("a function (func.func)")

    def _function(self) -> None:
        line = self.cursor.next().line
        public = not self.cursor.accept("private")
        self.cursor.accept("public")
        name = self.attributes.symbol().name
        arguments = self.cursor.list_of(self.argument, "(", ")")
        results = self.attributes.types() if self.cursor.accept("->") else ()
        if self.cursor.accept("attributes"):
            self.cursor.skip_group()
        if not self.cursor.at("{"):
            raise UnsupportedError(f"the function {name} is only declared", where=f"line {line}")
        body = self.region(arguments)
        self._define(HloFunction(name, body, results, public, line))

    def _define(self, function: HloFunction) -> None:
        if function.name in self.functions:
            raise ParseError(f"line {function.line}: there are two functions {function.name[:60]!r}")
        self.functions[function.name] = function

    def argument(self) -> tuple[str, Any]:
        """Read the name and type of an argument."""
        name = self.cursor.kind("value")
        self.cursor.expect(":")
        argument = name, self.attributes.type()
        if self.cursor.at("{"):
            self.cursor.skip_group()
        return argument

    # Regions and operations

    def region(self, arguments: list[tuple[str, Any]] | None = None) -> Block:
        """Read a region of one block in braces. ``arguments`` are those that precede it in the short form."""
        self.depth += 1
        if self.depth > MOST_NESTED:
            raise ParseError(f"line {self.cursor.line}: regions are nested more than {MOST_NESTED} levels deep")
        self.cursor.expect("{")
        if self.cursor.peek().kind == "block":
            self.cursor.next()
            arguments = self.cursor.list_of(self.argument, "(", ")") if self.cursor.at("(") else []
            self.cursor.expect(":")
        operations, returned = self._operations()
        self.depth -= 1
        pairs = arguments or []
        return Block([name for name, _ in pairs], [t for _, t in pairs], operations, returned)

    def _operations(self) -> tuple[list[Operation], tuple[str, ...]]:
        operations: list[Operation] = []
        returned: tuple[str, ...] | None = None
        while not self.cursor.accept("}"):
            if self.cursor.peek().kind == "block":
                raise UnsupportedError(
                    "a region has several blocks",
                    where=f"line {self.cursor.line}",
                    remedy="print the module before branches are lowered to jumps",
                )
            if returned is not None:
                self.cursor.fail("the end of the region after its return")
            operation = self.operation()
            if operation.name in RETURNS:
                returned = operation.operands
            else:
                operations.append(operation)
        return operations, returned or ()

    def operation(self) -> Operation:
        """Read one operation with the names of its results."""
        names = self._result_names()
        line = self.cursor.line
        if self.cursor.peek().kind == "string":
            operation = self._generic(line)
        else:
            name = self.cursor.kind("word")
            name = {"call": "func.call", "constant": "stablehlo.constant"}.get(name, name)
            operation = self.pretty.operation(name, line)
        operation.results = tuple(self._results(names, operation, line))
        return operation

    def _result_names(self) -> list[tuple[str, int]]:
        names: list[tuple[str, int]] = []
        while self.cursor.peek().kind == "value":
            name, count = self.cursor.next().text, 1
            if self.cursor.accept(":"):
                count = -int(self._count())
            names.append((name, count))
            if not self.cursor.accept(","):
                self.cursor.expect("=")
                break
        return names

    def _count(self) -> int:
        text = self.cursor.kind("number")
        if not text.isdigit() or len(text) > 6:
            self.cursor.fail("a number of results")
        return int(text)

    @staticmethod
    def _results(names: list[tuple[str, int]], operation: Operation, line: int) -> list[str]:
        """Return the name of each result. ``%3:2`` names ``%3#0`` and ``%3#1``."""
        if operation.name in RETURNS and not names:
            operation.types = ()
            return []
        counts = [abs(count) for _, count in names]
        if sum(counts) != len(operation.types):
            raise ParseError(
                f"line {line}: {operation.name} has {len(operation.types)} results, {sum(counts)} have a name"
            )
        results: list[str] = []
        for name, count in names:
            results += [name] if count > 0 else [f"{name}#{i}" for i in range(-count)]
        return results

    def _generic(self, line: int) -> Operation:
        """Read the form ``"name"(operands) <{properties}> ({regions}) {attributes} : types``."""
        name = unquoted(self.cursor.next().text)
        operands = tuple(self.cursor.list_of(self.operand, "(", ")"))
        attributes: dict[str, Any] = {}
        if self.cursor.accept("<"):
            attributes |= self.attributes.dictionary()
            self.cursor.expect(">")
        blocks = tuple(self.cursor.list_of(self.region, "(", ")")) if self.cursor.at("(") else ()
        if self.cursor.at("{"):
            attributes |= self.attributes.dictionary()
        self.cursor.expect(":")
        types = self.attributes.function_type().results
        return Operation(name, operands, (), types, attributes, blocks, line)

    def operand(self) -> str:
        """Read the use of a value."""
        return self.cursor.kind("value")
