"""Steps of random programs that move elements: views, indices, writes, joins, resampling, layouts, empty dimensions."""

from __future__ import annotations

from collections.abc import Callable

from tools.nets.builder import INTEGERS, Builder, Unfit


def view(b: Builder) -> None:
    """Take a view of any variable, often of a view."""
    x = b.some(least=b.pick((0, 1, 2)))
    b.let(f"{x}{b.pick(VIEWS)(b, x)}")


def _narrow(b: Builder, x: str) -> str:
    axis = b.axis(x)
    extent = b.shape_of(x)[axis]
    start = b.whole(0, max(0, extent - 1))
    return f".narrow({axis}, {start}, {b.whole(0, extent - start)})"


def _select(b: Builder, x: str) -> str:
    axis = b.axis(x)
    extent = b.shape_of(x)[axis]
    if not extent:
        raise Unfit
    return f".select({axis}, {b.whole(-extent, extent - 1)})"


def _windows(b: Builder, x: str) -> str:
    axis = b.axis(x)
    return f".unfold({axis}, {b.whole(1, max(1, b.shape_of(x)[axis]))}, {b.whole(1, 3)})"


def _expand(b: Builder, x: str) -> str:
    return f".expand({(*b.pick(((), (2,), (3, 1))), *(b.whole(1, 3) if e == 1 else -1 for e in b.shape_of(x)))})"


def _permute(b: Builder, x: str) -> str:
    rank = b.values[x].dim()
    return f".permute({tuple(b.random.sample(range(rank), rank))})"


VIEWS: tuple[Callable[[Builder, str], str], ...] = (
    lambda b, x: f".reshape({reshaped(b, b.shape_of(x))})",
    _permute,
    lambda b, x: f".transpose({b.axis(x)}, {b.axis(x)})",
    lambda b, x: f"[{slices(b, b.shape_of(x))}]",
    lambda b, x: f"[{slices(b, b.shape_of(x))}]",
    lambda b, x: f"[{slices(b, b.shape_of(x))}]",
    lambda b, x: f".unsqueeze({b.whole(-b.values[x].dim() - 1, b.values[x].dim())})",
    lambda b, x: f".squeeze({b.pick(('', str(b.axis(x))))})",
    _expand,
    _narrow,
    _select,
    lambda b, x: f".diagonal({b.whole(-2, 2)}, {b.axis(x)}, {b.axis(x)})",
    _windows,
    lambda b, x: f".flatten({b.whole(0, max(0, b.values[x].dim() - 1))})",
    lambda b, x: f".movedim({b.axis(x)}, {b.axis(x)})",
    lambda b, x: b.pick((".mT", ".T", ".flatten()", ".view(-1)", ".detach()")),
)
"""View expressions to append to a variable."""


