"""Steps of random programs that compute with sizes: shapes, positions, slices, masks and numbers made of them."""

from __future__ import annotations

from typing import Any

from tools.nets.builder import Builder, Unfit


def sizes_of(b: Builder, x: str) -> list[str]:
    """Return the expressions of a variable's sizes."""
    return [f"{x}.shape[{i}]" for i in range(b.values[x].dim())]


def step(b: Builder) -> None:
    """Add a statement that computes with a size."""
    x = b.real(least=1, filled=False)
    rank = b.values[x].dim()
    axis = b.whole(0, rank - 1)
    n = f"{x}.shape[{axis}]"
    b.let(b.pick(SIZED)(b, x, rank, axis, n))


def _merged(b: Builder, x: str, rank: int, axis: int, n: str) -> str:
    sizes = sizes_of(b, x)
    if axis + 1 < rank:
        both = f"{sizes[axis]} * {sizes[axis + 1]}"
        sizes[axis : axis + 2] = [b.pick((both, "-1"))]
    else:
        sizes[axis : axis + 1] = b.pick((["1", sizes[axis]], [sizes[axis], "1"], [f"{n} // 2", "2"], ["-1", n]))
    return f"{x}.{b.pick(('reshape', 'view'))}({', '.join(sizes)})"


def _sliced(b: Builder, x: str, rank: int, axis: int, n: str) -> str:
    k = b.whole(1, 4)
    index = b.pick(
        (
            f":{n} // 2",
            f"{n} // 2:",
            f"{k}:",
            f"-{k}:",
            f":-{k}",
            f":{k}",
            f"::{k}",
            f"{n} // 3:{n} - 1",
            f"{n} - 1",
            f"{n} // 2",
            "-1",
            "0",
            f"{k}::2",
        )
    )
    return f"{x}[{':, ' * axis}{index}]"


def _padded(b: Builder, x: str, rank: int, axis: int, n: str) -> str:
    k = b.whole(0, 3)
    return b.pick(
        (
            f"F.pad({x}, ({k}, {x}.shape[-1]))",
            f"F.pad({x}, (0, -{x}.shape[-1] % 8))",
            f"F.pad({x}, ({x}.shape[-1] // 2, {k}), value=0.5)",
            f"t.cat([{x}, {x}.new_zeros({', '.join(sizes_of(b, x))})], {axis})",
            f"t.cat([{x}, {x}.narrow({axis}, 0, {n} // 2)], {axis})",
            f"t.cat([{x}.narrow({axis}, {n} // 2, {n} - {n} // 2), {x}.narrow({axis}, 0, {n} // 2)], {axis})",
            f"t.stack([{x}, {x}.flip({axis})], {b.whole(0, rank)})",
        )
    )


def _positions(b: Builder, x: str, rank: int, axis: int, n: str) -> str:
    last = f"{x}.shape[-1]"
    return b.pick(
        (
            f"{x} + t.arange({last})",
            f"{x} * t.arange({last}, dtype={x}.dtype)",
            f"{x} * t.linspace(0, 1, {last}).to({x}.dtype)",
            f"{x}.masked_fill(t.arange({last}) >= {last} // 2, 0)",
            f"t.tril(t.ones({n}, {n}))",
            f"t.eye({n}) + 1",
            f"t.arange({n})[:, None] * t.arange({last})",
            f"t.where(t.arange({last}) % 2 == 0, {x}, -{x})",
            f"t.full(({n}, {b.whole(1, 3)}), 1.5) * {n}",
            f"t.arange(0, {n}, 2) + 0.5",
            f"t.arange({n} - 1, -1, -1) * 1.0",
        )
    )


def _scaled(b: Builder, x: str, rank: int, axis: int, n: str) -> str:
    return b.pick(
        (
            f"{x}.sum({axis}) / {n}",
            f"{x} * {n} ** -0.5",
            f"{x} / ({n} + 1)",
            f"{x} + {n}",
            f"{x} * (1.0 / ({n} + 1))",
            f"{x}.sum() / max({n}, 1)",
            f"{x} * min({n}, 8)",
            f"{x} / ({x}.numel() + 1)",
            f"{x} * ({n} % 4) + {n} // 4",
            f"({x} if {n} > {b.pick((1, 4, 8, 16))} else {x} * 2)",
        )
    )


