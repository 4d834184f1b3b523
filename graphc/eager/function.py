"""Custom functions with a gradient of their own: static methods with a context, or an instance for each call."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, NamedTuple

from graphc.base.errors import ArgumentError, GradientError
from graphc.eager.forward_ad import propagate_by
from graphc.eager.record import Saved, Snapshot, real
from graphc.ops.reduce import sum_to
from graphc.ops.shape import filled, zeros_like
from graphc.tape.grad_mode import is_grad_enabled, no_grad
from graphc.tape.node import Edge, Node, freed
from graphc.tape.tangents import has_tangents, only
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import VOLATILE, any_volatile, edge_of, front, refresh


class Context:
    """What forward leaves for backward. Any attribute may be set on it."""

    def __init__(self) -> None:
        self._to_save: tuple[Any, ...] = ()
        self._saved: tuple[Snapshot | None, ...] = ()
        self._results: dict[int, int] = {}
        """For what was saved, by position: the number of the result that it is."""
        self._node: weakref.ref[Node] | None = None
        self._released = False
        self._traced: tuple[Any, ...] | None = None
        self._for_forward: tuple[Any, ...] | None = None
        self._pushing: tuple[Any, ...] | None = None
        """While jvp runs: what it finds saved."""
        self._dirty: tuple[Any, ...] = ()
        self._non_differentiable: tuple[Any, ...] = ()
        self._materialize = True
        self.needs_input_grad: tuple[bool, ...] = ()
        """For each argument of forward, whether its gradient is needed."""

    def save_for_backward(self, *tensors: Any) -> None:
        """Keeps tensors (or None) for backward; only operands and results of the function are checked for writes."""
        for t in tensors:
            if t is not None and not isinstance(t, Tensor):
                raise ArgumentError(
                    f"save_for_backward keeps tensors and None, not {type(t).__name__}", remedy=f"ctx.value = {t!r}"
                )
        self._to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keeps tensors (or None) for jvp, which otherwise finds what save_for_backward kept."""
        self._for_forward = tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What save_for_backward kept (in jvp, save_for_forward); raises GradientError when it is freed or was written
        to since."""
        if self._pushing is not None:
            return self._pushing
        if self._traced is not None:
            return self._traced
        if self._released:
            raise freed()
        node = None if self._node is None else self._node()
        return tuple(
            None if s is None else real(Saved.of(s, (node, self._results[i]) if node and i in self._results else None))
            for i, s in enumerate(self._saved)
        )

    saved_variables = saved_tensors

    def keep_traced(self, image: Callable[[Any], Any]) -> None:
        """Under trace: what was saved, as tensors of the forward graph."""
        self._traced = tuple(None if t is None else image(t) for t in self._to_save)
        self._to_save = ()

    def mark_dirty(self, *tensors: Any) -> None:
        """Names operands that forward writes to; they must be returned."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Names results that have no gradient."""
        self._non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward gets zeros (True) or None for results that no gradient arrived at."""
        self._materialize = value


class FunctionNode(Node):
    """The application of a custom function."""

    def __init__(
        self,
        title: str,
        context: Context,
        backward: Callable[..., Any],
        operands: Sequence[Any],
        edges: tuple[Edge | None, ...],
        results: Sequence[Any],
    ):
        super().__init__()
        self.title = title
        self.context = context
        self.backward = backward
        self.shapes = [(t.shape, t.dtype) if isinstance(t, Tensor) else None for t in operands]
        self.edges = edges
        self.count = len(results)
        self.outputs = [(t.shape, t.dtype) if isinstance(t, Tensor) else None for t in results]

    def name(self) -> str:
        """The function's name with ``Backward`` behind it."""
        return f"{self.title}Backward"

    def run(self, grads: list[Any]) -> Sequence[Any]:
        """Calls the function's backward."""
        if self.context._materialize:
            grads = [
                filled(0, out[1], out[0]) if grad is None and out is not None else grad
                for grad, out in zip(grads, self.outputs, strict=True)
            ]
        found = self.backward(self.context, *grads)
        found = list(found) if isinstance(found, (tuple, list)) else [found]
        expected = len(self.edges)
        if len(found) < expected or any(extra is not None for extra in found[expected:]):
            raise GradientError(f"{self.name()} returned {len(found)} gradients, expected {expected}")
        return [self._fitted(i, grad) for i, grad in enumerate(found[:expected])]

    def _fitted(self, i: int, grad: Any) -> Any:
        kept = self.shapes[i]
        if grad is None or kept is None or self.edges[i] is None:
            return None
        if not isinstance(grad, Tensor):
            raise GradientError(f"{self.name()} returned a {type(grad).__name__} as gradient {i}, expected a tensor")
        if grad.shape == kept[0]:
            return grad
        return reduced(self.name(), i, grad, kept[0])

    def release(self) -> None:
        """Frees the saved tensors."""
        self.context._released = True
        self.context._saved = ()


