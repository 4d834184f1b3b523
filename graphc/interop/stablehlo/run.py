"""Interpreter of StableHLO programs: applies the rule of each operation, eagerly or in a trace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from graphc.base.errors import GraphcError, ParseError, UnsupportedError
from graphc.base.location import Location, at
from graphc.interop.stablehlo.call import OperationCall
from graphc.interop.stablehlo.graph import Block, Operation, Program, every_operation
from graphc.interop.stablehlo.scopes import called
from graphc.interop.stablehlo.table import TABLE, TARGETS
from graphc.ir.types import TensorType
from graphc.tensors.tensor import Tensor

FAULTS = (ArithmeticError, LookupError, TypeError, ValueError)
"""Exceptions of rules for attributes and shapes outside of the operation's domain, in addition to graphc's errors."""
_REMEDIES = {
    "vhlo": "pass the text of exported.mlir_module(), not the serialized form",
    "sdy": "export the function for one device, without shardings",
    "mhlo": "pass the text of exported.mlir_module(), which is StableHLO",
    "cf": "pass the text of exported.mlir_module(), where branches are stablehlo.if",
}
_OTHERS = "docs/from_jax.md lists the operations; write the function with others, or keep this step in JAX"


class ProgramRunner:
    """Interpreter of one program."""

    def __init__(self, program: Program, checkpoint: int | bool = False):
        """Take ``checkpoint`` of loops with a known number of steps, as of ``graphc.scan``. Raise UnsupportedError for
        operations without a rule."""
        self.program = program
        self.checkpoint = checkpoint
        self._pointwise: dict[str, bool] = {}
        check_rules(program)

    def __call__(self, arguments: Sequence[Tensor]) -> list[Tensor]:
        """Return the results of the entry function."""
        return self.call(self.program.main.name, arguments)

    def call(self, name: str, arguments: Sequence[Tensor], pointwise: bool = False) -> list[Tensor]:
        """Return the results of a function."""
        function = self.program.functions[name]
        results = self.run(function.body, arguments, {}, pointwise)
        _check_types(f"line {function.line}: {name[:60]}", results, function.results, pointwise)
        return results

    def run(
        self, block: Block, arguments: Sequence[Tensor], enclosing: Mapping[str, Any], pointwise: bool = False
    ) -> list[Tensor]:
        """Run a block. ``pointwise`` runs one for single elements on whole tensors, whose shapes are not the text's.

        Raises ParseError for another number of arguments than the block has.
        """
        if len(arguments) != len(block.arguments):
            raise ParseError(f"a region takes {len(block.arguments)} values, {len(arguments)} are passed")
        scope = {name: enclosing[name] for name in block.captured}
        scope.update(zip(block.arguments, arguments, strict=True))
        for operation in block.operations:
            with at(Location(f"line {operation.line}")):
                results = self._applied(operation, scope, pointwise)
            scope.update(zip(operation.results, results, strict=True))
        return [scope[name] for name in block.returned]

    def _applied(self, operation: Operation, scope: Mapping[str, Any], pointwise: bool) -> Sequence[Tensor]:
        call = OperationCall(operation, self, scope, pointwise)
        try:
            result = TABLE[operation.name].rule(call, *[scope[name] for name in operation.operands])
        except GraphcError as error:
            # NOTE: an operation of an inner region is there already; a line of graphc's own IR says less.
            if not (error.where or "").startswith("line "):
                error.where = str(operation)
            raise
        except FAULTS as error:
            what = f"{operation.name} does not accept these operands and attributes: {type(error).__name__}: {error}"
            raise UnsupportedError(what[:500], where=str(operation)) from error
        results = list(result) if isinstance(result, (tuple, list)) else [result]
        _check_types(str(operation), results, operation.types, pointwise)
        return results

    def is_pointwise(self, operation: Operation) -> bool:
        """Check whether an operation, or a function that it calls, computes element by element."""
        names = called(operation)
        if not names:
            return TABLE[operation.name].pointwise
        if names[0] not in self._pointwise:
            body = self.program.functions[names[0]].body
            self._pointwise[names[0]] = all(map(self.is_pointwise, body.operations))
        return self._pointwise[names[0]]


def _check_types(title: str, results: Sequence[Tensor], stated: Sequence[Any], pointwise: bool) -> None:
    """Raise ParseError where results differ from the types in the text."""
    types = [TensorType(r.dtype, () if pointwise else tuple(r.shape)) for r in results]
    expected = [TensorType(t.dtype, () if pointwise else t.shape) for t in stated]
    if types != expected:
        computed, text = (", ".join(map(str, listed)) for listed in (types, expected))
        raise ParseError(f"{title} gives {computed}, the text says {text}"[:300])


def check_rules(program: Program) -> None:
    """Raise UnsupportedError that names the operations which are not in the table, with their first lines."""
    missing: dict[str, int] = {}
    for function in program.functions.values():
        _check_tensors(f"the function {function.name[:60]}", [*function.body.types, *function.results], function.line)
        for operation in every_operation(function.body):
            for name in _missing(operation):
                missing.setdefault(name, operation.line)
            types = [*operation.types, *[t for b in operation.blocks for t in b.types]]
            _check_tensors(operation.name, types, operation.line)
    if missing:
        listed = ", ".join(f"{name} (line {line})" for name, line in missing.items())
        dialect = next(iter(missing)).partition(".")[0]
        raise UnsupportedError(
            f"graphc has no rule for these operations: {listed}"[:1000], remedy=_REMEDIES.get(dialect, _OTHERS)
        )


def _check_tensors(title: str, types: Sequence[Any], line: int) -> None:
    """Raise UnsupportedError for types of values other than tensors."""
    for value_type in types:
        if not isinstance(value_type, TensorType):
            raise UnsupportedError(
                f"{title} has a value of the type {str(value_type)[:60]}", where=f"line {line}", remedy=_OTHERS
            )


def _missing(operation: Operation) -> Iterator[str]:
    if operation.name not in TABLE:
        yield operation.name
    elif operation.name == "stablehlo.custom_call":
        name = custom_target(operation)
        if name not in TARGETS:
            yield f"custom_call @{name}"


def custom_target(operation: Operation) -> str:
    """Return the target of a custom call."""
    name = operation.attributes.get("call_target_name")
    return str(getattr(name, "name", name))