def _arranged(b: Builder, x: str, rank: int, axis: int, n: str) -> str:
    return b.pick(
        (
            f"{x}.unsqueeze({axis}).expand({', '.join(['-1'] * axis + [str(b.whole(1, 3))] + sizes_of(b, x)[axis:])})",
            f"{x}.roll({b.pick(('1', '-2', f'{n} // 2'))}, {axis})",
            f"{x}.flip({axis})",
            f"{x}.repeat({', '.join(['1'] * axis + [str(b.whole(1, 3))] + ['1'] * (rank - axis - 1))})",
            f"{x}.repeat_interleave(2, {axis})",
            f"{x}.transpose({axis}, -1)",
            f"{x}.flatten({b.whole(0, axis)}, {axis})",
            f"{x}.unfold({axis}, {b.whole(1, 3)}, {b.whole(1, 2)})",
            f"{x}.diagonal(0, {axis}, {(axis + 1) % rank})" if rank > 1 else f"t.diag({x})",
            f"t.split({x}, [{n} // 2, {n} - {n} // 2], {axis})",
            f"t.chunk({x}, 2, {axis})",
            f"{x}.cumsum({axis})",
            f"{x}.sort({axis}, stable=True)[0]",
            f"{x}.softmax({axis})",
            f"{x} - {x}.mean({axis}, keepdim=True)",
            f"{x}.amax({axis}, keepdim=True) - {x}",
            f"{x}.index_select({axis}, t.arange({n}).flip(0))",
            f"{x}.argmax({axis})",
            f"{x}.std({axis}, correction=0)",
            f"t.diff({x}, dim={axis})",
        )
    )


SIZED: tuple[Any, ...] = (_merged, _sliced, _sliced, _padded, _positions, _scaled, _arranged, _arranged)


def image(b: Builder) -> None:
    """Apply a layer to images with a named batch or named sides."""
    side, high = b.pick((6, 8, 9, 12)), b.pick((5, 8, 10, 16))
    channels = b.pick((1, 3, 4))
    x = b.known(
        lambda v: v.dim() == 4 and v.is_floating_point() and v.numel() > 0,
        lambda: b.input((b.pick((2, 5)), channels, side, high)),
        0.2,
    )
    channels = b.values[x].shape[1]
    b.let(b.pick(IMAGES)(b, x, channels))


