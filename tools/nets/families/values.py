"""Steps of random programs that compute values: math, choices, reductions, order, types, special numbers."""

from __future__ import annotations

from tools.nets.builder import DTYPES, Builder
from tools.nets.families.grammar import Step

SMOOTH = "exp|expm1|sin|cos|tan|tanh|sinh|cosh|atan|asinh|erf|erfc|sigmoid|square|sinc|exp2|neg|abs|logit"
POSITIVE = "log|log2|log10|log1p|sqrt|rsqrt|reciprocal|lgamma|digamma"
WHOLE = "sum|mean|prod|max|min|std|var|norm|median|argmax|argmin|any|all"
BENDS = "relu|leaky_relu|softplus|hardtanh|silu|gelu|relu6"
"""Activations, except those for which PyTorch has two gradients at NaN (tests/conformance/test_differences.py)."""
OF_SPECIAL = (
    "exp|log|sqrt|rsqrt|abs|neg|sign|floor|ceil|round|trunc|tanh|sigmoid|sin|cos|atan|relu|isnan|isinf|isfinite|"
    "nan_to_num|reciprocal|expm1|log1p|square|signbit"
)

math = Step(
    f"""
    2: t.{{{SMOOTH}}}({{{{x}}|{{x}} * 0.5}})
    t.{{{POSITIVE}}}({{{{x}}.abs() + 0.25|{{x}} * {{x}} + 1|F.softplus({{x}})}})
    t.{{asin|acos|atanh|erfinv|logit}}({{t.sigmoid({{x}})|t.tanh({{x}}) * 0.9}})
    t.{{floor|ceil|round|trunc|sign|frac}}({{x}})
    {{{{x}} ** {{2|3}}|{{x}}.abs() ** 0.5|2 ** {{x}}|({{x}}.abs() + 0.5) ** -1.5|({{x}} * {{x}} + 1) ** t.tanh({{x}})}}
    t.{{atan2|hypot|logaddexp|copysign}}({{x}}, {{y}})
    t.{{xlogy|fmod}}({{x}}, {{y}}.abs() + 1)
    t.remainder({{x}}, 1.5)
    """
)

arithmetic = Step(
    """
    3: {x} {+|-|*} {y}
    {y} - {x}
    {x} / (t.abs({x}) + 1)
    {y} / ({x} * {x} + 0.5)
    t.add({x}, {y}, alpha=2)
    t.addcmul({x}, {x}, {z}, value=0.5)
    """,
    y="b.pick((b.like(x), b.like(x), '2', '0.5', '-3', '1e-3'))",
)

choose = Step(
    """
    t.where({condition}, {x}, {z})
    {x}.masked_fill({condition}, {0|1.5|-inf})
    {condition}
    ({condition}) {&|\\||^} ({z} > 0)
    t.clamp({x}, {min=-0.5|max=0.5|-0.25, 0.75|0.5, -0.5|min={z}|max={z}})
    t.{maximum|minimum|fmax|fmin}({x}, {z})
    t.{isnan|isinf|isfinite|signbit|logical_not|nan_to_num|sgn}({x})
    t.lerp({x}, {z}, {0.3|0.75|{z}})
    t.heaviside({x}.detach(), {z}.detach())
    """,
    y="b.pick((b.like(x), '0.5', '0'))",
    condition='f\'{x} {b.pick(("<", "<=", ">", ">=", "==", "!="))} {y}\'',
)

# NOTE: PyTorch's gradients of variances over no named dimensions are none.
reduce = Step(
    f"""
    2: t.{{sum|mean|amax|amin|logsumexp|nansum}}({{x}}, {{axes}}{{keep}})
    t.{{std|var|var_mean|std_mean}}({{x}}, {{axes or None}}{{keep}})
    t.{{{WHOLE}}}({{x}})
    t.{{max|min|median|mode|aminmax}}({{x}}, dim={{axis}}{{keep}})
    t.{{argmax|argmin|prod|any|all}}({{x}}, {{axis}}{{keep}})
    t.{{var|std}}({{x}}, {{axes or None}}, correction={{b.whole(0, 2)}}{{keep}})
    t.norm({{x}}, {{1|2|3|inf|-inf|0.5}}, {{axis}}{{keep}})
    t.{{count_nonzero|nanmean}}({{x}}, {{axis}})
    t.{{sum|prod|cumsum}}({{x}}, {{axis}}, dtype=t.{{float64|float32|int64}})
    """,
    x="b.real(fresh=0.35) if b.chance(0.8) else b.some()",
)

