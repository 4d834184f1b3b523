"""``compare``: two models, functions or training steps, or one and its compiled form, layer by layer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

import numpy as np

from graphc.base.errors import ArgumentError, ShapeError
from graphc.monitor.contents import Contents, compared, contents_of
from graphc.monitor.debug import debug
from graphc.monitor.difference import Difference, check_tolerance, difference
from graphc.monitor.holders import MODULE, STATE, Holder, holders_of
from graphc.monitor.packing import Packer, Unpacker
from graphc.nn.compiled_hooks import observer
from graphc.nn.module import Module
from graphc.tape.grad_mode import enable_grad, no_grad
from graphc.tensors.generator import get_rng_state, set_rng_state
from graphc.tensors.placement import on_host
from graphc.tensors.structure import flatten, unflatten
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import refresh
from graphc.tracing.trace import modules_of


class Comparison:
    """The layers in the order in which they were called, and what the calls left behind."""

    def __init__(
        self,
        layers: list[Difference],
        values: Sequence[Difference] = (),
        missing: Sequence[str] = (),
        unseen: Sequence[str] = (),
    ):
        self.layers = layers
        self.unseen = list(unseen)
        """Layers that are called in steps of loops or in branches of compiled code, where nobody sees them."""
        self.values = list(values)
        """Results of functions, gradients (those of the last layer first), tensors and states that were changed."""
        self.missing = list(missing)
        """Layers that were called, and values that were there, in one of the two only."""

    @property
    def first(self) -> Difference | None:
        """The first layer, or value, that differs by more than the tolerance; None where all are the same."""
        return next((layer for layer in [*self.layers, *self.values] if not layer.is_within), None)

    def __bool__(self) -> bool:
        return self.first is None and not self.missing

    def __str__(self) -> str:
        head = f"{'layer':40} {'shape':18} {'absolute':>10} {'relative':>10}"
        first = self.first
        end = "all layers agree" if first is None else f"the first that differs: {first.path or '(model)'}"
        missing = [f"in one of the two only: {', '.join(self.missing)}"] if self.missing else []
        unseen = [f"not seen, inside of loops or branches: {', '.join(self.unseen)}"] if self.unseen else []
        return "\n".join([head, *map(str, self.layers), *map(str, self.values), *missing, *unseen, end])

    def to_dict(self) -> dict[str, Any]:
        """As numbers and texts, for JSON."""
        first = None if self.first is None else self.first.path
        parts = {"layers": self.layers, "values": self.values}
        lists = {"missing": self.missing, "unseen": self.unseen}
        return {**{k: [d._asdict() for d in v] for k, v in parts.items()}, **lists, "first": first}


def compare(
    model: Any, other: Any, *args: Any, tolerance: float | None = None, backward: bool = False, **kwargs: Any
) -> Comparison:
    """Calls ``model(*args, **kwargs)`` and ``other`` with the same arguments and compares the outputs of their modules.

    ``other`` is a compiled ``model``, or another model whose modules have the same paths (compiled or not), such as
    one with other weights or another implementation of a layer. Both begin with the same random numbers, with
    arguments of their own, and all that they have changed is put back. A layer differs where the largest difference,
    divided by the largest element, is beyond ``tolerance``: by default 1e-4 for f32, 1e-10 for f64, and anything for
    whole numbers.

    ``backward``: also the gradients of parameters and inputs, of a sum of the outputs with fixed random weights.
    Functions and training steps, with their ``backward`` and updates, are compared too: the modules that they call,
    then what they return, the gradients that they leave, the last layer first, and the weights, buffers and states
    that they have changed; gradients that one of the two does not keep are left out. Where ``model`` and ``other`` are
    one and the same compiled function or step, the first call runs its Python code.

    In compiled code the layers are seen by hooks, so its kernels are not fused across them; those that are called in
    steps of loops are ``unseen``. Raises ShapeError where
    the outputs of a layer have different shapes, ArgumentError where there is nothing to compare.
    """
    check_tolerance(tolerance)
    is_python = model is other and not isinstance(model, Module)
    for name, value in (("model", model), ("other", other)):
        if not callable(value):
            raise ArgumentError(f"compare: {name} is a {type(value).__name__}, not a Module or a function")
    names = _names(model)
    first = _observed(model, names, args, kwargs, backward, is_python)
    second = _observed(other, {**_names(other), **names}, args, kwargs, backward, False)
    layers = [_layer(key, first.layers[key], second.layers[key], tolerance) for key in _both(first, second)]
    is_function, unseen = not (_is_model(model) and _is_model(other)), first.unseen | second.unseen
    if not layers and not unseen and (_is_model(model) or _is_model(other)):
        raise ArgumentError("compare: the two models have no module of the same path that was called")
    different = [k for k in [*first.layers, *second.layers] if (k in first.layers) != (k in second.layers)]
    missing = [_path(key) for key in different if key[0] not in unseen]
    if _is_step(model) != _is_step(other):  # only one of the two has a loss that may be a layer
        missing = [name for name in missing if name.partition(".")[0] != "loss"]
    values, absent = _values(first, second, tolerance, is_function)
    if is_function and not layers and not values:
        raise ArgumentError("compare: neither modules nor tensors are in what the functions do")
    # NOTE: compiled training functions and steps do not keep gradients that an optimizer has used.
    absent = [name for name in absent if backward or not name.startswith("gradient of ")]
    return Comparison(layers, values, [*missing, *absent], sorted(unseen))


_Key = tuple[str, int, int]
"""Path, number of the call, and number of the tensor."""


class _Observed(NamedTuple):
    """What one of the two did."""

    layers: dict[_Key, tuple[str, np.ndarray]]
    result: Contents
    before: list[Contents]
    after: list[Contents]
    unseen: set[str]
    """Paths of layers that are called where compiled code calls no Python."""


def _both(first: _Observed, second: _Observed) -> list[_Key]:
    return [key for key in first.layers if key in second.layers]


def _is_model(value: Any) -> bool:
    return isinstance(getattr(value, "_target", value), Module)


def _is_step(value: Any) -> bool:
    return hasattr(value, "optimizer") and hasattr(value, "model") and not isinstance(value, Module)


def _roots(value: Any) -> list[tuple[str, Any]]:
    """The modules that a call reaches, with prefixes of their paths."""
    value = getattr(value, "_target", value)
    if _is_step(value):
        losses = modules_of(value.loss) if value.loss is not None else []
        return [*_roots(value.model), *((f"loss.{prefix}", module) for prefix, module in losses)]
    found = [(prefix, getattr(m, "_target", m)) for prefix, m in modules_of(value)]
    if isinstance(value, Module):
        return found
    known = {id(inner) for _, m in found for inner in m.modules()}
    more = [h for h in holders_of([("", value)]) if h.kind == MODULE and id(h.value) not in known]
    if not found and len(more) == 1:
        return [("", more[0].value)]
    return [*found, *((f"{h.name.removeprefix('.')}.", h.value) for h in more)]


def _names(value: Any) -> dict[int, tuple[Any, str]]:
    """By identity the modules that a call reaches, and their paths."""
    found: dict[int, tuple[Any, str]] = {}
    for prefix, root in _roots(value):
        for path, module in root.named_modules() if isinstance(root, Module) else ():
            found.setdefault(id(module), (module, (prefix + path).removesuffix(".") if not path else prefix + path))
    return found


def _observed(
    call: Any, names: Mapping[int, tuple[Any, str]], args: Any, kwargs: Any, backward: bool, is_python: bool
) -> _Observed:
    """Calls it, with copies of the arguments, and puts back what it has changed."""
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
    with _kept(holders), no_grad() if not is_training else enable_grad():
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
        given = [("input", f"input {i}", {"tensors": {}, "gradients": {"": t.grad}}) for i, t in enumerate(own)]
        packer = Packer(lenient=True)
        inputs = [(k, n, packer.pack(c, n)) for k, n, c in given if c["gradients"][""] is not None]
        shown = ("result", "result", Packer(lenient=True).pack(result, "result"))
        return _Observed(layers, shown, before, [*contents_of(holders), *inputs], unseen)


@contextmanager
def _kept(holders: Sequence[Holder]) -> Iterator[None]:
    """Puts back what is changed inside: tensors, gradients, states, random numbers."""
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
        raise ArgumentError("compare: no output has a gradient", remedy="backward=False")
    weights = [Tensor._wrap(rng.standard_normal(t.shape).astype(t.dtype.numpy)) for t in outputs]
    total: Any = None
    for output, weight in zip(outputs, weights, strict=True):
        part = (output * weight.to(output.device)).sum()
        total = part if total is None else total + part
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
    return difference(path, kind, a, b, tolerance)


def _values(
    first: _Observed, second: _Observed, tolerance: float | None, is_function: bool
) -> tuple[list[Difference], list[str]]:
    """What functions return, and what the calls have left behind."""
    pairs = [(first.result, second.result)] if is_function else []
    there = {(kind, name): number for number, (kind, name, _) in enumerate(second.after)}
    by_kind: dict[str, list[int]] = {}
    for number, (kind, _, _) in enumerate(second.after):
        by_kind.setdefault(kind, []).append(number)
    used: dict[str, int] = {}
    for one in first.after:
        kind, name, _ = one
        place = used.get(kind, 0)
        used[kind] = place + 1
        # NOTE: other objects with a state, such as schedules and steps, are of many classes: their order says nothing.
        others = by_kind.get(kind, []) if kind != STATE else []
        number = there.get((kind, name), others[place] if place < len(others) else None)
        if number is not None:
            pairs.append((one, second.after[number]))
    before = {(kind, name): tree for kind, name, tree in first.before}
    values, missing = compared(pairs, tolerance, before)
    order = {f"gradient of {name}": -i for i, name in enumerate(_parameters(first.layers, first.after))}
    gradients = sorted([v for v in values if v.path in order], key=lambda v: order[v.path])
    others = [v for v in values if v.path not in order]
    results = [v for v in others if v.path.startswith("result")]
    return [*results, *gradients, *(v for v in others if v not in results)], missing


def _parameters(layers: Mapping[_Key, Any], after: Sequence[Contents]) -> list[str]:
    """Names of parameters in the order in which their modules were called."""
    found: list[tuple[int, str]] = []
    paths = list(dict.fromkeys(path for path, _, _ in layers))
    for kind, name, tree in after:
        if kind == MODULE:
            for key, _ in next(c for k, c in tree["dict"] if k == {"plain": "gradients"})["dict"]:
                owner = key["plain"].rpartition(".")[0]
                found.append((paths.index(owner) if owner in paths else -1, f"{name}.{key['plain']}"))
    return [name for _, name in sorted(found, key=lambda pair: pair[0])]
