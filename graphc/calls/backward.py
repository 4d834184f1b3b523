"""The backward pass of a compiled function: its program, the autograd node that calls it, and the recorder of calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from graphc.autograd.record import Snapshot, modified
from graphc.base.dtypes import DType
from graphc.base.errors import GradientError
from graphc.base.host_function import HostFunction
from graphc.calls.bindings import Binding
from graphc.calls.bound_program import GivenProgram
from graphc.calls.derivative import (
    Derivative,
    DerivativeOperand,
    gradient_operands,
    no_copy,
    no_host_calls,
    push_through,
    record,
)
from graphc.guards.facts import Fact
from graphc.runtime.host_calls import serving
from graphc.tape.grad_mode import is_grad_enabled
from graphc.tape.node import AccumulateGrad, Edge, Node, freed, next_sequence
from graphc.tape.saved import saving
from graphc.tape.tangents import USED
from graphc.tensors.journal import USED as JOURNAL
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import BY_NUMPY, edges_of, refresh


class Backward:
    """The backward program of one variant of a compiled function."""

    def __init__(self, name: str, program: Any, binding: Binding, differentiable: Sequence[bool], plain: int):
        """``differentiable`` has a flag for each output of the function that gets a gradient.

        The program takes the residuals of the forward program, ``plain`` of the function's inputs, the gradients of
        these outputs, and params of ``binding``.
        """
        self.name = name
        self.program = program
        self.differentiable = tuple(differentiable)
        self._calls = GivenProgram(program)
        self._binding = binding
        self._plain = plain
        self.higher: Higher | None = None

    def run(
        self,
        residuals: Sequence[Any],
        again: Sequence[Any],
        gradients: Sequence[Any],
        sizes: Mapping[str, int] | None = None,
        on_device: Sequence[bool] = (),
    ) -> list[Tensor]:
        """Return the gradients of the sources, each in its own memory.

        ``again`` holds arrays of inputs and params. ``sizes`` are the named sizes that no argument determines.
        ``on_device`` has a flag for each source on the device of the program.
        """
        plain, bound = again[: self._plain], tuple(again[self._plain :])
        arguments = [*residuals, *plain, *gradients]
        if self._binding.device is not None:
            arrays = self._calls.run(arguments, tuple(map(cast(Any, self._binding).copy_of, bound)), sizes)
            arrays = [a if d else a.get() for a, d in zip(arrays, on_device, strict=True)]
        else:
            arrays = self._calls.run(arguments, bound, sizes)
        results = []
        for array in arrays:
            result = object.__new__(Tensor)
            dtype = array.dtype
            result._data, result.dtype = array, BY_NUMPY[dtype] if isinstance(dtype, np.dtype) else dtype
            result._counter, result._fresh = [0], True
            results.append(result)
        return results


class RecordedCall:
    """The arguments of one call of a compiled function, kept for second derivatives."""

    __slots__ = ("arrays", "counters", "sizes", "tangents", "versions")

    def __init__(self, arrays: Sequence[Any], counters: Sequence[Any], sizes: Any):
        """``arrays`` are the contents of the call's tensors, copied for written states. ``counters`` count their
        versions.
        """
        self.arrays, self.counters, self.sizes = arrays, counters, sizes
        self.versions = [0 if c is None else c[0] for c in counters]
        self.tangents: Mapping[int, Any] = {}
        """Tangents of the tensors, by index."""

    def unchanged(self, numbers: Sequence[int], name: str) -> list[Any]:
        """Return some of the arrays. Raise GradientError where one was written to since."""
        arrays, counters, versions = self.arrays, self.counters, self.versions
        for i in numbers:
            if counters[i][0] != versions[i]:
                whose = f"an argument of the compiled {name}"
                raise modified(whose, BY_NUMPY[arrays[i].dtype], arrays[i].shape, counters[i][0], versions[i])
        return [arrays[i] for i in numbers]

    def operand(self, number: int, edge: Edge | None, name: str) -> DerivativeOperand:
        """Return one of the tensors as an operand. Raise GradientError where it was written to since."""
        counter, array = self.counters[number], self.arrays[number]
        tangents = self.tangents.get(number)
        if counter is None:
            return DerivativeOperand(array, edge, tangents)
        if counter[0] != self.versions[number]:
            raise GradientError(
                f"a tensor needed for the gradient was modified by an in-place operation: an argument or parameter of "
                f"the compiled {name}, number {number}, is at version {counter[0]}, not {self.versions[number]}",
                remedy="use the operation that returns a new tensor instead of the in-place one, or pass a clone()",
            )
        tensor = Tensor._wrap(array)
        tensor._counter, tensor._tangents = counter, tangents
        return DerivativeOperand.of(tensor, edge, f"an argument of the compiled {name}")


class Higher:
    """The derivatives of a compiled function's gradients, compiled on demand."""

    def __init__(self, traced: Derivative, order: Sequence[int], sources: Sequence[int], refused: str | None):
        """``order`` maps each input of the graph to a tensor of a call. ``sources`` are the inputs with gradients.
        ``refused`` names a state too large to copy.
        """
        self.traced = traced
        self.order, self.sources, self.refused = tuple(order), tuple(sources), refused

    def record(
        self,
        call: RecordedCall,
        edges: Sequence[Any],
        needed: Sequence[bool],
        grads: Sequence[Any],
        gradients: list[Any],
    ) -> list[Any]:
        """Record the needed ``gradients`` on the autograd tape, and return them with None for the others.

        They are functions of everything in ``call`` and of the gradients of the outputs. Tangents are propagated too.
        """
        name = self.traced.name
        if self.refused is not None:
            raise no_copy(name, self.refused)
        chosen = tuple([i for i, g in enumerate(grads) if g is not None])
        picked = [k for k, need in enumerate(needed) if need]
        pulled = self.traced.pulled(tuple([self.sources[k] for k in picked]), chosen)
        picked = [picked[number] for number in pulled.made[1]]
        edge_at = dict(zip(self.sources, edges, strict=True))
        operands = [call.operand(number, edge_at.get(i), name) for i, number in enumerate(self.order)]
        operands += gradient_operands([grads[i] for i in chosen], name)
        results = [gradients[k] for k in picked]
        push_through(pulled, operands, results, call.sizes)
        if is_grad_enabled():
            record(pulled, operands, results, call.sizes)
        selected = set(picked)
        return [gradient if k in selected else None for k, gradient in enumerate(gradients)]


