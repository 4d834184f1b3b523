"""Infinities and NaN in convolutions: native code spreads them as eager mode does, or to a stated neighbourhood.

Eager mode (and PyTorch) multiplies an element only by the weights that meet it. Native code computes the gradient with
respect to the input as a convolution of zeros between elements, and 3x3 windows by Winograd's method; both multiply
by more, which changes no finite number and makes NaN of 0 times infinity. docs/reliability.md says where.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import graphc
import graphc.nn.functional as F
from graphc.base.dtypes import float32
from graphc.compiler.compile import compile_graph, load_compiled
from graphc.ir.graph.build import constant
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import copy
from graphc.ir.types import TensorType
from graphc.ops.contraction.convolution import conv, conv_grad_input
from graphc.ops.dispatch import GraphDispatcher, apply, use
from graphc.passes.pipeline import optimize
from tools.nets.zero_products import native_products, only_spread

PLACES = 12
"""Random places for each geometry."""


class Geometry(NamedTuple):
    """A convolution."""

    size: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int = 1

    @property
    def windows(self) -> tuple[int, ...]:
        """Return the number of windows in each dimension."""
        axes = zip(self.size, self.kernel, self.stride, self.padding, self.dilation, strict=True)
        return tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in axes)

    @property
    def options(self) -> dict[str, Any]:
        """As the op takes them."""
        return {
            "size": self.size,
            "stride": self.stride,
            "padding": tuple((p, p) for p in self.padding),
            "dilation": self.dilation,
            "groups": self.groups,
        }


GEOMETRIES = [
    Geometry((9,), (3,), (2,), (1,), (1,)),
    Geometry((10,), (5,), (3,), (2,), (1,)),
    Geometry((8,), (4,), (2,), (1,), (1,)),
    Geometry((9,), (2,), (3,), (0,), (1,)),
    Geometry((11,), (3,), (2,), (2,), (2,)),
    Geometry((7,), (3,), (1,), (1,), (1,)),
    Geometry((6,), (1,), (2,), (0,), (1,)),
    Geometry((7, 8), (3, 3), (2, 2), (1, 1), (1, 1)),
    Geometry((7, 6), (3, 2), (2, 1), (1, 0), (1, 1), 2),
    Geometry((6, 9), (2, 3), (2, 2), (0, 1), (1, 1)),
    Geometry((4, 7), (4, 3), (1, 2), (0, 1), (1, 1)),
    Geometry((5, 7), (3, 3), (2, 2), (0, 1), (2, 1), 2),
    Geometry((5, 5, 4), (3, 3, 2), (2, 2, 2), (1, 1, 0), (1, 1, 1)),
]


def operands(geometry: Geometry, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The gradient of the result, and weights, of finite numbers."""
    random = np.random.default_rng(seed)
    out, inner = 2 * geometry.groups, 3
    return random.standard_normal((2, out, *geometry.windows)), random.standard_normal((out, inner, *geometry.kernel))


