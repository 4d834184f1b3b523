"""``compare``: compare two models, functions or training steps, or one and its compiled form, layer by layer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

import numpy as np

from graphc.base.difference import Difference
from graphc.base.errors import ArgumentError, ShapeError
from graphc.monitor.contents import (
    HEAD,
    Contents,
    check_tolerance,
    compared,
    contents_of,
    fields,
    row,
    scaled_difference,
)
from graphc.monitor.debug import debug
from graphc.monitor.holders import MODULE, STATE, Holder, holders_of
from graphc.monitor.packing import Packer, Unpacker
from graphc.nn.compiled_hooks import observer
from graphc.nn.module import Module
from graphc.tape.grad_mode import enable_grad, no_grad
from graphc.tensors.placement import on_host
from graphc.tensors.random.generator import get_rng_state, set_rng_state
from graphc.tensors.structure import flatten, unflatten
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import refresh
from graphc.tracing.trace import modules_of


class Comparison:
    """Result of ``compare``: layers in the order of their calls, results, and side effects."""

    def __init__(
        self,
        layers: list[Difference],
        values: Sequence[Difference] = (),
        missing: Sequence[str] = (),
        unseen: Sequence[str] = (),
    ):
        self.layers = layers
        self.unseen = list(unseen)
        """Layers called inside loops or branches of compiled code, which hooks cannot observe."""
        self.values = list(values)
        """Results of functions, gradients (last layer first), and tensors and states that were changed."""
        self.missing = list(missing)
        """Layers that only one of the two called, and values that only one of them has."""

    @property
    def first(self) -> Difference | None:
        """First layer or value outside the tolerance, or None."""
        return next((layer for layer in [*self.layers, *self.values] if not layer.is_within), None)

    def __bool__(self) -> bool:
        return self.first is None and not self.missing

    def __str__(self) -> str:
        first = self.first
        end = "all layers agree" if first is None else f"the first that differs: {first.path or '(model)'}"
        missing = [f"in one of the two only: {', '.join(self.missing)}"] if self.missing else []
        unseen = [f"not seen, inside of loops or branches: {', '.join(self.unseen)}"] if self.unseen else []
        return "\n".join([HEAD, *map(row, [*self.layers, *self.values]), *missing, *unseen, end])

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as numbers and strings, for JSON."""
        first = None if self.first is None else self.first.path
        differences = {"layers": self.layers, "values": self.values}
        lists = {"missing": self.missing, "unseen": self.unseen}
        return {**{k: [fields(d) for d in v] for k, v in differences.items()}, **lists, "first": first}


def compare(
    model: Any, other: Any, *args: Any, tolerance: float | None = None, backward: bool = False, **kwargs: Any
) -> Comparison:
    """Call ``model`` and ``other`` with the same arguments, and compare the outputs of their modules.

    Both calls start from the same random numbers and have their own copies of the arguments; changed state is restored.
    Functions and training steps are compared too, by results, gradients, weights and states. docs/debugging.md says
    more.

    Args:
        model: a Module, function or training step.
        other: the compiled ``model``, or another model whose modules have the same paths.
        args: arguments of the call.
        tolerance: largest allowed difference, divided by the largest element of ``model``'s value (default: 1e-4 for
            f32, 1e-9 for f64, 0 for integers).
        backward: also compare the gradients of parameters and inputs, for a sum of the outputs with fixed random
            weights.
        kwargs: keyword arguments of the call.

    Returns:
        The Comparison; it is true if all layers and values agree. Layers called inside loops are in ``unseen``.

    Raises:
        ShapeError: a layer's outputs have different shapes.
        ArgumentError: the two have no layers or tensors in common.

    Example:
        >>> import graphc as gc
        >>> model = gc.nn.Sequential(gc.nn.Linear(3, 4), gc.nn.ReLU())
        >>> report = gc.compare(model, gc.compile(model), gc.ones(2, 3))
        >>> bool(report), [layer.path for layer in report.layers]
        (True, ['0', '1', ''])
    """
    check_tolerance(tolerance)
    is_python = model is other and not isinstance(model, Module)
    for name, value in (("model", model), ("other", other)):
        if not callable(value):
            raise ArgumentError(f"compare: {name} is a {type(value).__name__}, not a Module or a function")
    names = _names(model)
    first = _observe(model, names, args, kwargs, backward, is_python)
    second = _observe(other, {**_names(other), **names}, args, kwargs, backward, False)
    layers = [_layer(key, first.layers[key], second.layers[key], tolerance) for key in _both(first, second)]
    is_function, unseen = not (_is_model(model) and _is_model(other)), first.unseen | second.unseen
    if not layers and not unseen and (_is_model(model) or _is_model(other)):
        raise ArgumentError("compare: the two models called no module of the same path")
    different = [k for k in [*first.layers, *second.layers] if (k in first.layers) != (k in second.layers)]
    missing = [_path(key) for key in different if key[0] not in unseen]
    if _is_step(model) != _is_step(other):  # only one of the two has a loss that may be a layer
        missing = [name for name in missing if name.partition(".")[0] != "loss"]
    values, absent = _values(first, second, tolerance, is_function)
    if is_function and not layers and not values:
        raise ArgumentError("compare: the functions call no modules and return no tensors")
    # NOTE: compiled training functions and steps drop gradients after the optimizer's step.
    absent = [name for name in absent if backward or not name.startswith("gradient of ")]
    return Comparison(layers, values, [*missing, *absent], sorted(unseen))


