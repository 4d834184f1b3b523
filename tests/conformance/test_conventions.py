"""Values and gradients where PyTorch follows a convention: ties, kinks, limits, NaN and infinities; eager, compiled."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphc

pytestmark = pytest.mark.torch

NAN, INF = np.nan, np.inf
SPECIAL = np.array([NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 2.0])
LEFT, RIGHT = (g.ravel() for g in np.meshgrid(SPECIAL, SPECIAL, indexing="ij"))
TRIPLES = [g.ravel() for g in np.meshgrid([NAN, 0.0, 1.0], [0.0, 1.0], [1.0, 2.0, NAN], indexing="ij")]
UNARY = (
    "abs sign relu sigmoid sqrt rsqrt exp log reciprocal square asinh acosh atanh sinh cosh tanh erfc exp2 log2 log10"
)
ROWS = np.array([[0.0, 0.0, 3.0, -3.0], [0.0, 0.0, 0.0, 0.0], [1.0, -2.0, 2.0, 0.5]])
TIES = {
    "three numbers": np.array([[0.0, 0.1, 0.1], [3.0, 0.1, -1.0]]),
    "large numbers": np.array([1.5e308, 1.5e308, 0.0, 1.5e308, 1.6e308]),
    "infinities": np.array([-INF, 1.0, -INF, -INF]),
    "NaN": np.array([1.0, NAN, 1.0, NAN, 3.0]),
    "nothing but NaN": np.array([NAN, NAN]),
}
POINTS = np.array([[0.0, 1.0], [2.0, 3.0]]), np.array([[0.0, 1.0], [2.0, 3.5], [5.0, 5.0]])
SEQUENCE, PLACES = np.array([1.0, 2.0, 3.0]), np.array([NAN, INF, -INF, 2.0, 0.0])


def name_of(name: str) -> Callable[..., Any]:
    return lambda t, *x: getattr(t, name)(*x)


CASES: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    **{
        n: (name_of(n), (LEFT, RIGHT))
        for n in "fmax fmin maximum minimum atan2 pow float_power hypot logaddexp logaddexp2 copysign xlogy".split()
    },
    **{n: (name_of(n), (SPECIAL,)) for n in UNARY.split()},
    # Without -0.0: the sign of PyTorch's infinite gradient there depends on the number of elements.
    "logit": (lambda t, x: t.logit(x), (np.array([*SPECIAL[SPECIAL != 0], 0.0, 0.5, 1.5, -0.25]),)),
    "logit with eps": (lambda t, x: t.logit(x, eps=0.1), (np.array([*SPECIAL[1:], 0.5, 1.5, 0.05]),)),
    "sinc beside 0": (lambda t, x: t.sinc(x), (np.array([*SPECIAL, 1e-300, 1e-310, -1e-320]),)),
    "arc sine of a power": (lambda t, x, y: t.asin(x**y), (np.array([1.0, 1.0, 0.5, NAN]), np.array([0.0, 0, 1, 0]))),
    "power of a tiny number by 0": (lambda t, x: x**0, (np.array([1e-320, 0.0, NAN, INF, 2.0]),)),
    **{
        f"{n}": (lambda t, x, y, n=n: getattr(t.nn.functional, n)(x, y, reduction="none"), (LEFT, RIGHT))
        for n in ("smooth_l1_loss", "huber_loss", "kl_div")
    },
    **{
        f"{n} of {k}": (lambda t, x, n=n: getattr(t, n)(x), (v,))
        for n in ("median", "nanmedian", "amax", "amin", "max", "min")
        for k, v in TIES.items()
        if n.endswith("median") or "NaN" not in k
    },
    "prelu": (lambda t, x, w: t.nn.functional.prelu(x[:, None], w), (SPECIAL[1:], np.array([0.25]))),
    "prelu by NaN": (lambda t, x, w: t.nn.functional.prelu(x[:, None], w), (np.array([2.0, INF]), np.array([NAN]))),
    **{
        f"hinge of {y}": (
            lambda t, x, y=y: t.nn.functional.hinge_embedding_loss(x, t.full_like(x, y), reduction="none"),
            (SPECIAL,),
        )
        for y in (1.0, -1.0, 0.5)
    },
    **{
        f"ranking by {m}": (
            lambda t, x, y, m=m: t.nn.functional.margin_ranking_loss(x, y, t.ones_like(x), m, reduction="none"),
            (LEFT, RIGHT),
        )
        for m in (0.0, 1.0)
    },
    "clamp": (lambda t, x: t.clamp(x, min=-1.0, max=1.0), (SPECIAL,)),
    "clamp from below": (lambda t, x: t.clamp(x, min=1.0), (SPECIAL,)),
    "clamp from above": (lambda t, x: t.clamp(x, max=1.0), (SPECIAL,)),
    "clamp by NaN from below": (lambda t, x: t.clamp(x, min=NAN), (SPECIAL,)),
    "clamp by NaN from above": (lambda t, x: t.clamp(x, min=1.0, max=NAN), (SPECIAL,)),
    "clamp to nothing": (lambda t, x: t.clamp(x, min=1.0, max=-1.0), (SPECIAL,)),
    "clamp by tensors": (lambda t, x, y, z: t.clamp(x, y, z), tuple(TRIPLES)),
    "clamp by one tensor": (lambda t, x, y: t.clamp(x, max=y), (LEFT[RIGHT > -INF], RIGHT[RIGHT > -INF])),
    "threshold": (lambda t, x: t.nn.functional.threshold(x, 0.15, -9.0), (SPECIAL,)),
    "hardtanh": (lambda t, x: t.nn.functional.hardtanh(x), (SPECIAL,)),
    "relu6": (lambda t, x: t.nn.functional.relu6(x * 6), (SPECIAL,)),
    "hardswish": (lambda t, x: t.nn.functional.hardswish(x * 3), (SPECIAL[3:],)),
    **{f"norm {p}": (lambda t, x, p=p: x.norm(p), (ROWS[0],)) for p in (0, 0.5, 1, 1.5, 2, 3, INF, -INF)},
    **{f"norm {p} of rows": (lambda t, x, p=p: x.norm(p, dim=1), (ROWS,)) for p in (0, 0.5, 1, 1.5, 2, 3, INF)},
    **{f"cdist {p}": (lambda t, x, y, p=p: t.cdist(x, y, p=p), POINTS) for p in (0, 0.5, 1, 1.5, 2, 3)},
    **{
        f"searchsorted, right={r}": (lambda t, s, x, r=r: t.searchsorted(s, x, right=r), (SEQUENCE, PLACES))
        for r in (False, True)
    },
    **{
        f"searchsorted in NaN, right={r}": (
            lambda t, s, x, r=r: t.searchsorted(s, x, right=r),
            (np.array([1.0, 2.0, NAN]), PLACES),
        )
        for r in (False, True)
    },
    **{
        f"multi_margin_loss of NaN and infinities, p={p}": (
            lambda t, x, p=p: t.nn.functional.multi_margin_loss(x, t.tensor([0, 1, 2, 1]), p=p, reduction="none"),
            (np.array([[0.5, NAN, 1.0], [0.5, NAN, 1.0], [0.5, -INF, 1.0], [INF, INF, 2.0]]),),
        )
        for p in (1, 2)
    },
    **{
        f"quantile {share} between infinities": (
            lambda t, x, share=share: t.quantile(x, share, dim=1),
            (np.array([[-INF, 2.0, 3.0], [1.0, 2.0, INF], [INF, INF, 2.0], [-INF, INF, 1.0]]),),
        )
        for share in (0.2, 0.3, 0.8)
    },
    "lerp to and from infinities": (
        lambda t, x, y: t.stack([x.lerp(y, w) for w in (-0.25, 0.0, 0.25, 0.5, np.float64(0.75), 1)]),
        (np.array([-INF, 2.0, INF, 1.0]), np.array([2.0, -INF, INF, 3.0])),
    ),
    "lerp by a tensor": (
        lambda t, x, y, w: x.lerp(y, w),
        (
            np.array([-INF, 2.0, INF, 1.0, 1.0]),
            np.array([2.0, -INF, 1.0, 3.0, 3.0]),
            np.array([0.75, 0.25, 0.75, 0.5, 0.2]),
        ),
    ),
    "bucketize": (lambda t, s, x: t.bucketize(x, s), (SEQUENCE, PLACES)),
}


def results(
    library: Any, function: Callable[..., Any], arrays: tuple[np.ndarray, ...]
) -> tuple[np.ndarray, list[np.ndarray | None]]:
    """Return the results of a function, and the gradients of its sum."""
    operands = [library.tensor(a).requires_grad_() for a in arrays]
    found = function(*operands)
    if not found.requires_grad:
        return found.numpy(), []
    gradients = library.autograd.grad([found.sum()], operands, allow_unused=True)
    return found.detach().numpy(), [None if g is None else g.numpy() for g in gradients]


@pytest.mark.sampled(50)
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_those_of_pytorch(torch, name: str, compiled: bool):
    expression, arrays = CASES[name]

    def ours(*operands: Any) -> Any:
        return expression(graphc, *operands)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value, gradients = results(graphc, graphc.compile(ours) if compiled else ours, arrays)
        wanted, wanted_gradients = results(torch, lambda *x: expression(torch, *x), arrays)
    np.testing.assert_allclose(value, wanted, rtol=1e-12, atol=1e-15)
    for i, (found, other) in enumerate(zip(gradients, wanted_gradients, strict=True)):
        zero = np.zeros_like(arrays[i])
        np.testing.assert_allclose(
            zero if found is None else found, zero if other is None else other, rtol=1e-12, err_msg=f"operand {i}"
        )
