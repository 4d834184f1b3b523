"""Function transforms: the gradient of a function as a function, eagerly and under trace."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError, DTypeError, GradientError
from graphc.eager import engine
from graphc.eager.forward_ad import dual_level, make_dual, unpack_dual
from graphc.ops.shape import reshape, zeros_like
from graphc.tape.grad_mode import enable_grad, is_grad_enabled
from graphc.tape.node import AccumulateGrad, Node
from graphc.tensors.structure import Structure, flatten, unflatten
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import edge_of, front, refresh


def _fresh(tensor: Tensor) -> Tensor:
    """A tensor of the same value that requires gradients; connected to ``tensor`` where that is recorded."""
    if not tensor.dtype.is_differentiable:
        raise DTypeError(f"a gradient needs floating-point arguments, got {tensor.dtype.name}", remedy="tensor.float()")
    return front().own(reshape(tensor, shape=tensor.shape)).requires_grad_()


def _without_history(tensor: Tensor, stop: bool) -> Tensor:
    """As detach(), but with tangents, which lose their history too. Without ``stop`` a trace takes no note of it, so
    that the graph can be differentiated by whoever applies it."""
    here = refresh(front().local(tensor))
    traced = not isinstance(here._data, np.ndarray)
    result = Tensor._wrap(here._data) if traced and not stop else tensor.detach()
    if tensor._tangents is not None:
        result._tangents = {level: _without_history(tangent, stop) for level, tangent in tensor._tangents.items()}
    return result


def selected(argnums: int | Sequence[int], args: tuple[Any, ...]) -> tuple[int, ...]:
    """The numbers of the arguments that ``argnums`` names, none of them negative; raises ArgumentError."""
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    for n in numbers:
        if not -len(args) <= n < len(args):
            raise ArgumentError(f"argnums names argument {n}, the call has {len(args)}")
    return tuple(n % len(args) for n in numbers)


class _Call:
    """One call of a function with some of its arguments made variables."""

    def __init__(self, function: Callable[..., Any], argnums: int | Sequence[int], args: Any, kwargs: Any):
        self.create_graph = is_grad_enabled()
        """Whether what surrounds this call is recorded, so that the gradient itself may be differentiated."""
        chosen = selected(argnums, args)
        self.trees: list[tuple[int, Structure]] = []
        self.leaves: list[Tensor] = []
        replaced = list(args)
        with enable_grad():
            for n in chosen:
                leaves, structure = flatten(args[n])
                if not leaves:
                    raise ArgumentError(f"argument {n} holds no tensor")
                fresh = [_fresh(leaf) for leaf in leaves]
                self.leaves += fresh
                self.trees.append((len(fresh), structure))
                replaced[n] = unflatten(structure, fresh)
            self.output = function(*replaced, **kwargs)

    def gradients(self, outputs: Sequence[Tensor], weights: Sequence[Any] | None, keep: bool = False) -> list[Any]:
        """One tree of gradients per chosen argument."""
        found = engine.grad(
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
            trees.append(unflatten(structure, found[at : at + count]))
            at += count
        return trees

    def scalar(self, output: Any) -> Any:
        """The output, which must be one number with a gradient."""
        if not isinstance(output, Tensor) or output.numel() != 1:
            shown = list(output.shape) if isinstance(output, Tensor) else type(output).__name__
            raise GradientError(f"grad needs a function that returns one number, got {shown}", remedy="graphc.vjp")
        return output

    def nothing(self) -> Tensor:
        """A number that depends on all variables with gradient 0."""
        with enable_grad():
            parts = [(leaf * 0).sum().float() for leaf in self.leaves]
            return functools.reduce(operator.add, parts)

    def finished(self, tree: Any) -> Any:
        """Results as the caller gets them: with history only where it leads to a tensor of the surroundings."""
        leaves, structure = flatten(tree)
        if self.create_graph and _reaches_others(leaves, [edge_of(leaf)[0] for leaf in self.leaves]):
            return tree
        return unflatten(structure, [_without_history(leaf, not self.create_graph) for leaf in leaves])


def _reaches_others(results: Sequence[Tensor], own: Sequence[Node]) -> bool:
    """Whether the graph behind ``results`` and their tangents ends at a leaf that is not among ``own``."""
    every = list(results)
    for tensor in every:
        every += (tensor._tangents or {}).values()
    stack = [t._node for t in every if t._node is not None]
    seen: set[int] = set()
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, AccumulateGrad) and not any(node is n for n in own):
            return True
        stack.extend(edge[0] for edge in node.edges if edge is not None)
    return False


def value_and_grad(
    func: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that returns (value, gradient) of ``func``, which returns one number.

    The gradient is with respect to argument ``argnums`` (a tuple for several): a tensor, or nested containers of them
    in the argument's structure. With ``has_aux`` the function returns (number, anything), and so does the value.
    """

    @functools.wraps(func, updated=())
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        call = _Call(func, argnums, args, kwargs)
        value = call.output
        if has_aux and not (isinstance(value, tuple) and len(value) == 2):
            raise ArgumentError("with has_aux the function returns (number, anything)")
        result = call.scalar(value[0] if has_aux else value)
        trees = call.gradients([result if result.requires_grad else call.nothing()], None)
        return call.finished((value, trees[0] if isinstance(argnums, int) else tuple(trees)))

    return wrapped


