"""Values that calls read while they run: conditions that choose what is traced, and counts that become sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from graphc.base import module_path
from graphc.base.dtypes import int64
from graphc.base.errors import GraphcError, ShapeError, ValueNeededError
from graphc.base.location import capture
from graphc.base.records import NamedTuple
from graphc.base.sizes.assumptions import Assumptions
from graphc.base.sizes.named_dims import EXPECTED, Dim, dimensions
from graphc.base.sizes.size import LARGEST, Dimension, bounds, is_size
from graphc.ir.graph.cut import End, is_small
from graphc.ir.graph.graph import INPUT, Node, Value, attr_key, has_sizes
from graphc.ir.graph.interpret import bound_attrs, live_nodes
from graphc.ir.op import Trait
from graphc.ir.types import TensorType
from graphc.ops.effects.check import check_true
from graphc.ops.pointwise import elementwise as ew
from graphc.tensors.placement import on_host
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front, refresh
from graphc.tracing.constructs import advice
from graphc.tracing.tracer import Tracer, value_needed

_T = TypeVar("_T")


class ValueRead(NamedTuple):
    """A scalar of a graph that each call reads. The graph after it is valid for one answer, or for each size."""

    value: Value
    answer: bool | None
    """The condition's value in the trace; None for a size."""
    input: Value | None
    """The input that equals the size; None for a condition."""
    place: str
    """The line that asked."""

    @property
    def dimension(self) -> Dimension | None:
        """The dimension of a size; None for a condition."""
        return None if self.input is None else next(iter(dimensions((self.input.node.attrs["equals"],)).values()))

    @property
    def range(self) -> tuple[int, int]:
        """The smallest and the largest value for which the graph is valid; a condition is 0 or 1."""
        dimension, answer = self.dimension, int(self.answer or 0)
        return (answer, answer) if dimension is None else (dimension.low, dimension.high)

    @property
    def end(self) -> End:
        """The end of a part of the graph (see ir.graph.cut)."""
        return End(self.value, self.input)


class ValueReads:
    """The reads of one trace, in order.

    A condition is computed from the arguments of the traced call. A size becomes a named dimension, whose expected
    value is that of ``answers`` where the call has computed it.
    """

    def __init__(
        self, answers: Mapping[int, int] | None = None, checks_conditions: bool = False, has_sizes: bool = True
    ):
        """``answers`` maps the index of a read to its value. With ``checks_conditions`` no condition is read: the graph
        checks that each is that of the traced call. Without ``has_sizes`` sizes are refused."""
        self.reads: list[ValueRead] = []
        self.checks_conditions, self.has_sizes = checks_conditions, has_sizes
        self._answers = answers or {}
        self._tracer: Tracer | None = None
        self._by_value: dict[Value, Any] = {}
        self._firsts: dict[Value, Value] = {}
        """For values behind reads, the first value that is computed in the same way."""
        self._by_key: dict[Any, Value] = {}
        self._arrays: dict[Value, np.ndarray] = {}
        self._solve: Callable[[], Mapping[Dimension, int]] = dict
        self._sizes: dict[Dimension, int] = {}
        """Values of the counts."""
        self._assumptions = Assumptions()

    def begin(
        self, arrays: Mapping[Value, Any], solve: Callable[[], Mapping[Dimension, int]], assumptions: Assumptions
    ) -> None:
        """Start a trace of a call with these arrays, by the inputs of the graph; ``solve`` returns its sizes."""
        self._arrays.update(arrays)
        self._solve = solve
        self._assumptions = assumptions

    def flag(self, tracer: Tracer, tensor: Tensor, purpose: str) -> bool:
        """Return the condition for the arguments of the traced call."""
        value = self._first_like(_scalar(tracer, tensor))
        if value not in self._by_value:
            index = len(self.reads)
            answer = self._answers[index] if index in self._answers else self._evaluate(tracer, value, purpose)
            self._by_value[value] = bool(answer)
            if self.checks_conditions:
                message = f"{purpose} was {bool(answer)} for the example arguments; this program has no code for others"
                check_true(tensor if answer else ew.logical_not(tensor), message=message)
            else:
                self.reads.append(ValueRead(value, bool(answer), None, _line()))
        return self._by_value[value]

    def size(self, tracer: Tracer, tensor: Tensor, most: Any, purpose: str) -> Any:
        """Return a count of at most ``most`` as a size that each call reads."""
        value = self._first_like(_scalar(tracer, tensor if tensor.dtype is int64 else tensor.to(int64)))
        self._tracer = tracer
        if not self.has_sizes:
            raise ValueNeededError(
                f"{purpose} is a size that only calls know, and the trace is one graph",
                where="a trace of one graph",
                origin=_line(),
                remedy="call gc.compile, or export to a .gcm file without derivative: both make several programs "
                f"(commands take one of them from the file: --entry forward.0); or {advice(purpose)}",
            )
        if value not in self._by_value:
            index, limit = len(self.reads), min(bounds(most)[1] if is_size(most) else int(most), LARGEST)
            answer = self._answers.get(index)
            if answer is not None and not 0 <= answer <= limit:
                raise ShapeError(f"{purpose} is a size of {answer}, outside of 0..{limit}", origin=_line())
            self._by_value[value] = self._named(tracer, value, limit, answer) if limit else 0
        return self._by_value[value]

    def _first_like(self, value: Value) -> Value:
        """Return the first value that the trace has computed in the same way: two uses of one mask are one read."""
        stack = [value]
        while stack:
            current = stack[-1]
            node = current.node
            if current in self._firsts:
                stack.pop()
            elif node.op is INPUT or not node.op.has(Trait.PURE):
                self._firsts[current] = current
            elif missing := [v for v in node.operands if v not in self._firsts]:
                stack += missing
            else:
                operands = tuple([self._firsts[v] for v in node.operands])
                key = (node.op, attr_key(node.attrs), operands, current.index)
                self._firsts[current] = self._by_key.setdefault(key, current)
        return self._firsts[value]

    def _named(self, tracer: Tracer, value: Value, limit: int, answer: int | None) -> Any:
        names = {d.name for d in (*self._sizes, *tracer.graph.dims.values())}
        name = next(n for i in range(len(names) + 1) if (n := f"count_{i}") not in names)
        size = Dim(name, 0, limit, min(EXPECTED, limit) if answer is None else answer)
        (dimension,) = dimensions((size,)).values()
        self._sizes[dimension] = dimension.hint
        if self._assumptions.sizes is not None:
            self._assumptions.sizes = {**self._assumptions.sizes, dimension: dimension.hint}
        argument = tracer.graph.add_input(TensorType(int64), name, equals=size)
        self.reads.append(ValueRead(value, None, argument, _line()))
        return size

    def computed(self) -> dict[int, int] | None:
        """Return the values of all reads so far for the arguments of the traced call, or None where they are those that
        the trace has assumed."""
        if self._tracer is None or all(i in self._answers for i in range(len(self.reads))):
            return None
        self._compute_counts(self._tracer, "a size")
        return {i: int(self._compute(self._tracer, read.value, "a size")) for i, read in enumerate(self.reads)}

    def _compute_counts(self, tracer: Tracer, purpose: str) -> None:
        """Replace the expected values of all counts so far by those for the arguments of the traced call."""
        for read in self.reads:
            if read.dimension is not None:
                self._sizes[read.dimension] = int(self._compute(tracer, read.value, purpose))

    def _evaluate(self, tracer: Tracer, value: Value, purpose: str) -> Any:
        """Return a value of the graph for the arguments of the traced call, computed by the references of its ops."""
        if any(map(has_sizes, live_nodes(tracer.graph, [value]))):
            self._compute_counts(tracer, purpose)
        return self._compute(tracer, value, purpose)

    def _compute(self, tracer: Tracer, value: Value, purpose: str) -> Any:
        sizes = {**self._solve(), **self._sizes}
        captured = {c.value: c.tensor for c in tracer.captured.values()}
        stack = [value]
        while stack:
            current = stack[-1]
            if current in self._arrays:
                stack.pop()
            elif current.node.op is INPUT and current in captured:
                self._arrays[current] = on_host(captured[current]._data)
            elif current.node.op is INPUT or not current.node.op.has(Trait.PURE):
                raise value_needed(value, purpose)
            elif missing := [v for v in current.node.operands if v not in self._arrays]:
                stack += missing
            else:
                operands = [self._arrays[v] for v in current.node.operands]
                results = current.node.op.evaluate(operands, bound_attrs(current.node, sizes))
                self._arrays.update(zip(current.node.results, results, strict=True))
        return self._arrays[value]