def reduced(name: str, i: int, grad: Any, shape: tuple[int, ...]) -> Any:
    """The gradient ``i`` that a function returned, summed to the shape of its operand where that was broadcast.

    Raises GradientError when the operand cannot have been broadcast to the gradient's shape.
    """
    lead = len(grad.shape) - len(shape)
    if lead < 0 or any(want not in (1, have) for want, have in zip(shape, grad.shape[lead:], strict=True)):
        raise GradientError(
            f"{name} returned a gradient of shape {list(grad.shape)} for operand {i} of shape {list(shape)}"
        )
    return sum_to(grad, shape)


class Function:
    """Base of operations with a gradient of their own.

    Static style: ``forward(ctx, *args)`` (or ``forward(*args)`` with ``setup_context(ctx, inputs, output)``),
    ``backward(ctx, *grads)`` and, for forward mode, ``jvp(ctx, *tangents)``, applied by ``F.apply(*args)``. Instance
    style, one instance per call: ``__init__`` takes what is no tensor, ``forward(self, *tensors)`` and
    ``backward(self, *grads)`` use ``self`` as the context, applied by ``F(...)(*tensors)``. Backward returns one
    gradient (or None) per argument of forward; more are allowed if None.
    """

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Computes the results; nothing in it is recorded."""
        raise NotImplementedError("a custom Function must implement forward")

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Gradients of the arguments of forward for those of its results."""
        raise NotImplementedError("a custom Function must implement backward (or vjp) to be differentiated")

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """Tangents of the results for those of the arguments of forward (None for what is no tensor)."""
        raise NotImplementedError("a custom Function must implement jvp to be used in forward mode")

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Runs forward and makes its results part of the graph."""
        if not _is_static(cls, "forward"):
            raise ArgumentError(
                f"{cls.__name__}.forward is no static method, so it belongs to instances",
                remedy=f"{cls.__name__}(...)(tensor, ...), or make forward and backward static with a ctx",
            )
        context = _new_context(cls)
        if "setup_context" in _attributes(cls):
            forward = functools.partial(_with_setup, cls, context)
        else:
            forward = functools.partial(cls.forward, context)
        return _run(cls, context, args, _Rules(forward, _backward_of(cls), cls.jvp), cls.apply)

    def __call__(self, *args: Any) -> Any:
        """Instance style: runs forward on tensors; the instance is the context."""
        cls = type(self)
        if _is_static(cls, "forward"):
            raise ArgumentError(f"{cls.__name__} has static methods", remedy=f"{cls.__name__}.apply(tensor, ...)")
        if getattr(self, "_used", False):
            raise GradientError(
                f"this instance of {cls.__name__} was already called", remedy=f"a new {cls.__name__}(...) for each call"
            )
        self._used = True
        self._context = Context()
        rules = _Rules(
            self.forward,
            lambda context, *grads: cls.backward(self, *grads),
            lambda context, *tangents: cls.jvp(self, *tangents),
        )
        return _run(cls, self._context, args, rules, _Again(self))

    def __getattr__(self, name: str) -> Any:
        # The instance stands for the context, whose methods it offers.
        context = self.__dict__.get("_context")
        if context is None or name.startswith("__"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(context, name)


class _Again:
    """Applies an instance that was called as a new one would be."""

    def __init__(self, instance: Function):
        self.__self__ = instance

    def __call__(self, *args: Any) -> Any:
        fresh = copy(self.__self__)
        for name in ("_used", "_context"):
            fresh.__dict__.pop(name, None)
        return fresh(*args)


def _attributes(cls: type) -> set[str]:
    return {name for base in cls.__mro__ if base not in (Function, object) for name in vars(base).copy()}


def _is_static(cls: type, name: str) -> bool:
    for base in cls.__mro__:
        if name in vars(base):
            return isinstance(vars(base)[name], (staticmethod, classmethod))
    return False


def _new_context(cls: type) -> Context:
    return type(f"{cls.__name__}Context", (Context,), {})()


def _backward_of(cls: Any) -> Callable[..., Any]:
    own = _attributes(cls)
    if "backward" in own and "vjp" in own:
        raise GradientError(f"{cls.__name__} has both backward and vjp", remedy="implement one of them")
    return cls.vjp if "vjp" in own else cls.backward


def _with_setup(cls: Any, context: Context, *args: Any) -> Any:
    output = cls.forward(*args)
    cls.setup_context(context, args, output)
    return output


class _Rules(NamedTuple):
    """What one application of a function runs."""

    forward: Callable[..., Any]
    backward: Callable[..., Any]
    jvp: Callable[..., Any]


def _run(
    cls: type, context: Context, args: tuple[Any, ...], rules: _Rules, again: Callable[..., Any] | None = None
) -> Any:
    """Runs forward without recording, then records the results as one node. ``again`` applies the function anew."""
    operands = tuple(refresh(front().local(a)) if isinstance(a, Tensor) else a for a in args)
    needs = tuple(isinstance(a, Tensor) and a._requires_grad for a in operands)
    volatile = VOLATILE[0] and any_volatile([a for a in operands if isinstance(a, Tensor)], ())
    recording = is_grad_enabled() and any(needs) and not volatile
    context.needs_input_grad = needs
    edges = tuple(edge_of(a) if need else None for a, need in zip(operands, needs, strict=True))
    pushed = has_tangents([a for a in operands if isinstance(a, Tensor)])
    if pushed and "jvp" not in _attributes(cls):
        raise GradientError(
            f"{cls.__name__} has no jvp, so it cannot be used in forward mode",
            remedy="a static method jvp(ctx, *tangents) that returns the tangents of the results",
        )
    outer = getattr(front(), "custom", None)
    if outer is not None:
        with only(()):
            output = outer(cls.__name__, context, operands, rules.forward, rules.backward, again)
            if pushed:
                _forward_again(cls, context, operands, rules.forward, _listed(output))
        if pushed:
            _push(cls, context, rules.jvp, operands, _listed(output))
        return output
    with no_grad(), only(()):
        output = rules.forward(*args)
    several = isinstance(output, tuple)
    results = list(output) if several else [output]
    results = [_own_result(context, operands, r) for r in results]
    if volatile:
        for result in results:
            result._volatile = True
    if recording:
        node = FunctionNode(cls.__name__, context, rules.backward, operands, edges, results)
        node.note_origin()
        _attach(node, context, results)
        _keep(node, context, operands, results)
    if pushed:
        _push(cls, context, rules.jvp, operands, results)
        for i, number in context._results.items():
            context._saved[i].tangents = results[number]._tangents  # type: ignore[union-attr]
    context._to_save = ()
    context._for_forward = None
    return tuple(results) if several else results[0]


def _listed(output: Any) -> list[Any]:
    return list(output) if isinstance(output, tuple) else [output]


def _push(cls: Any, context: Context, jvp: Callable[..., Any], operands: Sequence[Any], results: Sequence[Any]) -> None:
    """Gives the results the tangents that the function's jvp computes."""

    def push(tangents: Sequence[Any]) -> Sequence[Any]:
        given = [
            zeros_like(a)
            if t is None and context._materialize and isinstance(a, Tensor) and a.dtype.is_differentiable
            else t
            for a, t in zip(operands, tangents, strict=True)
        ]
        context._pushing = context._to_save if context._for_forward is None else context._for_forward
        try:
            found = _listed(jvp(context, *given))
        finally:
            context._pushing = None
        if len(found) != len(results):
            raise GradientError(f"{cls.__name__}.jvp returned {len(found)} tangents, expected {len(results)}")
        for i, (result, tangent) in enumerate(zip(results, found, strict=True)):
            if tangent is not None and (not isinstance(tangent, Tensor) or tangent.shape != result.shape):
                shown = list(tangent.shape) if isinstance(tangent, Tensor) else type(tangent).__name__
                what = f"{cls.__name__}.jvp returned {shown} as tangent {i}"
                raise GradientError(f"{what}, expected a tensor of shape {list(result.shape)}")
        return found

    propagate_by(push, operands, results)


