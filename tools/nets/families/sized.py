"""Steps of random programs that compute with sizes: shapes, positions, slices, masks and numbers made of them."""

from __future__ import annotations

from typing import Any

from tools.nets.builder import Builder, Unfit
from tools.nets.families.grammar import Step


def sizes_of(b: Builder, x: str) -> list[str]:
    """Return the expressions of a variable's sizes."""
    return [f"{x}.shape[{i}]" for i in range(b.values[x].dim())]


def _merged(b: Builder, x: str, rank: int, axis: int, n: str) -> str:
    sizes = sizes_of(b, x)
    if axis + 1 < rank:
        both = f"{sizes[axis]} * {sizes[axis + 1]}"
        sizes[axis : axis + 2] = [b.pick((both, "-1"))]
    else:
        sizes[axis : axis + 1] = b.pick((["1", sizes[axis]], [sizes[axis], "1"], [f"{n} // 2", "2"], ["-1", n]))
    return ", ".join(sizes)


def _replaced(x: str, b: Builder, axis: int, extent: Any) -> str:
    return ", ".join(["-1"] * axis + [str(extent)] + sizes_of(b, x)[axis:])


def _ones(rank: int, axis: int, times: int) -> str:
    return ", ".join(["1"] * axis + [str(times)] + ["1"] * (rank - axis - 1))


step = Step(
    """
    11: {x}.{reshape|view}({merged(b, x, rank, axis, n)})
    22: {x}[{':, ' * axis}{:{n} // 2|{n} // 2:|{k}:|-{k}:|:-{k}|:{k}|::{k}|{n} // 3:{n} - 1|{single}}]
    2: F.pad({x}, ({k}, {last}))
    2: F.pad({x}, (0, -{last} % 8))
    2: F.pad({x}, ({last} // 2, {k}), value=0.5)
    2: t.cat([{x}, {{x}.new_zeros({', '.join(sizes_of(b, x))})|{x}.narrow({axis}, 0, {n} // 2)}], {axis})
    t.cat([{x}.narrow({axis}, {n} // 2, {n} - {n} // 2), {x}.narrow({axis}, 0, {n} // 2)], {axis})
    2: t.stack([{x}, {x}.flip({axis})], {b.whole(0, rank)})
    {x} + t.arange({last})
    {x} * t.arange({last}, dtype={x}.dtype)
    {x} * t.linspace(0, 1, {last}).to({x}.dtype)
    {x}.masked_fill(t.arange({last}) >= {last} // 2, 0)
    t.tril(t.ones({n}, {n}))
    t.eye({n}) + 1
    t.arange({n})[:, None] * t.arange({last})
    t.where(t.arange({last}) % 2 == 0, {x}, -{x})
    t.full(({n}, {b.whole(1, 3)}), 1.5) * {n}
    {t.arange(0, {n}, 2) + 0.5|t.arange({n} - 1, -1, -1) * 1.0}
    {x}.sum({axis}) / {n}
    {x} {* {n} ** -0.5|/ ({n} + 1)|+ {n}|* (1.0 / ({n} + 1))}
    {x}.sum() / max({n}, 1)
    {x} {* min({n}, 8)|/ ({x}.numel() + 1)|* ({n} % 4) + {n} // 4}
    ({x} if {n} > {1|4|8|16} else {x} * 2)
    {x}.unsqueeze({axis}).expand({replaced(x, b, axis, b.whole(1, 3))})
    {x}.roll({1|-2|{n} // 2}, {axis})
    2: {x}.{flip({axis})|cumsum({axis})|argmax({axis})|softmax({axis})|transpose({axis}, -1)}
    {x}.{repeat({ones(rank, axis, b.whole(1, 3))})|repeat_interleave(2, {axis})|flatten({b.whole(0, axis)}, {axis})}
    {x}.unfold({axis}, {b.whole(1, 3)}, {b.whole(1, 2)})
    {{x}.diagonal(0, {axis}, {(axis + 1) % rank})|t.diag({x})}
    t.{split({x}, [{n} // 2, {n} - {n} // 2], {axis})|chunk({x}, 2, {axis})|diff({x}, dim={axis})}
    2: {x}{.sort({axis}, stable=True)[0]| - {x}.mean({axis}, keepdim=True)|.amax({axis}, keepdim=True) - {x}}
    {x}.index_select({axis}, t.arange({n}).flip(0))
    {x}.std({axis}, correction=0)
    """,
    x="b.real(least=1, filled=False)",
    axis="b.whole(0, rank - 1)",
    n="f'{x}.shape[{axis}]'",
    last="f'{x}.shape[-1]'",
    k="b.whole(1, 4)",
    single="b.pick((f'{n} - 1', f'{n} // 2', '-1', '0', f'{k}::2'))",
    merged=_merged,
    replaced=_replaced,
    ones=_ones,
    sizes_of=sizes_of,
)
"""Statements with sizes of any variable."""