_Key = tuple[str, int, int]
"""Path of the module, index of the call, and index of the output tensor."""


class _Observation(NamedTuple):
    """Observation of one of the two calls."""

    layers: dict[_Key, tuple[str, np.ndarray]]
    result: Contents
    before: list[Contents]
    after: list[Contents]
    unseen: set[str]
    """Paths of layers whose calls in compiled code run no Python hook."""


def _both(first: _Observation, second: _Observation) -> list[_Key]:
    return [key for key in first.layers if key in second.layers]


def _is_model(value: Any) -> bool:
    return isinstance(getattr(value, "_target", value), Module)


def _is_step(value: Any) -> bool:
    return hasattr(value, "optimizer") and hasattr(value, "model") and not isinstance(value, Module)


def _roots(value: Any) -> list[tuple[str, Any]]:
    """List the modules reachable from a call, with prefixes of their paths."""
    value = getattr(value, "_target", value)
    if _is_step(value):
        losses = modules_of(value.loss) if value.loss is not None else []
        return [*_roots(value.model), *((f"loss.{prefix}", module) for prefix, module in losses)]
    modules = [(prefix, getattr(m, "_target", m)) for prefix, m in modules_of(value)]
    if isinstance(value, Module):
        return modules
    known_ids = {id(inner) for _, m in modules for inner in m.modules()}
    more = [h for h in holders_of([("", value)]) if h.kind == MODULE and id(h.value) not in known_ids]
    if not modules and len(more) == 1:
        return [("", more[0].value)]
    return [*modules, *((f"{h.name.removeprefix('.')}.", h.value) for h in more)]


def _names(value: Any) -> dict[int, tuple[Any, str]]:
    """Map the identity of each module reachable from a call to the module and its path."""
    paths: dict[int, tuple[Any, str]] = {}
    for prefix, root in _roots(value):
        for path, module in root.named_modules() if isinstance(root, Module) else ():
            paths.setdefault(id(module), (module, (prefix + path).removesuffix(".") if not path else prefix + path))
    return paths


def _observe(
    call: Any, names: Mapping[int, tuple[Any, str]], args: Any, kwargs: Any, backward: bool, is_python: bool
) -> _Observation:
    """Make one call with copies of the arguments, and restore all state it changes."""
    layers: dict[_Key, tuple[str, np.ndarray]] = {}
    calls: dict[str, int] = {}
    unseen: set[str] = set()

    def look(path: str) -> Any:
        def hook(module: Any, inputs: Any, output: Any) -> None:
            number = calls[path] = calls.get(path, -1) + 1
            for i, tensor in enumerate(t for t in flatten(output)[0] if isinstance(t, Tensor)):
                layers[path, number, i] = (type(module).__name__, np.array(on_host(refresh(tensor.detach())._data)))

        return observer(hook, lambda module: unseen.add(path))

    holders = holders_of([("model", getattr(call, "_target", call)), *((p.strip("."), m) for p, m in _roots(call))])
    is_training = backward or not _is_model(call)
    with _restored(holders), no_grad() if not is_training else enable_grad():
        leaves, nested = flatten((args, kwargs))
        own = [t.detach().clone().requires_grad_(t.requires_grad) for t in leaves]
        own_args, own_kwargs = unflatten(nested, own)
        before = contents_of(holders)
        handles = [m.register_forward_hook(look(path)) for m, path in names.values()]
        try:
            with debug(eager=True, ops=False, stream=False) if is_python else nullcontext():
                result = call(*own_args, **own_kwargs)
            if backward:
                _backward(result)
        finally:
            for handle in handles:
                handle.remove()
        input_gradients = [
            ("input", f"input {i}", {"tensors": {}, "gradients": {"": t.grad}}) for i, t in enumerate(own)
        ]
        packer = Packer(lenient=True)
        inputs = [(k, n, packer.pack(c, n)) for k, n, c in input_gradients if c["gradients"][""] is not None]
        result_contents = ("result", "result", Packer(lenient=True).pack(result, "result"))
        return _Observation(layers, result_contents, before, [*contents_of(holders), *inputs], unseen)


