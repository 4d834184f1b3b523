"""Sub-graphs of traced functions: their arguments, shared operands, and writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphc.base import module_path
from graphc.base.errors import TraceError
from graphc.base.location import capture
from graphc.ir.graph.graph import Graph, Node, Value
from graphc.ir.op import Trait
from graphc.ir.types import TensorType
from graphc.ops import dispatch
from graphc.passes.checks import integer_ranges, is_inside
from graphc.tape.grad_mode import no_grad
from graphc.tensors.random.generator import PATH
from graphc.tensors.structure import Structure, flatten, unflatten
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front, refresh
from graphc.tracing.tracer import Captured, Tracer


def argument(inner: Tracer, outer: Tensor, name: str, requires_grad: bool) -> Tensor:
    """Add an argument to a sub-graph for a tensor of the outer graph."""
    tensor = Tensor._wrap(inner.graph.add_input(TensorType(outer.dtype, tuple(outer.shape)), name))
    tensor._requires_grad = requires_grad and outer.dtype.is_differentiable
    return tensor


def sub_trace(
    name: str, function: Callable[[Any], Any], leaves: Sequence[Tensor], form: Structure
) -> tuple[Tracer, list[Value]]:
    """Trace a function of one nested structure of tensors inside of the current trace; return the tracer and its
    results."""
    outer = front()
    assert isinstance(outer, Tracer)
    inner = Tracer(Graph(name), parent=outer)
    required = [refresh(outer.local(t))._requires_grad for t in leaves]
    with dispatch.use(inner):
        arguments = [argument(inner, t, f"x{i}", required[i]) for i, t in enumerate(leaves)]
        returned = flatten(function(unflatten(form, arguments)))[0]
        refuse_changed(inner, arguments, name.partition(".")[0] + "_loop")
        return inner, [refresh(inner.local(t))._data for t in returned]


def join_arguments(inner: Sequence[Tracer], shared: int) -> list[Tensor]:
    """Give all graphs the same arguments: the first ``shared`` ones, then each graph's outside tensors. Return the
    outer tensors of the latter."""
    for one in inner:
        graph, own = one.graph, list(one.lifted.values())
        arguments = list(graph.inputs[:shared])
        for other in inner:
            for i, tensor in enumerate(other.origins):
                kind = TensorType(tensor.dtype, tuple(tensor.shape))
                arguments.append(own[i] if other is one else graph.add_input(kind, f"unused{i}"))
        graph.inputs[:] = arguments
    return [tensor for one in inner for tensor in one.origins]


def written_states(inner: Sequence[Tracer]) -> list[Tensor]:
    """Return the tensors from outside that any of the functions writes to, including states of generators."""
    return list({id(entry.tensor): entry.tensor for one in inner for entry in one.written()}.values())


def changed_arguments(inner: Tracer, arguments: Sequence[Tensor]) -> list[int]:
    """Return the indices of the first arguments the function has written to."""
    return [i for i, image in enumerate(arguments) if refresh(image)._data is not inner.graph.inputs[i]]


def refuse_changed(inner: Tracer, arguments: Sequence[Tensor], name: str) -> None:
    """Raise TraceError if a step writes to an argument: eager mode would change a tensor outside."""
    if changed_arguments(inner, arguments):
        raise TraceError(
            f"{name}: the function writes to its argument in place, which would change a tensor outside in eager mode",
            origin=capture(module_path.current_path()).describe(),
            remedy="use the operation that returns a new tensor, or write to a clone()",
        )


def check_names(inner: Sequence[Tracer], arguments: Sequence[Tensor], written: Sequence[Tensor], name: str) -> None:
    """Raise TraceError if functions write to a tensor they also see under another name: values of a graph share no
    memory."""
    tracer = front()
    assert isinstance(tracer, Tracer)
    captured = {id(image): image for one in inner for image in (tracer.local(c.tensor) for c in one.captured.values())}
    owners = [_owner(t) for t in (*(tracer.local(t) for t in arguments), *captured.values())]
    for tensor in written:
        if sum(owner is _owner(tracer.local(tensor)) for owner in owners) > 1:
            raise TraceError(
                f"{name}: a function writes to a tensor whose memory it also accesses as another tensor",
                origin=capture(module_path.current_path()).describe(),
                remedy="use only one of them: an operand, or a tensor from outside, or create the views inside of the "
                "function",
            )


def _owner(image: Tensor) -> Tensor:
    return image if image._view is None else image._view.base


def unshared(results: Any) -> Any:
    """Clone the results of a function that Python ran: unlike a graph, it may return an operand or a tensor from
    outside."""
    leaves, form = flatten(results)
    return unflatten(form, [t.clone() for t in leaves])


def generator_states(inner: Tracer, name: str, remedy: str) -> list[Captured]:
    """Return the states of generators a step draws from. Raise TraceError for any other tensor it writes
    to."""
    states = []
    for entry in inner.written():
        if getattr(entry.tensor, "_capture_path", None) != PATH:
            origin = entry.origin.describe() if entry.origin else None
            raise TraceError(f"{name}: the function writes to a tensor from outside", origin=origin, remedy=remedy)
        states.append(entry)
    check_draws(inner, name, bool(states))
    return states


def check_draws(inner: Tracer, name: str, moves: bool) -> None:
    """Raise TraceError if a step draws random numbers from a state equal in all steps."""
    drawing = [node for node in inner.graph.nodes() if node.op.has(Trait.RANDOM)]
    if drawing and not moves:
        raise TraceError(
            f"{name}: the function draws random numbers, which would be the same in every step",
            origin=place_of(drawing[0]),
            remedy="draw them for all steps before the loop, and pass them as a sequence",
        )


def taken_checks(step: Graph) -> list[Node]:
    """Remove the checks from a sub-graph, and return those to repeat after it; it then returns their operands."""
    ranges = integer_ranges(step)
    checks = [node for node in step.nodes() if node.op.has(Trait.CHECK)]
    for node in reversed(checks):
        step.erase(node)
    return [node for node in checks if not is_inside(node, ranges)]


def place_of(node: Node) -> str | None:
    """Return the user's line that created a node, or else the running line."""
    return node.location.describe() or capture(module_path.current_path()).describe()


def as_they_were(operands: Sequence[Tensor], written: Sequence[Tensor]) -> list[Tensor]:
    """Return the operands of a sub-graph; for tensors it writes to, their contents before: the backward pass reads
    these."""
    tracer = front()
    assert isinstance(tracer, Tracer)
    changed = {id(tracer.local(tensor)) for tensor in written}
    return [tracer.before_write(t) if id(tracer.local(t)) in changed else t for t in operands]


def final_value(inner: Tracer, tensor: Tensor) -> Tensor:
    """Return the content of a tensor from outside at the end of a sub-graph."""
    return refresh(inner.local(tensor))


def put_back(tensor: Tensor, value: Tensor, recorded: bool) -> None:
    """Write a result of a sub-graph to the outside tensor the function changed."""
    if recorded:
        front().assign(tensor, value)
        return
    with no_grad():
        front().assign(tensor, value)


def carry_states(
    graph: Graph, operands: list[Tensor], results: list[Value], position: int, states: Sequence[Captured]
) -> None:
    """Turn the state arguments a step changes into its last carries."""
    for number, entry in enumerate(states, position):
        index = graph.inputs.index(entry.value)
        graph.inputs.insert(number, graph.inputs.pop(index))
        operands.insert(number, operands.pop(index))
        results.insert(number, refresh(entry.image)._data)
