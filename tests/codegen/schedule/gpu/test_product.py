"""Kernels that are products of matrices: the stand-in computes from their descriptors what the interpreter computes."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import graphc as gc
import graphc.nn.functional as F
from graphc.base.dtypes import bfloat16x2, bits_of, numbers
from graphc.base.errors import DeviceError
from graphc.codegen.schedule.contraction.product import Product
from graphc.codegen.schedule.gpu.product import Epilogue, find_product, match_epilogue
from graphc.codegen.schedule.gpu.sum_of_products import find_sum_of_products
from graphc.compiler.stages import Stages
from graphc.files.product_descriptor import ProductDescriptor
from graphc.ir.kernel.dims import bind_kernel, dims_of_kernel
from graphc.ir.kernel.interpret import run_kernel
from graphc.ir.kernel.map import Names
from graphc.ir.kernel.statements import Kernel
from graphc.runtime.devices.product_reference import compute_product
from tests.codegen.kernel_native import kernel_of, random_memory
from tests.codegen.sized_products import PLAIN, RESIDUAL, TRANSPOSED_A, TRANSPOSED_B, sized_product

RELU = """z: bool = le({x}, f32(0.0))
              y{n}: f32 = select(z, f32(0.0), {x})"""
GELU = """g1: f32 = mul({x}, f32(0.5))
              g2: f32 = mul({x}, {x})
              g3: f32 = mul(g2, {x})
              g4: f32 = mul(g3, f32(0.044715))
              g5: f32 = add(g4, {x})
              g6: f32 = mul(g5, f32(0.7978846))
              g7: f32 = tanh(g6)
              g8: f32 = add(f32(1.0), g7)
              y{n}: f32 = mul(g1, g8)"""


def by_library(kernel: Kernel, product: Product, descriptor: ProductDescriptor | None = None) -> dict[str, np.ndarray]:
    """Memory after the library's calls."""
    memory = random_memory(kernel)
    given = descriptor or product.descriptor()
    assert given is not None
    for call in product.calls():
        addresses = [memory[name].ctypes.data + start * memory[name].itemsize for name, start in call]
        compute_product(given, addresses)
    return memory


def plain(array: np.ndarray) -> np.ndarray:
    """The elements as numbers; of pairs their bits."""
    return bits_of(array) if array.dtype == bfloat16x2.numpy else numbers(array)


def check(kernel: Kernel) -> Product:
    product = find_product(kernel)
    assert product is not None
    expected = random_memory(kernel)
    run_kernel(kernel, expected)
    for name, array in by_library(kernel, product).items():
        np.testing.assert_allclose(plain(array), plain(expected[name]), rtol=2e-5, atol=2e-5, err_msg=name)
    return product


def random_kernel(choose: random.Random) -> Kernel:
    """A product of a random form: strides, batches, something added, an activation."""
    m, n, k, batch = (choose.randint(low, 7) for low in (2, 2, 1, 1))
    gap = choose.choice([0, 0, 3])

    def matrix(rows: tuple[str, int], columns: tuple[str, int]) -> tuple[str, int]:
        (i, r), (j, c) = choose.sample([rows, columns], 2)
        step = c + gap
        return f"{step * r}*t + {step}*{i} + {j}", batch * step * r

    a, a_size = matrix(("i", m), ("l", k))
    b, b_size = matrix(("l", k), ("j", n))
    c, c_size = (f"{m * n}*t + {n}*i + j", batch * m * n)
    if choose.random() < 0.3:
        c = f"{m * n}*t + i + {m}*j"
    along = "i" if f"+ {m}*j" in c else "j"
    lines, x = ["r = read s"], "r"
    buffers = ""
    if choose.random() < 0.4:
        lines.append(f"q: f32 = mul({x}, f32(0.25))")
        x = "q"
    if choose.random() < 0.5:
        lines += [f"v: f32 = load %v[{along}]", f"w: f32 = add(v, {x})"]
        x, buffers = "w", f", %v: f32[{m if along == 'i' else n}] in"
    if choose.random() < 0.4:
        lines += [f"e: f32 = load %e[{c}]", f"f: f32 = add({x}, e)"]
        x, buffers = "f", buffers + f", %e: f32[{c_size}] in"
    activation = choose.choice(["", RELU, GELU])
    if activation:
        lines.append(activation.format(x=x, n=1))
        x = "y1"
    after = "\n              ".join([*lines, f"store %c[{c}] = {x}"])
    return kernel_of(f"""
        kernel @k(%a: f32[{a_size}] in, %b: f32[{b_size}] in{buffers}, %c: f32[{c_size}] out) {{
          for t in {batch} parallel {{
            for i in {m} parallel {{
              for j in {n} parallel {{
                acc s: f32 = add f32(0.0)
                for l in {k} reduce {{
                  x: f32 = load %a[{a}]
                  y: f32 = load %b[{b}]
                  p: f32 = mul(x, y)
                  update s with p
                }}
                {after}
              }}
            }}
          }}
        }}""")


