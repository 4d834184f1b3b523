"""Custom functions with their own gradient: static methods with a context, or an instance for each call."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

from graphc.autograd.forward_ad import propagate_by
from graphc.autograd.record import Saved, Snapshot, real
from graphc.base.errors import ArgumentError, GradientError
from graphc.base.records import NamedTuple
from graphc.ops.movement.shape import filled, zeros_like
from graphc.ops.reduction.reduce import sum_to
from graphc.tape.grad_mode import is_grad_enabled, no_grad
from graphc.tape.node import Edge, Node, freed
from graphc.tape.tangents import has_tangents, only
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import VOLATILE, any_volatile, edge_of, front, refresh

__all__ = ["Function", "once_differentiable"]


class Context:
    """State that forward passes to backward. Any attribute may be set on it."""

    def __init__(self) -> None:
        self._to_save: tuple[Any, ...] = ()
        self._saved: tuple[Snapshot | None, ...] = ()
        self._results: dict[int, int] = {}
        """Result number of each saved tensor that is a result, by its position."""
        self._node: weakref.ref[Node] | None = None
        self._released = False
        self._traced: tuple[Any, ...] | None = None
        self._for_forward: tuple[Any, ...] | None = None
        self._pushing: tuple[Any, ...] | None = None
        """Saved tensors for jvp while it runs."""
        self._dirty: tuple[Any, ...] = ()
        self._non_differentiable: tuple[Any, ...] = ()
        self._materialize = True
        self.needs_input_grad: tuple[bool, ...] = ()
        """Whether each argument of forward needs a gradient."""

    def save_for_backward(self, *tensors: Any) -> None:
        """Save tensors (or None) for backward; only operands and results of the function are checked for
        modification."""
        for t in tensors:
            if t is not None and not isinstance(t, Tensor):
                raise ArgumentError(
                    f"save_for_backward keeps tensors and None, not {type(t).__name__}",
                    remedy=f"set it as an attribute: ctx.value = {t!r}",
                )
        self._to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Save tensors (or None) for jvp, which otherwise sees the tensors of save_for_backward."""
        self._for_forward = tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """Tensors of save_for_backward (in jvp, of save_for_forward); raises GradientError when they are freed or were
        modified since."""
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
        """Replace saved tensors by tensors of the forward graph, under trace."""
        self._traced = tuple(None if t is None else image(t) for t in self._to_save)
        self._to_save = ()

    def mark_dirty(self, *tensors: Any) -> None:
        """Declare the operands modified by forward; they must be returned."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Declare the results without a gradient."""
        self._non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Choose whether backward gets zeros (True) or None for results without a gradient."""
        self._materialize = value


class FunctionNode(Node):
    """Autograd node of a custom function's application."""

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
        """Return the function's name followed by ``Backward``."""
        return f"{self.title}Backward"

    def run(self, grads: list[Any]) -> Sequence[Any]:
        """Call the function's backward."""
        if self.context._materialize:
            grads = [
                filled(0, out[1], out[0]) if grad is None and out is not None else grad
                for grad, out in zip(grads, self.outputs, strict=True)
            ]
        gradients = self.backward(self.context, *grads)
        gradients = list(gradients) if isinstance(gradients, (tuple, list)) else [gradients]
        expected = len(self.edges)
        if len(gradients) < expected or any(extra is not None for extra in gradients[expected:]):
            raise GradientError(f"{self.name()} returned {len(gradients)} gradients, expected {expected}")
        return [self._fitted(i, grad) for i, grad in enumerate(gradients[:expected])]

    def _fitted(self, i: int, grad: Any) -> Any:
        operand = self.shapes[i]
        if grad is None or operand is None or self.edges[i] is None:
            return None
        if not isinstance(grad, Tensor):
            raise GradientError(f"{self.name()} returned a {type(grad).__name__} as gradient {i}, expected a tensor")
        if grad.shape == operand[0]:
            return grad
        return reduced(self.name(), i, grad, operand[0])

    def release(self) -> None:
        """Free the saved tensors."""
        self.context._released = True
        self.context._saved = ()


