"""Operators, element functions, reductions and products of tensors, against numpy and, where installed, PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.autograd import gradcheck
from graphc.errors import ArgumentError, AttributeValueError, DTypeError, IndexRangeError, ShapeError


def floats(*shape: int, seed: int = 0) -> graphc.Tensor:
    return graphc.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def test_operators_promote_as_pytorch_does():
    x = graphc.tensor([1, 2, 3])
    assert (x + 1.5).dtype is graphc.float32
    assert (x + 1).dtype is graphc.int64
    assert (x / 2).dtype is graphc.float32
    assert (graphc.tensor([1.0]) * graphc.tensor([2.0], dtype=graphc.float64)).dtype is graphc.float64
    assert (graphc.tensor([1.0]) * graphc.tensor(2.0, dtype=graphc.float64)).dtype is graphc.float32
    assert (x == 2).tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (lambda x: 10 - x, [9, 8, 7]),
        (lambda x: 2**x, [2, 4, 8]),
        (lambda x: 7 // x, [7, 3, 2]),
        (lambda x: 7 % x, [0, 1, 1]),
        (lambda x: -x, [-1, -2, -3]),
        (lambda x: abs(-x), [1, 2, 3]),
        (lambda x: x & 1, [1, 0, 1]),
        (lambda x: x << 2, [4, 8, 12]),
        (lambda x: ~x, [-2, -3, -4]),
        (lambda x: x.div(2, rounding_mode="floor"), [0, 1, 1]),
        (lambda x: (-x).div(2, rounding_mode="trunc"), [0, -1, -1]),
        (lambda x: x.add(x, alpha=10), [11, 22, 33]),
    ],
)
def test_operators_on_integers(expression, expected):
    result = expression(graphc.tensor([1, 2, 3]))
    assert result.tolist() == expected
    assert result.dtype is graphc.int64


def test_operators_leave_strangers_to_the_other_operand():
    assert graphc.tensor([1]).__add__("text") is NotImplemented
    with pytest.raises(TypeError):
        graphc.tensor([1]) + "text"


@pytest.mark.parametrize("dim", [None, 0, -1, (0, 2)])
@pytest.mark.parametrize("keepdim", [False, True])
def test_reductions(dim, keepdim):
    x = floats(2, 3, 4)
    array = x.numpy()
    for name, expected in [("sum", np.sum), ("mean", np.mean), ("amax", np.max), ("amin", np.min)]:
        np.testing.assert_allclose(
            getattr(x, name)(dim, keepdim).numpy(), expected(array, axis=dim, keepdims=keepdim), rtol=1e-12
        )
    np.testing.assert_allclose(x.var(dim, keepdim=keepdim).numpy(), array.var(dim, ddof=1, keepdims=keepdim))
    np.testing.assert_allclose(
        x.std(dim, correction=0, keepdim=keepdim).numpy(), array.std(dim, ddof=0, keepdims=keepdim)
    )


def test_reductions_over_everything_take_an_empty_dim():
    assert graphc.ones(2, 3).sum(()).item() == 6
    assert graphc.ones(2, 3).sum(dim=[]).shape == ()


def test_integers_are_summed_wide():
    assert graphc.tensor([200, 100], dtype=graphc.uint8).sum().item() == 300
    assert graphc.tensor([True, True]).sum().dtype is graphc.int64
    assert graphc.tensor([3, 4], dtype=graphc.int8).prod().dtype is graphc.int64
    with pytest.raises(DTypeError, match="mean needs a floating-point"):
        graphc.tensor([1, 2]).mean()


def test_extremes_with_and_without_a_dimension():
    x = graphc.tensor([[1.0, 5.0, 5.0], [7.0, 0.0, 2.0]])
    assert x.max().item() == 7
    values, indices = x.max(1)
    assert values.tolist() == [5, 7]
    assert indices.tolist() == [1, 0]
    assert x.min(dim=0, keepdim=True).values.shape == (1, 3)
    assert x.max(graphc.tensor(3.0)).tolist() == [[3, 5, 5], [7, 3, 3]]
    assert x.argmax().item() == 3
    assert x.argmin(-1).tolist() == [0, 1]
    assert x.argmax(keepdim=True).shape == (1, 1)


def test_any_all_and_counts_of_numbers():
    x = graphc.tensor([[0.0, 2.0], [0.0, 0.0]])
    assert x.any(1).tolist() == [True, False]
    assert x.any(1).dtype is graphc.bool_
    assert not x.all().item()
    assert x.count_nonzero().item() == 1


def test_dimensions_out_of_range_are_refused():
    with pytest.raises(IndexRangeError, match="dimension 2 is out of range for a tensor with 2 dimensions"):
        graphc.ones(2, 3).sum(2)
    with pytest.raises(AttributeValueError, match="listed twice"):
        graphc.ones(2, 3).sum((0, -2))
    with pytest.raises(ArgumentError, match="must be an int"):
        graphc.ones(2).argmax(0.5)


@pytest.mark.parametrize(
    ("left_shape", "right"), [((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 5)), ((2, 3, 4), (4, 5)), ((4,), (2, 4, 5))]
)
def test_matmul_of_all_ranks(left_shape, right):
    a, b = floats(*left_shape), floats(*right, seed=1)
    np.testing.assert_allclose((a @ b).numpy(), a.numpy() @ b.numpy(), rtol=1e-12)
    assert gradcheck(graphc.matmul, (a.requires_grad_(), b.requires_grad_()))


def test_products_check_their_ranks():
    with pytest.raises(ShapeError, match="inner dimensions differ: 3"):
        graphc.ones(2, 3) @ graphc.ones(2, 3)
    with pytest.raises(ShapeError, match="bmm takes tensors of 3 dimensions"):
        graphc.ones(2, 3).bmm(graphc.ones(3, 2))
    with pytest.raises(ShapeError, match="batch sizes differ"):
        graphc.ones(2, 3, 4).bmm(graphc.ones(1, 4, 2))
    with pytest.raises(ArgumentError, match="two tensors"):
        graphc.matmul(graphc.ones(2, 2), 3.0)
    assert graphc.ones(2, 3).addmm(graphc.ones(2, 4), graphc.ones(4, 3), beta=2, alpha=0.5).tolist() == [[4.0] * 3] * 2
    assert graphc.ones(3).outer(graphc.arange(2.0)).tolist() == [[0, 1]] * 3


def test_comparison_of_whole_tensors():
    x = graphc.tensor([1.0, float("nan")])
    assert not x.equal(x)
    assert x.allclose(x, equal_nan=True)
    assert graphc.tensor([1.0]).allclose(graphc.tensor([1.0 + 1e-7]))
    assert not graphc.ones(2).equal(graphc.ones(3))
    assert graphc.tensor([float("inf"), 1.0]).isinf().tolist() == [True, False]


FUNCTIONS = {
    "exp": {}, "log1p": {}, "tanh": {}, "sigmoid": {}, "silu": {}, "erf": {}, "sin": {}, "cos": {}, "square": {},
    "expm1": {}, "abs": {}, "relu": {}, "softmax": {"dim": 1}, "log_softmax": {"dim": 0}, "logsumexp": {"dim": (0, 1)},
    "sum": {"dim": 1}, "mean": {"dim": (0, 1)}, "var": {"dim": 1}, "std": {"dim": 0}, "prod": {"dim": 1},
    "amax": {"dim": 1}, "amin": {"dim": 0}, "cumsum": {"dim": 1}, "clamp": {"min": -0.5, "max": 0.7},
    "norm": {"p": 2, "dim": 1}, "rsqrt": {}, "sqrt": {}, "log": {}, "reciprocal": {}, "neg": {},
}  # fmt: skip
POSITIVE = {"log", "sqrt", "rsqrt", "reciprocal", "log1p"}


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_gradients(name):
    x = floats(3, 4)
    if name in POSITIVE:
        x = x.abs() + 0.5
    assert gradcheck(lambda t: getattr(t, name)(**FUNCTIONS[name]), (x.detach().clone().requires_grad_(),))


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_values_and_gradients_are_those_of_pytorch(torch, name):
    array = np.random.default_rng(1).standard_normal((3, 4)).astype(np.float32)
    array[0, 0] = 0.0
    if name in POSITIVE:
        array = np.abs(array) + np.float32(0.5)
    ours = graphc.tensor(array, requires_grad=True)
    theirs = torch.tensor(array, requires_grad=True)
    y = getattr(ours, name)(**FUNCTIONS[name])
    z = getattr(torch.nn.functional if name == "silu" else torch, name)(theirs, **FUNCTIONS[name])
    np.testing.assert_allclose(y.detach().numpy(), z.detach().numpy(), rtol=2e-6, atol=1e-6)
    y.sum().backward()
    z.sum().backward()
    np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), rtol=1e-5, atol=1e-6)


def test_numbers_wrap_around_in_unsigned_types():
    x = graphc.tensor([1, 255], dtype=graphc.uint8)
    assert (x + -1).tolist() == [0, 254] and (x == -1).tolist() == [False, True]
    with pytest.raises(ArgumentError, match="range of i64"):
        graphc.tensor([1]) + 2**64


def test_only_the_named_one_of_equal_elements_has_a_gradient():
    x = graphc.ones(2, 3, requires_grad=True)
    x.max(1).values.sum().backward()
    assert x.grad.tolist() == [[1, 0, 0], [1, 0, 0]]


def test_element_types_by_any_name():
    x = graphc.ones(3)
    assert all(x.sum(dtype=d).dtype is graphc.float64 for d in ("f64", "float64", np.float64, graphc.float64))
    with pytest.raises(AttributeValueError, match="dtype"):
        x.sum(dtype="f61")


def test_what_is_no_tensor_is_refused_by_name():
    for call in (lambda x: x.mm(3), lambda x: x.kron([1]), lambda x: x.equal(1.0), lambda x: graphc.cdist(x, 2)):
        with pytest.raises(ArgumentError, match="is no tensor"):
            call(graphc.ones(2, 2))


def test_arrays_beside_tensors():
    x = graphc.ones(2, 3, requires_grad=True)
    row = np.arange(3, dtype=np.float32)
    for result in (x * row, row * x, graphc.compile(lambda t: t * row)(x)):
        assert result.tolist() == [[0, 1, 2]] * 2 and result.requires_grad
    assert (x @ row).tolist() == [3, 3] and (row[:2] @ x).tolist() == [1, 1, 1]
    assert (row - x.detach()).dtype is graphc.float32
    y = graphc.zeros(3)
    y += row
    row[:] = 7
    assert y.tolist() == [0, 1, 2]
    assert (x * np.ones(3, complex)).dtype is graphc.complex128
    with pytest.raises(DTypeError, match=r"longdouble|float128"):
        x * np.ones(3, np.longdouble)


def test_names_that_numpy_has():
    x = floats(2, 3)
    for name in ("sum", "amax", "softmax", "argmin", "cumsum", "std"):
        assert graphc.equal(getattr(x, name)(axis=1), getattr(graphc, name)(x, dim=1))
    assert x.mean(axis=0, keepdims=True).shape == (1, 3)
    assert graphc.cat([x, x], axis=1).shape == (2, 6) and graphc.stack([x, x], axis=2).shape == (2, 3, 2)


def integer_pairs(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Every pair of some numbers of an integer type, its ends among them, with divisors that are not 0."""
    info = np.iinfo(dtype)
    values = np.unique(np.array([info.min, info.min + 1, -7, -2, -1, 0, 1, 2, 7, info.max - 1, info.max], object))
    values_in_range = [int(v) for v in values if info.min <= v <= info.max]
    x, y = np.meshgrid(
        np.array(values_in_range, dtype), np.array([v for v in values_in_range if v], dtype), indexing="ij"
    )
    return x.ravel(), y.ravel()


