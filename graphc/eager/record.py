"""Recording of op applications: the node of an op, and the operands and results it saves for its gradient rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import repeat
from typing import Any

from graphc.base.dtypes import DType
from graphc.base.errors import GradientError
from graphc.ir.op import OpDef, Trait
from graphc.ops import dispatch
from graphc.ops.reduce import sum_to
from graphc.tape.grad_mode import is_anomaly_enabled, no_grad
from graphc.tape.node import Edge, Node, freed, next_sequence
from graphc.tape.saved import saving
from graphc.tensors.placement import beside, following_rules, is_on_device
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import edge_of, front, refresh


class Deferred:
    """What a pack hook returns in the place of a tensor that it knows how to make again."""

    def is_stale(self) -> bool:
        """Whether the tensor was written to after it was saved."""
        raise NotImplementedError


class Snapshot:
    """What is kept of an operand or result: its data, its version at that time, and its place in the graph."""

    __slots__ = ("counter", "data", "dtype", "edge", "shape", "tangents", "unpack", "version", "whose")

    data: Any
    dtype: DType
    tangents: dict[int, Any] | None
    shape: tuple[int, ...]
    unpack: Callable[[Any], Any] | None
    """What gives the tensor back when ``data`` is what a pack hook made of it."""

    def __init__(self, tensor: Tensor, edge: Edge | None, whose: str):
        self.data = data = tensor._data
        self.counter = counter = tensor._counter
        if counter is None:
            raise GradientError(
                "tensors made in inference mode cannot be saved for a backward pass",
                remedy="tensor.clone() outside of inference mode, or no_grad instead of it",
            )
        self.version = counter[0]
        self.dtype = tensor.dtype
        self.tangents = tensor._tangents
        self.shape = data.shape
        self.edge = edge
        self.whose = whose
        self.unpack = None
        if (hooks := saving.get()) is not None:
            self.data, self.unpack = (_packed(hooks[0], tensor),), hooks[1]

    def is_stale(self) -> bool:
        """Whether the data was written to since."""
        if self.unpack is None:
            return self.counter[0] != self.version  # pyright: ignore[reportOptionalSubscript]
        kept = self.data[0]
        return isinstance(kept, Deferred) and kept.is_stale()

    def check(self) -> Any:
        """The data; raises GradientError when it is freed or was written to since."""
        if self.data is None:
            raise freed()
        if self.is_stale():
            raise GradientError(
                f"a tensor needed for the gradient was modified by an in-place operation: {self.whose}, "
                f"{self.dtype.name}{list(self.shape)}, is at version {(self.counter or [0])[0]}, not {self.version} as "
                "expected",
                remedy="the operation that returns a new tensor instead of the in-place one, or a clone()",
            )
        return self.data if self.unpack is None else self._unpacked(self.unpack)

    def _unpacked(self, unpack: Callable[[Any], Any]) -> Any:
        with no_grad():
            found = unpack(self.data[0])
        if not isinstance(found, Tensor) or found.shape != self.shape or found.dtype is not self.dtype:
            shown = f"{found.dtype.name}{list(found.shape)}" if isinstance(found, Tensor) else type(found).__name__
            raise GradientError(
                f"the unpack hook of {self.whose} returned {shown}, expected {self.dtype.name}{list(self.shape)}"
            )
        return refresh(front().local(found))._data


def _packed(pack: Callable[[Any], Any], tensor: Tensor) -> Any:
    plain = Tensor._wrap(tensor._data)
    plain._counter = tensor._counter
    with no_grad():
        return pack(plain)


class Saved(Tensor):
    """A saved operand or result inside a gradient rule: its data is checked when it is used, its shape always known."""

    _snapshot: Snapshot
    _kept: Any = None
    """The data that an unpack hook gave, so that it runs once for each gradient rule."""

    @classmethod
    def of(cls, snapshot: Snapshot, edge: Edge | None = None) -> Saved:
        """The tensor, at its place in the graph (``edge`` where the snapshot does not hold it)."""
        tensor = object.__new__(cls)
        tensor._snapshot = snapshot
        tensor.dtype = snapshot.dtype
        tensor._counter = snapshot.counter
        tensor._tangents = snapshot.tangents
        edge = edge or snapshot.edge
        if edge is not None and snapshot.dtype.is_differentiable:
            tensor._node, tensor._index = edge
            tensor._requires_grad = True
        return tensor

    @property
    def _data(self) -> Any:  # type: ignore[override]
        if self._snapshot.unpack is None:
            return self._snapshot.check()
        if self._kept is None:
            self._kept = self._snapshot.check()
        return self._kept

    @property
    def shape(self) -> Any:
        """Extent of each dimension."""
        return self._snapshot.shape


def real(tensor: Any) -> Any:
    """An ordinary tensor for a saved one, sharing its data; others as they are."""
    if not isinstance(tensor, Saved):
        return tensor
    result = Tensor._wrap(tensor._data)
    result._counter, result._tangents = tensor._counter, tensor._tangents
    result._node, result._index, result._requires_grad = tensor._node, tensor._index, tensor._requires_grad
    return result


@cache
def _roles(name: str) -> tuple[str, str]:
    """Whose tensors an op saves."""
    return "an operand of " + name, "a result of " + name


class OpNode(Node):
    """The application of an op."""

    def __init__(
        self,
        op: OpDef,
        attrs: Mapping[str, Any],
        operands: Sequence[Tensor],
        edges: tuple[Edge | None, ...],
        results: Sequence[Tensor],
    ):
        self.sequence = next_sequence()
        self.op = op
        self.attrs = attrs
        self.edges = edges
        self.count = len(results)
        operand, result = _roles(op.name)
        self.operands = [*map(Snapshot, operands, edges, repeat(operand))]
        # Without their edges, which lead here: a cycle would keep everything alive until garbage is collected.
        self.results = [*map(Snapshot, results, repeat(None), repeat(result))]

    def name(self) -> str:
        """The op's name in the style of class names, e.g. ``ReduceMaxBackward``."""
        return "".join(part.capitalize() for part in self.op.name.split("_")) + "Backward"

    def run(self, grads: list[Any]) -> Sequence[Any]:
        """Applies the op's gradient rules."""
        operands = [Saved.of(s) for s in self.operands]
        if self.op.has(Trait.RECOMPUTED) and self.results[0].data is not None and self.results[0].is_stale():
            results: list[Any] = [dispatch.apply(self.op, operands, self.attrs)]
        else:
            results = [Saved.of(s, (self, i)) for i, s in enumerate(self.results)]
        several = len(results) > 1
        g = tuple(grads) if several else grads[0]
        result = tuple(results) if several else results[0]
        if not any([g is not None and is_on_device(g._data) for g in grads]):
            return self._found(g, result, operands)
        where = next(g for g in grads if g is not None and is_on_device(g._data))
        with following_rules():
            return [None if t is None else beside(t, where) for t in self._found(g, result, operands)]

    def _found(self, g: Any, result: Any, operands: list[Any]) -> Sequence[Any]:
        rules = self.op.vjp
        if callable(rules):
            found = rules(g, result, *operands, **self.attrs)
            found = [None if edge is None else grad for edge, grad in zip(self.edges, found, strict=True)]
        else:
            assert rules is not None
            found = [
                None if edge is None or rule is None else rule(g, result, *operands, **self.attrs)
                for edge, rule in zip(self.edges, rules, strict=True)
            ]
        return [
            None if grad is None else real(sum_to(grad, s.shape)) for grad, s in zip(found, self.operands, strict=True)
        ]

    def release(self) -> None:
        """Frees the saved data; shapes stay."""
        for snapshot in (*self.operands, *self.results):
            snapshot.data = snapshot.tangents = None


def record(op: OpDef, attrs: Mapping[str, Any], operands: Sequence[Tensor], results: Sequence[Tensor]) -> None:
    """Makes floating-point ``results`` part of the graph, if an operand that needs a gradient has a rule for it."""
    rules = op.vjp
    if rules is None:
        return
    known = repeat(True) if callable(rules) else rules
    edges: list[Edge | None] = []
    for tensor, rule in zip(operands, known):  # noqa: B905 (as many)
        edges.append(edge_of(tensor) if tensor._requires_grad and rule is not None else None)
    if not any(edges):
        return
    node = OpNode(op, attrs, operands, tuple(edges), results)
    if is_anomaly_enabled():
        node.note_origin()
    for i, result in enumerate(results):
        if result.dtype.is_differentiable:
            result._node, result._index, result._requires_grad = node, i, True