@pytest.mark.parametrize("seed", range(60))
def test_random_products(seed: int) -> None:
    check(random_kernel(random.Random(seed)))


def kernel_from(function: Callable, *shapes: tuple[int, ...]) -> Kernel:
    (kernel,) = Stages(traced=gc.trace(function, *(gc.zeros(*s) for s in shapes))).lowered.kernels
    return kernel


FUNCTIONS = {
    "none": (lambda x, w: x @ w, (10, 8), (8, 6)),
    "relu_bias": (lambda x, w, b: F.relu(F.linear(x, w, b)), (3, 5, 8), (6, 8), (6,)),
    "gelu_bias": (lambda x, w, b: F.gelu(x @ w + b, approximate="tanh"), (10, 8), (8, 6), (6,)),
    "bias": (lambda x, w, b, r: F.linear(x, w, b) + r, (10, 8), (6, 8), (6,), (10, 6)),
}


@pytest.mark.parametrize("epilogue", FUNCTIONS)
def test_what_functions_become(epilogue: str) -> None:
    function, *shapes = FUNCTIONS[epilogue]
    assert check(kernel_from(function, *shapes)).epilogue == epilogue


def test_heads_are_batches_inside_of_loops() -> None:
    function = lambda q, k: q.transpose(1, 2) @ k.permute(0, 2, 3, 1) * 0.5  # noqa: E731
    product = check(kernel_from(function, (2, 5, 4, 8), (2, 7, 4, 8)))
    assert (product.loops, product.batch, product.alpha) == ((2,), 4, 0.5)


def test_a_convolution_of_single_pixels_has_one_factor_for_all_images() -> None:
    product = check(kernel_from(F.conv2d, (2, 16, 5, 7), (8, 16, 1, 1)))
    assert product.batch == 2 and 0 in (product.a.batch, product.b.batch)


@pytest.mark.parametrize("places", [PLAIN, TRANSPOSED_A, TRANSPOSED_B])
def test_named_dimensions(places: tuple[str, str]) -> None:
    kernel = sized_product("batch*rows", 24, "time", places, RESIDUAL)
    product = find_product(kernel)
    assert product is not None and product.descriptor() is not None
    sizes = {"batch": 2, "rows": 5, "time": 17}
    bound = bind_kernel(kernel, sizes)
    known = dims_of_kernel(kernel)
    there = product.at({known[name]: size for name, size in sizes.items()})
    expected = random_memory(bound)
    run_kernel(bound, expected)
    np.testing.assert_allclose(by_library(bound, there)["c"], expected["c"], rtol=2e-5, atol=2e-5)


def test_pairs_of_factors() -> None:
    def kernel(b: str, op: str = "dot2", words: str = "bf16x2", sums: str = "f32", zero: str = "0.0") -> Kernel:
        return kernel_of(f"""
            kernel @k(%a: {words}[60] in, %b: {words}[70] in, %c: {sums}[30] out) {{
              for i in 5 parallel {{
                for j in 6 parallel {{
                  acc s: {sums} = add {sums}({zero})
                  for l in 8 reduce {{
                    x: {words} = load %a[12*i + l]
                    y: {words} = load %b[{b}]
                    p: {sums} = {op}(x, y)
                    update s with p
                  }}
                  r = read s
                  store %c[6*i + j] = r
                }}
              }}
            }}""")

    product = check(kernel("9*j + l"))
    assert (product.type.name, product.sums.name, product.k) == ("bf16", "f32", 16)
    assert find_product(kernel("6*l + j")) is None  # pairs of neighbours that are not summed over lie otherwise
    assert find_product(kernel("9*j + l", "dot4", "i32", "i32", "0")) is None