def _forward_again(
    cls: type, context: Context, operands: Sequence[Any], forward: Callable[..., Any], results: Sequence[Any]
) -> None:
    """Under trace, runs forward where jvp can see what it saves; equal nodes are merged later."""
    if context._dirty:
        raise GradientError(f"{cls.__name__} writes to an operand, which forward mode does not allow in a trace")
    with no_grad():
        again = _listed(forward(*operands))
    same = {id(a): r for a, r in zip(again, results, strict=True)}
    context._to_save = tuple(same.get(id(t), t) for t in context._to_save)
    if context._for_forward is not None:
        context._for_forward = tuple(same.get(id(t), t) for t in context._for_forward)


def _own_result(context: Context, operands: Sequence[Any], result: Any) -> Any:
    """A result that is an operand is returned as a view of it, unless forward wrote to it."""
    if not isinstance(result, Tensor) or any(result is d for d in context._dirty):
        return result
    if any(result is t for t in operands):
        with no_grad():
            alias = result.reshape(result.shape)
        if any(result is t for t in context._non_differentiable):
            context._non_differentiable = (*context._non_differentiable, alias)
        context._to_save = tuple(alias if t is result else t for t in context._to_save)
        if context._for_forward is not None:
            context._for_forward = tuple(alias if t is result else t for t in context._for_forward)
        return alias
    return result


