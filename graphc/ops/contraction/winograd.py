"""Winograd convolution: transforms of image tiles and of results that turn a convolution into a matrix product.

A square convolution by ``r`` taps gives ``m`` results from ``n = m + r - 1`` elements with ``n`` products instead of
``m r``, in each of two dimensions (Winograd, Arithmetic Complexity of Computations, 1980; the matrices by Toom and
Cook's interpolation). With the points 0, +-3/5, +-3/2 and infinity, found by trying fractions, ``m = 4`` and ``r = 3``
lose about one bit against the direct sum; the usual points 0, +-1, +-2 lose three.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np

from graphc.base.dtypes import float32
from graphc.base.errors import AttributeValueError, ShapeError
from graphc.ir.kernel.lowering import LowerContext, OperandRef
from graphc.ir.kernel.nest import NestBuilder, Scalar
from graphc.ir.kernel.statements import Bound
from graphc.ir.op import Attr, Dims, ErrorSample, ImageRule, Sample, Trait, ZeroSign
from graphc.ir.types import TensorType
from graphc.ops.define import define

Ints = tuple[int, ...]
Row = tuple[float, ...]
_HALF_POINTS = (Fraction(3, 5), Fraction(3, 2), Fraction(1), Fraction(3))
"""Absolute values of the interpolation points other than zero, in order of preference."""
TILE = Attr("tile", "int", "rows and columns of results in a tile")
KERNEL = Attr("kernel", "int", "rows and columns of the weights")
SPARE = Attr("spare", "int", "tiles of zeros after the others", 0, False)
DILATION = Attr("dilation", "int", "distance of neighbours in a tile, in rows and columns", 1, False)
_MOST_SPARE = 8


def _points(count: int) -> list[Fraction]:
    """Return zero and pairs of opposite numbers; for three points, 1 is best."""
    halves = (Fraction(1),) if count == 3 else _HALF_POINTS
    return [Fraction(0), *(sign * p for p in halves for sign in (1, -1))][:count]


@cache
def matrices(tile: int, kernel: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (A^T [m, n], G [n, r], B^T [n, n]) in f64: ``A^T ((G w) * (B^T x))`` are the ``m`` results of sliding
    ``w`` over ``x``."""
    n = tile + kernel - 1
    points = _points(n - 1)
    scale = [Fraction(1)] * n
    for i, p in enumerate(points):
        for q in points[:i] + points[i + 1 :]:
            scale[i] *= p - q

    def powers(count: int) -> list[list[Fraction]]:
        last = [Fraction(0)] * (count - 1) + [Fraction(1)]
        return [[p**j for j in range(count)] for p in points] + [last]

    inverse = _inverse(powers(n))
    b = [[inverse[j][i] * scale[i] for j in range(n)] for i in range(n)]
    g = [[value / scale[i] for value in row] for i, row in enumerate(powers(kernel))]
    return np.array(powers(tile), float).T, np.array(g, float), np.array(b, float)


def _inverse(matrix: list[list[Fraction]]) -> list[list[Fraction]]:
    """Invert a matrix exactly by Gauss-Jordan elimination."""
    n = len(matrix)
    rows = [[*row, *(Fraction(i == j) for j in range(n))] for i, row in enumerate(matrix)]
    for c in range(n):
        pivot = next(i for i in range(c, n) if rows[i][c] != 0)
        rows[c], rows[pivot] = rows[pivot], rows[c]
        rows[c] = [x / rows[c][c] for x in rows[c]]
        for i in range(n):
            if i != c and rows[i][c] != 0:
                rows[i] = [a - rows[i][c] * b for a, b in zip(rows[i], rows[c], strict=True)]
    return [row[n:] for row in rows]


def transform_weights(weight: np.ndarray, tile: int) -> np.ndarray:
    """Transform [out, in, r, r] to [n * n, in, out], computed in f64."""
    _, g, _ = matrices(tile, weight.shape[2])
    out, inner, *window = weight.shape
    taps = weight.transpose(2, 3, 1, 0).reshape(window[0] * window[1], inner * out).astype(np.float64)
    transformed = (np.kron(g, g) @ taps).astype(weight.dtype)
    return transformed.reshape(len(g) ** 2, inner, out)