def _scalar(tracer: Tracer, tensor: Tensor) -> Value:
    return refresh(tracer.local(tensor))._data


def _line() -> str:
    return capture(module_path.current_path()).describe()


def _reader() -> tuple[Tracer, ValueReads] | None:
    """Return the active trace and its reads; None outside of a trace that may read, and in sub-graphs."""
    tracer = front()
    reads = tracer.reads if isinstance(tracer, Tracer) else None
    return None if reads is None else (tracer, reads)  # type: ignore[return-value]


def read_flag(condition: Tensor, purpose: str) -> bool:
    """Return a condition of one element, which each call reads: another value takes another program.

    Raises ValueNeededError in a trace that cannot read values.
    """
    reader = _reader()
    if reader is None or folded(condition) is not None:
        return bool(front().values(condition, purpose).reshape(-1)[0])
    return reader[1].flag(reader[0], condition, purpose)


def may_read(sizes: bool = False) -> bool:
    """Return whether code that runs now may read conditions of calls, or ``sizes`` too."""
    reader = _reader()
    return reader is not None and not (sizes and not reader[1].has_sizes)


def folded(tensor: Tensor) -> np.ndarray | None:
    """Return the elements of a tensor that depends on constants only; None for others."""
    tracer = front()
    if isinstance(tracer, Tracer) and any(n.op is INPUT or has_sizes(n) for n in _nodes(tracer, tensor)):
        return None
    try:
        return front().values(tensor.detach() if tensor.requires_grad else tensor, "folding")
    except ValueNeededError:
        return None


def is_cheap(tensor: Tensor) -> bool:
    """Return whether a traced tensor depends on a few integers and bools only, such as a sample rate."""
    tracer = front()
    nodes = _nodes(tracer, tensor) if isinstance(tracer, Tracer) else ()
    return all(map(is_small, nodes))


def _nodes(tracer: Tracer, tensor: Tensor) -> set[Node]:
    return live_nodes(tracer.graph, [refresh(tracer.local(tensor))._data])


def traced_with_reads(
    trace: Callable[[ValueReads], _T], answers: Mapping[int, int] | None = None, **options: bool
) -> _T:
    """Return the result of ``trace``, which gets the reads of a trace, with these ``options``.

    Where it raises because a size has not the value that it expects, it is called again with the values of the call.
    """
    while True:
        reads = ValueReads(answers, **options)
        try:
            return trace(reads)
        except GraphcError:
            answers = reads.computed()
            if answers is None:
                raise