@contextmanager
def _restored(holders: Sequence[Holder]) -> Iterator[None]:
    """Restore tensors, gradients, states and random numbers after the block."""
    packer = Packer()
    with no_grad():
        numbers, saved = get_rng_state(), [packer.pack(h.contents(), h.name) for h in holders]
    try:
        yield
    finally:
        unpacker = Unpacker()
        with no_grad():
            for holder, tree in zip(holders, saved, strict=True):
                holder.restore(unpacker.unpack(tree))
        set_rng_state(numbers)


def _backward(result: Any) -> None:
    rng = np.random.default_rng(0)
    outputs = [t for t in flatten(result)[0] if t.requires_grad and t.dtype.is_floating_point]
    if not outputs:
        raise ArgumentError("compare: no output has a gradient", remedy="pass backward=False")
    weights = [Tensor._wrap(rng.standard_normal(t.shape).astype(t.dtype.numpy)) for t in outputs]
    total: Any = None
    for output, weight in zip(outputs, weights, strict=True):
        term = (output * weight.to(output.device)).sum()
        total = term if total is None else total + term
    total.backward()


def _path(key: _Key) -> str:
    return (key[0] or "(model)") + (f" call {key[1] + 1}" if key[1] else "") + (f" output {key[2]}" if key[2] else "")


def _layer(
    key: _Key, first: tuple[str, np.ndarray], second: tuple[str, np.ndarray], tolerance: float | None
) -> Difference:
    (kind, a), (_, b) = first, second
    path = key[0] + (f" call {key[1] + 1}" if key[1] else "") + (f" output {key[2]}" if key[2] else "")
    if a.shape != b.shape:
        raise ShapeError(f"compare: {path or 'the model'} returns {list(a.shape)} and {list(b.shape)}")
    return scaled_difference(path, b, a, tolerance, module=kind)


def _values(
    first: _Observation, second: _Observation, tolerance: float | None, is_function: bool
) -> tuple[list[Difference], list[str]]:
    """Compare the results of functions, and the contents of holders after the calls."""
    pairs = [(first.result, second.result)] if is_function else []
    index_of = {(kind, name): number for number, (kind, name, _) in enumerate(second.after)}
    by_kind: dict[str, list[int]] = {}
    for number, (kind, _, _) in enumerate(second.after):
        by_kind.setdefault(kind, []).append(number)
    used: dict[str, int] = {}
    for contents in first.after:
        kind, name, _ = contents
        position = used.get(kind, 0)
        used[kind] = position + 1
        # NOTE: objects of kind STATE are of many classes (schedules, steps), so their order does not match them.
        others = by_kind.get(kind, []) if kind != STATE else []
        number = index_of.get((kind, name), others[position] if position < len(others) else None)
        if number is not None:
            pairs.append((contents, second.after[number]))
    before = {(kind, name): tree for kind, name, tree in first.before}
    values, missing = compared(pairs, tolerance, before)
    order = {f"gradient of {name}": -i for i, name in enumerate(_parameters(first.layers, first.after))}
    gradients = sorted([v for v in values if v.path in order], key=lambda v: order[v.path])
    others = [v for v in values if v.path not in order]
    results = [v for v in others if v.path.startswith("result")]
    return [*results, *gradients, *(v for v in others if v not in results)], missing


def _parameters(layers: Mapping[_Key, Any], after: Sequence[Contents]) -> list[str]:
    """List the names of parameters in the order in which their modules were called."""
    ranked: list[tuple[int, str]] = []
    paths = list(dict.fromkeys(path for path, _, _ in layers))
    for kind, name, tree in after:
        if kind == MODULE:
            for key, _ in next(c for k, c in tree["dict"] if k == {"plain": "gradients"})["dict"]:
                owner = key["plain"].rpartition(".")[0]
                ranked.append((paths.index(owner) if owner in paths else -1, f"{name}.{key['plain']}"))
    return [name for _, name in sorted(ranked, key=lambda pair: pair[0])]
