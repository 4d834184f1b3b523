"""Sub-graphs that a trace makes of functions: their arguments, the operands of several, and what they write to."""

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
from graphc.tensors.generator import PATH
from graphc.tensors.structure import Structure, flatten, unflatten
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front, refresh
from graphc.tracing.tracer import Captured, Tracer


def argument(inner: Tracer, outer: Tensor, name: str, requires_grad: bool) -> Tensor:
    """A new argument of a sub-graph that stands for a tensor."""
    tensor = Tensor._wrap(inner.graph.add_input(TensorType(outer.dtype, tuple(outer.shape)), name))
    tensor._requires_grad = requires_grad and outer.dtype.is_differentiable
    return tensor


def sub_trace(
    name: str, function: Callable[[Any], Any], leaves: Sequence[Tensor], form: Structure
) -> tuple[Tracer, list[Value]]:
    """The trace of a function of one nested structure of tensors, inside of the present one; and its results."""
    outer = front()
    assert isinstance(outer, Tracer)
    inner = Tracer(Graph(name), parent=outer)
    required = [refresh(outer.local(t))._requires_grad for t in leaves]
    with dispatch.use(inner):
        given = [argument(inner, t, f"x{i}", required[i]) for i, t in enumerate(leaves)]
        found = flatten(function(unflatten(form, given)))[0]
        refuse_changed(inner, given, name.partition(".")[0] + "_loop")
        return inner, [refresh(inner.local(t))._data for t in found]


def join_arguments(inner: Sequence[Tracer], shared: int) -> list[Tensor]:
    """Gives each graph the arguments of all: the first ``shared`` ones, which they have in common, then what each of
    them takes from outside. Returns the tensors behind the latter."""
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
    """The tensors from outside that some of the functions write to, states of generators among them."""
    return list({id(entry.tensor): entry.tensor for one in inner for entry in one.written()}.values())


def changed_arguments(inner: Tracer, given: Sequence[Tensor]) -> list[int]:
    """Which of the first arguments of a sub-graph the function has written to."""
    return [i for i, image in enumerate(given) if refresh(image)._data is not inner.graph.inputs[i]]


def refuse_changed(inner: Tracer, given: Sequence[Tensor], name: str) -> None:
    """Raises TraceError where a step writes to an argument: eager mode would change a tensor outside."""
    if changed_arguments(inner, given):
        raise TraceError(
            f"{name}: the function writes to its argument in place, which would change a tensor outside in eager mode",
            origin=capture(module_path.current_path()).describe(),
            remedy="the operation that returns a new tensor, or a clone()",
        )


def check_names(inner: Sequence[Tracer], arguments: Sequence[Tensor], written: Sequence[Tensor], name: str) -> None:
    """Raises TraceError where functions write to a tensor whose memory they also see as another one: a graph has no
    memory that two values could share."""
    tracer = front()
    assert isinstance(tracer, Tracer)
    captured = {id(image): image for one in inner for image in (tracer.local(c.tensor) for c in one.captured.values())}
    owners = [_owner(t) for t in (*(tracer.local(t) for t in arguments), *captured.values())]
    for tensor in written:
        if sum(owner is _owner(tracer.local(tensor)) for owner in owners) > 1:
            raise TraceError(
                f"{name}: a function writes to a tensor whose memory it also sees as another one",
                origin=capture(module_path.current_path()).describe(),
                remedy="one of them only: an operand, or a tensor from outside, or views made inside of the function",
            )


def _owner(image: Tensor) -> Tensor:
    return image if image._view is None else image._view.base


def unshared(results: Any) -> Any:
    """Results in memory of their own, as those of a graph are, where Python ran the function, which may have returned
    an operand or a tensor from outside."""
    found, form = flatten(results)
    return unflatten(form, [t.clone() for t in found])


def generator_states(inner: Tracer, name: str, remedy: str) -> list[Captured]:
    """The states of generators that a step draws from; raises TraceError for other tensors that it writes to, with the
    name of the construct."""
    found = []
    for entry in inner.written():
        if getattr(entry.tensor, "_capture_path", None) != PATH:
            origin = entry.origin.describe() if entry.origin else None
            raise TraceError(f"{name}: the function writes to a tensor from outside", origin=origin, remedy=remedy)
        found.append(entry)
    check_draws(inner, name, bool(found))
    return found


def check_draws(inner: Tracer, name: str, moves: bool) -> None:
    """Raises TraceError where a step draws from a state that is the same in all steps."""
    drawing = [node for node in inner.graph.nodes() if node.op.has(Trait.RANDOM)]
    if drawing and not moves:
        raise TraceError(
            f"{name}: the function draws random numbers, which would be the same in every step",
            origin=place_of(drawing[0]),
            remedy="draw them for all steps before, and pass them as a sequence",
        )


def taken_checks(step: Graph) -> list[Node]:
    """The checks of a sub-graph, taken out of it: they are made behind it, of what it gives for them."""
    ranges = integer_ranges(step)
    found = [node for node in step.nodes() if node.op.has(Trait.CHECK)]
    for node in reversed(found):
        step.erase(node)
    return [node for node in found if not is_inside(node, ranges)]


def place_of(node: Node) -> str | None:
    """The user's line that made a node, or that which is running."""
    return node.location.describe() or capture(module_path.current_path()).describe()


def as_they_were(operands: Sequence[Tensor], written: Sequence[Tensor]) -> list[Tensor]:
    """Operands of a sub-graph, those among them that it writes to with their contents before: gradients compute with
    these again."""
    tracer = front()
    assert isinstance(tracer, Tracer)
    changed = {id(tracer.local(tensor)) for tensor in written}
    return [tracer.before_write(t) if id(tracer.local(t)) in changed else t for t in operands]


def held(inner: Tracer, tensor: Tensor) -> Tensor:
    """What a tensor from outside holds at the end of a sub-graph."""
    return refresh(inner.local(tensor))


def put_back(tensor: Tensor, value: Tensor, recorded: bool) -> None:
    """Writes a result of a sub-graph to the tensor from outside that the function wrote to."""
    if recorded:
        front().assign(tensor, value)
        return
    with no_grad():
        front().assign(tensor, value)


def carry_states(
    graph: Graph, operands: list[Tensor], results: list[Value], place: int, states: Sequence[Captured]
) -> None:
    """Makes arguments of a step that it changes its last carries."""
    for number, entry in enumerate(states, place):
        index = graph.inputs.index(entry.value)
        graph.inputs.insert(number, graph.inputs.pop(index))
        operands.insert(number, operands.pop(index))
        results.insert(number, refresh(entry.image)._data)