def grad(func: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns the gradient of ``func``, which returns one number; see ``value_and_grad``.

    With ``has_aux`` it returns (gradient, anything).
    """
    both = value_and_grad(func, argnums, has_aux)

    @functools.wraps(func, updated=())
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapped


def grad_and_value(
    func: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """As ``value_and_grad``, but what it returns is (gradient, value)."""
    both = value_and_grad(func, argnums, has_aux)

    @functools.wraps(func, updated=())
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return both(*args, **kwargs)[::-1]

    return wrapped


def jvp(
    func: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], *, has_aux: bool = False
) -> tuple[Any, ...]:
    """(output, tangent): the directional derivative of ``function(*primals)`` along ``tangents``, which are nested as
    the primals are. With ``has_aux`` the function returns (output, anything), and the anything comes third.

    Forward mode: one pass that takes tangents along. Raises ArgumentError, ShapeError and DTypeError for tangents that
    do not fit, GradientError for a custom Function without jvp.
    """
    variables, structure = flatten(tuple(primals))
    given, shape = flatten(tuple(tangents))
    if shape != structure or not variables:
        raise ArgumentError("the tangents of jvp must be tensors nested as the primals are")
    with dual_level() as level:
        duals = [make_dual(x, t, level=level) for x, t in zip(variables, given, strict=True)]
        output, extra = _with_aux(func(*unflatten(structure, duals)), has_aux)
        results, nested = flatten(output)
        pairs = [unpack_dual(r, level=level) for r in results]
        pushed = [zeros_like(r) if t is None else t for r, t in pairs]
    shown = unflatten(nested, [r for r, _ in pairs]), unflatten(nested, pushed)
    return (*shown, extra) if has_aux else shown


def _with_aux(result: Any, has_aux: bool) -> tuple[Any, Any]:
    if not has_aux:
        return result, None
    if not (isinstance(result, tuple) and len(result) == 2):
        raise ArgumentError("with has_aux the function returns (output, anything)")
    return result


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """(output, pull): ``pull(weights)``, with weights in the structure of the output, gives a tuple with the gradient
    of each primal. With ``has_aux`` the function returns (output, anything), and the anything comes third."""
    call = _Call(func, tuple(range(len(primals))), primals, {})
    output, extra = _with_aux(call.output, has_aux)
    results, structure = flatten(output)

    def pull(weights: Any) -> tuple[Any, ...]:
        given, shape = flatten(weights)
        if shape != structure:
            raise ArgumentError("the weights of vjp must be nested as the output of the function is")
        pairs = [(r, w) for r, w in zip(results, given, strict=True) if r.requires_grad]
        if not pairs:
            return call.finished(tuple(call.gradients([call.nothing()], None, keep=True)))
        return call.finished(tuple(call.gradients([r for r, _ in pairs], [w for _, w in pairs], keep=True)))

    shown = call.finished(output)
    return (shown, pull, extra) if has_aux else (shown, pull)


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """(output, push): ``push(*tangents)``, with tangents nested as the primals, is the tangent of the output, that of
    ``jvp``. The function is called once, here; ``push`` is the reverse of its reverse."""
    output, pull = vjp(func, *primals)
    results, structure = flatten(output)
    _, shape = flatten(tuple(primals))
    with enable_grad():
        weights = [zeros_like(r.detach()).requires_grad_() for r in results]
        pulled = flatten(pull(unflatten(structure, weights)))[0]

    def push(*tangents: Any) -> Any:
        given, nested = flatten(tuple(tangents))
        if nested != shape:
            raise ArgumentError("the tangents of linearize must be tensors nested as the primals are")
        pairs = [(p, t) for p, t in zip(pulled, given, strict=True) if p.requires_grad]
        if not pairs:
            return unflatten(structure, [zeros_like(r.detach()) for r in results])
        found = engine.grad(
            [p for p, _ in pairs],
            weights,
            [t for _, t in pairs],
            retain_graph=True,
            materialize_grads=True,
        )
        return unflatten(structure, list(found))

    return output, push
