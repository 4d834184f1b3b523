"""The backward pass of a compiled function: its program, and the node of the autograd graph that calls it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphc.base.errors import GradientError
from graphc.base.host_function import HostFunction
from graphc.compiled.bindings import Binding
from graphc.compiled.bound_program import GivenProgram
from graphc.compiled.device_binding import DeviceBinding
from graphc.runtime.host_calls import running
from graphc.tape.grad_mode import is_grad_enabled
from graphc.tape.node import AccumulateGrad, Edge, Node, freed
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


class CompiledNode(Node):
    """The backward pass of one call of a compiled function."""

    def __init__(
        self,
        backward: Backward,
        edges: tuple[Edge | None, ...],
        residuals: list[np.ndarray],
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
        if self.residuals is None:
            raise freed()
        if is_grad_enabled():
            raise GradientError(
                f"a second derivative through the compiled {self.backward.name} is not available",
                remedy="call the function that is not compiled, or compile one that computes the gradient inside",
            )
        given = [
            np.zeros(shape, dtype) if grad is None else grad._data
            for grad, (shape, dtype), wanted in zip(grads, self.types, self.backward.differentiable, strict=True)
            if wanted
        ]
        again = [s.check() for s in self.again]
        for edge in self.edges:
            if edge is not None and edge[0].__class__ is AccumulateGrad:
                edge[0].variable._in_compiled = True
        if not self.host[0]:
            return self.backward.run(self.residuals, again, given, self.sizes, self.on_device)
        with running(*self.host):
            return self.backward.run(self.residuals, again, given, self.sizes, self.on_device)

    def release(self) -> None:
        """Frees what the forward program left."""
        self.residuals = None
        self.again = []
        self.host = ((), {})
