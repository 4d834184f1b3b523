"""Steps of random programs with layers and losses: convolutions, pools, norms, attention, recurrence, products."""

from __future__ import annotations

from typing import Any

from tools.nets.builder import Builder
from tools.nets.families.grammar import Step, per_dimension


def images(b: Builder, dims: int, least: int = 1) -> str:
    """Return a float variable of batch, channels and ``dims`` dimensions."""

    def fresh() -> str:
        sizes = tuple(b.pick((1, 2, 3, 4, 5, 7, 8, 9, 12)) for _ in range(dims))
        return b.input((b.whole(1, 3), b.pick((1, 2, 3, 4, 6, 8)), *(max(least, s) for s in sizes)))

    return b.known(lambda v: v.dim() == dims + 2 and v.is_floating_point() and v.numel() > 0 and b.is_tame(v), fresh)


def divisors(number: int) -> list[int]:
    """Return the divisors of a number of channels."""
    return [d for d in range(1, number + 1) if number % d == 0]


_IMAGE: dict[str, Any] = {
    "dims": "b.pick((1, 2, 2, 2, 3))",
    "x": "images(b, dims)",
    "channels": "shape[1]",
    "window": "each(b, dims, 1, b.pick((1, 3, 4)))",
    "stride": "each(b, dims, 1, 3)",
    "images": images,
    "each": per_dimension,
    "divisors": divisors,
}
"""Operands of windows over images."""

convolution = Step(
    """
    3: {b.layer(f'nn.Conv{dims}d({places}, {more}, padding_mode={edge!r})')}({x})
    {b.layer(f'nn.ConvTranspose{dims}d({places}, {more})')}({x})
    2: F.conv_transpose{dims}d({x}, {back}, stride={stride}, padding={padding}, groups={groups}, dilation={dilation})
    3: F.conv{dims}d({x}, {weight}, {None|{b.input((out,))}}, {stride}, {{padding}|'valid'}, {dilation}, {groups})
    F.conv{dims}d({x}, {weight}, {None|{b.input((out,))}}, 1, 'same', {dilation}, {groups})
    """,
    **_IMAGE,
    groups="b.pick([1, *divisors(channels)])",
    out="groups * b.whole(1, 4)",
    padding="each(b, dims, 0, 2)",
    dilation="each(b, dims, 1, b.pick((1, 2, 3)))",
    places="f'{channels}, {out}, {window}, {stride}, {padding}'",
    more="f'groups={groups}, dilation={dilation}, bias={b.chance(0.7)}'",
    edge="b.pick(('zeros', 'reflect', 'replicate', 'circular'))",
    weight="b.input((out, channels // groups, *window), kind='')",
    back="b.input((channels, out // groups, *window), kind='')",
)