def reduced(name: str, i: int, grad: Any, shape: tuple[int, ...]) -> Any:
    """Sum the gradient ``i`` of a function to the shape of its broadcast operand.

    Raises GradientError when the operand cannot have been broadcast to the gradient's shape.
    """
    lead = len(grad.shape) - len(shape)
    if lead < 0 or any(want not in (1, have) for want, have in zip(shape, grad.shape[lead:], strict=True)):
        raise GradientError(
            f"{name} returned a gradient of shape {list(grad.shape)} for operand {i} of shape {list(shape)}"
        )
    return sum_to(grad, shape)


class Function:
    """Base class of operations with their own gradient.

    A subclass defines static methods and is applied by ``F.apply(*args)``: ``forward(ctx, *args)`` (or
    ``forward(*args)`` and ``setup_context(ctx, inputs, output)``), ``backward(ctx, *grads)`` and, for forward mode,
    ``jvp(ctx, *tangents)``. In instance style, ``F(...)(*tensors)``, ``forward(self, *tensors)`` and ``backward(self,
    *grads)`` use ``self`` as the context, and each call takes a new instance, whose ``__init__`` gets arguments other
    than tensors.

    Args:
        args: none; an instance-style subclass has its own.

    Returns:
        ``forward`` returns a tensor or a tuple. ``backward`` returns one gradient, or None, per argument of
        ``forward``; additional ones must be None.

    Raises:
        ArgumentError: methods of one style applied in the other.
        GradientError: an instance is called twice, or a gradient has the wrong shape.

    Example:
        >>> import graphc as gc
        >>> class Exp(gc.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         y = x.exp()
        ...         ctx.save_for_backward(y)
        ...         return y
        ...
        ...     @staticmethod
        ...     def backward(ctx, grad):
        ...         (y,) = ctx.saved_tensors
        ...         return grad * y
        >>> x = gc.tensor([0.0, 1.0], requires_grad=True)
        >>> Exp.apply(x).sum().backward()
        >>> x.grad
        tensor([1.0000, 2.7183])
    """

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the results; its operations are not recorded."""
        raise NotImplementedError("a custom Function must implement forward")

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Return the gradients of the arguments of forward, given the gradients of its results."""
        raise NotImplementedError("a custom Function must implement backward (or vjp) to be differentiated")

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """Return the tangents of the results, given the tangents of the arguments of forward (None for other
        objects)."""
        raise NotImplementedError("a custom Function must implement jvp to be used in forward mode")

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Run forward and make its results part of the graph."""
        if not _is_static(cls, "forward"):
            raise ArgumentError(
                f"{cls.__name__}.forward is not a static method, so apply() cannot call it",
                remedy=f"call {cls.__name__}(...)(tensor, ...), or make forward and backward static with a ctx",
            )
        context = _new_context(cls)
        if "setup_context" in _attributes(cls):
            forward = functools.partial(_with_setup, cls, context)
        else:
            forward = functools.partial(cls.forward, context)
        return _run(cls, context, args, _Rules(forward, _backward_of(cls), cls.jvp), cls.apply)

    def __call__(self, *args: Any) -> Any:
        """Run forward on tensors, in instance style; the instance is the context."""
        cls = type(self)
        if _is_static(cls, "forward"):
            raise ArgumentError(f"{cls.__name__} has static methods", remedy=f"call {cls.__name__}.apply(tensor, ...)")
        if getattr(self, "_used", False):
            raise GradientError(
                f"this instance of {cls.__name__} was already called",
                remedy=f"make a new {cls.__name__}(...) for each call",
            )
        self._used = True
        self._context = Context()
        rules = _Rules(
            self.forward,
            lambda context, *grads: cls.backward(self, *grads),
            lambda context, *tangents: cls.jvp(self, *tangents),
        )
        return _run(cls, self._context, args, rules, _Reapply(self))

    def __getattr__(self, name: str) -> Any:
        # The instance is the context as well, and so offers its methods.
        context = self.__dict__.get("_context")
        if context is None or name.startswith("__"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(context, name)


class _Reapply:
    """Function that applies a fresh copy of an instance."""

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
    """Forward, backward and jvp of one application."""

    forward: Callable[..., Any]
    backward: Callable[..., Any]
    jvp: Callable[..., Any]


def _run(
    cls: type, context: Context, args: tuple[Any, ...], rules: _Rules, again: Callable[..., Any] | None = None
) -> Any:
    """Run forward without recording, then record the results as one node. ``again`` applies the function a second
    time."""
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
            remedy="define a static method jvp(ctx, *tangents) that returns the tangents of the results",
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
        _save_tensors(node, context, operands, results)
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
    """Set the tangents of the results by the function's jvp."""

    def push(tangents: Sequence[Any]) -> Sequence[Any]:
        complete_tangents = [
            zeros_like(a)
            if t is None and context._materialize and isinstance(a, Tensor) and a.dtype.is_differentiable
            else t
            for a, t in zip(operands, tangents, strict=True)
        ]
        context._pushing = context._to_save if context._for_forward is None else context._for_forward
        try:
            result_tangents = _listed(jvp(context, *complete_tangents))
        finally:
            context._pushing = None
        if len(result_tangents) != len(results):
            raise GradientError(f"{cls.__name__}.jvp returned {len(result_tangents)} tangents, expected {len(results)}")
        for i, (result, tangent) in enumerate(zip(results, result_tangents, strict=True)):
            if tangent is not None and (not isinstance(tangent, Tensor) or tangent.shape != result.shape):
                actual = list(tangent.shape) if isinstance(tangent, Tensor) else type(tangent).__name__
                what = f"{cls.__name__}.jvp returned {actual} as tangent {i}"
                raise GradientError(f"{what}, expected a tensor of shape {list(result.shape)}")
        return result_tangents

    propagate_by(push, operands, results)


