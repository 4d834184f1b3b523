"""Gradients of a loaded entry: runs the forward and backward graphs of the derivative in its file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphc.autograd.record import Snapshot
from graphc.base.errors import ArgumentError
from graphc.calls.backward import Backward, CompiledNode, Higher, RecordedCall
from graphc.calls.bindings import Binding
from graphc.calls.derivative import Derivative
from graphc.calls.machine import is_device
from graphc.files.model_content import StoredEntry
from graphc.files.model_manifest import BACKWARD, FORWARD
from graphc.ir.graph.graph import input_class, input_path
from graphc.models.model_graph import read_graph
from graphc.models.model_programs import Programs
from graphc.models.sized_model import SizedPrograms
from graphc.passes.pipeline import PIPELINE
from graphc.tape.saved import saving
from graphc.tensors.creation import as_tensor
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import edge_of


class RecordedCalls:
    """Runs an entry and records the call on the autograd tape."""

    def __init__(self, entry: StoredEntry, programs: Programs):
        """Raise ArgumentError on a device, and what making the programs raises."""
        spec = self.spec = entry.spec
        assert spec.derivative is not None
        self.derivative = spec.derivative
        self.state = programs.state
        if is_device(programs.machine):
            raise ArgumentError(
                f"gradients of the loaded model {spec.title} are computed on the CPU, but it was loaded for a device",
                remedy="load it for the CPU: graphc.load(path)",
            )
        stored = programs.stored
        self._forward, backward = (
            programs.of(stored.entry(f"{spec.name}.{suffix}")).program for suffix in (FORWARD, BACKWARD)
        )
        if isinstance(self._forward, SizedPrograms) or isinstance(backward, SizedPrograms):
            raise ArgumentError(f"there is no derivative of {spec.title} for all sizes of its dimensions")
        chosen = [i in self.derivative.outputs for i in range(len(spec.outputs))]
        self._backward = Backward(spec.title, backward, Binding((), ()), chosen, len(self.derivative.kept))
        self._taken = [b.path for b in self._forward.bound]
        self._kept = [b.path for b in backward.bound]
        self._dtypes = [b.dtype for b in self._forward.manifest.of_class("output")]
        self._gives_sizes = backward.sizes.are_given
        self._backward.higher = self._higher(programs)

    def _higher(self, programs: Programs) -> Higher:
        """Return the function for second derivatives."""
        spec, spec_of_derivative = self.spec, self.derivative
        graph = read_graph(programs.stored, spec.name)
        plain = [v for v in graph.inputs if input_class(v) == "input"]
        numbers = {path: len(plain) + i for i, path in enumerate(spec.uses)}
        position = {v: i for i, v in enumerate(plain)}
        order = [position[v] if v in position else numbers[input_path(v)] for v in graph.inputs]
        sources = [
            order.index(n) for n in (*spec_of_derivative.inputs, *(numbers[path] for path in spec_of_derivative.params))
        ]
        derivative = Derivative(spec.title, lambda: (graph, []), PIPELINE, programs.machine)
        return Higher(derivative, order, sources, None)

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """Return the outputs as tensors whose gradients flow to the inputs and parameters."""
        tensors = [a if isinstance(a, Tensor) else as_tensor(a) for a in inputs]
        arrays = [t._data for t in tensors]
        with self.state.gate.alone():
            uses = [self._held(path) for path in self.spec.uses]
            outputs = self._forward.run(arrays, self.state.arrays(self._taken))
            self.state.note_writes(self.spec.writes)
        count = len(self.spec.outputs)
        results = [Tensor._wrap(a) for a in outputs[:count]]
        node = self._node(tensors, results, outputs[count:])
        node.call = self._call(tensors, uses, arrays)
        for i in self.derivative.outputs:
            results[i]._node, results[i]._index, results[i]._requires_grad = node, i, True
        return results

    def _held(self, path: str) -> np.ndarray:
        """Return the content of a param or state before the call, for second derivatives."""
        array = self.state.array(path)
        return array.copy() if path in self.spec.writes else array

    def _node(self, tensors: Sequence[Tensor], results: Sequence[Tensor], residuals: list[Any]) -> CompiledNode:
        derivative, title = self.derivative, self.spec.title
        params = self.state.parameters()
        sources = [*(tensors[i] for i in derivative.inputs), *(params.get(path) for path in derivative.params)]
        edges = tuple([None if t is None or not t._requires_grad else edge_of(t) for t in sources])
        read = [*(tensors[i] for i in derivative.kept), *(self.state.tensors[path] for path in self._kept)]
        saved = [Snapshot(t, None, f"an argument of the loaded {title}") for t in read]
        if saving.get() is not None:
            residuals = [Snapshot(Tensor._wrap(a), None, f"a value of the loaded {title}") for a in residuals]
        types = [(t._data.shape, t._data.dtype) for t in results]
        sizes = self._sizes([t._data for t in tensors]) if self._gives_sizes else None
        return CompiledNode(self._backward, edges, residuals, saved, types, sizes)

    def _call(self, tensors: Sequence[Tensor], uses: Sequence[np.ndarray], arrays: Sequence[Any]) -> RecordedCall:
        """Return the arrays of this call and their version counters, for second derivatives."""
        free = [path in self.state.tensors and path not in self.spec.writes for path in self.spec.uses]
        counters = [
            self.state.tensors[path]._counter if is_free else None
            for path, is_free in zip(self.spec.uses, free, strict=True)
        ]
        sizes = self._sizes(arrays) if self._forward.manifest.dims else None
        return RecordedCall([*arrays, *uses], [*(t._counter for t in tensors), *counters], sizes)

    def _sizes(self, arrays: Sequence[Any]) -> Mapping[str, int]:
        """Return the sizes of named dimensions in a call, by the programs' names."""
        words = self._forward.sizes.of_inputs(arrays).words
        return {d.name: size for d, (_, size) in zip(self._forward.manifest.dims, words, strict=True)}
