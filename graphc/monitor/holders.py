"""State read and written by a step besides its arguments: modules, optimizers, generators, found from a function."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from graphc.base.errors import ArgumentError
from graphc.nn.module import Module
from graphc.optim.optimizer import Optimizer
from graphc.tape.grad_mode import no_grad
from graphc.tensors.random.generator import Generator
from graphc.tensors.tensor import Tensor

MODULE, OPTIMIZER, GENERATOR, TENSOR, STATE = "module", "optimizer", "generator", "tensor", "state"
_DEEPEST = 6
_TRAINED = ("model", "loss", "optimizer")
"""Attributes to follow in graphc's own compiled steps and schedules."""
_PLAIN = (str, bytes, int, float, bool, type(None), type)


class Holder:
    """Object whose contents a step may read and change."""

    def __init__(self, kind: str, name: str, value: Any):
        self.kind, self.name, self.value = kind, name, value

    def contents(self) -> dict[str, Any]:
        """Return the contents as a tree of tensors, numbers and strings; tensors are not copied."""
        value = self.value
        if self.kind == MODULE:
            tensors = _tensors_of(value)
            return {
                "tensors": tensors,
                "gradients": {n: t.grad for n, t in tensors.items() if t.grad is not None},
                "training": {n: m.training for n, m in value.named_modules()},
            }
        if self.kind == OPTIMIZER:
            params = _params_of(value)
            return {
                "state": value.state_dict(),
                "step_count": value.step_count,
                "tensors": {str(i): p for i, p in enumerate(params)},
                "gradients": {str(i): p.grad for i, p in enumerate(params) if p.grad is not None},
            }
        if self.kind == GENERATOR:
            return {"tensors": {"state": value.get_state()}}
        if self.kind == TENSOR:
            return {
                "tensors": {"": value},
                "gradients": {"": value.grad} if value.is_leaf and value.grad is not None else {},
            }
        return {"state": value.state_dict()}

    def restore(self, contents: Mapping[str, Any]) -> None:
        """Restore recorded contents. Raises ArgumentError for tensors of other names, shapes or element types."""
        value = self.value
        if self.kind == GENERATOR:
            value.set_state(contents["tensors"]["state"])
        elif self.kind == STATE:
            value.load_state_dict(contents["state"])
        elif self.kind == MODULE:
            self._fill(_tensors_of(value), contents)
            for name, module in value.named_modules():
                module.training = contents["training"].get(name, module.training)
        elif self.kind == OPTIMIZER:
            self._fill({str(i): p for i, p in enumerate(_params_of(value))}, contents)
            value.load_state_dict(contents["state"])
            value.step_count = contents["step_count"]
        else:
            self._fill({"": value}, contents)

    def _fill(self, tensors: Mapping[str, Any], contents: Mapping[str, Any]) -> None:
        saved = contents["tensors"]
        shapes = [{n: (t.dtype.name, tuple(t.shape)) for n, t in table.items()} for table in (tensors, saved)]
        if shapes[0] != shapes[1]:
            wrong = next(n for n in {**shapes[1], **shapes[0]} if shapes[0].get(n) != shapes[1].get(n))
            raise ArgumentError(
                f"replay: {self.kind} {self.name!r} has {wrong!r} as {_text(shapes[0].get(wrong))}, and "
                f"{_text(shapes[1].get(wrong))} was recorded",
                remedy="use the recorded model: the same classes and sizes",
            )
        with no_grad():
            for name, tensor in tensors.items():
                tensor.copy_(saved[name])
                if tensor.is_leaf and tensor.requires_grad:
                    tensor.grad = contents["gradients"].get(name)


def _text(kind: tuple[str, tuple[int, ...]] | None) -> str:
    return "nothing" if kind is None else f"{kind[0]}{list(kind[1])}"


def _tensors_of(module: Module) -> dict[str, Any]:
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def _params_of(optimizer: Any) -> list[Any]:
    return [p for group in optimizer.param_groups for p in group["params"]]


def holders_of(roots: Iterable[tuple[str, Any]]) -> list[Holder]:
    """Find the holders reachable from named values through closures, globals, attributes and elements.

    Modules without tensors are skipped, and so are tensors that belong to a module or optimizer.
    """
    holders: list[Holder] = []
    visited: set[int] = set()
    alive: list[Any] = []

    def visit(name: str, value: Any, depth: int) -> None:
        if isinstance(value, _PLAIN) or id(value) in visited or depth > _DEEPEST:
            return
        visited.add(id(value))
        alive.append(value)
        kind = _kind_of(value)
        if kind is not None:
            holders.append(Holder(kind, name, value))
        for child_name, child in _children(name, value, kind):
            visit(child_name, child, depth + 1)

    for name, value in roots:
        visit(name, value, 0)
    # The first holder of a tensor names it: modules name parameters, optimizers name their slots.
    holders = sorted([h for h in holders if h.kind != MODULE or _tensors_of(h.value)], key=_rank)
    owned = {id(t) for h in holders if h.kind == MODULE for t in _tensors_of(h.value).values()}
    inner = {id(m) for h in holders if h.kind == MODULE for n, m in h.value.named_modules() if n}
    owned |= {id(p) for h in holders if h.kind == OPTIMIZER for p in _params_of(h.value)}
    owned |= {id(h.value.state) for h in holders if h.kind == GENERATOR}
    return [h for h in holders if not ((h.kind == TENSOR and id(h.value) in owned) or id(h.value) in inner)]


