"""The update rule of an optimizer in a training step's graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from graphc.base.mutation_epoch import EPOCH
from graphc.calls.bindings import Slot
from graphc.ir.graph.graph import Graph, Value
from graphc.ir.op import Trait
from graphc.ir.types import TensorType
from graphc.ops.pointwise import elementwise as ew
from graphc.optim.settings import GroupRule
from graphc.tensors.tensor import Tensor
from graphc.tracing.tracer import Tracer


class UpdatedParameters:
    """Guard: the model still holds the optimizer's parameter in each slot updated by a program."""

    def __init__(self, pairs: Sequence[tuple[Slot, Tensor]]):
        self._pairs = pairs
        self._counted = all(slot.counted for slot, _ in pairs)
        self._seen = -1
        """The mutation epoch of the last check by ``holds`` that succeeded."""

    def holds(self) -> bool:
        """Check that no parameter was replaced in the model."""
        epoch = EPOCH[0]
        if self._seen == epoch and self._counted:
            return True
        if not all([slot.tensor() is parameter for slot, parameter in self._pairs]):
            return False
        self._seen = epoch
        return True


def state_path(argument: Value, name: str) -> str:
    """Return the path of an optimizer state in graphs."""
    return f"optimizer.{argument.node.attrs['path']}.{name}"


def forward_contents(graph: Graph, parameters: Iterable[Value], updates: bool) -> dict[Value, Value]:
    """Return the contents of arguments after the forward pass. Remove its writes of updated parameters."""
    contents = {parameter: parameter for parameter in parameters}
    for node in list(graph.nodes()):
        if node.op.has(Trait.STATE_WRITE):
            if node.operands[0] in contents and updates:
                graph.erase(node)
            contents[node.operands[0]] = node.operands[1]
    return contents


def append_update(
    tracer: Tracer, optimizer: Any, param: Any, values: tuple[Value, Value, Any], rule: GroupRule, finite: Any = None
) -> Value:
    """Append the update of one parameter and its state. Return the parameter's new content.

    Where ``finite`` is given, it decides whether anything is updated.
    """
    argument, content, gradient = values
    state = {}
    for name, tensor in optimizer.state_of(param).items():
        path = state_path(argument, name)
        state[name] = tracer.graph.add_input(TensorType(tensor.dtype, tensor.shape), path, "state", path)
    traced_state = {name: Tensor._wrap(value) for name, value in state.items()}
    new, new_state = optimizer.new_values(Tensor._wrap(content), gradient, traced_state, rule.values)
    if finite is not None:
        new = ew.where(finite, new, Tensor._wrap(content))
        new_state = {
            name: ew.where(finite, new_state[name], traced_value) for name, traced_value in traced_state.items()
        }
    after = tracer.write(argument, new)
    for name, value in state.items():
        tracer.write(value, new_state[name])
    return after
