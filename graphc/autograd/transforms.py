"""Function transforms: functions that compute derivatives of a function, in eager mode and in traces."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphc.autograd import engine
from graphc.autograd.forward_ad import dual_level, make_dual, unpack_dual
from graphc.base.errors import ArgumentError, DTypeError, GradientError
from graphc.ops.effects.state import untracked
from graphc.ops.movement.shape import reshape, zeros_like
from graphc.tape.grad_mode import enable_grad, is_grad_enabled
from graphc.tape.node import AccumulateGrad, Node
from graphc.tensors.matching import Sides, matched
from graphc.tensors.structure import Structure, flatten, unflatten
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import edge_of, front, refresh


def _fresh(tensor: Tensor) -> Tensor:
    """Return a tensor of the same value that requires gradients, connected to ``tensor`` if recording is on."""
    if not tensor.dtype.is_differentiable:
        raise DTypeError(
            f"a gradient needs floating-point arguments, got {tensor.dtype.name}", remedy="pass tensor.float()"
        )
    return front().own(reshape(tensor, shape=tensor.shape)).requires_grad_()


def _without_history(tensor: Tensor, stop: bool) -> Tensor:
    """Detach a tensor and its tangents.

    Without ``stop``, a trace does not record the detach, so that its graph can be differentiated later. With it, the
    trace keeps the tangents of a surrounding ``jvp``, which the graph of a ``vmap`` gets only after it was traced.
    """
    here = refresh(front().local(tensor))
    traced = not isinstance(here._data, np.ndarray)
    stopped = untracked if traced else Tensor.detach
    result = Tensor._wrap(here._data) if traced and not stop else stopped(tensor)
    if tensor._tangents is not None:
        result._tangents = {level: _without_history(tangent, stop) for level, tangent in tensor._tangents.items()}
    return result


def selected(argnums: int | Sequence[int], args: tuple[Any, ...]) -> tuple[int, ...]:
    """Return the non-negative argument numbers in ``argnums``. Raises ArgumentError for one out of range."""
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    for n in numbers:
        if not -len(args) <= n < len(args):
            raise ArgumentError(f"argnums names argument {n}, the call has {len(args)}")
    return tuple(n % len(args) for n in numbers)


class _Call:
    """Call of a function with some arguments as variables to differentiate by."""

    def __init__(self, function: Callable[..., Any], argnums: int | Sequence[int], args: Any, kwargs: Any):
        self.create_graph = is_grad_enabled()
        """Whether the surrounding code is recorded, so that the gradient itself must be differentiable."""
        chosen = selected(argnums, args)
        self.trees: list[tuple[int, Structure]] = []
        self.leaves: list[Tensor] = []
        replaced = list(args)
        with enable_grad():
            for n in chosen:
                leaves, structure = flatten(args[n])
                if not leaves:
                    raise ArgumentError(
                        f"argument {n} holds no tensor: it is a {type(args[n]).__name__}",
                        remedy="pass the parameters of a module as dict(module.named_parameters()), and call it by "
                        "graphc.func.functional_call(module, parameters, x)",
                    )
                fresh = [_fresh(leaf) for leaf in leaves]
                self.leaves += fresh
                self.trees.append((len(fresh), structure))
                replaced[n] = unflatten(structure, fresh)
            self.output = function(*replaced, **kwargs)

    def gradients(self, outputs: Sequence[Tensor], weights: Sequence[Any] | None, keep: bool = False) -> list[Any]:
        """Compute one tree of gradients for each chosen argument."""
        flat = engine.grad(
            outputs,
            self.leaves,
            weights,
            retain_graph=keep or self.create_graph,
            create_graph=self.create_graph,
            materialize_grads=True,
        )
        trees = []
        at = 0
        for count, structure in self.trees:
            trees.append(unflatten(structure, flat[at : at + count]))
            at += count
        return trees

    def scalar(self, output: Any) -> Any:
        """Return the output if it is one number; raise GradientError otherwise."""
        if not isinstance(output, Tensor) or output.numel() != 1:
            actual = list(output.shape) if isinstance(output, Tensor) else type(output).__name__
            raise GradientError(f"grad needs a function that returns one number, got {actual}", remedy="use graphc.vjp")
        return output

    def zero(self) -> Tensor:
        """Return a 0 that depends on all variables with gradient 0."""
        with enable_grad():
            terms = [(leaf * 0).sum().float() for leaf in self.leaves]
            return functools.reduce(operator.add, terms)

    def finished(self, tree: Any) -> Any:
        """Drop the history of results, unless it leads to a tensor of the surrounding code."""
        leaves, structure = flatten(tree)
        if self.create_graph and _reaches_others(leaves, [edge_of(leaf)[0] for leaf in self.leaves]):
            return tree
        return unflatten(structure, [_without_history(leaf, not self.create_graph) for leaf in leaves])


def _reaches_others(results: Sequence[Tensor], own: Sequence[Node]) -> bool:
    """Check whether the graph of ``results`` and their tangents reaches a leaf other than ``own``."""
    tensors = list(results)
    for tensor in tensors:
        tensors += (tensor._tangents or {}).values()
    stack = [t._node for t in tensors if t._node is not None]
    visited: set[int] = set()
    while stack:
        node = stack.pop()
        if id(node) in visited:
            continue
        visited.add(id(node))
        if isinstance(node, AccumulateGrad) and not any(node is n for n in own):
            return True
        stack.extend(edge[0] for edge in node.edges if edge is not None)
    return False


def value_and_grad(
    func: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Return a function that computes (value, gradient) of ``func``, which returns one number.

    The gradient is by argument ``argnums`` (a tuple for several), and has the argument's structure: a tensor or nested
    containers of tensors. With ``has_aux``, ``func`` returns (number, anything), and so does the value. Raises
    GradientError if ``func`` returns anything else, ArgumentError for a wrong ``argnums``.

    Example:
        >>> import graphc as gc
        >>> gc.value_and_grad(lambda x: (x**2).sum())(gc.tensor([1.0, 2.0]))
        (tensor(5.), tensor([2., 4.]))
    """

    @functools.wraps(func, updated=())
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        call = _Call(func, argnums, args, kwargs)
        value = call.output
        if has_aux and not (isinstance(value, tuple) and len(value) == 2):
            raise ArgumentError("with has_aux the function must return (number, anything)")
        result = call.scalar(value[0] if has_aux else value)
        trees = call.gradients([result if result.requires_grad else call.zero()], None)
        return call.finished((value, trees[0] if isinstance(argnums, int) else tuple(trees)))

    return wrapped