def _images(b: Builder) -> str:
    side, high = b.pick((6, 8, 9, 12)), b.pick((5, 8, 10, 16))
    channels = b.pick((1, 3, 4))
    return b.known(
        lambda v: v.dim() == 4 and v.is_floating_point() and v.numel() > 0,
        lambda: b.input((b.pick((2, 5)), channels, side, high)),
        0.2,
    )


image = Step(
    """
    6: {b.layer(f'nn.Conv2d({channels}, {out}, {k}, {stride}, {b.whole(0, k // 2)}, {b.pick((1, 1, 2))})')}({x})
    2: {b.layer(f'nn.ConvTranspose2d({channels}, {out}, {k}, {stride}, {b.whole(0, k // 2)}, {odd})')}({x})
    2: F.adaptive_{avg|max}_pool2d({x}, {1|1|2|3})
    6: F.{max|avg}_pool2d({x}, {window}, {1|2|3}, {window // 2}, ceil_mode={b.chance(0.3)})
    2: F.interpolate({x}, {by}, mode='{nearest|area}')
    2: F.interpolate({x}, {by}, mode='{bilinear|bicubic}', align_corners={flag})
    4: {b.layer(f'nn.BatchNorm2d({channels})')}({x})
    F.{relu|silu}({x})
    {x}.{mean((2, 3))|flatten(2).transpose(1, 2)}
    2: F.pad({x}, (1, 2, {b.whole(0, 2)}, 1), mode='{reflect|replicate|circular|constant}')
    2: F.unfold({x}, {b.whole(1, 3)}, padding={b.whole(0, 1)}, stride={b.whole(1, 2)})
    F.pixel_shuffle({x}, 2)
    """,
    x="images(b)",
    channels="b.values[x].shape[1]",
    k="b.pick((1, 2, 3, 3, 5))",
    stride="b.pick((1, 1, 2, 3))",
    odd="b.whole(0, stride - 1)",
    out="b.pick((1, 2, 4, 8, 17))",
    window="b.pick((1, 2, 3))",
    by="b.pick(('scale_factor=2', 'scale_factor=0.5', f'size=({x}.shape[2] * 2, {x}.shape[3] + 1)', 'size=(7, 5)'))",
    images=_images,
)
"""Statements with images that have a named batch or named sides."""


def _sequences(b: Builder, width: int) -> str:
    def fits(v: Any) -> bool:
        return v.dim() == 3 and v.is_floating_point() and v.shape[2] == width

    return b.known(fits, lambda: b.input((b.pick((2, 3)), b.pick((5, 9, 12)), width)), 0.2)


def _words(b: Builder, x: str) -> str:
    words = b.input(b.shape_of(x)[:2], "i64", "below 7", "dense")
    if b.values[words].dim() != 2:
        raise Unfit
    return words


sequence = Step(
    """
    {b.layer(f'nn.{kind}({width}, {b.whole(1, 5)}, batch_first={flag}, bidirectional={b.chance(0.3)})')}({x})[0]
    {b.layer(f'nn.MultiheadAttention({width}, 2, batch_first=True)')}({x}, {x}, {x}, need_weights={flag})[0]
    {x}.reshape({x}.shape[0], {x}.shape[1], 2, -1).transpose(1, 2)
    F.scaled_dot_product_attention({x}, {x}, {x}, is_causal={b.chance(0.6)})
    F.softmax(({x} @ {x}.transpose(1, 2)).masked_fill({mask}, -inf), -1) @ {x}
    {x} + {b.input((70, width))}[:{x}.shape[1]]
    {b.layer(f'nn.Linear({width}, {b.pick((3, width, 17))})')}({x})
    {b.layer(f'nn.LayerNorm({width})')}({x})
    F.conv1d({x}.transpose(1, 2), {b.input((3, width, b.whole(1, 3)))}, padding=1)
    {x}{[:, -1]|.mean(1)|.amax(1)|[:, ::2]|.flatten(0, 1)}
    {b.layer(f'nn.TransformerEncoderLayer({width}, 2, 8, dropout=0.0, batch_first=True)')}({x})
    {x} + F.embedding({words(b, x)}, {b.input((7, width))})
    """,
    width="b.pick((4, 6, 8))",
    x="sequences(b, width)",
    kind="b.pick(('RNN', 'LSTM', 'GRU'))",
    mask="let(f't.tril(t.ones({x}.shape[1], {x}.shape[1])) == 0')",
    sequences=_sequences,
    words=_words,
)
"""Statements with sequences that have a named batch and length."""