@pytest.mark.parametrize("mode", ["trunc", "floor"])
@pytest.mark.parametrize("dtype", ["int64", "int32", "int8", "uint8"])
def test_quotients_of_integers_are_exact(mode: str, dtype: str):
    x, y = integer_pairs(dtype)
    bits = np.iinfo(dtype).bits
    expected = []
    for a, b in zip(x.tolist(), y.tolist(), strict=True):
        quotient = a // b if mode == "floor" else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        expected.append(np.array(quotient % (1 << bits), np.uint64).astype(f"u{bits // 8}").astype(dtype))

    def divide(a, b):
        return graphc.div(a, b, rounding_mode=mode)

    for function in (divide, graphc.compile(divide)):
        result = function(graphc.from_numpy(x), graphc.from_numpy(y))
        assert result.dtype is graphc.from_numpy(x).dtype
        np.testing.assert_array_equal(result.numpy(), expected)


def test_a_large_integer_is_divided_without_floats():
    x, y = graphc.tensor([2050533773, 2**62 + 1]), graphc.tensor([1, 1])
    assert graphc.div(x, y, rounding_mode="trunc").tolist() == [2050533773, 2**62 + 1]
    assert graphc.div(x, 0, rounding_mode="trunc").tolist() == [0, 0]
    assert graphc.div(graphc.tensor([-7.5]), 2, rounding_mode="trunc").tolist() == [-3.0]