def test_what_no_library_has() -> None:
    assert find_product(kernel_from(lambda x, w: F.gelu(x @ w), (10, 8), (8, 6))) is None
    assert find_product(kernel_from(lambda x, w: x[:, ::2] @ w, (10, 16), (8, 6))) is None
    assert find_product(kernel_from(lambda x: x.sum(0), (10, 8))) is None
    assert find_product(kernel_from(lambda x, w, b: x @ w + b[:, None], (10, 8), (8, 6), (10,))) is None


def _wrong(given: ProductDescriptor) -> list[ProductDescriptor]:
    return [
        replace(given, a=replace(given.a, leading=given.a.leading + 1)),
        replace(given, b=replace(given.b, leading=given.b.leading - 1)),
        replace(given, a=replace(given.a, rows=given.a.columns, columns=given.a.rows), transpose_a=True),
        replace(given, transpose_b=not given.transpose_b),
        replace(given, epilogue="bias"),
        replace(given, epilogue="gelu_bias"),
        replace(given, alpha=0.5),
        replace(given, a=given.b, b=given.a),
        replace(given, d=replace(given.d, leading=given.d.leading - 1)),
    ]


@pytest.mark.parametrize("number", range(9))
def test_a_wrong_descriptor_is_seen(number: int) -> None:
    function, *_ = FUNCTIONS["relu_bias"]
    kernel = kernel_from(lambda x, w, b: function(x[:, :8], w[:, :8], b), (12, 9), (6, 9), (6,))
    product = check(kernel)
    given = product.descriptor()
    assert given is not None
    expected = random_memory(kernel)
    run_kernel(kernel, expected)
    try:
        result = by_library(kernel, product, _wrong(given)[number])
    except DeviceError:
        return
    name = product.out.buffer
    assert not np.abs(result[name] - expected[name]).max() <= 0.01  # what is read beside the operands may be NaN


@pytest.mark.parametrize(("read", "is_product"), [("6*i + j", True), ("5*j + i", False)])
def test_what_is_added_in_place_lies_where_the_result_does(read: str, is_product: bool) -> None:
    kernel = kernel_of(f"""
        kernel @k(%a: f32[35] in, %b: f32[42] in, %c: f32[30] inout) {{
          for i in 5 parallel {{
            for j in 6 parallel {{
              acc s: f32 = add f32(0.0)
              for l in 7 reduce {{
                x: f32 = load %a[7*i + l]
                y: f32 = load %b[6*l + j]
                p: f32 = mul(x, y)
                update s with p
              }}
              r = read s
              e: f32 = load %c[{read}]
              f: f32 = add(r, e)
              store %c[6*i + j] = f
            }}
          }}
        }}""")
    assert (find_product(kernel) is not None) == is_product
    if is_product:
        check(kernel)


def epilogue(function) -> Epilogue | None:
    given = [gc.zeros(*s) for s in ((8, 8), (8, 8), (8,), (8, 8))]
    (kernel,) = Stages(traced=gc.trace(function, *given)).lowered.kernels
    found = find_sum_of_products(kernel, Names("p"))
    assert found is not None
    return match_epilogue(found.after)


@pytest.mark.parametrize(
    ("function", "activation", "alpha", "added"),
    [
        (lambda x, w, b, r: x @ w, "", 1.0, 0),
        (lambda x, w, b, r: x @ w * 0.25, "", 0.25, 0),
        (lambda x, w, b, r: r + (b + x @ w), "", 1.0, 2),
        (lambda x, w, b, r: F.relu(x @ w), "relu", 1.0, 0),
        (lambda x, w, b, r: F.relu(x @ w * 2 + b), "relu", 2.0, 1),
        (lambda x, w, b, r: F.gelu(x @ w + b + r, approximate="tanh"), "gelu", 1.0, 2),
    ],
)
def test_what_a_library_does(function, activation: str, alpha: float, added: int) -> None:
    found = epilogue(function)
    assert found is not None
    assert (found.activation, found.alpha, len(found.added)) == (activation, alpha, added)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w, b, r: F.gelu(x @ w),
        lambda x, w, b, r: F.relu(x @ w) + b,
        lambda x, w, b, r: (x @ w + b) * 0.5,
        lambda x, w, b, r: (x @ w) * r,
        lambda x, w, b, r: -(x @ w),
        lambda x, w, b, r: gc.tanh(x @ w),
    ],
)
def test_what_it_does_not(function) -> None:
    assert epilogue(function) is None
