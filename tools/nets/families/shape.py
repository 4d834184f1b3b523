"""Steps of random programs that move elements: views, indices, writes, joins, resampling, layouts, empty dimensions."""

from __future__ import annotations

from tools.nets.builder import INTEGERS, Builder, Unfit
from tools.nets.families.grammar import Step


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


def _narrowed(b: Builder, extent: int) -> str:
    start = b.whole(0, max(0, extent - 1))
    return f"{start}, {b.whole(0, extent - start)}"


def _expanded(b: Builder, shape: tuple[int, ...]) -> tuple[int, ...]:
    return (*b.pick(((), (2,), (3, 1))), *(b.whole(1, 3) if e == 1 else -1 for e in shape))


def _order(b: Builder, rank: int) -> tuple[int, ...]:
    return tuple(b.random.sample(range(rank), rank))


view = Step(
    """
    {x}.reshape({reshaped(b, shape)})
    {x}.permute({order(b, rank)})
    {x}.{transpose|movedim}({axis}, {b.axis(x)})
    3: {x}[{slices(b, shape)}]
    {x}.unsqueeze({b.whole(-rank - 1, rank)})
    {x}.squeeze({|{axis}})
    {x}.expand({expanded(b, shape)})
    {x}.narrow({axis}, {narrowed(b, shape[axis])})
    {x}.select({axis}, {b.whole(-shape[axis], shape[axis] - 1)})
    {x}.diagonal({b.whole(-2, 2)}, {axis}, {b.axis(x)})
    {x}.unfold({axis}, {b.whole(1, max(1, shape[axis]))}, {b.whole(1, 3)})
    {x}.flatten({b.whole(0, max(0, rank - 1))})
    {x}{.mT|.T|.flatten()|.view(-1)|.detach()}
    """,
    x="b.some(least=b.pick((0, 1, 2)))",
    reshaped=reshaped,
    slices=slices,
    narrowed=_narrowed,
    expanded=_expanded,
    order=_order,
)

rearrange = Step(
    """
    {x}.flip({b.axes(x, 1)})
    {x}.roll({b.whole(-5, 5)}, {axis})
    {x}.roll({b.whole(-5, 5)})
    t.rot90({x}, {b.whole(-3, 3)}, {b.axes(x, 2)[:2]})
    {x}.repeat({repeats(b, shape)})
    {x}.repeat_interleave({b.whole(1, 3)}, {axis})
    t.tile({x}, {b.whole(1, 2), b.whole(1, 2)})
    t.{tril|triu}({x}, {b.whole(-2, 2)})
    t.diag_embed({x}, {b.whole(-1, 1)})
    {x}.contiguous()
    """,
    x="b.some(least=1)",
    repeats=lambda b, shape: (*b.pick(((), (2,))), *(b.whole(1, 2) for _ in shape)),
)


def indices(b: Builder, extent: int, shape: tuple[int, ...], negative: bool = True) -> str:
    """Return an argument of indices below an extent, repeated ones and negative ones among them."""
    if not extent:
        raise Unfit
    name = b.input(shape, b.pick(("i64", "i64", "i64", "i32")) if negative else "i64", f"below {extent}")
    return b.let(f"{name} - {extent}") if negative and b.chance(0.3) else name


def _around(shape: tuple[int, ...], axis: int, extent: int) -> tuple[int, ...]:
    """Return the shape with another extent of one dimension."""
    axis %= len(shape)
    return (*shape[:axis], extent, *shape[axis + 1 :])


def _numbers(b: Builder, extent: int) -> list[int]:
    return [b.whole(-extent, extent - 1) for _ in range(b.whole(1, 4))] if extent else [0]


read = Step(
    """
    t.index_select({x}, {axis}, {indices(b, shape[axis], (b.whole(0, 6),), False)})
    t.gather({x}, {axis}, {indices(b, shape[axis], around(shape, axis, b.whole(1, 5)), False)})
    t.take({x}, {indices(b, b.values[x].numel(), b.shape(largest=50))})
    t.take_along_dim({x}, {indices(b, shape[axis], around(shape, axis, b.whole(1, 5)), False)}, {axis})
    {x}[{':, ' * (axis % rank)}{indices(b, shape[axis], b.shape(b.whole(0, 2), 20))}]
    {x}[{indices(b, shape[0], (4,))}, {|:, |None, }{indices(b, shape[1], b.pick(((4,), (1,), (3, 1))))}]
    {x}[{numbers(b, shape[0])}]
    {x}[{b.whole(0, 1)}:, {indices(b, shape[1], b.shape(b.whole(1, 2), 12))}]
    F.embedding({indices(b, b.shape_of(table)[0], b.shape(b.whole(1, 2), 30), False)}, {table})
    """,
    x="b.some(least=1)",
    table="b.real(2)",
    indices=indices,
    around=_around,
    numbers=_numbers,
)