# ---- types and meaning


def _check_tile(op: str, tile: int, kernel: int) -> None:
    if not (tile >= 1 and kernel >= 1 and tile + kernel - 2 <= 2 * len(_HALF_POINTS) + 1):
        raise AttributeValueError(f"{op}: there are no points for tile {tile} and kernel {kernel}")


def _check_dilation(op: str, dilation: int) -> None:
    if dilation < 1:
        raise AttributeValueError(f"{op}: neighbours are at least 1 apart, not {dilation}")


def tiles_of(shape: Ints, tile: int, dilation: int) -> int:
    """Return the number of tiles that cover an image [batch, channels, rows, columns] of results, over all ``dilation
    ** 2`` phase images of every ``dilation``-th row and column."""
    rows, columns = (-(-s // (dilation * tile)) for s in shape[2:])
    return shape[0] * dilation**2 * rows * columns


def _phases(x: np.ndarray, dilation: int) -> np.ndarray:
    """Split an image into the phase images of every ``dilation``-th row and column."""
    batch, channels, rows, columns = x.shape
    grid = x.reshape(batch, channels, rows // dilation, dilation, columns // dilation, dilation)
    return grid.transpose(0, 3, 5, 1, 2, 4).reshape(-1, channels, rows // dilation, columns // dilation)


def _joined(x: np.ndarray, dilation: int) -> np.ndarray:
    """Join the phase images of ``_phases``."""
    count, channels, rows, columns = x.shape
    grid = x.reshape(count // dilation**2, dilation, dilation, channels, rows, columns)
    return grid.transpose(0, 3, 4, 1, 5, 2).reshape(-1, channels, rows * dilation, columns * dilation)


def _infer_input(x: TensorType, tile: int, kernel: int, spare: int, dilation: int) -> TensorType:
    _check_tile("winograd_input", tile, kernel)
    _check_dilation("winograd_input", dilation)
    if not 0 <= spare <= _MOST_SPARE:
        raise AttributeValueError(f"winograd_input: 0 to {_MOST_SPARE} spare tiles, not {spare}")
    if x.rank != 4 or x.dtype.kind != "f":
        raise ShapeError(f"winograd_input: an image [batch, channels, rows, columns] of floats is needed, got {x}")
    counts = []
    for size in x.shape[2:]:
        tiles, rest = divmod(size // dilation - kernel + 1, tile)
        if tiles < 1 or rest or size % dilation:
            apart = f" with elements {dilation} apart" if dilation > 1 else ""
            raise ShapeError(f"winograd_input: {size} rows or columns are not a multiple of tiles of {tile}{apart}")
        counts.append(tiles)
    n = tile + kernel - 1
    return TensorType(x.dtype, (n * n, x.shape[0] * dilation**2 * counts[0] * counts[1] + spare, x.shape[1]))


def _input_reference(x: np.ndarray, tile: int, kernel: int, spare: int, dilation: int) -> np.ndarray:
    n = tile + kernel - 1
    x = _phases(x, dilation)
    b = matrices(tile, kernel)[2].astype(x.dtype)
    windows = np.lib.stride_tricks.sliding_window_view(x, (n, n), (2, 3))[:, :, ::tile, ::tile]
    tiles = np.ascontiguousarray(np.einsum("ia,jb,ncpqab->ijnpqc", b, b, windows, optimize=True))
    return np.pad(tiles.reshape(n * n, -1, x.shape[1]), ((0, 0), (0, spare), (0, 0)))


def _infer_output(products: TensorType, tile: int, kernel: int, shape: Ints, dilation: int) -> TensorType:
    _check_tile("winograd_output", tile, kernel)
    _check_dilation("winograd_output", dilation)
    n = tile + kernel - 1
    tiles = tiles_of(shape, tile, dilation)
    count = products.shape[1] if products.rank == 3 else 0
    fits = products.shape == (n * n, count, shape[1]) and tiles <= count <= tiles + _MOST_SPARE
    if products.dtype.kind != "f" or not fits:
        raise ShapeError(f"winograd_output: {shape} is made from [{n * n},{tiles},{shape[1]}], got {products}")
    return TensorType(products.dtype, shape)


def _output_reference(products: np.ndarray, tile: int, kernel: int, shape: Ints, dilation: int) -> np.ndarray:
    n = tile + kernel - 1
    a = matrices(tile, kernel)[0].astype(products.dtype)
    channels, rows, columns = shape[1:]
    counts = [-(-s // (dilation * tile)) for s in (rows, columns)]
    tiles = products[:, : tiles_of(shape, tile, dilation)].reshape(n, n, -1, *counts, channels)
    tiles_out = np.einsum("ai,bj,ijnpqc->ncpaqb", a, a, tiles, optimize=True)
    image = _joined(tiles_out.reshape(-1, channels, counts[0] * tile, counts[1] * tile), dilation)
    return np.ascontiguousarray(image[:, :, :rows, :columns])


def _infer_weight(weight: TensorType, tile: int) -> TensorType:
    if weight.rank != 4 or weight.dtype.kind != "f" or weight.shape[2] != weight.shape[3]:
        raise ShapeError(f"winograd_weight: weights [out, in, kernel, kernel] of floats are needed, got {weight}")
    _check_tile("winograd_weight", tile, weight.shape[2])
    n = tile + weight.shape[2] - 1
    return TensorType(weight.dtype, (n * n, weight.shape[1], weight.shape[0]))


# ---- kernels


def _lower_weight(c: LowerContext, weight: OperandRef, tile: int) -> None:
    out, inner, kernel, _ = weight.shape
    g = matrices(tile, kernel)[1]
    n = len(g)
    with c.nest.loops((inner, out)) as (i, o):
        at = [[(o, i, a, b) for a in range(kernel)] for b in range(kernel)]
        down = [_apply(c.nest, g, [c.load(weight, position) for position in column]) for column in at]
        for a in range(n):
            for b, value in enumerate(_apply(c.nest, g, [values[a] for values in down])):
                c.store((a * n + b, i, o), value)


def _lower_input(c: LowerContext, x: OperandRef, tile: int, kernel: int, spare: int, dilation: int) -> None:
    b = matrices(tile, kernel)[2]
    n = len(b)
    batch, channels, *size = x.shape
    d = dilation
    rows, columns = ((s // d - kernel + 1) // tile for s in size)
    with c.nest.loops((batch, d, d, rows, columns, channels)) as (image, above, beside, row, column, channel):
        down_by = [(row * tile + i) * d + above for i in range(n)]
        at = [[(image, channel, y, (column * tile + j) * d + beside) for y in down_by] for j in range(n)]
        down = [_apply(c.nest, b, [c.load(x, position) for position in taps]) for taps in at]
        number = (((image * d + above) * d + beside) * rows + row) * columns + column
        for i in range(n):
            for j, value in enumerate(_apply(c.nest, b, [values[i] for values in down])):
                c.store((i * n + j, number, channel), value)
    if spare:
        with c.nest.loops((n * n, spare, channels)) as (component, number, channel):
            c.store((component, batch * d * d * rows * columns + number, channel), c.nest.const(0, x.dtype))


def _lower_output(c: LowerContext, products: OperandRef, tile: int, kernel: int, shape: Ints, dilation: int) -> None:
    a = matrices(tile, kernel)[0]
    n = a.shape[1]
    batch, channels, *size = shape
    d = dilation
    rows, columns = (-(-s // (d * tile)) for s in size)
    with c.nest.loops((batch, d, d, rows, columns, channels)) as (image, above, beside, row, column, channel):
        number = (((image * d + above) * d + beside) * rows + row) * columns + column
        down = [_apply(c.nest, a, [c.load(products, (i * n + j, number, channel)) for i in range(n)]) for j in range(n)]
        for i in range(tile):
            for j, value in enumerate(_apply(c.nest, a, [values[i] for values in down])):
                y, x = (row * tile + i) * d + above, (column * tile + j) * d + beside
                c.store((image, channel, y, x), value, (Bound(y, 0, size[0]), Bound(x, 0, size[1])))


def _apply(nest: NestBuilder, matrix: np.ndarray, values: list[Scalar]) -> list[Scalar]:
    """Emit ``matrix @ values``. Rows, or columns, that agree up to signs share their products, as those of two opposite
    points do."""
    rows: list[Row] = [tuple(row) for row in matrix.tolist()]
    columns: list[Row] = [tuple(column) for column in matrix.T.tolist()]
    pairs = _pairs(columns) if len(rows) < len(columns) else []
    if not pairs:
        return _apply_rows(nest, rows, values)
    terms = [(columns[i], values[i]) for i in range(len(values)) if all(i not in p for p in pairs)]
    for i, j in pairs:
        alike = tuple(a if a == b else 0.0 for a, b in zip(columns[i], columns[j], strict=True))
        other = tuple(a if a != b else 0.0 for a, b in zip(columns[i], columns[j], strict=True))
        terms += [(alike, values[i] + values[j]), (other, values[i] - values[j])]
    merged = [tuple(column[r] for column, _ in terms) for r in range(len(rows))]
    return [_dot(nest, row, [value for _, value in terms]) for row in merged]


def _apply_rows(nest: NestBuilder, rows: list[Row], values: list[Scalar]) -> list[Scalar]:
    result: dict[int, Scalar] = {}
    for i, j in _pairs(rows):
        alike = tuple(a if a == b else 0.0 for a, b in zip(rows[i], rows[j], strict=True))
        other = tuple(a if a != b else 0.0 for a, b in zip(rows[i], rows[j], strict=True))
        even, odd = _dot(nest, alike, values), _dot(nest, other, values)
        result[i], result[j] = even + odd, even - odd
    return [result[i] if i in result else _dot(nest, row, values) for i, row in enumerate(rows)]


def _pairs(lines: list[Row]) -> list[tuple[int, int]]:
    """Return pairs of neighbouring lines that agree in some entries and are opposite in the others."""
    result: list[tuple[int, int]] = []
    for i in range(len(lines) - 1):
        pairs = list(zip(lines[i], lines[i + 1], strict=True))
        alike = any(a == b != 0 for a, b in pairs) and all(abs(a) == abs(b) for a, b in pairs)
        if alike and any(a != b for a, b in pairs) and not (result and result[-1][1] == i):
            result.append((i, i + 1))
    return result


def _dot(nest: NestBuilder, coefficients: Row, values: list[Scalar]) -> Scalar:
    terms = sorted(((f, v) for f, v in zip(coefficients, values, strict=True) if f), key=lambda t: abs(t[0]) != 1)
    (first, total), *rest = terms
    total = total if first == 1 else -total if first == -1 else total * first
    for factor, value in rest:
        total = total + value if factor == 1 else total - value if factor == -1 else nest.fma(value, factor, total)
    return total


# ---- samples


def _input_samples() -> list[Sample]:
    random = np.random.default_rng(9)
    cases = [
        ((1, 2, 6, 10), 4, 3, 1, np.float32),
        ((2, 3, 4, 6), 2, 3, 1, np.float64),
        ((1, 1, 6, 6), 2, 5, 1, np.float32),
        ((2, 2, 12, 8), 2, 3, 2, np.float32),
        ((1, 17, 18, 18), 4, 3, 3, np.float64),
    ]
    samples = []
    for spare, (shape, tile, kernel, dilation, dtype) in enumerate(cases):
        x = random.standard_normal(shape).astype(dtype)
        attrs = {"tile": tile, "kernel": kernel, "spare": spare, "dilation": dilation}
        samples.append(Sample((x,), attrs, differentiable=False))
    return samples


def _output_samples() -> list[Sample]:
    random = np.random.default_rng(10)
    cases = [
        ((1, 3, 4, 8), 4, 1, np.float32),
        ((2, 2, 5, 3), 2, 1, np.float64),
        ((1, 20, 7, 6), 4, 1, np.float32),
        ((2, 2, 7, 8), 2, 2, np.float32),
        ((1, 17, 13, 11), 4, 3, np.float64),
    ]
    samples = []
    for spare, (shape, tile, dilation, dtype) in enumerate(cases):
        tiles = tiles_of(shape, tile, dilation) + spare
        products = random.standard_normal(((tile + 2) ** 2, tiles, shape[1])).astype(dtype)
        attrs = {"tile": tile, "kernel": 3, "shape": shape, "dilation": dilation}
        samples.append(Sample((products,), attrs, differentiable=False))
    return samples


def _weight_samples() -> list[Sample]:
    random = np.random.default_rng(11)
    cases = [((3, 2, 3, 3), 4, np.float32), ((2, 20, 3, 3), 2, np.float64), ((17, 1, 5, 5), 2, np.float32)]
    return [Sample((random.standard_normal(s).astype(d),), {"tile": t}, differentiable=False) for s, t, d in cases]


_IMAGE = TensorType(float32, (1, 2, 6, 6))
winograd_input = define(
    "winograd_input",
    "Transformed tiles of an image [batch, channels, rows, columns]: [n * n, tiles, channels] for tiles of n elements "
    "that overlap by kernel - 1, for each phase image of every dilation-th row and column. The compiler makes it from "
    "convolutions, after differentiation.",
    "x",
    _infer_input,
    attrs=[TILE, KERNEL, SPARE, DILATION],
    reference=_input_reference,
    lower_nest=_lower_input,
    traits=Trait.PURE,
    zero_sign=ZeroSign.KEPT,
    image=ImageRule((Dims.IMAGE,), Dims.ANY),
    samples=_input_samples,
    error_samples=[
        ErrorSample((_IMAGE,), "not a multiple of tiles of 3", {"tile": 3, "kernel": 3}),
        ErrorSample((_IMAGE,), "there are no points for tile 9", {"tile": 9, "kernel": 3}),
        ErrorSample((_IMAGE,), "0 to 8 spare tiles, not -1", {"tile": 4, "kernel": 3, "spare": -1}),
        ErrorSample((_IMAGE,), "tiles of 4 with elements 2 apart", {"tile": 4, "kernel": 3, "dilation": 2}),
        ErrorSample((_IMAGE,), "at least 1 apart, not 0", {"tile": 4, "kernel": 3, "dilation": 0}),
        ErrorSample((TensorType(float32, (2, 6, 6)),), "an image", {"tile": 4, "kernel": 3}),
    ],
)

winograd_weight = define(
    "winograd_weight",
    "Transformed weights [out, in, kernel, kernel]: [n * n, in, out].",
    "weight",
    _infer_weight,
    attrs=[TILE],
    reference=transform_weights,
    lower_nest=_lower_weight,
    traits=Trait.PURE,
    samples=_weight_samples,
    error_samples=[
        ErrorSample((TensorType(float32, (2, 2, 3, 1)),), "[out, in, kernel, kernel]", {"tile": 4}),
    ],
)

winograd_output = define(
    "winograd_output",
    "The image of shape [batch, channels, rows, columns] from products [n * n, tiles, channels] of transformed tiles "
    "and weights.",
    "products",
    _infer_output,
    attrs=[TILE, KERNEL, Attr("shape", "ints", "shape of the result"), DILATION],
    reference=_output_reference,
    lower_nest=_lower_output,
    traits=Trait.PURE | Trait.STORES_ONCE,
    image=ImageRule((Dims.ANY,), Dims.IMAGE),
    samples=_output_samples,
    error_samples=[
        ErrorSample(
            (TensorType(float32, (36, 1, 2)),), "is made from", {"tile": 4, "kernel": 3, "shape": (1, 2, 8, 4)}
        ),
    ],
)