class CompiledNode(Node):
    """The backward pass of one call of a compiled function."""

    chooses = is_compiled = True
    call: RecordedCall | None = None
    """The arguments of the function."""

    def __init__(
        self,
        backward: Backward,
        edges: tuple[Edge | None, ...],
        residuals: list[Any],
        again: Sequence[Snapshot] | Sequence[int],
        types: list[Any],
        sizes: Mapping[str, int] | None,
    ):
        self.sequence = next_sequence()
        self.sizes = sizes
        """Named sizes that the inputs of the backward program do not determine."""
        self.types = types
        """Shape and element type of each output."""
        self.backward = backward
        self.edges = edges
        self.count = len(backward.differentiable)
        self.residuals: list[Any] | None = residuals
        self.on_device: list[bool] = []
        """A flag for each tensor with a gradient: whether it is on a device."""
        self.host: tuple[Sequence[HostFunction], dict[Any, Any]] = ((), {})
        """Python functions that the program calls, and their state from the forward pass."""
        self.again = again
        """Inputs and parameters that the backward program reads: snapshots, or indices of arrays of ``call``."""

    def name(self) -> str:
        """Return the function's name in the style of autograd nodes."""
        return f"Compiled{self.backward.name}Backward"

    def run(self, grads: list[Any]) -> Sequence[Any]:
        """Call the backward program."""
        return self.run_for(grads, [edge is not None for edge in self.edges])

    def run_for(self, grads: list[Any], needed: Sequence[bool]) -> Sequence[Any]:
        """Call the backward program. Record the needed gradients where gradients are recorded."""
        if self.residuals is None:
            raise freed()
        grads = grads[: len(self.types)]  # further ones belong to values that Python functions keep
        results = self._pull([None if g is None else g._data for g in grads])
        for edge in self.edges:
            if edge is not None and isinstance(edge[0], AccumulateGrad):
                edge[0].variable._in_compiled = True
        along = USED[0] and self.call is not None and bool(self.call.tangents)
        if USED[0] and not along:
            self._push(grads, results)
        if (along or is_grad_enabled()) and self.call is not None and self.backward.higher is not None:
            if self.host[0]:
                raise no_host_calls(self.backward.name)
            return self.backward.higher.record(self.call, self.edges, needed, grads, results)
        return results

    def _pull(self, arrays: Sequence[Any]) -> list[Tensor]:
        gradients = [
            np.zeros(shape, dtype) if array is None else array
            for array, (shape, dtype), is_needed in zip(arrays, self.types, self.backward.differentiable, strict=True)
            if is_needed
        ]
        again: Sequence[Any] = self.again
        if again and again[0].__class__ is int:
            assert self.call is not None
            again = self.call.unchanged(again, self.backward.name)
        elif again:
            again = [s.check() for s in again]
        residuals = self.residuals
        assert residuals is not None
        if residuals and residuals[0].__class__ is Snapshot:
            residuals = [r.check() for r in residuals]
        run = self.backward.run
        if self.host[0]:
            run = serving(run, *self.host)
        return run(residuals, again, gradients, self.sizes, self.on_device)

    def _push(self, grads: Sequence[Any], results: Sequence[Tensor]) -> None:
        """Propagate tangents of the outputs' gradients: the backward pass is linear in them."""
        tangents_of = [None if g is None else g._tangents or {} for g in grads]
        for level in {level for tangents in tangents_of for level in tangents or ()}:
            along = [None if not t or level not in t else t[level]._data for t in tangents_of]
            for gradient, tangent in zip(results, self._pull(along), strict=True):
                gradient._tangents = {**(gradient._tangents or {}), level: tangent}
                gradient._fresh = False

    def release(self) -> None:
        """Free the residuals of the forward program."""
        self.residuals = None
        self.again = ()
        self.call = None
        self.host = _NO_HOST


