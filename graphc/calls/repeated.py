"""Programs of functions that eager mode calls repeatedly with one signature, and their autograd nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import Context
from operator import is_
from typing import Any

import numpy as np

from graphc.autograd.engine import grad
from graphc.autograd.record import Snapshot
from graphc.base import config
from graphc.base.dtypes import dtype_of
from graphc.base.errors import GraphcError
from graphc.base.sizes.named_dims import Dim
from graphc.base.sizes.size import LARGEST
from graphc.calls.backward import CompiledNode, RecordedCall
from graphc.calls.bound_program import BoundProgram
from graphc.calls.function import Compiled
from graphc.calls.variant import Variant
from graphc.compiler.native_call import not_native
from graphc.ir.graph.graph import INPUT, Value
from graphc.ir.op import Trait
from graphc.ops import dispatch
from graphc.runtime.call import TIMING
from graphc.tape.grad_mode import enable_grad, is_grad_enabled
from graphc.tensors.structure import Structure, flatten, unflatten
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import edge_of

Run = Callable[[Sequence[Tensor]], Any]
"""Maps the tensors of a call to its result; None where the function itself must raise."""


class RepeatedNode(CompiledNode):
    """The backward pass of one such call."""

    is_compiled = False
    program: RepeatedProgram

    def name(self) -> str:
        """Return the function's name in the style of ops' nodes."""
        return "".join(word.capitalize() for word in self.backward.name.split("_")) + "Backward"

    def run_for(self, grads: list[Any], needed: Sequence[bool]) -> Sequence[Any]:
        """Call the backward program. In a trace, or with observed operations, differentiate the function instead."""
        if dispatch.active() is None or self.call is None:
            return super().run_for(grads, needed)
        return self.program.pulled(self.call, self.edges, grads, needed)

    def release(self) -> None:
        """Free the saved values. A node without any, as of a sum, allows another backward pass."""
        if self.residuals or self.again:
            super().release()


class RepeatedProgram:
    """One function with one signature as native code."""

    def __init__(self, variant: Variant, calls: BoundProgram, function: Callable[..., Any], structure: Structure):
        """``structure`` is the structure of the arguments."""
        self._function, self._structure = function, structure
        self._variant = variant
        self._calls = calls
        self._native = calls.bound_native()
        self._types = [dtype_of(dtype) for _, dtype in variant.output_types]
        self._whose = f"an argument of {variant.name}"
        self._on_device = [False] * len(variant.sources)

    def run(self, tensors: Sequence[Tensor]) -> Any:
        """Return the result, recorded on the autograd tape where needed; None where the program refuses the call."""
        arrays = [t._data for t in tensors]
        outputs: Any = None if TIMING else self._native(*arrays)
        if outputs is None:
            try:
                outputs = self._calls.run(arrays)
            except GraphcError:
                return None
        elif self._calls.single:
            outputs = [outputs]
        results = []
        for array, dtype in zip(outputs, self._types):  # noqa: B905 (residuals follow)
            result = object.__new__(Tensor)
            result._data, result.dtype, result._counter = array, dtype, [0]
            results.append(result)
        variant = self._variant
        if variant.sources:
            self._record(tensors, arrays, results, outputs[len(results) :])
        return results[0] if variant.single else unflatten(variant.structure, results)

    def _record(
        self, tensors: Sequence[Tensor], arrays: list[Any], results: list[Tensor], residuals: list[Any]
    ) -> None:
        variant = self._variant
        edges = tuple([edge_of(tensors[i]) for i in variant.sources])
        saved = [Snapshot(tensors[i], None, self._whose) for i in variant.kept_plain]
        types = [(t._data.shape, t._data.dtype) for t in results]
        node = RepeatedNode(variant.backward, edges, residuals, saved, types, None)
        node.on_device = self._on_device
        node.program = self
        node.call = RecordedCall(arrays, [t._counter for t in tensors], None)
        for i, result in enumerate(results):
            if variant.differentiable[i]:
                result._node, result._index, result._requires_grad = node, i, True

    def pulled(
        self, call: RecordedCall, edges: Sequence[Any], grads: Sequence[Any], needed: Sequence[bool]
    ) -> list[Any]:
        """Compute the needed gradients by operations: run the function once more."""
        name = self._variant.name
        tensors = []
        for number in range(len(call.arrays)):
            tensors.append(Tensor._wrap(call.operand(number, None, name).array()))
        for number, edge in zip(self._variant.sources, edges, strict=True):
            tensors[number]._node, tensors[number]._index = edge
            tensors[number]._requires_grad = True
        args, kwargs = unflatten(self._structure, tensors)
        with enable_grad():
            results = flatten(self._function(*args, **kwargs))[0]
        pairs = [(r, g) for r, g in zip(results, grads, strict=True) if g is not None and r._requires_grad]
        targets = [tensors[i] for i, need in zip(self._variant.sources, needed, strict=True) if need]
        outputs, output_gradients = [r for r, _ in pairs], [g for _, g in pairs]
        results_of_grad = iter(
            grad(outputs, targets, output_gradients, create_graph=is_grad_enabled(), allow_unused=True)
        )
        return [next(results_of_grad) if need else None for need in needed]


def _is_of_an_argument(value: Value) -> bool:
    """Return whether a result is an argument or a view of one, with which it shares memory in eager mode."""
    while value.node.op.alias is not None or value.node.op.has(Trait.IDENTITY):
        value = value.node.operands[0]
    return value.node.op is INPUT


def program(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Run | None:
    """Return a program of the function for calls with this signature; None where operations must run."""
    name = getattr(function, "__name__", "function")
    leaves, structure = flatten((args, kwargs))
    try:
        variant, tensors = Compiled(function)._find_and_run(args, kwargs, only_find=True)
    except GraphcError as error:
        config.logger("compile").info("%s goes through operations: %s", name, error)
        return None
    same = len(tensors) == len(leaves) and all(map(is_, tensors, leaves))
    if not same or not isinstance(variant.calls, BoundProgram) or variant.is_more_than_a_function:
        return None
    if any(map(_is_of_an_argument, variant.traced.graph.outputs)):
        return None
    return RepeatedProgram(variant, variant.calls, function, structure).run


def sized_program(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a program for a function of a generator's state (i64[3]: seed, step, stream) and a number of elements."""
    compiled = Compiled(function, dims=(None, Dim("count", max=LARGEST)))
    # NOTE: in a separate context, because a draw inside a module's call compiles a program for that module only.
    dtype = Context().run(compiled, Tensor._wrap(np.zeros(3, np.int64)), 4).dtype
    call = compiled.variants[-1].shortcut() or not_native

    def run(tensor: Tensor, count: int) -> Tensor:
        array = call(tensor._data, count)
        if array is None:  # as for long calls, which Ctrl-C must be able to end
            return Context().run(compiled, tensor, count)
        result = object.__new__(Tensor)
        result._data, result.dtype, result._counter = array, dtype, [0]
        return result

    return run