# NOTE: the gradient of PyTorch's max_pool writes outside of its memory where a window reads nothing, as one of two
# elements two apart can around an image of one.
pool = Step(
    """
    2: F.max_pool{dims}d({x}, {window}, {stride}, {padding}, {apart(b, shape[2:])}, {ceil}{, return_indices=True||})
    2: F.avg_pool{dims}d({x}, {window}, {stride}, {padding}, {ceil}, {flag})
    F.adaptive_{avg|max}_pool{dims}d({x}, {each(b, dims, 1, 6)})
    F.lp_pool{dims}d({x}.abs() + 0.5, {1|2|3}, {window[0]}, {stride[0]}, {ceil})
    """,
    **_IMAGE | {"window": "each(b, dims, 1, 4)"},
    padding="half(b, window)",
    ceil="b.chance(0.3)",
    half=lambda b, window: tuple(b.whole(0, w // 2) for w in window),
    apart=lambda b, sizes: tuple(b.whole(1, min(2, size)) for size in sizes),
)

norm = Step(
    """
    2: {b.layer(f'nn.BatchNorm{max(1, dims)}d({channels}{kind})')}({x})
    {b.layer(f'nn.GroupNorm({b.pick(divisors(channels))}, {channels})')}({x})
    {b.layer(f'nn.{b.pick(("LayerNorm", "LayerNorm", "RMSNorm"))}({shape[-b.whole(1, 2):]})')}({x})
    {b.layer(f'nn.InstanceNorm{max(1, dims)}d({channels}, affine={flag})')}({x})
    F.normalize({x}, p={1|2|3.0}, dim={axis})
    F.local_response_norm({x}, {b.whole(1, 4)})
    """,
    **_IMAGE | {"dims": "b.pick((0, 1, 2, 2, 3))"},
    kind="b.pick(('', ', affine=False', ', momentum=None', ', track_running_stats=False'))",
)

# NOTE: PyTorch multiplies the gradient of hardsigmoid by a sixth in f32, even for f64 tensors.
activation = Step(
    """
    16: F.{relu|gelu|silu|elu|selu|celu|mish|softplus|softsign|hardtanh|leaky_relu|relu6|logsigmoid}({x})
    4: F.{tanhshrink|hardshrink|softshrink|sigmoid|tanh}({x})
    2: F.{b.pick(('hardsigmoid', 'hardswish')) if b.float == 'f32' else 'silu'}({x})
    {F.gelu({x}, approximate='tanh')|F.threshold({x}, 0.25, -1.0)|F.glu({x}, {b.whole(-2, 1)})}
    """,
    x="b.real()",
)

attention = Step(
    """
    F.scaled_dot_product_attention({q}, {k}, {v}, is_causal={flag})
    2: F.scaled_dot_product_attention({q}, {k}, {v}, attn_mask={{mask}|{rows}})
    F.scaled_dot_product_attention({q}, {k}, {v}, attn_mask={b.input((queries, keys))}, scale={0.5|1.0|None})
    F.softmax(({q} @ {k}.mT).masked_fill({b.input((queries, keys), 'bool')}, {-inf|-1e9}), -1) @ {v}
    {b.layer(f'nn.MultiheadAttention({2 * heads}, {heads}, batch_first=True)')}({s}, {s}, {s}, need_weights={flag})[0]
    """,
    batch="b.whole(1, 2)",
    heads="b.pick((1, 2))",
    queries="b.whole(1, 9)",
    keys="b.whole(1, 9)",
    width="b.pick((1, 2, 4, 5, 8))",
    lead="b.pick(((batch, b.whole(1, 3)), (batch,), ()))",
    q="b.input((*lead, queries, width))",
    k="b.input((*lead, keys, width))",
    v="b.pick((k, b.input((*lead, keys, b.pick((width, 3))))))",
    s="b.input((batch, keys, 2 * heads))",
    mask="b.input((*b.pick(((), lead)), queries, keys), 'bool')",
    rows="let('{mask} & ' + b.input((queries, 1), 'bool'))",
)


def recurrent(b: Builder) -> None:
    """Apply a recurrent layer, a cell in a loop, or a written-out recurrence."""
    width, hidden, steps, batch = b.whole(1, 5), b.whole(1, 6), b.whole(1, 6), b.whole(1, 3)
    kind = b.pick(("RNN", "LSTM", "GRU"))
    choice = b.whole(0, 3)
    if choice in (0, 1):
        first = b.chance(0.5)
        more = f"num_layers={b.whole(1, 2)}, bidirectional={b.chance(0.3)}, bias={b.chance(0.8)}"
        layer = b.layer(f"nn.{kind}({width}, {hidden}, {more}, batch_first={first})")
        x = b.input((batch, steps, width) if first else (steps, batch, width))
        result = b.let(f"{layer}({x})[0]")
        b.let(f"{result}.{b.pick(('sum(0)', 'flip(0)', 'tanh()', 'mean(1)'))}")
    elif choice == 2:
        layer = b.layer(f"nn.{kind}Cell({width}, {hidden})")
        h, x = b.input((batch, hidden)), b.input((steps, batch, width))
        for step in range(min(steps, 3)):
            state = f"({h}, {h})" if kind == "LSTM" else h
            h = b.let(f"{layer}({x}[{step}], {state}){'[0]' if kind == 'LSTM' else ''}")
    else:
        h, x, w = b.input((hidden,)), b.input((steps, hidden)), b.input((hidden, hidden))
        for step in range(steps):
            h = b.let(f"t.tanh({h} @ {w} + {x}[{step}])")


EQUATIONS = (
    *(("ij,jk->ik", "ij jk"), ("ij,jk->ki", "ij jk"), ("ijk,ik->j", "ijk ik"), ("ij,ij->", "ij ij"), ("ii->i", "ii")),
    *(("ijk->ki", "ijk"), ("i,j,k->kji", "i j k"), ("bij,bjk->bik", "bij bjk"), ("ij,kj,ki->k", "ij kj ki")),
    ("...ij,...kj->...ik", "bij bkj"),
)


def _einsum(b: Builder) -> str:
    rule, operands = b.pick(EQUATIONS)
    extents = {letter: b.whole(1, 5) for letter in "ijkb"}
    return f"'{rule}', {', '.join(b.input([extents[c] for c in letters]) for letters in operands.split())}"


product = Step(
    """
    2: {{x} @ {right}|t.matmul({x}, {right})|{x} @ {b.input((k,))}|{b.input((m,))} @ {x}}
    F.linear({x}, {b.input((n, k))}, {None|{b.input((n,))}})
    {b.layer(f'nn.Linear({k}, {n}, bias={b.chance(0.7)})')}({x})
    t.bmm({b.input((2, m, k))}, {b.input((2, k, n))})
    t.addmm({added}, {b.input((m, k))}, {b.input((k, n))}{|, beta=0.5, alpha=2|, beta=0})
    t.einsum({einsum(b)})
    t.tensordot({b.input((m, k, 2))}, {b.input((k, 2, n))}, dims={2|([1, 2], [0, 1])})
    {t.outer({b.real(1)}, {b.real(1)})|t.kron({b.real(2)}, {b.input((2, 3))})}
    t.cdist({b.input((m, k))}, {b.input((n, k))}, p={1.0|2.0|3.0})
    {b.layer(f'nn.Bilinear({k}, {n}, 3)')}({b.input((m, k))}, {b.input((m, n))})
    """,
    m="b.extent(33)",
    k="b.extent(33)",
    n="b.extent(33)",
    lead="b.pick(((), (), (2,), (3, 1), (1,), (2, 2)))",
    x="matrix(b, lead, m, k)",
    added="b.input(b.pick(((n,), (m, n), (1, n))))",
    right="b.input((*b.pick((lead, (), (1,))), k, n))",
    matrix=lambda b, lead, m, k: b.known(
        lambda v: v.dim() >= 2 and v.shape[-1] == k and v.is_floating_point(), lambda: b.input((*lead, m, k))
    ),
    einsum=_einsum,
)

loss = Step(
    """
    F.cross_entropy({x}, {target}{|, label_smoothing=0.1|, ignore_index={b.whole(0, classes - 1)}}{how})
    F.cross_entropy({x}, {target}, weight={b.input((classes,), '', 'positive', gradient=False)}{how})
    F.cross_entropy({x}, F.softmax({b.input(size)}, 1){how})
    F.nll_loss(F.log_softmax({x}, 1), {target}{how})
    F.{binary_cross_entropy_with_logits|mse_loss|l1_loss|smooth_l1_loss|huber_loss}({x}, {unit}{how})
    F.binary_cross_entropy(t.sigmoid({x}), {unit}{how})
    F.kl_div(F.log_softmax({x}, 1), F.softmax({b.input(size)}, 1){how}, log_target=False)
    F.{softmax|log_softmax|softmin}({b.real(least=1)}, dim={b.whole(-1, 0)})
    {F.triplet_margin_loss({x}, {y}, {z}{how})|F.cosine_similarity({x}, {y}, dim=1)|F.pairwise_distance({x}, {y})}
    F.gaussian_nll_loss({x}, {y}, {positive}{how})
    F.poisson_nll_loss({x}, {positive}{how})
    F.soft_margin_loss({x}, {positive}.detach().sign(){how})
    """,
    rows="b.whole(1, 7)",
    classes="b.pick((1, 2, 3, 5, 9, 17))",
    size="b.pick(((rows, classes), (rows, classes, 3)))",
    x="b.input(size)",
    y="b.input(size)",
    z="b.input(size)",
    positive="b.input(size, '', 'positive')",
    unit="b.input(size, '', 'unit')",
    target="b.input((rows, *size[2:]), 'i64', f'below {classes}', 'dense')",
    how='f\', reduction={b.pick(("mean", "sum", "none"))!r}\'',
)


def stack(b: Builder) -> None:
    """Apply some layers one after the other."""
    if b.chance(0.5):
        x = images(b, 2, 3)
        channels = b.shape_of(x)[1]
        for _ in range(b.whole(1, 3)):
            out = b.pick((2, 4, 8))
            x = b.let(f"{b.layer(f'nn.Conv2d({channels}, {out}, {b.pick((1, 3))}, padding=1)')}({x})")
            more = (
                f"F.relu({x})",
                f"{b.layer(f'nn.BatchNorm2d({out})')}({x})",
                f"F.avg_pool2d({x}, 3, 2, 1)",
                f"F.max_pool2d({x}, 2)",
            )
            x, channels = b.let(b.pick(more)), out
        b.let(f"{x}.{b.pick(('flatten(1)', 'mean((2, 3))', 'amax((2, 3))'))}")
        return
    width = b.extent(33)
    x = b.input((b.whole(1, 9), width))
    for _ in range(b.whole(1, 4)):
        out = b.pick((1, 3, 8, width))
        y = b.let(f"{b.layer(f'nn.Linear({width}, {out})')}({x})")
        y = b.let(f"F.{b.pick(('relu', 'gelu', 'tanh', 'silu'))}({y})")
        x = b.let(f"{x} + {y}") if out == width else y
        width = out


def _layer_twice(b: Builder, x: str) -> str:
    width = b.shape_of(x)[1]
    layer = b.layer(f"nn.Linear({width}, {width})")
    return f"{layer}(F.relu({layer}({x})))"


repeated = Step(
    """
    4: ! {copy}.{add_|mul_|copy_|sub_}({copy})
    4: {layer_twice(b, x)}
    2: F.conv2d({x}[None, None], {x}[None, None])
    {x} {*|-} {x}
    {x} / ({x} + 5)
    t.{maximum|atan2|hypot}({x}, {x})
    t.lerp({x}, {x}, {x})
    t.where({x} > 0, {x}, {x} * 2)
    t.cat([{x}, {x}, {x}], {0|-1})
    {{x} @ {x}.T|{x}.T @ {x}|F.linear({x}, {x})|t.einsum('ij,ij->i', {x}, {x})}
    F.mse_loss({x}, {x} * 0.5) + t.addcmul({x}, {x}, {x}).sum()
    F.scaled_dot_product_attention({x}[None], {x}[None], {x}[None])
    """,
    x="b.real(2)",
    copy="let(f'{x}.clone()')",
    layer_twice=_layer_twice,
)
"""Statements that pass one tensor, or apply one layer, twice."""