@pytest.mark.parametrize("fold", ["sum", "prod", "nansum"])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int32", "int64", "float32", "float64"])
def test_folds_have_the_type_that_is_asked_for(fold: str, dtype: str):
    result_type = getattr(graphc, dtype)
    values = np.array([[100, 100, 101], [3, 0, 200]])
    for x in (values, values.astype(np.float32) / 2, values > 100):
        reference = getattr(np, "sum" if fold == "nansum" else fold)
        first = (
            x.astype(np.int32).astype(dtype) if x.dtype.kind == "f" and dtype in ("int8", "uint8") else x.astype(dtype)
        )
        if dtype == "int8" and x.dtype.kind == "f":
            first = np.clip(np.trunc(x), -128, 127).astype(dtype)
        logical = {"sum": np.any, "nansum": np.any, "prod": np.all}[fold]
        expected = logical(first, 1) if dtype == "bool" else reference(first, 1, dtype=dtype)

        def folded(t):
            return getattr(t, fold)(1, dtype=result_type)

        for function in (folded, graphc.compile(folded)):
            result = function(graphc.from_numpy(x))
            assert result.dtype is result_type
            np.testing.assert_array_equal(result.numpy(), expected)


def test_powers_of_a_norm_below_one_have_a_gradient_of_zeros_at_zero():
    x = graphc.zeros(3).requires_grad_()
    x.norm(0.5).backward()
    assert x.grad is not None and x.grad.tolist() == [0, 0, 0]