_NO_HOST: tuple[Sequence[HostFunction], dict[Any, Any]] = ((), {})


class Recorder:
    """Run a program natively and record its calls on the autograd tape: the short way of calls with gradients.

    It serves one mutation epoch, in which no tensor outside of the arguments is replaced.
    """

    def __init__(
        self,
        epoch: int,
        always: Sequence[Fact],
        call: Callable[..., Any],
        leaves: Sequence[Any],
        binding: Binding,
        backward: Backward,
        sources: Sequence[int],
        again: Sequence[int],
        early: Sequence[int],
        result_of: Callable[[list[Any]], Any] | None,
        types: Sequence[tuple[tuple[int, ...], DType]],
    ):
        """``always`` are facts to check at each call. ``call`` is the native callable with the present arrays of
        ``binding``. ``leaves`` are the arguments of the call before.

        ``sources`` and ``again`` are indices of arguments, then of tensors of the binding: what gets a gradient, and
        what the backward program reads. ``early`` are tensors of the binding that the program writes to and second
        derivatives read. ``result_of`` builds the structure of several results of these ``types``.
        """
        self.epoch = epoch
        self._always = always
        self._call, self._binding, self._backward = call, binding, backward
        self._needs = [t._requires_grad for t in leaves]
        self._tensors = binding.tensors()
        self._arrays = binding.arrays()
        self._counters = [None if i in binding.written else t._counter for i, t in enumerate(self._tensors)]
        self._sources, self._again, self._early = tuple(sources), tuple(again), tuple(early)
        self._nodes = edges_of([self._tensors[i - len(leaves)] for i in sources if i >= len(leaves)])
        """Nodes of the parameters, kept alive between calls so that none makes them again."""
        self._result_of = result_of
        self._dtypes = [dtype for _, dtype in types]
        self._types = [(shape, dtype.numpy) for shape, dtype in types]

    def run(self, args: tuple[Any, ...]) -> Any | None:
        """Return the result of a call; None, with nothing changed, where the call must take the long way."""
        if saving.get() is not None or not all([fact.holds() for fact in self._always]):
            return None
        counters = self._counters_of(args)
        if counters is None:
            return None
        arrays = [t._data for t in args]
        if JOURNAL[0]:
            self._binding.announce_writes()
        bound = list(self._arrays)
        for i in self._early:
            bound[i] = bound[i].copy()
        outputs = self._call(*arrays)
        return None if outputs is None else self._recorded(args, (*arrays, *bound), counters, outputs)

    def _counters_of(self, args: tuple[Any, ...]) -> list[list[int]] | None:
        """Return the version counters of the arguments; None where they differ in kind from those of the call
        before.
        """
        needs, counters = self._needs, []
        if len(args) != len(needs) or (len(args) > 1 and len(set(map(id, args))) < len(args)):
            return None
        for tensor, need in zip(args, needs):  # noqa: B905 (as many)
            if tensor.__class__ is not Tensor or tensor._counter is None:
                return None
            if tensor._view is not None:
                refresh(tensor)
            if tensor._requires_grad is not need:
                return None
            counters.append(tensor._counter)
        return counters

    def _recorded(self, args: tuple[Any, ...], arrays: Sequence[Any], counters: list[Any], outputs: Any) -> Any:
        if outputs.__class__ is not list:
            outputs = [outputs]
        if self._binding.written:
            self._binding.note_writes()
        tensors = (*args, *self._tensors)
        edges = edges_of([tensors[i] for i in self._sources])
        dtypes, differentiable = self._dtypes, self._backward.differentiable
        node = CompiledNode(self._backward, edges, outputs[len(dtypes) :], self._again, self._types, None)
        node.call = RecordedCall(arrays, [*counters, *self._counters], None)
        results = []
        for i, dtype in enumerate(dtypes):
            result = object.__new__(Tensor)
            result._data, result.dtype, result._counter = outputs[i], dtype, [0]
            if differentiable[i]:
                result._node, result._index, result._requires_grad = node, i, True
            results.append(result)
        return results[0] if self._result_of is None else self._result_of(results)