def grad(func: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that computes the gradient of a scalar function.

    Args:
        func: function that returns a tensor of one element.
        argnums: position of the argument to differentiate by, or a tuple of several.
        has_aux: ``func`` returns (scalar, anything).

    Returns:
        A function with the arguments of ``func`` that returns the gradient, with the structure of the argument (a tuple
        of gradients for several); with ``has_aux``, (gradient, anything).

    Raises:
        GradientError: in a call, ``func`` returns anything but a scalar.
        ArgumentError: in a call, there is no argument ``argnums``.

    Example:
        >>> import graphc as gc
        >>> derivative = gc.func.grad(lambda x: (x**2).sum())
        >>> derivative(gc.tensor([1.0, 2.0]))
        tensor([2., 4.])
    """
    value_and_gradient = value_and_grad(func, argnums, has_aux)

    @functools.wraps(func, updated=())
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        value, gradient = value_and_gradient(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapped


def grad_and_value(
    func: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Return a function that computes (gradient, value) of ``func``; see ``value_and_grad``."""
    value_and_gradient = value_and_grad(func, argnums, has_aux)

    @functools.wraps(func, updated=())
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return value_and_gradient(*args, **kwargs)[::-1]

    return wrapped


def jvp(
    func: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], *, has_aux: bool = False
) -> tuple[Any, ...]:
    """Return (output, tangent), with the directional derivative of ``func(*primals)`` along ``tangents``.

    Tangents are nested like the primals. The derivative is computed by a single pass in forward mode. With ``has_aux``,
    ``func`` returns (output, anything), and the result is (output, tangent, anything). Raises ArgumentError, ShapeError
    or DTypeError for unsuitable tangents, GradientError for a custom Function without jvp.

    Example:
        >>> import graphc as gc
        >>> gc.func.jvp(lambda x: x**2, (gc.tensor([1.0, 2.0]),), (gc.tensor([1.0, 10.0]),))
        (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    variables, structure = flatten(tuple(primals))
    if not variables:
        raise ArgumentError("jvp: the primals hold no tensor")
    directions = matched(structure, tuple(tangents), _tangents_of("jvp"))
    with dual_level() as level:
        duals = [make_dual(x, t, level=level) for x, t in zip(variables, directions, strict=True)]
        output, extra = _with_aux(func(*unflatten(structure, duals)), has_aux)
        results, nested = flatten(output)
        pairs = [unpack_dual(r, level=level) for r in results]
        pushed = [zeros_like(r) if t is None else t for r, t in pairs]
    result = unflatten(nested, [r for r, _ in pairs]), unflatten(nested, pushed)
    return (*result, extra) if has_aux else result


def _with_aux(result: Any, has_aux: bool) -> tuple[Any, Any]:
    if not has_aux:
        return result, None
    if not (isinstance(result, tuple) and len(result) == 2):
        raise ArgumentError("with has_aux the function must return (output, anything)")
    return result


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Return the output of a function, and a function that pulls gradients back to its arguments.

    Args:
        func: function of tensors or nested containers of tensors.
        primals: arguments of ``func``.
        has_aux: ``func`` returns (output, anything).

    Returns:
        (output, pull), with ``has_aux`` (output, pull, anything). ``pull(weights)`` takes weights with the structure of
        the output and returns a tuple with the gradient of each primal.

    Raises:
        ArgumentError: the weights are not nested as the output.

    Example:
        >>> import graphc as gc
        >>> output, pull = gc.func.vjp(lambda x: x**2, gc.tensor([1.0, 2.0]))
        >>> output
        tensor([1., 4.])
        >>> pull(gc.tensor([1.0, 10.0]))
        (tensor([ 2., 40.]),)
    """
    call = _Call(func, tuple(range(len(primals))), primals, {})
    output, extra = _with_aux(call.output, has_aux)
    results, structure = flatten(output)

    def pull(weights: Any) -> tuple[Any, ...]:
        cotangents = matched(structure, weights, Sides("vjp", "weights", "in the output", "in the weights"))
        pairs = [(r, w) for r, w in zip(results, cotangents, strict=True) if r.requires_grad]
        if not pairs:
            return call.finished(tuple(call.gradients([call.zero()], None, keep=True)))
        return call.finished(tuple(call.gradients([r for r, _ in pairs], [w for _, w in pairs], keep=True)))

    value = call.finished(output)
    return (value, pull, extra) if has_aux else (value, pull)


def _tangents_of(function: str) -> Sides:
    return Sides(function, "tangents", "in the primals", "in the tangents")


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """Return (output, push), where ``push(*tangents)`` computes the tangent of the output, as ``jvp`` does.

    Tangents are nested like the primals. ``func`` is called once, here; ``push`` differentiates its reverse pass.
    """
    output, pull = vjp(func, *primals)
    results, structure = flatten(output)
    _, shape = flatten(tuple(primals))
    with enable_grad():
        weights = [zeros_like(r.detach()).requires_grad_() for r in results]
        pulled = flatten(pull(unflatten(structure, weights)))[0]

    def push(*tangents: Any) -> Any:
        directions = matched(shape, tuple(tangents), _tangents_of("linearize"))
        pairs = [(p, t) for p, t in zip(pulled, directions, strict=True) if p.requires_grad]
        if not pairs:
            return unflatten(structure, [zeros_like(r.detach()) for r in results])
        pushed = engine.grad(
            [p for p, _ in pairs],
            weights,
            [t for _, t in pairs],
            retain_graph=True,
            materialize_grads=True,
        )
        return unflatten(structure, list(pushed))

    return output, push