def _convolved(b: Builder, x: str, channels: int) -> str:
    k, stride, out = b.pick((1, 2, 3, 3, 5)), b.pick((1, 1, 2, 3)), b.pick((1, 2, 4, 8, 17))
    padding = b.whole(0, k // 2)
    if b.chance(0.75):
        return f"{b.layer(f'nn.Conv2d({channels}, {out}, {k}, {stride}, {padding}, {b.pick((1, 1, 2))})')}({x})"
    arguments = f"{channels}, {out}, {k}, {stride}, {padding}, {b.whole(0, stride - 1)}"
    return f"{b.layer(f'nn.ConvTranspose2d({arguments})')}({x})"


def _pooled(b: Builder, x: str, channels: int) -> str:
    if b.chance(0.3):
        return f"F.adaptive_{b.pick(('avg', 'max'))}_pool2d({x}, {b.pick((1, 1, 2, 3))})"
    k, stride = b.pick((1, 2, 3)), b.pick((1, 2, 3))
    return f"F.{b.pick(('max', 'avg'))}_pool2d({x}, {k}, {stride}, {k // 2}, ceil_mode={b.chance(0.3)})"


def _resized(b: Builder, x: str, channels: int) -> str:
    mode = b.pick(("nearest", "bilinear", "bicubic", "area"))
    corners = f", align_corners={b.chance(0.5)}" if mode.startswith("bi") else ""
    by = b.pick(("scale_factor=2", "scale_factor=0.5", f"size=({x}.shape[2] * 2, {x}.shape[3] + 1)", "size=(7, 5)"))
    return f"F.interpolate({x}, {by}, mode='{mode}'{corners})"


def _of_pixels(b: Builder, x: str, channels: int) -> str:
    mode = b.pick(("reflect", "replicate", "circular", "constant"))
    return b.pick(
        (
            f"F.relu({x})",
            f"F.silu({x})",
            f"{x}.mean((2, 3))",
            f"{x}.flatten(2).transpose(1, 2)",
            f"F.pad({x}, (1, 2, {b.whole(0, 2)}, 1), mode='{mode}')",
            f"F.unfold({x}, {b.whole(1, 3)}, padding={b.whole(0, 1)}, stride={b.whole(1, 2)})",
            f"F.pixel_shuffle({x}, 2)",
        )
    )


IMAGES: tuple[Any, ...] = (
    _convolved,
    _convolved,
    _pooled,
    _pooled,
    _resized,
    lambda b, x, channels: f"{b.layer(f'nn.BatchNorm2d({channels})')}({x})",
    _of_pixels,
    _of_pixels,
)
"""Steps for a variable of batch, channels and two sides."""


def sequence(b: Builder) -> None:
    """Apply a layer to sequences with a named batch and length."""
    width = b.pick((4, 6, 8))

    def fits(v: Any) -> bool:
        return v.dim() == 3 and v.is_floating_point() and v.shape[2] == width

    x = b.known(fits, lambda: b.input((b.pick((2, 3)), b.pick((5, 9, 12)), width)), 0.2)
    b.let(b.pick(SEQUENCES)(b, x, width))


def _recurrent(b: Builder, x: str, width: int) -> str:
    arguments = f"{width}, {b.whole(1, 5)}, batch_first={b.chance(0.5)}, bidirectional={b.chance(0.3)}"
    kind = b.pick(("RNN", "LSTM", "GRU"))
    return f"{b.layer(f'nn.{kind}({arguments})')}({x})[0]"


def _heads(b: Builder, x: str, width: int) -> str:
    layer = b.layer(f"nn.MultiheadAttention({width}, 2, batch_first=True)")
    return f"{layer}({x}, {x}, {x}, need_weights={b.chance(0.5)})[0]"


def _written_out(b: Builder, x: str, width: int) -> str:
    mask = b.let(f"t.tril(t.ones({x}.shape[1], {x}.shape[1])) == 0")
    return f"F.softmax(({x} @ {x}.transpose(1, 2)).masked_fill({mask}, -inf), -1) @ {x}"


def _words(b: Builder, x: str, width: int) -> str:
    words = b.input(b.shape_of(x)[:2], "i64", "below 7", "dense")
    if b.values[words].dim() != 2:
        raise Unfit
    return f"{x} + F.embedding({words}, {b.input((7, width))})"


SEQUENCES: tuple[Any, ...] = (
    _recurrent,
    _heads,
    lambda b, x, width: f"{x}.reshape({x}.shape[0], {x}.shape[1], 2, -1).transpose(1, 2)",
    lambda b, x, width: f"F.scaled_dot_product_attention({x}, {x}, {x}, is_causal={b.chance(0.6)})",
    _written_out,
    lambda b, x, width: f"{x} + {b.input((70, width))}[:{x}.shape[1]]",
    lambda b, x, width: f"{b.layer(f'nn.Linear({width}, {b.pick((3, width, 17))})')}({x})",
    lambda b, x, width: f"{b.layer(f'nn.LayerNorm({width})')}({x})",
    lambda b, x, width: f"F.conv1d({x}.transpose(1, 2), {b.input((3, width, b.whole(1, 3)))}, padding=1)",
    lambda b, x, width: x + b.pick(("[:, -1]", ".mean(1)", ".amax(1)", "[:, ::2]", ".flatten(0, 1)")),
    lambda b, x, width: f"{b.layer(f'nn.TransformerEncoderLayer({width}, 2, 8, dropout=0.0, batch_first=True)')}({x})",
    _words,
)
"""Steps for a variable of batch, length and width."""
