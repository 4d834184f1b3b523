"""The backward pass of a compiled function: its program, and the node of the autograd graph that calls it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphc.base.errors import GradientError
from graphc.base.host_function import HostFunction
from graphc.calls.bindings import Binding
from graphc.calls.bound_program import GivenProgram
from graphc.calls.derivative import (
    Derivative,
    Operand,
    gradient_operands,
    no_copy,
    no_host_calls,
    push_through,
    record,
)
from graphc.calls.device_binding import DeviceBinding
from graphc.eager.record import Snapshot
from graphc.runtime.host_calls import serving
from graphc.tape.grad_mode import is_grad_enabled
from graphc.tape.node import AccumulateGrad, Edge, Node, freed
from graphc.tape.tangents import USED
from graphc.tensors.tensor import Tensor


class Backward:
    """The backward program of one variant of a compiled function."""

    def __init__(self, name: str, program: Any, binding: Binding, differentiable: Sequence[bool], plain: int):
        """``differentiable`` says of each output of the function whether it gets a gradient; the program takes what
        the forward program left, ``plain`` of the function's inputs, and these gradients, and params of ``binding``."""
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
        """Gradients of the sources, in memory of their own; ``again`` holds arrays of inputs and params, ``sizes`` are
        those of named dimensions that nothing given tells, ``on_device`` says which sources lie on the device of the
        program."""
        plain, bound = again[: self._plain], again[self._plain :]
        given = [*residuals, *plain, *gradients]
        if not isinstance(self._binding, DeviceBinding):
            return [_fresh(a) for a in self._calls.run(given, tuple(bound), sizes)]
        found = self._calls.run(given, tuple(map(self._binding.copy_of, bound)), sizes)
        return [_fresh(a if d else a.get()) for a, d in zip(found, on_device, strict=True)]


def _fresh(array: Any) -> Tensor:
    tensor = Tensor._wrap(array)
    tensor._fresh = True
    return tensor


class Call:
    """What one call of a compiled function was given, for whoever differentiates its gradients."""

    __slots__ = ("arrays", "counters", "sizes", "tangents", "versions")

    def __init__(self, arrays: Sequence[Any], counters: Sequence[Any], sizes: Any):
        """``arrays`` are what the tensors of the call held, of written states copies; ``counters`` count their
        versions."""
        self.arrays, self.counters, self.sizes = arrays, counters, sizes
        self.versions = [0 if c is None else c[0] for c in counters]
        self.tangents: Mapping[int, Any] = {}
        """What the tensors carried along, by number."""

    def operand(self, number: int, edge: Edge | None, name: str) -> Operand:
        """One of the tensors; raises GradientError where it was written to since."""
        counter, array = self.counters[number], self.arrays[number]
        tangents = self.tangents.get(number)
        if counter is None:
            return Operand(array, edge, tangents)
        if counter[0] != self.versions[number]:
            raise GradientError(
                f"a tensor needed for the gradient was modified by an in-place operation: an argument or parameter of "
                f"the compiled {name}, number {number}, is at version {counter[0]}, not {self.versions[number]}",
                remedy="the operation that returns a new tensor instead of the in-place one, or a clone()",
            )
        tensor = Tensor._wrap(array)
        tensor._counter, tensor._tangents = counter, tangents
        return Operand.of(tensor, edge, f"an argument of the compiled {name}")


class Higher:
    """The derivatives of a compiled function's gradients, made when somebody asks for them."""

    def __init__(self, traced: Derivative, order: Sequence[int], sources: Sequence[int], refused: str | None):
        """``order`` says which tensor of a call each input of the graph is, ``sources`` which inputs have gradients;
        ``refused`` names a state of which no copy is kept."""
        self.traced = traced
        self.order, self.sources, self.refused = tuple(order), tuple(sources), refused

    def record(
        self, call: Call, edges: Sequence[Any], needed: Sequence[bool], grads: Sequence[Any], found: list[Any]
    ) -> list[Any]:
        """The gradients ``found`` that are needed, None for others, as part of the autograd graph: functions of
        everything in ``call`` and of the gradients of the outputs. Tangents are taken along."""
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
        results = [found[k] for k in picked]
        push_through(pulled, operands, results, call.sizes)
        if is_grad_enabled():
            record(pulled, operands, results, call.sizes)
        kept = set(picked)
        return [gradient if k in kept else None for k, gradient in enumerate(found)]


