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
from graphc.ops.reduction.reduce import sum_to
from graphc.tape.grad_mode import is_anomaly_enabled, no_grad
from graphc.tape.node import Edge, Node, freed, next_sequence
from graphc.tape.saved import saving
from graphc.tensors.placement import beside, following_rules, is_on_device
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import edge_of, front, refresh


class Deferred:
    """Base of objects a pack hook returns for tensors it can compute again."""

    def is_stale(self) -> bool:
        """Check whether the tensor was modified after it was saved."""
        raise NotImplementedError


def modified(whose: str, dtype: DType, shape: Sequence[int], version: int, saved: int) -> GradientError:
    """Return the error for a tensor at another version than the one saved for the backward pass."""
    return GradientError(
        f"a tensor needed for the gradient was modified by an in-place operation: {whose}, "
        f"{dtype.name}{list(shape)}, is at version {version}, not {saved} as expected",
        remedy="use the operation that returns a new tensor instead of the in-place one, or clone() first",
    )


class Snapshot:
    """A saved operand or result: its data, its version at that time, and its edge in the graph."""

    __slots__ = ("counter", "data", "dtype", "edge", "shape", "tangents", "unpack", "version", "whose")

    data: Any
    dtype: DType
    tangents: dict[int, Any] | None
    shape: tuple[int, ...]
    unpack: Callable[[Any], Any] | None
    """Function that restores the tensor from ``data`` where a pack hook replaced it."""

    def __init__(self, tensor: Tensor, edge: Edge | None, whose: str):
        self.data = data = tensor._data
        self.counter = counter = tensor._counter
        if counter is None:
            raise GradientError(
                "tensors made in inference mode cannot be saved for a backward pass",
                remedy="call tensor.clone() outside of inference mode, or use no_grad instead of it",
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
        """Check whether the data was modified since."""
        if self.unpack is None:
            return self.counter[0] != self.version  # pyright: ignore[reportOptionalSubscript]
        packed = self.data[0]
        return isinstance(packed, Deferred) and packed.is_stale()

    def check(self) -> Any:
        """Return the data; raise GradientError when it is freed or was modified since."""
        if self.data is None:
            raise freed()
        if self.is_stale():
            raise modified(self.whose, self.dtype, self.shape, (self.counter or [0])[0], self.version)
        return self.data if self.unpack is None else self._unpacked(self.unpack)

    def _unpacked(self, unpack: Callable[[Any], Any]) -> Any:
        with no_grad():
            tensor = unpack(self.data[0])
        if not isinstance(tensor, Tensor) or tensor.shape != self.shape or tensor.dtype is not self.dtype:
            actual = f"{tensor.dtype.name}{list(tensor.shape)}" if isinstance(tensor, Tensor) else type(tensor).__name__
            raise GradientError(
                f"the unpack hook of {self.whose} returned {actual}, expected {self.dtype.name}{list(self.shape)}"
            )
        return refresh(front().local(tensor))._data


def _packed(pack: Callable[[Any], Any], tensor: Tensor) -> Any:
    plain = Tensor._wrap(tensor._data)
    plain._counter = tensor._counter
    with no_grad():
        return pack(plain)


class Saved(Tensor):
    """A saved operand or result inside a gradient rule. Each use of its data checks its version; its shape is always
    known."""

    _snapshot: Snapshot
    _unpacked_data: Any = None
    """Cached result of an unpack hook, which thus runs once per gradient rule."""

    @classmethod
    def of(cls, snapshot: Snapshot, edge: Edge | None = None) -> Saved:
        """Build the tensor with its edge in the graph (``edge`` where the snapshot has none)."""
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
        if self._unpacked_data is None:
            self._unpacked_data = self._snapshot.check()
        return self._unpacked_data

    @property
    def shape(self) -> Any:
        """Size of each dimension."""
        return self._snapshot.shape


def real(tensor: Any) -> Any:
    """Convert a saved tensor to an ordinary one that shares its data; return others unchanged."""
    if not isinstance(tensor, Saved):
        return tensor
    result = Tensor._wrap(tensor._data)
    result._counter, result._tangents = tensor._counter, tensor._tangents
    result._node, result._index, result._requires_grad = tensor._node, tensor._index, tensor._requires_grad
    return result


@cache
def _roles(name: str) -> tuple[str, str]:
    """Describe the operands and the results of an op, for messages."""
    return "an operand of " + name, "a result of " + name


class OpNode(Node):
    """Autograd node of an op application."""

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
        # Without their edges, which refer to this node: a reference cycle would delay freeing until garbage collection.
        self.results = [*map(Snapshot, results, repeat(None), repeat(result))]

    def name(self) -> str:
        """Return the op's name in the style of class names, e.g. ``ReduceMaxBackward``."""
        return "".join(word.capitalize() for word in self.op.name.split("_")) + "Backward"

    def run(self, grads: list[Any]) -> Sequence[Any]:
        """Apply the op's gradient rules."""
        operands = [Saved.of(s) for s in self.operands]
        if self.op.has(Trait.RECOMPUTED) and self.results[0].data is not None and self.results[0].is_stale():
            results: list[Any] = [dispatch.apply(self.op, operands, self.attrs)]
        else:
            results = [Saved.of(s, (self, i)) for i, s in enumerate(self.results)]
        several = len(results) > 1
        g = tuple(grads) if several else grads[0]
        result = tuple(results) if several else results[0]
        if not any([g is not None and is_on_device(g._data) for g in grads]):
            return self._gradients(g, result, operands)
        where = next(g for g in grads if g is not None and is_on_device(g._data))
        with following_rules():
            return [None if t is None else beside(t, where) for t in self._gradients(g, result, operands)]

    def _gradients(self, g: Any, result: Any, operands: list[Any]) -> Sequence[Any]:
        rules = self.op.vjp
        if callable(rules):
            gradients = rules(g, result, *operands, **self.attrs)
            gradients = [None if edge is None else grad for edge, grad in zip(self.edges, gradients, strict=True)]
        else:
            assert rules is not None
            gradients = [
                None if edge is None or rule is None else rule(g, result, *operands, **self.attrs)
                for edge, rule in zip(self.edges, rules, strict=True)
            ]
        return [
            None if grad is None else real(sum_to(grad, s.shape))
            for grad, s in zip(gradients, self.operands, strict=True)
        ]

    def release(self) -> None:
        """Free the saved data, but not the shapes."""
        for snapshot in (*self.operands, *self.results):
            snapshot.data = snapshot.tangents = None


def record(op: OpDef, attrs: Mapping[str, Any], operands: Sequence[Tensor], results: Sequence[Tensor]) -> None:
    """Make floating-point ``results`` part of the graph, if an operand that needs a gradient has a rule for it."""
    rules = op.vjp
    if rules is None:
        return
    rule_per_operand = repeat(True) if callable(rules) else rules
    edges: list[Edge | None] = []
    for tensor, rule in zip(operands, rule_per_operand):  # noqa: B905 (as many)
        edges.append(edge_of(tensor) if tensor._requires_grad and rule is not None else None)
    if not any(edges):
        return
    node = OpNode(op, attrs, operands, tuple(edges), results)
    if is_anomaly_enabled():
        node.note_origin()
    for i, result in enumerate(results):
        if result.dtype.is_differentiable:
            result._node, result._index, result._requires_grad = node, i, True
