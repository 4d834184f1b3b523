"""``compare``: two models, or a model and its compiled form, layer by layer."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError, ShapeError
from graphc.monitor.difference import Difference, difference
from graphc.nn.module import Module
from graphc.tape.grad_mode import no_grad
from graphc.tensors.generator import get_rng_state, set_rng_state
from graphc.tensors.structure import flatten
from graphc.tensors.tensor import Tensor


class Comparison:
    """The layers in the order in which they were called."""

    def __init__(self, layers: list[Difference]):
        self.layers = layers

    @property
    def first(self) -> Difference | None:
        """The first layer that differs by more than the tolerance; None where all are the same."""
        return next((layer for layer in self.layers if not layer.is_within), None)

    def __bool__(self) -> bool:
        return self.first is None

    def __str__(self) -> str:
        head = f"{'layer':40} {'shape':18} {'absolute':>10} {'relative':>10}"
        first = self.first
        end = "all layers agree" if first is None else f"the first that differs: {first.path or '(model)'}"
        return "\n".join([head, *map(str, self.layers), end])

    def to_dict(self) -> dict[str, Any]:
        """As numbers and texts, for JSON."""
        first = None if self.first is None else self.first.path
        return {"layers": [layer._asdict() for layer in self.layers], "first": first}


def compare(model: Module, other: Any, *args: Any, tolerance: float | None = None, **kwargs: Any) -> Comparison:
    """Calls ``model(*args, **kwargs)`` and ``other`` with the same arguments and compares the outputs of their modules.

    ``other`` is a compiled ``model``, or another model whose modules have the same paths (compiled or not), such as
    one with other weights or another implementation of a layer. Both begin with the same random numbers, and
    buffers are what they were before. A layer differs where the largest difference, divided by the largest element,
    is beyond ``tolerance``: by default 1e-4 for f32, 1e-10 for f64, and anything for whole numbers.

    In compiled code the layers are seen by hooks, so its kernels are not fused across them. Raises ShapeError where
    the outputs of a layer have different shapes, ArgumentError where ``other`` is no model.
    """
    target = getattr(other, "_target", other)
    for name, value in (("model", model), ("other", target)):
        if not isinstance(value, Module):
            raise ArgumentError(f"compare: {name} is a {type(value).__name__}, not a Module or a compiled one")
    found = [_outputs(m, call, args, kwargs) for m, call in ((model, model), (target, other))]
    layers = [_layer(key, found[0][key], found[1][key], tolerance) for key in found[0] if key in found[1]]
    if not layers:
        raise ArgumentError("compare: the two models have no module of the same path that was called")
    return Comparison(layers)


_Key = tuple[str, int, int]
"""Path, number of the call, and number of the tensor."""


def _outputs(model: Module, call: Any, args: Any, kwargs: Any) -> dict[_Key, tuple[str, np.ndarray]]:
    """What the modules of a model return, by path."""
    found: dict[_Key, tuple[str, np.ndarray]] = {}
    calls: dict[str, int] = {}

    def look(path: str) -> Any:
        def hook(module: Any, inputs: Any, output: Any) -> None:
            number = calls[path] = calls.get(path, -1) + 1
            for i, tensor in enumerate(t for t in flatten(output)[0] if isinstance(t, Tensor)):
                found[path, number, i] = (type(module).__name__, np.array(tensor.detach().cpu().numpy()))

        return hook

    state, numbers = copy.deepcopy(dict(model.named_buffers())), get_rng_state()
    handles = [m.register_forward_hook(look(path)) for path, m in model.named_modules()]
    try:
        with no_grad():
            call(*args, **kwargs)
    finally:
        for handle in handles:
            handle.remove()
        set_rng_state(numbers)
        with no_grad():
            for path, buffer in model.named_buffers():
                buffer.copy_(state[path])
    return found


def _layer(
    key: _Key, first: tuple[str, np.ndarray], second: tuple[str, np.ndarray], tolerance: float | None
) -> Difference:
    (kind, a), (_, b) = first, second
    path = key[0] + (f" call {key[1] + 1}" if key[1] else "") + (f" output {key[2]}" if key[2] else "")
    if a.shape != b.shape:
        raise ShapeError(f"compare: {path or 'the model'} returns {list(a.shape)} and {list(b.shape)}")
    return difference(path, kind, a, b, tolerance)