def reshaped(b: Builder, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return another shape of as many elements, sometimes with a -1."""
    rest = 1
    for extent in shape:
        rest *= extent
    if not rest:
        return tuple(b.random.sample(shape, len(shape)))
    sizes: list[int] = []
    while rest > 1 and len(sizes) < 4:
        sizes.append(b.pick([d for d in range(1, rest + 1) if rest % d == 0]))
        rest //= sizes[-1]
    sizes += [rest] if rest > 1 or b.chance(0.4) else []
    if sizes and b.chance(0.3):
        sizes[b.whole(0, len(sizes) - 1)] = -1
    return tuple(sizes)


def slices(b: Builder, shape: tuple[int, ...]) -> str:
    """Return an index of slices, numbers, None and an ellipsis."""
    if not shape:
        return b.pick(("...", "None"))
    indices: list[str] = []
    for extent in shape[: b.whole(1, len(shape))]:
        choice = b.whole(0, 5)
        if choice == 0 and extent:
            indices.append(str(b.whole(-extent, extent - 1)))
        elif choice == 1:
            indices.append(":")
        elif choice == 2:
            indices.append(f"{b.whole(-extent - 1, extent)}:")
        else:
            start, stop = b.whole(0, extent), b.whole(-extent, extent + 1)
            indices.append(f"{start}:{stop}:{b.whole(1, 4)}")
        if b.chance(0.15):
            indices.append("None")
    if len(shape) > 1 and len(indices) < len(shape) and b.chance(0.3):
        indices.append("...")
    return ", ".join(indices)


def rearrange(b: Builder) -> None:
    """Copy a variable with its elements rearranged."""
    x = b.some(least=1)
    axis = b.axis(x)
    b.let(
        b.pick(
            (
                f"{x}.flip({b.axes(x, 1)})",
                f"{x}.roll({b.whole(-5, 5)}, {axis})",
                f"{x}.roll({b.whole(-5, 5)})",
                f"t.rot90({x}, {b.whole(-3, 3)}, {b.axes(x, 2)[:2]})" if b.values[x].dim() > 1 else f"{x}.clone()",
                f"{x}.repeat({(*b.pick(((), (2,))), *(b.whole(1, 2) for _ in b.shape_of(x)))})",
                f"{x}.repeat_interleave({b.whole(1, 3)}, {axis})",
                f"t.tile({x}, {(b.whole(1, 2), b.whole(1, 2))})",
                f"t.tril({x}, {b.whole(-2, 2)})",
                f"t.triu({x}, {b.whole(-2, 2)})",
                f"t.diag_embed({x}, {b.whole(-1, 1)})",
                f"{x}.contiguous()",
            )
        )
    )


def indices(b: Builder, extent: int, shape: tuple[int, ...], negative: bool = True) -> str:
    """Return an argument of indices below an extent, repeated ones and negative ones among them."""
    if not extent:
        raise Unfit
    name = b.input(shape, b.pick(("i64", "i64", "i64", "i32")) if negative else "i64", f"below {extent}")
    return b.let(f"{name} - {extent}") if negative and b.chance(0.3) else name


def read(b: Builder) -> None:
    """Read elements by index tensors."""
    x = b.some(least=1)
    shape, axis = b.shape_of(x), b.axis(x)
    choice = b.whole(0, 8)
    if choice == 0:
        b.let(f"t.index_select({x}, {axis}, {indices(b, shape[axis], (b.whole(0, 6),), False)})")
    elif choice == 1:
        around = list(shape)
        around[axis] = b.whole(1, 5)
        b.let(f"t.gather({x}, {axis}, {indices(b, shape[axis], tuple(around), False)})")
    elif choice == 2:
        b.let(f"t.take({x}, {indices(b, b.values[x].numel(), b.shape(largest=50))})")
    elif choice == 3:
        around = list(shape)
        around[axis] = b.whole(1, 5)
        b.let(f"t.take_along_dim({x}, {indices(b, shape[axis], tuple(around), False)}, {axis})")
    elif choice == 4:
        number = b.whole(0, len(shape) - 1)
        b.let(f"{x}[{':, ' * number}{indices(b, shape[number], b.shape(b.whole(0, 2), 20))}]")
    elif choice == 5 and len(shape) > 1:
        i, j = indices(b, shape[0], (4,)), indices(b, shape[1], b.pick([(4,), (1,), (3, 1)]))
        b.let(f"{x}[{i}, {b.pick(('', ':, ', 'None, '))}{j}]")
    elif choice == 6:
        first = b.shape_of(x)[0]
        b.let(f"{x}[{[b.whole(-first, first - 1) for _ in range(b.whole(1, 4))] if first else [0]}]")
    elif choice == 7 and len(shape) > 1:
        b.let(f"{x}[{b.whole(0, 1)}:, {indices(b, shape[1], b.shape(b.whole(1, 2), 12))}]")
    else:
        table = b.real(2)
        extent = b.shape_of(table)[0]
        b.let(f"F.embedding({indices(b, extent, b.shape(b.whole(1, 2), 30), False)}, {table})")


def replaced(b: Builder, extent: int, count: int) -> tuple[str, bool]:
    """Return indices at which elements are replaced, and whether none comes twice.

    NOTE: where one does, PyTorch gives the gradient to all values that were written there, not to the last one.
    """
    if b.chance(0.5) and count <= extent:
        return b.input((count,), "i64", f"distinct {extent}"), True
    return indices(b, extent, (count,), False), False


def write(b: Builder) -> None:
    """Replace elements or add to them at index tensors, as a new tensor."""
    x = b.some(least=1)
    shape, axis = b.shape_of(x), b.axis(x)
    dtype, count = b.dtype_of(x), b.whole(1, 5)
    around = (*shape[: axis % len(shape)], count, *shape[axis % len(shape) + 1 :])
    choice = b.whole(0, 8)
    if choice == 0:
        b.let(f"t.index_add({x}, {axis}, {indices(b, shape[axis], (count,), False)}, {b.input(around, dtype)})")
    elif choice == 1:
        i, once = replaced(b, shape[axis], count)
        b.let(f"t.index_copy({x}, {axis}, {i}, {b.input(around, dtype, gradient=once)})")
    elif choice == 2:
        b.let(f"t.index_fill({x}, {axis}, {indices(b, shape[axis], (count,), False)}, {b.whole(0, 3)})")
    elif choice == 3:
        added = b.chance(0.5)
        i = indices(b, shape[axis], around, False)
        b.let(f"t.scatter{'_add' if added else ''}({x}, {axis}, {i}, {b.input(around, dtype, gradient=added)})")
    elif choice == 4:
        how = b.pick(("sum", "prod", "mean", "amax", "amin"))
        i = indices(b, shape[axis], around, False)
        own = b.pick(("", ", include_self=False"))
        b.let(f"t.scatter_reduce({x}, {axis}, {i}, {b.input(around, dtype, 'eighths')}, '{how}'{own})")
    elif choice == 5:
        i, once = replaced(b, shape[0], count)
        added = b.chance(0.5)
        source = b.input((count, *shape[1:]), dtype, gradient=once or added)
        b.let(f"t.index_put({x}, ({i},), {source}, accumulate={added})")
    elif choice == 6:
        b.let(f"t.scatter({x}, {axis}, {indices(b, shape[axis], around, False)}, {b.whole(0, 3)})")
    elif choice == 7:
        b.let(f"t.select_scatter({x}, {b.input((*shape[:-1],), dtype)}, -1, {b.whole(-shape[-1], shape[-1] - 1)})")
    else:
        b.let(f"t.masked_fill({x}, {b.input(shape, 'bool')}, {b.whole(0, 3)})")


def in_place(b: Builder) -> None:
    """Write to a variable, or to a view of one."""
    x = b.known(lambda v: not v.is_leaf and v.is_floating_point(), lambda: b.let(f"{b.real()}.clone()"), 0.3)
    if b.chance(0.5):
        shape = b.shape_of(x)
        x = b.let(b.pick((f"{x}[{slices(b, shape)}]", f"{x}.transpose(0, -1)", f"{x}.reshape({reshaped(b, shape)})")))
    shape = b.shape_of(x)
    choice = b.whole(0, 9)
    if choice == 0:
        b.do(f"{x}.{b.pick(('add_', 'mul_', 'sub_', 'copy_'))}({b.like(x)})")
    elif choice == 1:
        b.do(f"{x}.{b.pick(('relu_()', 'zero_()', 'tanh_()', 'sigmoid_()', 'neg_()', 'abs_()', 'fill_(1.5)'))}")
    elif choice == 2:
        b.do(f"{x}.clamp_({b.pick(('min=-0.5', 'max=0.25', '-1, 1'))})")
    elif choice in (3, 4) and shape:
        b.do(f"{x}[{slices(b, shape)}] = {b.pick(('0.5', '-1', b.real(0)))}")
    elif choice == 5 and shape:
        b.do(f"{x}[{slices(b, shape)}] {b.pick(('+=', '*=', '-='))} {b.pick(('2', '0.5', b.real(0)))}")
    elif choice == 6:
        b.do(f"{x}.masked_fill_({b.input(shape, 'bool')}, {b.pick((0, 1.5))})")
    elif choice == 7 and shape:
        i, once = replaced(b, shape[0], 3)
        b.do(f"{x}[{i}] {b.pick(('=', '+=')) if once else '='} {b.input((3, *shape[1:]), gradient=once)}")
    elif choice == 8:
        b.do(f"{x}.{b.pick(('addcmul_', 'addcdiv_'))}({b.like(x)}, {b.like(x, '', 'positive')}, value=0.5)")
    else:
        b.do(f"{x} {b.pick(('+=', '*=', '-=', '/='))} {b.like(x, '', 'positive')}")


def join(b: Builder) -> None:
    """Join or split tensors."""
    x = b.some(least=1)
    shape, axis = b.shape_of(x), b.axis(x)
    same = b.known(lambda v: tuple(v.shape) == shape, lambda: b.input(shape))
    other = (*shape[: axis % len(shape)], b.whole(0, 5), *shape[axis % len(shape) + 1 :])
    choice = b.whole(0, 8)
    if choice == 0:
        operands = b.random.sample([x, x, same, b.input(other), b.input(other)], b.whole(1, 5))
        b.let(f"t.cat([{', '.join(operands)}], {axis})")
    elif choice == 1:
        b.let(f"t.stack([{', '.join([x, same, x][: b.whole(1, 3)])}], {b.whole(-len(shape) - 1, len(shape))})")
    elif choice == 2:
        b.let(f"t.split({x}, {b.whole(1, 5)}, {axis})")
    elif choice == 3:
        first = b.whole(0, shape[axis])
        b.let(f"t.split({x}, {[first, shape[axis] - first]}, {axis})")
    elif choice == 4:
        b.let(f"t.{b.pick(('chunk', 'tensor_split'))}({x}, {b.whole(1, 5)}, {axis})")
    elif choice == 5:
        b.let(f"t.unbind({x}, {axis})")
    elif choice == 6:
        b.let(f"t.{b.pick(('hstack', 'vstack', 'dstack', 'column_stack'))}([{x}, {same}])")
    elif choice == 7:
        b.let(f"t.block_diag({b.real(2)}, {b.real(b.pick((0, 1, 2)))})")
    else:
        b.let(f"t.meshgrid({b.real(1)}, {b.real(1)}, indexing='{b.pick(('ij', 'xy'))}')")


def resample(b: Builder) -> None:
    """Pad, interpolate, and sample between elements."""
    x = b.real(b.pick((3, 4, 4)))
    rank = b.values[x].dim()
    choice = b.whole(0, 6)
    if choice in (0, 1):
        mode = b.pick(("constant", "reflect", "replicate", "circular"))
        dims = rank - 2 if mode != "constant" or b.chance(0.5) else b.whole(1, rank)
        low = -1 if mode == "constant" else 0
        pads = tuple(b.whole(low, 2) for _ in range(2 * dims))
        b.let(f"F.pad({x}, {pads}, '{mode}'{', 1.5' if mode == 'constant' and b.chance(0.5) else ''})")
    elif choice in (2, 3):
        mode = b.pick(("nearest", "linear" if rank == 3 else "bilinear", "bicubic", "area", "nearest-exact"))
        corners = f", align_corners={b.chance(0.5)}" if "linear" in mode or "cubic" in mode else ""
        sizes = tuple(b.whole(1, 9) for _ in range(rank - 2))
        by = b.pick((f"size={sizes}", f"scale_factor={b.pick((0.5, 1.5, 2, 0.7))}"))
        b.let(f"F.interpolate({x}, {by}, mode='{mode}'{corners})")
    elif choice == 4:
        b.let(f"F.pixel_{b.pick(('shuffle', 'unshuffle'))}({x}, {b.whole(1, 3)})")
    elif choice == 5 and rank == 4:
        grid = b.let(f"t.tanh({b.input((b.shape_of(x)[0], b.whole(1, 4), b.whole(1, 4), 2))})")
        padding = b.pick(("zeros", "border", "reflection"))
        mode = b.pick(("bilinear", "nearest", "bicubic"))
        b.let(f"F.grid_sample({x}, {grid}, '{mode}', '{padding}', {b.chance(0.5)})")
    elif rank == 4:
        window = f"{(b.whole(1, 3), b.whole(1, 3))}, padding={b.whole(0, 2)}, stride={b.whole(1, 3)}"
        b.let(f"F.unfold({x}, {window}, dilation={b.whole(1, 2)})")


def empty(b: Builder) -> None:
    """Operate on tensors without elements: broadcast, join and reduce them with others."""
    shape = list(b.shape(b.whole(1, 3)))
    shape[b.whole(0, len(shape) - 1)] = 0
    x = b.known(lambda v: v.is_floating_point() and not v.numel(), lambda: b.input(shape), 0.5)
    shape = list(b.shape_of(x))
    choice = b.whole(0, 8)
    if choice in (0, 1):
        y = b.input([1 if b.chance(0.5) else e for e in shape][b.whole(0, len(shape)) :])
        b.let(f"{x} {b.pick(('+', '*', '-', '/'))} {y}")
    elif choice == 2:
        name = b.pick(("sum", "prod", "mean", "var", "logsumexp", "all", "any", "count_nonzero"))
        b.let(f"t.{name}({x}, {b.axis(x)})")
    elif choice == 3:
        b.let(f"t.{b.pick(('sum', 'prod', 'mean', 'norm', 'std'))}({x})")
    elif choice == 4 and len(shape) > 1:
        b.let(f"t.matmul({x}, {b.input((shape[-1], b.whole(0, 3)))})")
    elif choice == 5:
        axis = b.axis(x)
        other = list(shape)
        other[axis] = b.whole(0, 4)
        b.let(f"t.cat([{x}, {b.input(other)}], {axis})")
    elif choice == 6:
        b.let(f"F.{b.pick(('softmax', 'log_softmax', 'normalize'))}({x}, dim={b.axis(x)})")
    elif choice == 7:
        b.let(f"{x}.{b.pick(('cumsum(-1)', 'sort(-1)', 'flip(0)', 'relu()', 'exp()', 'clone()', 'T', 'reshape(-1)'))}")
    else:
        b.let(f"F.pad({x}, {(b.whole(0, 2), b.whole(0, 2))}, value=2.5)")


def layout(b: Builder) -> None:
    """Operate on arguments whose memory is not dense and row-major."""
    kind = b.pick(("transposed", "strided", "offset"))
    x = b.input(b.shape(b.pick((1, 2, 3, 4))), b.pick(("f32", "f64", "f32", "i64", "u8", "bool")), "", kind)
    y = b.let(
        b.pick(
            (
                f"{x} + 1",
                f"{x} * {x}",
                f"{x}.sum({b.axis(x)})",
                f"{x}.reshape(-1)",
                f"{x} @ {x}.mT" if b.values[x].dim() > 1 else f"{x}.clone()",
            )
        )
    )
    if b.values[x].is_floating_point():
        b.let(b.pick((f"t.exp({y})", f"{y}.mean()", f"F.softmax({y}, -1)", f"t.relu({y})")))


def wide_integers(b: Builder) -> None:
    """Compute with integers up to their limits, which wrap around."""
    x = b.some(INTEGERS) if b.chance(0.5) else b.input(b.shape(), b.pick(("i8", "u8", "i32", "i64")), "wide")
    y = b.like(x, b.dtype_of(x), b.pick(("", "wide")))
    choice = b.whole(0, 7)
    if choice in (0, 1):
        b.let(f"{x} {b.pick(('+', '-', '*', '&', '|', '^'))} {b.pick((y, y, '3', '-2', '100'))}")
    elif choice == 2:
        b.let(b.pick((f"-{x}", f"t.abs({x})", f"~{x}", f"t.sign({x})", f"t.square({x})", f"{x} ** {b.whole(0, 4)}")))
    elif choice == 3:
        b.let(f"{x} {b.pick(('//', '%'))} {b.pick((2, 3, 5, 7))}")
    elif choice == 4:
        b.let(f"t.{b.pick(('fmod', 'remainder', 'floor_divide'))}({x}, {b.let(f'({y} % 7) + 1')})")
    elif choice == 5:
        b.let(f"t.div({x}, {b.pick((2, 3, 7))}, rounding_mode={b.pick(('None', repr('trunc'), repr('floor')))})")
    elif choice == 6:
        b.let(f"{x} {b.pick(('<<', '>>'))} {b.whole(0, 6)}")
    else:
        name = b.pick(("sum", "prod", "cumsum", "cumprod", "amax", "amin", "max", "argmax", "mean", "any", "all"))
        if name == "mean" or not b.values[x].dim():
            b.let(f"t.sum({x})")
        else:
            b.let(f"t.{name}({x}, {b.axis(x)})")
