"""Steps of random programs that compute values: math, choices, reductions, order, types, special numbers."""

from __future__ import annotations

from tools.nets.builder import DTYPES, Builder

SMOOTH = "exp expm1 sin cos tan tanh sinh cosh atan asinh erf erfc sigmoid square sinc exp2 neg abs logit"
POSITIVE = "log log2 log10 log1p sqrt rsqrt reciprocal lgamma digamma"
INSIDE = "asin acos atanh erfinv logit"
STEPS = "floor ceil round trunc sign frac"
WHOLE = "sum mean prod max min std var norm median argmax argmin any all"
BENDS = "relu leaky_relu softplus hardtanh silu gelu relu6"
"""Activations, except those for which PyTorch has two gradients at NaN (tests/conformance/test_differences.py)."""
OF_SPECIAL = (
    "exp log sqrt rsqrt abs neg sign floor ceil round trunc tanh sigmoid sin cos atan relu isnan isinf isfinite"
)
OF_SPECIAL += " nan_to_num reciprocal expm1 log1p square signbit"


def math(b: Builder) -> None:
    """Apply a function to each element."""
    x = b.real(filled=False)
    choice = b.whole(0, 6)
    if choice in (0, 1):
        b.let(f"t.{b.pick(SMOOTH.split())}({b.pick((x, f'{x} * 0.5'))})")
    elif choice == 2:
        b.let(f"t.{b.pick(POSITIVE.split())}({b.pick((f'{x}.abs() + 0.25', f'{x} * {x} + 1', f'F.softplus({x})'))})")
    elif choice == 3:
        b.let(f"t.{b.pick(INSIDE.split())}({b.pick((f't.sigmoid({x})', f't.tanh({x}) * 0.9'))})")
    elif choice == 4:
        b.let(f"t.{b.pick(STEPS.split())}({x})")
    elif choice == 5:
        b.let(
            b.pick(
                (
                    f"{x} ** 2",
                    f"{x} ** 3",
                    f"{x}.abs() ** 0.5",
                    f"2 ** {x}",
                    f"({x}.abs() + 0.5) ** -1.5",
                    f"({x} * {x} + 1) ** t.tanh({x})",
                )
            )
        )
    else:
        y = b.like(x)
        b.let(
            b.pick(
                (
                    f"t.atan2({x}, {y})",
                    f"t.hypot({x}, {y})",
                    f"t.logaddexp({x}, {y})",
                    f"t.xlogy({x}, {y}.abs() + 1)",
                    f"t.copysign({x}, {y})",
                    f"t.fmod({x}, {y}.abs() + 1)",
                    f"t.remainder({x}, 1.5)",
                )
            )
        )


def arithmetic(b: Builder) -> None:
    """Add, multiply and the like, with broadcasting."""
    x = b.real(filled=False)
    y = b.pick((b.like(x), b.like(x), "2", "0.5", "-3", "1e-3"))
    b.let(
        b.pick(
            (
                f"{x} + {y}",
                f"{x} - {y}",
                f"{x} * {y}",
                f"{y} - {x}",
                f"{x} / (t.abs({x}) + 1)",
                f"{y} / ({x} * {x} + 0.5)",
                f"t.add({x}, {y}, alpha=2)",
                f"t.addcmul({x}, {x}, {b.like(x)}, value=0.5)",
            )
        )
    )


def choose(b: Builder) -> None:
    """Choose values by conditions."""
    x = b.real(filled=False)
    y = b.pick((b.like(x), "0.5", "0"))
    z = b.like(x)
    condition = f"{x} {b.pick(('<', '<=', '>', '>=', '==', '!='))} {y}"
    choice = b.whole(0, 8)
    if choice == 0:
        b.let(f"t.where({condition}, {x}, {z})")
    elif choice == 1:
        b.let(f"{x}.masked_fill({condition}, {b.pick(('0', '1.5', '-inf'))})")
    elif choice == 2:
        b.let(condition)
    elif choice == 3:
        b.let(f"({condition}) {b.pick(('&', '|', '^'))} ({z} > 0)")
    elif choice == 4:
        b.let(f"t.clamp({x}, {b.pick(('min=-0.5', 'max=0.5', '-0.25, 0.75', '0.5, -0.5', f'min={z}', f'max={z}'))})")
    elif choice == 5:
        b.let(f"t.{b.pick(('maximum', 'minimum', 'fmax', 'fmin'))}({x}, {z})")
    elif choice == 6:
        b.let(f"t.{b.pick(('isnan', 'isinf', 'isfinite', 'signbit', 'logical_not', 'nan_to_num', 'sgn'))}({x})")
    elif choice == 7:
        b.let(f"t.lerp({x}, {z}, {b.pick(('0.3', '0.75', z))})")
    else:
        b.let(f"t.heaviside({x}.detach(), {z}.detach())")