def _rank(holder: Holder) -> int:
    return {MODULE: 0, OPTIMIZER: 1}.get(holder.kind, 2)


def _kind_of(value: Any) -> str | None:
    if isinstance(value, Module):
        return MODULE
    if isinstance(value, Optimizer):
        return OPTIMIZER
    if isinstance(value, Generator):
        return GENERATOR
    if isinstance(value, Tensor):
        return TENSOR
    if getattr(value, "is_compiled", False):
        return None
    kind = type(value)
    return STATE if callable(getattr(kind, "state_dict", None)) and hasattr(kind, "load_state_dict") else None


def _children(name: str, value: Any, kind: str | None) -> Iterator[tuple[str, Any]]:
    """Yield the named values to which a value refers."""
    if kind in (MODULE, OPTIMIZER, GENERATOR, TENSOR):
        return
    if getattr(value, "is_compiled", False):
        yield name, value._target
    elif isinstance(value, MethodType):
        yield name, value.__self__
        yield name, value.__func__
    elif isinstance(value, functools.partial):
        yield from ((name, child) for child in (value.func, *value.args, *value.keywords.values()))
    elif isinstance(value, FunctionType):
        if _is_of_user(value.__module__):
            yield from values_of(value)
    elif isinstance(value, Mapping):
        yield from ((f"{name}[{key!r}]", child) for key, child in list(value.items()))
    elif isinstance(value, (list, tuple)):
        yield from ((f"{name}[{i}]", child) for i, child in enumerate(value))
    elif hasattr(value, "__dict__"):
        is_followed = _is_of_user(type(value).__module__)
        yield from (
            (f"{name}.{key}", child) for key, child in list(vars(value).items()) if is_followed or key in _TRAINED
        )


def _is_of_user(module: str | None) -> bool:
    top = (module or "").partition(".")[0]
    return (top not in sys.stdlib_module_names and top not in ("graphc", "numpy")) or top == "__main__"


def values_of(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of a function's free variables, globals and defaults."""
    code = function.__code__
    cells = function.__closure__ or ()
    for name, cell in zip(code.co_freevars, cells, strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    yield from globals_of(code, function.__globals__)
    wrapped = getattr(function, "__wrapped__", None)
    if wrapped is not None:
        yield function.__name__, wrapped
    yield from ((function.__name__, value) for value in (function.__defaults__ or ()))


def globals_of(code: CodeType, table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the globals that code and its inner functions refer to; for the user's Python modules, their attributes."""
    for name in code.co_names:
        value = table.get(name)
        if isinstance(value, ModuleType):
            if _is_of_user(value.__name__):
                yield from ((f"{name}.{n}", vars(value)[n]) for n in code.co_names if n in vars(value) and n != name)
        elif name in table:
            yield name, value
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from globals_of(constant, table)


def matched(recorded: Sequence[tuple[str, str]], present: Sequence[Holder]) -> list[Holder | None]:
    """Match each recorded holder (kind and name) with a present one: by name, or in order if the counts are equal.

    An unmatched holder of kind ``state``, ``tensor`` or ``generator`` becomes None; an unmatched module or optimizer
    raises ArgumentError.
    """
    matches: list[Holder | None] = []
    for kind in dict.fromkeys(kind for kind, _ in recorded):
        names = [name for k, name in recorded if k == kind]
        candidates = [h for h in present if h.kind == kind]
        by_name = {h.name: h for h in candidates}
        if set(names) <= set(by_name):
            matches += [by_name[n] for n in names]
        elif len(candidates) == len(names):
            matches += candidates
        elif kind in (MODULE, OPTIMIZER):
            raise ArgumentError(
                f"replay: {len(names)} {kind}s were recorded ({', '.join(names)}), and the function reaches "
                f"{len(candidates)} ({', '.join(h.name for h in candidates) or 'none'})",
                remedy=f"pass {'model' if kind == MODULE else kind}= to replay, one or a list in this order",
            )
        else:
            matches += [by_name.get(n) for n in names]
    order = [i for kind in dict.fromkeys(k for k, _ in recorded) for i in _indices(recorded, kind)]
    by_index = dict(zip(order, matches, strict=True))
    return [by_index[i] for i in range(len(recorded))]


def _indices(recorded: Sequence[tuple[str, str]], kind: str) -> list[int]:
    return [i for i, (k, _) in enumerate(recorded) if k == kind]