def _forward_again(
    cls: type, context: Context, operands: Sequence[Any], forward: Callable[..., Any], results: Sequence[Any]
) -> None:
    """Run forward again under trace, where jvp can see its saved tensors; later passes merge equal nodes."""
    if context._dirty:
        raise GradientError(
            f"{cls.__name__}.forward writes to an operand; forward mode does not support this under trace"
        )
    with no_grad():
        again = _listed(forward(*operands))
    same = {id(a): r for a, r in zip(again, results, strict=True)}
    context._to_save = tuple(same.get(id(t), t) for t in context._to_save)
    if context._for_forward is not None:
        context._for_forward = tuple(same.get(id(t), t) for t in context._for_forward)


def _own_result(context: Context, operands: Sequence[Any], result: Any) -> Any:
    """Replace a result by a view of it where it is one of the operands, unless forward modified it."""
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


def _save_tensors(node: FunctionNode, context: Context, operands: Sequence[Any], results: Sequence[Any]) -> None:
    """Take snapshots of the saved tensors. Snapshots of results do not refer to the node, which would keep itself
    alive."""
    context._node = weakref.ref(node)
    snapshots = []
    for i, tensor in enumerate(context._to_save):
        edge = None
        for number, result in enumerate(results):
            if result is tensor and result._node is node:
                context._results[i] = number
        for operand, operand_edge in zip(operands, node.edges, strict=True):
            if operand is tensor:
                edge = operand_edge
        if edge is None and i not in context._results and tensor is not None and tensor._requires_grad:
            edge = edge_of(tensor)
        snapshots.append(None if tensor is None else Snapshot(tensor, edge, "saved by a custom function"))
    context._saved = tuple(snapshots)


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a backward whose own operations must not be differentiated: a second derivative raises GradientError."""

    @functools.wraps(backward)
    def wrapped(ctx: Any, *grads: Any) -> Any:
        with no_grad():
            gradients = backward(ctx, *grads)
        edges = [edge_of(g) for g in grads if isinstance(g, Tensor) and g._requires_grad]
        edges += [s.edge for s in getattr(ctx, "_saved", ()) if s is not None and s.edge is not None]
        if not is_grad_enabled() or not edges:
            return gradients
        several = isinstance(gradients, tuple)
        node = _Undifferentiable(tuple(edges))
        results = list(gradients) if several else [gradients]
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
    """Legacy wrapper: a leaf tensor that shares memory with ``data``. Every tensor is an instance of it.

    A ``volatile`` tensor never requires gradients, and neither do tensors computed from it, whatever the other
    operands.
    """

    def __new__(cls, data: Any, requires_grad: bool = False, volatile: bool = False) -> Any:
        result = data.detach()
        if volatile:
            VOLATILE[0] = result._volatile = True
        return result.requires_grad_(requires_grad and not volatile)