def spoilt(array: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """The array with one or two numbers that are not finite."""
    array = array.copy()
    for _ in range(int(random.integers(1, 3))):
        array[tuple(int(random.integers(n)) for n in array.shape)] = random.choice([np.nan, np.inf, -np.inf])
    return array


def reached(geometry: Geometry, g: np.ndarray) -> np.ndarray:
    """Results [batch, channels, *size] that what is not finite in ``g`` may make NaN: those that a kernel reaches which
    goes on, behind its end, to a multiple of the stride; all along a dimension with one window."""
    batch, out = g.shape[:2]
    mask = np.zeros((batch, 3 * geometry.groups, *geometry.size), bool)
    for n, channel, *window in np.argwhere(~np.isfinite(g)):
        along = []
        for i, w in enumerate(window):
            s, d, k = geometry.stride[i], geometry.dilation[i], geometry.kernel[i]
            taps = [t * d for t in range(k)] if d > 1 else range(-(-k // s) * s)
            positions = {s * w + t - geometry.padding[i] for t in taps}
            is_single = geometry.windows[i] == 1
            along.append([o for o in range(geometry.size[i]) if is_single or o in positions])
        group = channel // (out // geometry.groups)
        mask[np.ix_([n], range(3 * group, 3 * group + 3), *along)] = True
    return mask


def native(geometry: Geometry) -> Any:
    """The compiled gradient."""
    return graphc.compile(lambda g, w: conv_grad_input(g, w, **geometry.options))


def eager(geometry: Geometry, g: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Eager mode's gradient."""
    return apply(conv_grad_input.op, [graphc.tensor(g), graphc.tensor(w)], geometry.options).numpy()


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=[str(i) for i in range(len(GEOMETRIES))])
def test_an_infinite_gradient_reaches_a_kernel_of_a_multiple_of_the_stride(geometry: Geometry):
    compiled, random = native(geometry), np.random.default_rng(1)
    for seed in range(PLACES):
        finite, w = operands(geometry, seed)
        g = spoilt(finite, random)
        direct, result = eager(geometry, g, w), compiled(graphc.tensor(g), graphc.tensor(w)).numpy()
        assert only_spread(direct, result)
        further = np.isfinite(direct) & np.isnan(result)
        assert not np.any(further & ~reached(geometry, g))
        both = np.isfinite(direct) & np.isfinite(result)
        np.testing.assert_allclose(result[both], direct[both], rtol=1e-9, atol=1e-12)
        with native_products():
            np.testing.assert_allclose(result, eager(geometry, g, w), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=[str(i) for i in range(len(GEOMETRIES))])
def test_infinite_weights_reach_at_most_their_channel(geometry: Geometry):
    compiled, random = native(geometry), np.random.default_rng(2)
    for seed in range(PLACES):
        g, finite = operands(geometry, seed)
        w = spoilt(finite, random)
        direct, result = eager(geometry, g, w), compiled(graphc.tensor(g), graphc.tensor(w)).numpy()
        assert only_spread(direct, result)
        out = len(w) // geometry.groups
        channels = {3 * (o // out) + c for o, c, *_ in np.argwhere(~np.isfinite(w))}
        others = [c for c in range(3 * geometry.groups) if c not in channels]
        assert np.isfinite(result[:, others]).all()
        np.testing.assert_allclose(result[:, others], direct[:, others], rtol=1e-9, atol=1e-12)
        with native_products():
            np.testing.assert_allclose(result, eager(geometry, g, w), rtol=1e-9, atol=1e-12)


EXACT = [g for g in GEOMETRIES if all(k % s == 0 or k == 1 for k, s in zip(g.kernel, g.stride, strict=True))]


@pytest.mark.parametrize("geometry", EXACT, ids=[str(GEOMETRIES.index(g)) for g in EXACT])
def test_kernels_of_a_multiple_of_the_stride_spread_nothing(geometry: Geometry):
    if any(w == 1 for w in geometry.windows):
        pytest.skip("one window")
    compiled, random = native(geometry), np.random.default_rng(3)
    for seed in range(PLACES):
        finite, w = operands(geometry, seed)
        g = spoilt(finite, random)
        result = compiled(graphc.tensor(g), graphc.tensor(w)).numpy()
        np.testing.assert_allclose(result, eager(geometry, g, w), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("transposed", [False, True], ids=["backward", "transposed"])
def test_whole_convolutions_spread_no_farther(transposed: bool):
    """Results and all gradients of the functions of users, with numbers that are not finite in each operand."""
    random = np.random.default_rng(4)
    function = F.conv_transpose2d if transposed else F.conv2d
    x, w = random.standard_normal((2, 4, 7, 6)), random.standard_normal((4, 4, 3, 3))

    def gradients(x: Any, w: Any, g: Any) -> list[Any]:
        y = function(x, w, stride=2, padding=1)
        return [y, *graphc.autograd.grad(y, [x, w], g)]

    g = random.standard_normal(function(graphc.tensor(x), graphc.tensor(w), stride=2, padding=1).shape)
    compiled = graphc.compile(gradients)

    def run(call: Any, arrays: list[np.ndarray]) -> list[np.ndarray]:
        return [t.detach().numpy() for t in call(*(graphc.tensor(a).requires_grad_() for a in arrays))]

    for which, _ in itertools.product(range(3), range(4)):
        arrays = [spoilt(a, random) if i == which else a for i, a in enumerate((x, w, g))]
        direct, result = run(gradients, arrays), run(compiled, arrays)
        assert all(itertools.starmap(only_spread, zip(direct, result, strict=True)))
        with native_products():
            for a, b in zip(result, run(gradients, arrays), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


# ---- Winograd's method


SIDE, CHANNELS = 16, 64


def tiles_around(position: int, tile: int, dilation: int) -> Iterator[int]:
    """Results, in one dimension, of the tiles that read an element of the padded image."""
    for result in range(SIDE):
        first = result // dilation // tile * tile * dilation + result % dilation
        if (position - first) % dilation == 0 and 0 <= position - first < (tile + 2) * dilation:
            yield result


def by_winograd(weight: np.ndarray, dilation: int) -> tuple[Any, int]:
    """A native convolution of images by constant weights, padded to keep their size, and the tile that it works by."""
    graph = Graph("net")
    x = graph.add_input(TensorType(float32, (1, CHANNELS, SIDE, SIDE)), "x")
    with use(GraphDispatcher(graph)):
        attrs = {"stride": (1, 1), "padding": ((dilation, dilation),) * 2, "dilation": (dilation, dilation)}
        graph.set_outputs([conv(x, constant(graph, weight, float32), groups=1, **attrs)])
    (tile,) = {n.attrs["tile"] for n in optimize(copy(graph)).nodes() if "tile" in n.attrs}
    return load_compiled(compile_graph(graph)), tile


@pytest.mark.parametrize("dilation", [1, 2])
def test_winograds_method_spreads_over_the_tiles_that_read_an_element(dilation: int):
    random = np.random.default_rng(5)
    weight = random.standard_normal((CHANNELS, CHANNELS, 3, 3)).astype(np.float32) / 24
    native, tile = by_winograd(weight, dilation)
    finite = random.standard_normal((1, CHANNELS, SIDE, SIDE)).astype(np.float32)
    for _ in range(6):
        image = spoilt(finite, random)
        direct = F.conv2d(graphc.tensor(image), graphc.tensor(weight), padding=dilation, dilation=dilation).numpy()
        (result,) = native.run([image])
        # Infinite results may be NaN: they are differences of infinities.
        assert not np.any(~np.isfinite(direct) & np.isfinite(result))
        allowed = np.zeros((SIDE, SIDE), bool)
        for _, _, row, column in np.argwhere(~np.isfinite(image)):
            allowed[np.ix_(*(list(tiles_around(p + dilation, tile, dilation)) for p in (row, column)))] = True
        assert not np.any(~np.isfinite(result) & ~allowed)
        both = np.isfinite(direct) & np.isfinite(result)
        np.testing.assert_allclose(result[both], direct[both], rtol=1e-3, atol=1e-4)


def test_infinite_weights_reach_their_channel_by_winograds_method_as_directly():
    random = np.random.default_rng(6)
    weight = random.standard_normal((CHANNELS, CHANNELS, 3, 3)).astype(np.float32) / 24
    weight[3, 5, 0, 2], weight[7, 1, 1, 1] = np.inf, np.nan
    image = random.standard_normal((1, CHANNELS, SIDE, SIDE)).astype(np.float32)
    (result,) = by_winograd(weight, 1)[0].run([image])
    direct = F.conv2d(graphc.tensor(image), graphc.tensor(weight), padding=1).numpy()
    np.testing.assert_array_equal(np.isfinite(direct), np.isfinite(result))
    assert set(np.argwhere(~np.isfinite(result))[:, 1].tolist()) == {3, 7}
