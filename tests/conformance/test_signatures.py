"""Classes and functions take the arguments that PyTorch's take, by the same names and in the same order."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

import graphc
from graphc import autograd, func, nn, optim
from graphc.nn import functional, init, utils
from graphc.optim import lr_scheduler, swa_utils

torch = pytest.importorskip("torch")

PAIRS: list[tuple[ModuleType, Any]] = [
    (nn, torch.nn),
    (functional, torch.nn.functional),
    (init, torch.nn.init),
    (utils, torch.nn.utils),
    (optim, torch.optim),
    (lr_scheduler, torch.optim.lr_scheduler),
    (swa_utils, torch.optim.swa_utils),
    (autograd, torch.autograd),
    (func, torch.func),
]
NOT_THERE = {"foreach", "fused", "capturable", "differentiable", "device_ids", "out"}
"""Arguments about devices, about the way of computing, and about memory for results."""
WITHOUT = {
    "Hardtanh": {"min_value", "max_value"},
    "interpolate": {"antialias"},
    "upsample": {"antialias"},
    "gradcheck": {"check_undefined_grad", "check_grad_dtypes", "check_batched_forward_grad", "check_backward_ad"},
    "backward": {"grad_variables"},
    "jacfwd": {"randomness"},
    "jacrev": {"_preallocate_and_copy"},
    "jvp": {"strict"},
}
WITHOUT["gradcheck"] |= {"fast_mode", "masked"}
"""Arguments of single functions that docs/coming_from_pytorch.md names as missing."""
DIFFERENT = {
    "Buffer": "PyTorch's shows no arguments",
    "DataParallel": "devices",
    "Optimizer": "the base of optimizers defines an update rule",
    "RNN": "PyTorch's shows no argument nonlinearity",
    "RNNBase": "abstract",
    "RNNCellBase": "abstract",
    "Parameter": "PyTorch's shows no arguments",
    "UninitializedBuffer": "PyTorch's shows no arguments",
    "UninitializedParameter": "PyTorch's shows no arguments",
    "gradgradcheck": "takes numbers of gradcheck only",
    "inference_mode": "also a decorator without brackets",
    "no_grad": "also a decorator without brackets",
    "enable_grad": "also a decorator without brackets",
}


def _parameters(found: Any) -> list[inspect.Parameter] | None:
    try:
        return list(inspect.signature(found.__init__ if inspect.isclass(found) else found).parameters.values())
    except (TypeError, ValueError):
        return None


def _variadic(parameters: list[inspect.Parameter]) -> bool:
    return any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters)


def _common() -> Iterator[Any]:
    for ours, theirs in PAIRS:
        for name in ours.__all__ if hasattr(ours, "__all__") else dir(ours):
            mine, other = getattr(ours, name), getattr(theirs, name, None)
            if name.startswith("_") or name in DIFFERENT or not callable(mine) or not callable(other):
                continue
            if _parameters(mine) is not None and _parameters(other) is not None:
                yield pytest.param(mine, other, id=f"{ours.__name__.partition('.')[2]}.{name}")


@pytest.mark.parametrize(("mine", "theirs"), _common())
def test_arguments(mine, theirs):
    name = mine.__name__
    ours, expected = _parameters(mine) or [], _parameters(theirs) or []
    if _variadic(expected) or _variadic(ours):
        return
    left_out = NOT_THERE | WITHOUT.get(name, set())
    known = {p.name for p in ours}
    assert not (left_out - NOT_THERE) & known, f"{name} has what the table says it has not"
    wanted = [p for p in expected if p.name not in left_out]
    assert {p.name for p in wanted} <= known, f"{name}: {sorted({p.name for p in wanted} - known)} are missing"
    assert [p.name for p in ours][: len(wanted)] == [p.name for p in wanted], f"{name}: another order"
    for a, b in zip(ours, wanted, strict=False):
        plain = isinstance(b.default, (int, float, str, type(None)))
        same = a.default == b.default or b.default is b.empty or not plain or name in ("affine_grid", "LBFGS")
        assert same, f"{name}: {a.name}={a.default!r}, in PyTorch {b.default!r}"


def test_that_much_is_compared():
    assert len(list(_common())) > 300
    assert graphc.vmap is func.vmap