def reduce(b: Builder) -> None:
    """Reduce over some dimensions."""
    x = b.real(fresh=0.35) if b.chance(0.8) else b.some()
    axes = b.axes(x)
    named = axes or None  # PyTorch's gradients of variances over no named dimensions are none.
    keep = b.pick(("", "", ", keepdim=True"))
    choice = b.whole(0, 9)
    if choice in (0, 1):
        name = b.pick(("sum", "mean", "amax", "amin", "logsumexp", "nansum", "std", "var"))
        b.let(f"t.{name}({x}, {named if name in ('std', 'var') else axes}{keep})")
    elif choice == 2:
        b.let(f"t.{b.pick(WHOLE.split())}({x})")
    elif choice == 3:
        b.let(f"t.{b.pick(('max', 'min', 'median', 'mode', 'aminmax'))}({x}, dim={b.axis(x)}{keep})")
    elif choice == 4:
        b.let(f"t.{b.pick(('argmax', 'argmin', 'prod', 'any', 'all'))}({x}, {b.axis(x)}{keep})")
    elif choice == 5:
        b.let(f"t.{b.pick(('var', 'std'))}({x}, {named}, correction={b.whole(0, 2)}{keep})")
    elif choice == 6:
        b.let(f"t.norm({x}, {b.pick(('1', '2', '3', 'inf', '-inf', '0.5'))}, {b.axis(x)}{keep})")
    elif choice == 7:
        b.let(f"t.{b.pick(('var_mean', 'std_mean'))}({x}, {named}{keep})")
    elif choice == 8:
        b.let(f"t.{b.pick(('count_nonzero', 'nanmean'))}({x}, {b.axis(x)})")
    else:
        dtype = b.pick(("float64", "float32", "int64"))
        b.let(f"t.{b.pick(('sum', 'prod', 'cumsum'))}({x}, {b.axis(x)}, dtype=t.{dtype})")


def order(b: Builder) -> None:
    """Sort, select, and compute running totals."""
    x = (
        b.input(b.shape(b.pick((1, 2, 3))), "", b.pick(("spread", "spread", "eighths")))
        if b.chance(0.6)
        else b.real(least=1)
    )
    axis = b.axis(x)
    choice = b.whole(0, 7)
    if choice == 0:
        b.let(f"t.sort({x}, dim={axis}, descending={b.chance(0.5)}, stable=True)")
    elif choice == 1:
        # Any of equal elements may be selected, and get the gradient.
        x = b.input(b.shape(b.pick((1, 2))), "", "spread")
        b.let(f"t.topk({x}, {b.whole(1, b.shape_of(x)[-1])}, largest={b.chance(0.5)})[0]")
    elif choice == 2:
        x = b.input(b.shape(b.pick((1, 2))), "", "spread")
        b.let(f"t.kthvalue({x}, {b.whole(1, b.shape_of(x)[-1])}, keepdim={b.chance(0.3)})[0]")
    elif choice in (3, 4):
        b.let(f"t.{b.pick(('cumsum', 'cumprod', 'cummax', 'cummin', 'logcumsumexp'))}({x}, {axis})")
    elif choice == 5:
        b.let(f"t.argsort({x}, dim={axis}, stable=True)")
    elif choice == 6:
        b.let(f"t.searchsorted(t.sort({b.real(1)}.detach())[0], {x}.detach(), right={b.chance(0.5)})")
    else:
        b.let(f"t.diff({x}, n={b.whole(1, 2)}, dim={axis})")


def types(b: Builder) -> None:
    """Combine operands of different element types, and cast."""
    names = tuple(DTYPES)
    x = b.some()
    if b.values[x].is_floating_point() and not b.is_tame(b.values[x]):
        x = b.input(b.shape(), b.pick(names))
    y = b.like(x, b.pick(names))
    choice = b.whole(0, 7)
    if choice in (0, 1):
        b.let(f"{x} {b.pick(('+', '*', '/'))} {y}")
    elif choice == 2:
        b.let(f"{x} {b.pick(('+', '*', '-', '/', '**'))} {b.pick(('2', '0.5', 'True', '3.0'))}")
    elif choice == 3:
        source = b.let(f"{x}.clamp(-100, 100)") if b.values[x].dtype.is_signed else x
        b.let(f"{source}.to(t.{b.pick(('float32', 'float64', 'int64', 'int32', 'int8', 'bool'))})")
    elif choice == 4:
        b.let(f"t.{b.pick(('maximum', 'minimum'))}({x}, {y})")
    elif choice == 5:
        b.let(f"t.where({b.like(x, 'bool')}, {x}, {y})")
    elif choice == 6:
        b.let(f"t.{b.pick(('sum', 'prod', 'amax', 'cumsum', 'mean'))}({x}, {b.axis(x)})")
    else:
        b.let(
            b.pick(
                (
                    f"{x} == {y}",
                    f"{x} < {y}",
                    f"{x} & {y}",
                    f"t.logical_xor({x}, {y})",
                    f"t.pow({x}, {y})",
                    f"t.true_divide({x}, {y})",
                )
            )
        )


