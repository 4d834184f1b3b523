"""``graphc.from_stablehlo``: a StableHLO program as a module, which is called, compiled and exported like any other."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from graphc.base.errors import ArgumentError, DTypeError, ParseError, ShapeError
from graphc.interop.parts import ImportedRoot
from graphc.interop.stablehlo.graph import Program, type_of
from graphc.interop.stablehlo.parser import parse_program
from graphc.interop.stablehlo.run import ProgramRunner
from graphc.ir.types import TensorType
from graphc.tensors.creation import as_tensor, zeros
from graphc.tensors.structure import LEAF, Branch, Structure, unflatten
from graphc.tensors.tensor import Tensor

STABLEHLO = "1"
"""Major version of StableHLO whose text is read. Its operations keep their meaning within a major version."""


def from_stablehlo(text: str, *, checkpoint: int | bool = False) -> StableHLOModule:
    """Convert the text of a StableHLO module to a Module.

    The text may have the short forms that ``mlir_module()`` and ``as_text()`` of JAX print, or MLIR's generic form, of
    StableHLO 1. Constants are part of the program. docs/from_jax.md lists the operations.

    Args:
        text: the module. Its function ``main``, or else its first public function, is the entry.
        checkpoint: a number k: gradients of loops with a known number of steps keep their state before each k steps
            alone, as in ``graphc.scan``. True stands for about the square root of the number of steps.

    Returns:
        A Module that takes tensors or arrays by position and returns one result or a tuple.

    Raises:
        ParseError: a damaged text; the message names the line.
        UnsupportedError: operations without a rule, sizes that the text does not fix, types that graphc lacks.

    Example:
        >>> import graphc as gc
        >>> text = '''
        ... func.func @main(%x: tensor<3xf64>) -> tensor<3xf64> {
        ...   %0 = stablehlo.multiply %x, %x : tensor<3xf64>
        ...   return %0 : tensor<3xf64>
        ... }'''
        >>> gc.from_stablehlo(text)(gc.tensor([1.0, 2.0, 3.0], dtype=gc.float64))
        tensor([1., 4., 9.], dtype=graphc.float64)
    """
    if not isinstance(text, str):
        raise ArgumentError(
            f"from_stablehlo takes the text of a module, got {type(text).__name__}",
            remedy="pass exported.mlir_module() or jax.jit(f).lower(x).as_text()",
        )
    return StableHLOModule(parse_program(text), checkpoint=checkpoint)


def read_stablehlo(path: str | os.PathLike[str]) -> StableHLOModule:
    """Read a file of StableHLO text, see ``from_stablehlo``. Raises ParseError for a file that is no text too."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ParseError(
            f"{os.fspath(path)} is no text: it may be the binary form of MLIR",
            remedy="write exported.mlir_module() of jax.export, which is a text",
        ) from None
    return from_stablehlo(text)


class StableHLOModule(ImportedRoot):
    """Program of StableHLO operations. Arguments and results are nested as ``arguments`` and ``results`` say."""

    def __init__(
        self,
        program: Program,
        arguments: Structure | None = None,
        results: Structure | None = None,
        used: Sequence[int] | None = None,
        checkpoint: int | bool = False,
    ):
        """Take one tensor for each argument of the entry, unless ``arguments`` nests them. ``used`` holds the indices
        of its leaves that the program takes, None for all.

        Raises UnsupportedError for operations without a rule.
        """
        super().__init__("".join(c if c.isalnum() else "_" for c in program.name)[:60] or "StableHLO")
        self._traced_name = self._kind
        self._program = program
        self._types = [type_of(t) for t in program.main.body.types]
        count = len(program.main.results)
        self._arguments = arguments or Branch(tuple, (), (LEAF,) * len(self._types))
        self._results = results or (LEAF if count == 1 else Branch(tuple, (), (LEAF,) * count))
        self._used = used
        self._checkpoint = checkpoint
        self._runner = ProgramRunner(program, checkpoint)
        super().train(False)

    dims = None
    """Named dimensions: none, since the text fixes all sizes."""

    @property
    def program(self) -> Program:
        """Return the program as read."""
        return self._program

    def examples(self) -> list[Any]:
        """Return arguments with which a call can be traced: zeros of the text's types, 0 for arguments without use."""
        values: list[Any] = [zeros(t.shape, dtype=t.dtype) for t in self._types]
        if self._used is not None:
            by_leaf = dict(zip(self._used, values, strict=True))
            values = [by_leaf.get(i, zeros(())) for i in range(count_leaves(self._arguments))]
        return list(unflatten(self._arguments, values))

    @property
    def forward(self) -> Callable[..., Any]:  # type: ignore[override]
        """Return the function that computes the program for its arguments, by position."""
        return _CallByPosition(self)

    def run(self, args: Sequence[Any]) -> Any:
        """Return the results of a call.

        Raises ArgumentError for arguments of another number or nesting, ShapeError and DTypeError for other types.
        """
        self._check_hooks()
        leaves: list[Any] = []
        _flatten(self._arguments, tuple(args), "the arguments", leaves)
        if self._used is not None:
            leaves = [leaves[i] for i in self._used]
        tensors = [_fitting(f"argument {i}", t, v) for i, (t, v) in enumerate(zip(self._types, leaves, strict=True))]
        return unflatten(self._results, self._runner(tensors))

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_runner": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._runner = ProgramRunner(self._program, self._checkpoint)


class _CallByPosition:
    """Callable behind ``StableHLOModule.forward``, with one parameter for each argument."""

    def __init__(self, module: StableHLOModule):
        self._module = module

    def __call__(self, *args: Any) -> Any:
        return self._module.run(args)

    @property
    def __signature__(self) -> inspect.Signature:
        kind = inspect.Parameter.POSITIONAL_ONLY
        tree = self._module._arguments
        count = len(tree.children) if isinstance(tree, Branch) else 1
        return inspect.Signature([inspect.Parameter(f"x{i}", kind) for i in range(count)])


def count_leaves(structure: Structure) -> int:
    """Count the tensors of a structure."""
    if isinstance(structure, Branch):
        return sum(map(count_leaves, structure.children))
    return int(structure == LEAF)


def _flatten(structure: Structure, value: Any, title: str, leaves: list[Any]) -> None:
    """Append the leaves of a value nested as ``structure``. Raises ArgumentError."""
    if not isinstance(structure, Branch):
        if structure == LEAF:
            leaves.append(value)
        return
    keyed = issubclass(structure.kind, dict)
    fits = isinstance(value, dict) and {*value} == {*structure.keys} if keyed else isinstance(value, (tuple, list))
    if not fits or len(value) != len(structure.children):
        expected = f"a dictionary of {[*structure.keys]}" if keyed else f"{len(structure.children)} values"
        got = len(value) if fits else type(value).__name__
        raise ArgumentError(f"{title}: expected {expected}, got {got}"[:200])
    for i, child in enumerate(structure.children):
        key = structure.keys[i] if keyed else i
        _flatten(child, value[key], f"{title}[{key!r}]", leaves)


def _fitting(title: str, expected: TensorType, value: Any) -> Tensor:
    tensor = as_tensor(value)
    if tensor.dtype is not expected.dtype:
        raise DTypeError(
            f"{title} is {tensor.dtype.long_name}, the program takes {expected.dtype.long_name}",
            remedy=f"pass x.to(graphc.{expected.dtype.long_name})",
        )
    if tuple(tensor.shape) != expected.shape:
        raise ShapeError(
            f"{title} has shape {list(tensor.shape)}, the program takes {list(expected.shape)}",
            remedy="export the function with arguments of this shape",
        )
    return tensor
