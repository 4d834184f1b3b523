"""``sdeint``: stochastic differential equations with diagonal or general noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphc.autograd.transforms import jvp
from graphc.base.errors import ArgumentError, ShapeError
from graphc.integrate.system import checked_state, equal_steps, flat_rate, rising, with_first
from graphc.tensors.creation import randn
from graphc.tensors.free_functions import assert_true

METHODS = ("euler", "milstein", "heun")


def sdeint(
    drift: Callable[..., Any],
    diffusion: Callable[..., Any],
    y0: Any,
    t: Any,
    *args: Any,
    method: str = "euler",
    noise: str = "diagonal",
    substeps: int = 1,
    generator: Any = None,
) -> Any:
    """Solve ``dy = drift(t, y, *args) dt + diffusion(t, y, *args) dW`` from ``y(t[0]) = y0``.

    Eager and compiled code follow the same path for a seed. Gradients pass through the steps, with the numbers drawn as
    constants.

    Args:
        drift: function of a scalar time, a state and ``args`` that returns a tensor of the state's shape.
        diffusion: function of the same; with diagonal noise it returns the state's shape, with general noise
            ``[*state, m]`` for ``m`` independent Wiener processes that all elements of the state share.
        y0: first state, a floating-point tensor.
        t: times [count], rising strictly; count is at least 2.
        args: further arguments of both functions.
        method: ``euler`` (Euler-Maruyama, Ito, strong order 1/2), ``milstein`` (Ito, strong order 1, diagonal noise
            only), or ``heun`` (Stratonovich, strong order 1 for diagonal noise).
        noise: ``diagonal``, in which element i of the diffusion depends on element i of the state alone, or
            ``general``.
        substeps: number of equal steps from each time to the next one.
        generator: source of the numbers; by default that of graphc.

    Returns:
        The state at each time, [count, *y0.shape].

    Raises:
        ArgumentError: an unknown method or kind of noise, or Milstein's method with general noise.
        ShapeError, DTypeError: unsuitable states, times or results.
        ConditionError: the times do not rise strictly.

    Example:
        >>> import graphc as gc
        >>> t, draws = gc.linspace(0, 1, 101), gc.Generator().manual_seed(0)
        >>> y = gc.integrate.sdeint(lambda t, y: -y, lambda t, y: 0.1 * y, gc.ones(1000), t, generator=draws)
        >>> print(f"{y[-1].mean().item():.1f}")
        0.4
    """
    (y,), form = _one_tensor(y0)
    _check_options(method, noise, substeps)
    mean = flat_rate("sdeint", drift, form, args)
    times, sign, _ = rising("sdeint", t, y, mean)
    assert_true(sign > 0, "sdeint: the times must rise")

    spread = _spread(diffusion, args, y, noise)

    def step(t: Any, h: Any, y: Any) -> Any:
        first = spread(t, y)
        shape = first.shape[-1:] if noise == "general" else y.shape
        change = h.sqrt() * randn(*shape, dtype=y.dtype, generator=generator)
        return _stepped(method, lambda t, y: mean(t, [y])[0], spread, (t, h, y, first, change))

    return with_first([y], [equal_steps(step, y, times, substeps)[1]])[0]


def _spread(diffusion: Callable[..., Any], args: Sequence[Any], y0: Any, noise: str) -> Callable[..., Any]:
    """Return ``diffusion(t, y, *args)`` as a function that raises ShapeError unless the result fits state and noise."""

    def spread(t: Any, y: Any) -> Any:
        result = diffusion(t, y, *args)
        if tuple(result.shape[:-1] if noise == "general" else result.shape) != tuple(y0.shape):
            shapes = f"{list(result.shape)} for a state of {list(y0.shape)}"
            raise ShapeError(f"sdeint: diffusion returns shape {shapes} and {noise} noise")
        return result.to(y0.dtype)

    return spread


def _stepped(method: str, drift: Any, spread: Any, state: tuple[Any, ...]) -> Any:
    """Return the state after a step of a method.

    Kloeden and Platen, Numerical solution of stochastic differential equations, sections 10.2 and 10.3; Heun's method:
    Rümelin, Numerical treatment of stochastic differential equations, 1982.
    """
    t, h, y, first, change = state
    slope = drift(t, y)
    ahead = _euler(y, h, slope, first, change)
    if method == "milstein":
        _, along = jvp(lambda y: spread(t, y), (y,), (first,))
        return ahead + 0.5 * along * (change * change - h)
    if method == "heun":
        mean = 0.5 * (slope + drift(t + h, ahead))
        return _euler(y, h, mean, 0.5 * (first + spread(t + h, ahead)), change)
    return ahead


def _one_tensor(y0: Any) -> tuple[Any, Any]:
    leaves, form = checked_state("sdeint", y0)
    if leaves[0] is not y0 or y0.dtype.is_complex:
        raise ArgumentError("sdeint: the state must be one real tensor", remedy="concatenate its tensors")
    return leaves, form


def _check_options(method: str, noise: str, substeps: int) -> None:
    if method not in METHODS:
        raise ArgumentError(f"sdeint: there is no method {method!r}", remedy=f"pass one of {', '.join(METHODS)}")
    if noise not in ("diagonal", "general"):
        raise ArgumentError(f"sdeint: there is no noise {noise!r}", remedy="pass diagonal or general")
    if method == "milstein" and noise == "general":
        raise ArgumentError("sdeint: milstein needs diagonal noise", remedy='pass method="euler" or "heun"')
    if substeps < 1:
        raise ArgumentError(f"sdeint: substeps={substeps}", remedy="pass 1 or more")


def _euler(y: Any, h: Any, drift: Any, diffusion: Any, change: Any) -> Any:
    """Return ``y + drift h + diffusion change``, with a product of matrix and vector for general noise."""
    noise = (diffusion * change).sum(-1) if len(diffusion.shape) > len(y.shape) else diffusion * change
    return y + h * drift + noise