def scalars(b: Builder) -> None:
    """Compute with tensors of no dimension and of size one."""
    x = b.real(0) if b.chance(0.6) else b.input((1,) * b.whole(1, 3))
    y = b.input(b.pick(((), (1,), (1, 1), (3,))))
    b.let(
        b.pick(
            (
                f"{x} + {y}",
                f"{x} * {y}",
                f"t.cat([{x}.reshape(1), {y}.reshape(-1)])",
                f"t.stack([{x}, {x}])",
                f"{x}.sum()",
                f"{x}.mean()",
                f"{x}.max()",
                f"{x}.argmax()",
                f"{x}.reshape(())",
                f"{x}[None]",
                f"{x}[...]",
                f"{x}.expand(4, 1)" if b.values[x].dim() < 2 else f"{x}.squeeze()",
                f"{x}.softmax(0)",
                f"{x}.cumsum(0)",
                f"{x}.sort(0)[0]",
                f"{x}.flip(0)" if b.values[x].dim() else f"{x}.clone()",
                f"{x}.norm()",
                f"{x}.var(correction=0)",
                f"{x}.logsumexp(0)",
                f"{x}.prod()",
                f"t.where({x} > 0, {x}, {y})",
                f"{x}.flatten()",
                f"t.dot({x}.reshape(1), {y}.reshape(-1)[:1])",
                f"{x}.clamp(0, 1)",
                f"{x}.repeat(3)" if b.values[x].dim() < 2 else f"{x}.squeeze(0)",
                f"{x}.unsqueeze(-1)",
            )
        )
    )


def special(b: Builder) -> None:
    """Compute with NaN, infinities, signed zeros and denormal numbers."""
    x = b.known(
        lambda v: v.is_floating_point() and v.numel() > 0,
        lambda: b.input(b.shape(b.pick((0, 1, 2))), "", "special"),
        0.5,
    )
    y = b.like(x, "", "special")
    choice = b.whole(0, 6)
    if choice == 0:
        b.let(f"{x} {b.pick(('+', '-', '*', '/', '<', '>=', '==', '!='))} {y}")
    elif choice == 1:
        b.let(f"t.{b.pick(OF_SPECIAL.split())}({x})")
    elif choice == 2:
        b.let(
            f"t.{b.pick(('maximum', 'minimum', 'fmax', 'fmin', 'atan2', 'copysign', 'hypot', 'logaddexp'))}({x}, {y})"
        )
    elif choice == 3:
        name = b.pick(("sum", "amax", "amin", "mean", "prod", "logsumexp", "argmax", "argmin", "all", "any", "nansum"))
        b.let(f"t.{name}({x}, {b.axis(x)})")
    elif choice == 4:
        b.let(f"F.{b.pick(BENDS.split())}({x})")
    elif choice == 5:
        b.let(
            b.pick(
                (
                    f"t.clamp({x}, -1, 1)",
                    f"t.where({x} > 0, {x}, {y})",
                    f"t.sort({x}, 0, stable=True)[0]",
                    f"t.cummax({x}, 0)[0]",
                    f"t.softmax({x}, 0)",
                    f"{x} ** 2",
                    f"{x} ** 0.5",
                    f"t.pow({x}, {y})",
                )
            )
        )
    else:
        b.let(f"{x}.to(t.{b.pick(('float64', 'float32', 'bool'))})")


def long_rows(b: Builder) -> None:
    """Reduce dimensions longer than vectors, blocks and partial sums, with tails."""
    extent = b.pick((63, 64, 65, 127, 129, 255, 257, 511, 1000, 1023, 1025, 1999))
    x = b.input(b.pick(((extent,), (2, extent), (extent, 2)))[: 2 if extent < 1000 else 1])
    name = b.pick(("sum", "mean", "amax", "argmin", "var", "logsumexp", "norm"))
    b.let(
        b.pick(
            (
                f"t.{name}({x}, {b.axis(x)})",
                f"t.prod({x} * 0.01 + 1, {b.axis(x)})",
                f"t.softmax({x}, -1)",
                f"t.cumsum({x}, -1)",
                f"{x}[..., 1:] - {x}[..., :-1]",
                f"F.layer_norm({x}, ({b.shape_of(x)[-1]},))",
                f"{x} @ {x}.T" if b.values[x].dim() == 1 else f"{x}.T @ {x}",
                f"t.exp({x}) + {x}.flip(0)",
                f"{x}.sort(-1, stable=True)[0]",
                f"t.where({x} > 0, {x}, 0.1 * {x}).sum(0)",
            )
        )
    )