class CompiledNode(Node):
    """The backward pass of one call of a compiled function."""

    chooses = is_compiled = True
    call: Call | None = None
    """What the function was given."""

    def __init__(
        self,
        backward: Backward,
        edges: tuple[Edge | None, ...],
        residuals: list[Any],
        again: list[Any],
        types: list[Any],
        sizes: Mapping[str, int] | None,
    ):
        super().__init__()
        self.sizes = sizes
        """Those of named dimensions, where what the backward program reads does not tell them."""
        self.types = types
        """Shape and element type of each output."""
        self.backward = backward
        self.edges = edges
        self.count = len(backward.differentiable)
        self.residuals: list[Any] | None = residuals
        self.on_device: list[bool] = []
        """Which of the tensors that get gradients lie on a device."""
        self.host: tuple[Sequence[HostFunction], dict[Any, Any]] = ((), {})
        """Python functions that the program calls, and what they left in the forward pass."""
        self.again = again
        """Snapshots of inputs and parameters that the backward program reads."""

    def name(self) -> str:
        """The function's name."""
        return f"Compiled{self.backward.name}Backward"

    def run(self, grads: list[Any]) -> Sequence[Any]:
        """Calls the backward program."""
        return self.run_for(grads, [edge is not None for edge in self.edges])

    def run_for(self, grads: list[Any], needed: Sequence[bool]) -> Sequence[Any]:
        """Calls the backward program; what is needed becomes part of the autograd graph where that is recorded."""
        if self.residuals is None:
            raise freed()
        grads = grads[: len(self.types)]  # behind them: the place of values that Python functions have kept
        found = self._pull([None if g is None else g._data for g in grads])
        for edge in self.edges:
            if edge is not None and isinstance(edge[0], AccumulateGrad):
                edge[0].variable._in_compiled = True
        along = USED[0] and self.call is not None and bool(self.call.tangents)
        if USED[0] and not along:
            self._push(grads, found)
        if (along or is_grad_enabled()) and self.call is not None and self.backward.higher is not None:
            if self.host[0]:
                raise no_host_calls(self.backward.name)
            return self.backward.higher.record(self.call, self.edges, needed, grads, found)
        return found

    def _pull(self, arrays: Sequence[Any]) -> list[Tensor]:
        given = [
            np.zeros(shape, dtype) if array is None else array
            for array, (shape, dtype), wanted in zip(arrays, self.types, self.backward.differentiable, strict=True)
            if wanted
        ]
        again = [s.check() for s in self.again]
        assert self.residuals is not None
        residuals = [r.check() if isinstance(r, Snapshot) else r for r in self.residuals]
        run = self.backward.run
        if self.host[0]:
            run = serving(run, *self.host)
        return run(residuals, again, given, self.sizes, self.on_device)

    def _push(self, grads: Sequence[Any], found: Sequence[Tensor]) -> None:
        """Takes tangents of the outputs' gradients along: the backward pass is linear in them."""
        known = [None if g is None else g._tangents or {} for g in grads]
        for level in {level for tangents in known for level in tangents or ()}:
            along = [None if not t or level not in t else t[level]._data for t in known]
            for gradient, tangent in zip(found, self._pull(along), strict=True):
                gradient._tangents = {**(gradient._tangents or {}), level: tangent}
                gradient._fresh = False

    def release(self) -> None:
        """Frees what the forward program left."""
        self.residuals = None
        self.again = []
        self.call = None
        self.host = ((), {})