def test_a_weight_may_be_any_number():
    x, y = graphc.tensor([1.0, 2.0]), graphc.tensor([3.0, 5.0])
    for weight in (0.75, np.float32(0.75), graphc.tensor(0.75)):
        assert x.lerp(y, weight).tolist() == [2.5, 4.25]
    assert x.lerp(y, True).tolist() == x.lerp(y, np.int64(1)).tolist() == [3.0, 5.0]


def test_the_norm_of_singular_values():
    x = floats(2, 3, 4).requires_grad_()
    for keepdim in (False, True):
        expected = np.linalg.norm(x.detach().numpy(), "nuc", axis=(0, 2), keepdims=keepdim)
        np.testing.assert_allclose(x.norm("nuc", (0, 2), keepdim).detach().numpy(), expected, rtol=1e-12)
    np.testing.assert_allclose(graphc.norm(x[0], "nuc").item(), np.linalg.norm(x[0].detach().numpy(), "nuc"))
    assert gradcheck(lambda x: x.norm("nuc", (1, 2)), [x])
    with pytest.raises(ShapeError, match="must be two dimensions"):
        x.norm("nuc")
    with pytest.raises(AttributeValueError, match="unknown p 'max'"):
        x.norm("max")


def test_a_truncated_quotient_has_no_gradient_even_by_zero():
    x = graphc.tensor([5.0, np.nan, np.inf, 0.0], requires_grad=True)
    y = graphc.tensor([0.0, 1.0, 2.0, 0.0], requires_grad=True)
    x.div(y, rounding_mode="trunc").sum().backward()
    assert x.grad.tolist() == y.grad.tolist() == [0.0] * 4


def test_an_infinite_lower_limit_has_the_gradient():
    low = graphc.tensor([np.inf, 2.0], requires_grad=True)
    graphc.clamp(graphc.ones(2), low).sum().backward()
    assert low.grad.tolist() == [1.0, 1.0]