def _attach(node: FunctionNode, context: Context, results: Sequence[Any]) -> None:
    for i, result in enumerate(results):
        if not isinstance(result, Tensor) or not result.dtype.is_differentiable:
            continue
        if any(result is t for t in context._non_differentiable):
            continue
        result._node, result._index, result._requires_grad = node, i, True
        result._detached = False


def _keep(node: FunctionNode, context: Context, operands: Sequence[Any], results: Sequence[Any]) -> None:
    """Takes snapshots of what was saved. Those of results do not name the node, which would keep itself alive."""
    context._node = weakref.ref(node)
    found = []
    for i, tensor in enumerate(context._to_save):
        edge = None
        for number, result in enumerate(results):
            if result is tensor and result._node is node:
                context._results[i] = number
        for operand, known in zip(operands, node.edges, strict=True):
            if operand is tensor:
                edge = known
        if edge is None and i not in context._results and tensor is not None and tensor._requires_grad:
            edge = edge_of(tensor)
        found.append(None if tensor is None else Snapshot(tensor, edge, "saved by a custom function"))
    context._saved = tuple(found)


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a backward whose own operations must not be differentiated: a second derivative raises GradientError."""

    @functools.wraps(backward)
    def wrapped(ctx: Any, *grads: Any) -> Any:
        with no_grad():
            found = backward(ctx, *grads)
        edges = [edge_of(g) for g in grads if isinstance(g, Tensor) and g._requires_grad]
        edges += [s.edge for s in getattr(ctx, "_saved", ()) if s is not None and s.edge is not None]
        if not is_grad_enabled() or not edges:
            return found
        several = isinstance(found, tuple)
        node = _Undifferentiable(tuple(edges))
        results = list(found) if several else [found]
        for result in results:
            if isinstance(result, Tensor) and result.dtype.is_differentiable:
                result._node, result._index, result._requires_grad = node, 0, True
        return tuple(results) if several else results[0]

    return wrapped


class _Undifferentiable(Node):
    def __init__(self, edges: tuple[Edge | None, ...]):
        super().__init__()
        self.edges = edges

    def run(self, grads: list[Any]) -> Sequence[Any]:
        raise GradientError("a function marked with once_differentiable is differentiated twice")


class _AllTensors(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, Tensor)


class Variable(metaclass=_AllTensors):
    """The old wrapper: a leaf tensor that shares memory with ``data``. Every tensor is an instance of it.

    A ``volatile`` one never requires gradients, and whatever is computed from it is volatile too, whatever else it is
    computed from.
    """

    def __new__(cls, data: Any, requires_grad: bool = False, volatile: bool = False) -> Any:
        result = data.detach()
        if volatile:
            VOLATILE[0] = result._volatile = True
        return result.requires_grad_(requires_grad and not volatile)