def replaced(b: Builder, extent: int, count: int) -> tuple[str, bool]:
    """Return indices at which elements are replaced, and whether none comes twice.

    NOTE: where one does, PyTorch gives the gradient to all values that were written there, not to the last one.
    """
    if b.chance(0.5) and count <= extent:
        return b.input((count,), "i64", f"distinct {extent}"), True
    return indices(b, extent, (count,), False), False


write = Step(
    """
    t.index_add({x}, {axis}, {indices(b, shape[axis], (count,), False)}, {b.input(rows, dtype)})
    t.index_copy({x}, {axis}, {at[0]}, {b.input(rows, dtype, gradient=at[1])})
    t.index_fill({x}, {axis}, {indices(b, shape[axis], (count,), False)}, {b.whole(0, 3)})
    t.scatter({x}, {axis}, {indices(b, shape[axis], rows, False)}, {b.input(rows, dtype, gradient=False)})
    t.scatter({x}, {axis}, {indices(b, shape[axis], rows, False)}, {b.whole(0, 3)})
    t.scatter_add({x}, {axis}, {indices(b, shape[axis], rows, False)}, {b.input(rows, dtype)})
    t.scatter_reduce({x}, {axis}, {indices(b, shape[axis], rows, False)}, {b.input(rows, dtype, 'eighths')}, {how})
    t.index_put({x}, ({first[0]},), {b.input((count, *shape[1:]), dtype, gradient=first[1] or flag)}, accumulate={flag})
    t.select_scatter({x}, {b.input((*shape[:-1],), dtype)}, -1, {b.whole(-shape[-1], shape[-1] - 1)})
    t.masked_fill({x}, {b.input(shape, 'bool')}, {b.whole(0, 3)})
    """,
    x="b.some(least=1)",
    dtype="b.dtype_of(x)",
    count="b.whole(1, 5)",
    rows="around(shape, axis, count)",
    at="replaced(b, shape[axis], count)",
    first="replaced(b, shape[0], count)",
    how="repr(b.pick(('sum', 'prod', 'mean', 'amax', 'amin'))) + b.pick(('', ', include_self=False'))",
    indices=indices,
    around=_around,
    replaced=replaced,
)


def _writable(b: Builder) -> str:
    """Return a variable that may be written to, or a view of one."""
    x = b.known(lambda v: not v.is_leaf and v.is_floating_point(), lambda: b.let(f"{b.real()}.clone()"), 0.3)
    if b.chance(0.5):
        shape = b.shape_of(x)
        x = b.let(b.pick((f"{x}[{slices(b, shape)}]", f"{x}.transpose(0, -1)", f"{x}.reshape({reshaped(b, shape)})")))
    return x


in_place = Step(
    """
    ! {x}.{add_|mul_|sub_|copy_}({y})
    ! {x}.{relu_()|zero_()|tanh_()|sigmoid_()|neg_()|abs_()|fill_(1.5)}
    ! {x}.clamp_({min=-0.5|max=0.25|-1, 1})
    2: ! {x}[{slices(b, shape)}] = {0.5|-1|{b.real(0)}}
    ! {x}[{slices(b, shape)}] {+=|*=|-=} {2|0.5|{b.real(0)}}
    ! {x}.masked_fill_({b.input(shape, 'bool')}, {0|1.5})
    ! {x}[{at[0]}] {b.pick(('=', '+=')) if at[1] else '='} {b.input((3, *shape[1:]), gradient=at[1])}
    ! {x}.{addcmul_|addcdiv_}({y}, {positive}, value=0.5)
    ! {x} {+=|*=|-=|/=} {positive}
    """,
    x="writable(b)",
    at="replaced(b, shape[0], 3)",
    writable=_writable,
    slices=slices,
    replaced=replaced,
)


def _listed(b: Builder, x: str, same: str, other: tuple[int, ...]) -> str:
    return ", ".join(b.random.sample([x, x, same, b.input(other), b.input(other)], b.whole(1, 5)))


def _parts(b: Builder, extent: int) -> list[int]:
    first = b.whole(0, extent)
    return [first, extent - first]


join = Step(
    """
    t.cat([{listed(b, x, same, around(shape, axis, b.whole(0, 5)))}], {axis})
    t.stack([{{x}|{x}, {same}|{x}, {same}, {x}}], {b.whole(-rank - 1, rank)})
    t.split({x}, {b.whole(1, 5)}, {axis})
    t.split({x}, {parts(b, shape[axis])}, {axis})
    t.{chunk|tensor_split}({x}, {b.whole(1, 5)}, {axis})
    t.unbind({x}, {axis})
    t.{hstack|vstack|dstack|column_stack}([{x}, {same}])
    t.block_diag({b.real(2)}, {b.real(b.pick((0, 1, 2)))})
    t.meshgrid({b.real(1)}, {b.real(1)}, indexing='{ij|xy}')
    """,
    x="b.some(least=1)",
    same="equal(b, shape)",
    equal=lambda b, shape: b.known(lambda v: tuple(v.shape) == shape, lambda: b.input(shape)),
    listed=_listed,
    around=_around,
    parts=_parts,
)


