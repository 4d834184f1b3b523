"""Application of a user's graph passes to the forward pass of a traced step, before its gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.base.errors import TraceError
from graphc.calls.graph_module import Replay
from graphc.calls.machine import target_for
from graphc.ir.graph.graph import INPUT, Graph, Node
from graphc.ir.graph.interpret import Reemitter, has_effect
from graphc.passes.base import Pass
from graphc.passes.pipeline import optimize
from graphc.tensors.structure import flatten, unflatten
from graphc.tensors.tensor import Tensor


def passed_forward(tracer: Any, passes: Sequence[Pass], target: str, arguments: Any, result: Any) -> Any:
    """Return the results of the forward pass after a user's passes, appended to the trace and differentiable there.

    The forward pass is all that ``tracer`` has recorded: its graph with ``result`` and the new contents of buffers as
    outputs goes through the passes, and is applied again through the tracer. Effects of the first recording are erased,
    so that each happens once. Passes that compare costs use the costs of ``target``. Raise TraceError for hooks on
    tensors of the forward pass, which belong to operations that the passes may remove.
    """
    written = [c for c in tracer.captured.values() if c.image._data is not c.value]
    weight = next((c for c in written if c.tensor.requires_grad), None)
    if tracer.hooked or weight:
        doing = "hooks on its tensors" if tracer.hooked else "writes to weights"
        raise TraceError(
            f"passes of compile_step cannot be combined with {doing} in the forward pass",
            origin=str(tracer.hooked[0] if tracer.hooked else weight and weight.origin),
            remedy="give the passes a field `after`, so that they see the whole step",
        )
    graph, images = tracer.graph, [c.image for c in tracer.captured.values()]
    leaves, structure = flatten(result)
    values = [tracer.local(t)._data for t in [*leaves, *(c.image for c in written)]]
    before = graph.nodes()
    forward = optimize(_Copy(values).transform(graph), passes, target_for(target).costs)
    tensors = {t._data: t for t in [*flatten(arguments)[0], *images]}
    by_name = {v.name: tensors[v] if v in tensors else Tensor._wrap(v) for v in graph.inputs}
    after = list(Replay().run(forward, [by_name[v.name] for v in forward.inputs]))
    for c, tensor in zip(written, after[len(leaves) :], strict=True):
        c.image._data, c.image._node, c.image._index = tensor._data, tensor._node, tensor._index
        c.image._requires_grad = tensor._requires_grad
    _erase_effects(graph, before)
    return unflatten(structure, after[: len(leaves)])


def _erase_effects(graph: Graph, nodes: Sequence[Node]) -> None:
    """Erase nodes with effects and all that depends on them."""
    gone: set[Node] = set()
    for node in nodes:
        if node.op is not INPUT and (has_effect(node) or any(v.node in gone for v in node.operands)):
            gone.add(node)
    for node in reversed(nodes):
        if node in gone:
            graph.erase(node)


class _Copy(Reemitter):
    """Copy of a graph with other outputs."""

    def __init__(self, outputs: Sequence[Any]):
        super().__init__()
        self._outputs = outputs

    def transform(self, graph: Graph) -> Graph:
        """Return the copy; the graph keeps its outputs."""
        outputs = graph.outputs
        graph.set_outputs(self._outputs)
        try:
            return super().transform(graph)
        finally:
            graph.set_outputs(outputs)
