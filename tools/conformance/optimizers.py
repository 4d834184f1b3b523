"""Judge optimizers by PyTorch's table: each with each set of options over 20 steps in f64, eager and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.testing._internal.common_optimizers import optim_db

import graphc as gc
from tools.conformance.compare import compare
from tools.conformance.samples import NotMappedError, tensor_of
from tools.conformance.tally import Row

COLUMNS = {"eager": "weights after 20 steps, f64", "compiled": "the same by `compile_step`"}
EXCLUDED = {"SparseAdam": "sparse tensors"}
"""Optimizers left out, with the reason."""
STEPS = 20
_ALLOWED = (1e-7, 1e-7)
"""Relative and absolute."""
_ROUNDED = {"Muon": (1e-2, 1e-2)}
"""The same where PyTorch rounds to bf16 on the way, and graphc does not."""
_ONLY_MATRICES = ("Muon",)


def standing() -> dict[str, str]:
    """Return ``mapped``, ``missing`` or the reason for leaving it out, for each optimizer."""
    names = [_class(i).__name__ for i in optim_db]
    return {n: EXCLUDED.get(n, "mapped" if hasattr(gc.optim, n) else "missing") for n in names}


def _class(info: Any) -> Any:
    return info.optim_cls


def rows(subject: str, column: str) -> list[Row]:
    """Return the sets of options of an optimizer."""
    info = next(i for i in optim_db if _class(i).__name__ == subject)
    inputs = info.optim_inputs_func(device="cpu")
    return [(f"{entry.desc} {entry.kwargs}", _action(info, entry.kwargs, column == "compiled")) for entry in inputs]


def _action(info: Any, options: dict[str, Any], compiled: bool) -> Any:
    def action() -> None:
        name = _class(info).__name__
        if compiled and info.step_requires_closure:
            raise NotMappedError("steps with a closure, which compute the loss again: eager, as documented")
        expected = _trained(torch, info.optim_cls, options, name, False)
        own = {k: _option(v) for k, v in options.items()}
        compare(_trained(gc, getattr(gc.optim, name), own, name, compiled), expected, _ROUNDED.get(name, _ALLOWED))

    return action


def _option(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return tensor_of(value)
    return tuple([_option(v) for v in value]) if isinstance(value, tuple) else value


def _trained(library: Any, cls: Any, options: dict[str, Any], name: str, compiled: bool) -> list[Any]:
    """Return the parameters of a linear layer after some steps from weights that both libraries begin with."""
    chance = np.random.default_rng(0)
    layer = library.nn.Linear(4, 3, bias=name not in _ONLY_MATRICES).double()
    with library.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(library.tensor(chance.standard_normal(tuple(parameter.shape))))
    x, y = (library.tensor(chance.standard_normal(shape)) for shape in ((8, 4), (8, 3)))
    optimizer = cls(layer.parameters(), **options)
    if compiled:
        step = gc.compile_step(layer, gc.nn.functional.mse_loss, optimizer)
        for _ in range(STEPS):
            step(x, y)
        return list(layer.parameters())

    def closure() -> Any:
        optimizer.zero_grad()
        loss = library.nn.functional.mse_loss(layer(x), y)
        loss.backward()
        return loss

    for _ in range(STEPS):
        optimizer.step(closure)
    return list(layer.parameters())