def _pads(b: Builder, rank: int, mode: str) -> tuple[int, ...]:
    dims = rank - 2 if mode != "constant" or b.chance(0.5) else b.whole(1, rank)
    return tuple(b.whole(-1 if mode == "constant" else 0, 2) for _ in range(2 * dims))


resample = Step(
    """
    2: F.pad({x}, {pads(b, rank, mode)}, '{mode}'{', 1.5' if mode == 'constant' and flag else ''})
    2: F.interpolate({x}, {by}, mode='{how}'{f', align_corners={flag}' if 'linear' in how or 'cubic' in how else ''})
    F.pixel_{shuffle|unshuffle}({x}, {b.whole(1, 3)})
    F.grid_sample({x}, {grid}, '{bilinear|nearest|bicubic}', '{zeros|border|reflection}', {flag})
    F.unfold({x}, {b.whole(1, 3), b.whole(1, 3)}, {b.whole(1, 2)}, {b.whole(0, 2)}, {b.whole(1, 3)})
    """,
    x="b.real(b.pick((3, 4, 4)))",
    mode="b.pick(('constant', 'reflect', 'replicate', 'circular'))",
    how="b.pick(('nearest', 'linear' if rank == 3 else 'bilinear', 'bicubic', 'area', 'nearest-exact'))",
    by="b.pick((f'size={sizes(b, rank)}', f'scale_factor={b.pick((0.5, 1.5, 2, 0.7))}'))",
    grid="let(f't.tanh({b.input((shape[0], b.whole(1, 4), b.whole(1, 4), 2))})')",
    sizes=lambda b, rank: tuple(b.whole(1, 9) for _ in range(rank - 2)),
    pads=_pads,
)


def _empty(b: Builder) -> str:
    shape = list(b.shape(b.whole(1, 3)))
    shape[b.whole(0, len(shape) - 1)] = 0
    return b.known(lambda v: v.is_floating_point() and not v.numel(), lambda: b.input(shape), 0.5)


def _beside(b: Builder, shape: tuple[int, ...]) -> str:
    return b.input([1 if b.chance(0.5) else e for e in shape][b.whole(0, len(shape)) :])


empty = Step(
    """
    2: {x} {+|*|-|/} {beside(b, shape)}
    t.{sum|prod|mean|var|logsumexp|all|any|count_nonzero}({x}, {axis})
    t.{sum|prod|mean|norm|std}({x})
    t.matmul({x}, {b.input((shape[-1], b.whole(0, 3)))})
    t.cat([{x}, {b.input(around(shape, axis, b.whole(0, 4)))}], {axis})
    F.{softmax|log_softmax|normalize}({x}, dim={axis})
    {x}.{cumsum(-1)|sort(-1)|flip(0)|relu()|exp()|clone()|T|reshape(-1)}
    F.pad({x}, {b.whole(0, 2), b.whole(0, 2)}, value=2.5)
    """,
    x="empty(b)",
    empty=_empty,
    beside=_beside,
    around=_around,
)

_PLAIN = Step(
    """
    {x} {+ 1|* {x}}
    {x}.{sum({axis})|reshape(-1)|clone()}
    {x} @ {x}.mT
    """,
    x="b.input(b.shape(b.pick((1, 2, 3, 4))), b.pick(('f32', 'f64', 'f32', 'i64', 'u8', 'bool')), '', kind)",
    kind="b.pick(('transposed', 'strided', 'offset'))",
)
_AFTER = Step("t.exp({x})\n{x}.mean()\nF.softmax({x}, -1)\nt.relu({x})", x="last", last="list(b.values)[-1]")


def layout(b: Builder) -> None:
    """Operate on arguments whose memory is not dense and row-major."""
    _PLAIN(b)
    if list(b.values.values())[-1].is_floating_point():
        _AFTER(b)


wide_integers = Step(
    """
    2: {x} {+|-|*|&|\\||^} {{y}|{y}|3|-2|100}
    {-{x}|t.abs({x})|~{x}|t.sign({x})|t.square({x})|{x} ** {b.whole(0, 4)}}
    {x} {//|%} {2|3|5|7}
    t.{fmod|remainder|floor_divide}({x}, {let(f'({y} % 7) + 1')})
    t.div({x}, {2|3|7}, rounding_mode={None|'trunc'|'floor'})
    {x} {<<|>>} {b.whole(0, 6)}
    t.{sum|prod|cumsum|cumprod|amax|amin|max|argmax|any|all}({x}, {axis})
    t.sum({x})
    """,
    x="b.some(integers) if b.chance(0.5) else b.input(b.shape(), b.pick(('i8', 'u8', 'i32', 'i64')), 'wide')",
    y="b.like(x, b.dtype_of(x), b.pick(('', 'wide')))",
    integers=INTEGERS,
)