# NOTE: any of equal elements may be selected, and get the gradient.
order = Step(
    """
    t.sort({x}, dim={axis}, descending={flag}, stable=True)
    t.topk({apart}, {b.whole(1, b.shape_of(apart)[-1])}, largest={flag})[0]
    t.kthvalue({apart}, {b.whole(1, b.shape_of(apart)[-1])}, keepdim={b.chance(0.3)})[0]
    2: t.{cumsum|cumprod|cummax|cummin|logcumsumexp}({x}, {axis})
    t.argsort({x}, dim={axis}, stable=True)
    t.searchsorted(t.sort({b.real(1)}.detach())[0], {x}.detach(), right={flag})
    t.diff({x}, n={b.whole(1, 2)}, dim={axis})
    """,
    x="b.input(b.shape(b.pick((1, 2, 3))), '', b.pick(('spread', 'spread', 'eighths'))) "
    "if b.chance(0.6) else b.real(least=1)",
    apart="b.input(b.shape(b.pick((1, 2))), '', 'spread')",
)


def _tame(b: Builder) -> str:
    """Return a variable of any type with elements of moderate size."""
    x = b.some()
    return x if b.is_tame(b.values[x]) else b.input(b.shape(), b.pick(tuple(DTYPES)))


def _castable(b: Builder, x: str) -> str:
    """Return a variable whose elements all types can hold."""
    return b.let(f"{x}.clamp(-100, 100)") if b.values[x].dtype.is_signed else x


types = Step(
    """
    2: {x} {+|*|/} {y}
    {x} {+|*|-|/|**} {2|0.5|True|3.0}
    {castable(b, x)}.to(t.{float32|float64|int64|int32|int8|bool})
    t.{maximum|minimum}({x}, {y})
    t.where({b.like(x, 'bool')}, {x}, {y})
    t.{sum|prod|amax|cumsum|mean}({x}, {axis})
    {{x} {==|<|&} {y}|t.{logical_xor|pow|true_divide}({x}, {y})}
    """,
    x="tame(b)",
    y="b.like(x, b.pick(types))",
    tame=_tame,
    castable=_castable,
    types=tuple(DTYPES),
)

scalars = Step(
    """
    2: {x} {+|*} {y}
    t.cat([{x}.reshape(1), {y}.reshape(-1)])
    t.stack([{x}, {x}])
    4: {x}.{sum()|mean()|max()|argmax()|norm()|var(correction=0)|prod()|flatten()|clamp(0, 1)|reshape(())}
    2: {x}.{softmax(0)|cumsum(0)|sort(0)[0]|logsumexp(0)|flip(0)|unsqueeze(-1)}
    2: {x}{[None]|[...]|.expand(4, 1)|.squeeze()|.clone()|.repeat(3)|.squeeze(0)}
    t.where({x} > 0, {x}, {y})
    t.dot({x}.reshape(1), {y}.reshape(-1)[:1])
    """,
    x="b.real(0) if b.chance(0.6) else b.input((1,) * b.whole(1, 3))",
    y="b.input(b.pick(((), (1,), (1, 1), (3,))))",
)


def _special(b: Builder) -> str:
    """Return a variable with NaN, infinities, signed zeros and denormal numbers."""
    return b.known(
        lambda v: v.is_floating_point() and v.numel() > 0,
        lambda: b.input(b.shape(b.pick((0, 1, 2))), "", "special"),
        0.5,
    )


special = Step(
    f"""
    {{x}} {{+|-|*|/|<|>=|==|!=}} {{y}}
    t.{{{OF_SPECIAL}}}({{x}})
    t.{{maximum|minimum|fmax|fmin|atan2|copysign|hypot|logaddexp}}({{x}}, {{y}})
    t.{{sum|amax|amin|mean|prod|logsumexp|argmax|argmin|all|any|nansum}}({{x}}, {{axis}})
    F.{{{BENDS}}}({{x}})
    {{t.clamp({{x}}, -1, 1)|t.where({{x}} > 0, {{x}}, {{y}})|{{x}} ** {{2|0.5}}|t.pow({{x}}, {{y}})}}
    {{t.sort({{x}}, dim=0, stable=True)[0]|t.cummax({{x}}, 0)[0]|t.softmax({{x}}, 0)}}
    {{x}}.to(t.{{float64|float32|bool}})
    """,
    x="special(b)",
    y="b.like(x, '', 'special')",
    special=_special,
)


def _long(b: Builder) -> str:
    """Return a variable with a dimension longer than vectors, blocks and partial sums, with a tail."""
    extent = b.pick((63, 64, 65, 127, 129, 255, 257, 511, 1000, 1023, 1025, 1999))
    return b.input(b.pick(((extent,), (2, extent), (extent, 2))[: 2 if extent < 1000 else 1]))


long_rows = Step(
    """
    t.{sum|mean|amax|argmin|var|logsumexp|norm}({x}, {axis})
    t.prod({x} * 0.01 + 1, {axis})
    t.{softmax|cumsum}({x}, -1)
    {x}[..., 1:] - {x}[..., :-1]
    F.layer_norm({x}, ({shape[-1]},))
    {x + '.T' * (rank > 1)} @ {x}
    t.exp({x}) + {x}.flip(0)
    t.sort({x}, dim=-1, stable=True)[0]
    t.where({x} > 0, {x}, 0.1 * {x}).sum(0)
    """,
    x="long(b)",
    long=_long,
)
