"""Linear algebra of matrix products against numpy: einsum, tensordot, diagonals, covariances, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.autograd import gradcheck
from graphc.errors import ArgumentError, AttributeValueError, ShapeError
from graphc.tensors.methods.algebra import cdist, diag, diag_embed, einsum, tensordot


def floats(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape)


def close(result: graphc.Tensor, expected: np.ndarray) -> None:
    assert result.shape == np.shape(expected)
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("ij,jk", [(2, 3), (3, 4)]),
        ("ba", [(2, 3)]),
        ("ii", [(3, 3)]),
        ("ii->i", [(3, 3)]),
        ("ij->", [(2, 3)]),
        ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
        ("...ij,...jk->...ik", [(2, 1, 3, 4), (5, 4, 2)]),
        ("i,j,k->kji", [(2,), (3,), (4,)]),
        ("ij,ij->i", [(2, 3), (2, 3)]),
        ("ij,kj,kl->il", [(2, 3), (4, 3), (4, 5)]),
        ("i...->...", [(2, 3, 4)]),
    ],
)
def test_einsum(equation: str, shapes: list[tuple[int, ...]]):
    arrays = [floats(*s, seed=i) for i, s in enumerate(shapes)]
    close(einsum(equation, *map(graphc.tensor, arrays)), np.einsum(equation, *arrays))
    close(einsum(equation, [graphc.tensor(a) for a in arrays]), np.einsum(equation, *arrays))


def test_einsum_has_gradients():
    operands = [graphc.tensor(floats(2, 3, 3)).requires_grad_(), graphc.tensor(floats(3, 4)).requires_grad_()]
    assert gradcheck(lambda a, b: einsum("bii,ij->bj", a, b), operands)


@pytest.mark.parametrize(
    ("equation", "shapes", "error", "text"),
    [
        ("ij,jk->ik", [(2, 3)], AttributeValueError, "names 2 operands, got 1"),
        ("ij->i", [(2, 3, 4)], ShapeError, "names 2 dimensions"),
        ("ij->ik", [(2, 3)], AttributeValueError, "one that no operand has"),
        ("ij->ii", [(2, 3)], AttributeValueError, "names a dimension twice"),
        ("i1->i", [(2, 3)], AttributeValueError, "must consist of letters"),
        ("ii->i", [(2, 3)], ShapeError, "have sizes 2 and 3"),
        ("ij,jk->ik", [(2, 3), (4, 5)], ShapeError, "'j' have sizes 3 and 4"),
    ],
)
def test_einsum_refuses(equation: str, shapes: list[tuple[int, ...]], error: type[Exception], text: str):
    with pytest.raises(error, match=text):
        einsum(equation, *(graphc.zeros(*s) for s in shapes))


@pytest.mark.parametrize("equation", [3, None, graphc.ones(2, 2), ["ij"]])
def test_einsum_refuses_equations_that_are_no_text(equation: object):
    with pytest.raises(ArgumentError, match="einsum: the equation is of type"):
        einsum(equation, graphc.ones(2, 2))  # type: ignore[arg-type]


@pytest.mark.parametrize("operand", [3, None, "ij", [3, 4]])
def test_einsum_refuses_operands_that_are_no_tensors(operand: object):
    with pytest.raises(ArgumentError, match=r"einsum: .* is no tensor"):
        einsum("ij->i", operand)


@pytest.mark.parametrize("dims", [0, 1, 2, ([0, 2], [1, 0]), ([-1], [0])])
def test_tensordot(dims: object):
    a, b = floats(3, 4, 3), floats(3, 3, 5)
    b = floats(4, 3, 5) if dims == 2 else b
    close(tensordot(graphc.tensor(a), graphc.tensor(b), dims), np.tensordot(a, b, dims))


@pytest.mark.parametrize("dtype", ["uint8", "int32", "float32"])
def test_what_meets_a_size_of_one_in_tensordot_is_summed_in_its_own_type(dtype: str):
    one, many = graphc.full((1, 1, 1), 2, dtype=dtype), graphc.full((2, 1, 2), 100, dtype=dtype)
    for x, y, dims in ((one, many, ([0, 1], [2, 0])), (many, one, ([2, 0], [0, 1]))):
        result = tensordot(x, y, dims)
        assert result.dtype is one.dtype and result.tolist() == [[32 if dtype == "uint8" else 800]]


def test_tensordot_refuses_sizes_that_differ():
    with pytest.raises(ShapeError, match="do not fit along"):
        tensordot(graphc.zeros(2, 3), graphc.zeros(2, 3), 1)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
def test_cdist(p: float):
    a, b = floats(2, 4, 3), floats(5, 3)
    expected = (np.abs(a[:, :, None] - b) ** p).sum(-1) ** (1 / p)
    close(cdist(graphc.tensor(a), graphc.tensor(b), p), expected)
    with pytest.raises(ShapeError, match="rows have 3 and 2"):
        cdist(graphc.zeros(1, 3), graphc.zeros(1, 2))


@pytest.mark.parametrize("offset", [-2, 0, 1, 4])
def test_diagonals(offset: int):
    vector, matrix = floats(3), floats(4, 5)
    close(diag(graphc.tensor(vector), offset), np.diag(vector, offset))
    close(diag(graphc.tensor(matrix), offset), np.diag(matrix, offset))
    rows = floats(2, 3)
    close(diag_embed(graphc.tensor(rows), offset), np.stack([np.diag(r, offset) for r in rows]))


def test_diagonals_in_other_dimensions():
    rows = floats(2, 3)
    expected = np.moveaxis(np.stack([np.diag(r) for r in rows]), 0, 1)
    close(diag_embed(graphc.tensor(rows), 0, 0, 2), expected)
    assert diag_embed(graphc.tensor([True, False])).tolist() == [[True, False], [False, False]]
    with pytest.raises(ArgumentError, match="a vector or a matrix"):
        diag(graphc.zeros(1, 2, 3))


def test_products_of_vectors_and_matrices():
    a, b, m = floats(3), floats(3, seed=1), floats(3, 3)
    x, y, matrix = map(graphc.tensor, (a, b, m))
    close(x.vdot(y), a @ b)
    close(x.inner(matrix), np.inner(a, m))
    close(graphc.tensor(2.0, dtype=graphc.float64).inner(y), 2 * b)
    close(x.ger(y), np.outer(a, b))
    close(x.addmv(matrix, y, beta=2, alpha=0.5), 2 * a + 0.5 * (m @ b))
    close(matrix.addr(x, y, beta=0), np.outer(a, b))
    close(matrix.trace(), np.trace(m))
    close(x.cross(y), np.cross(a, b))
    close(matrix.kron(x), np.kron(m, a))
    with pytest.raises(ShapeError, match="trace takes a matrix"):
        x.trace()
    with pytest.raises(ShapeError, match="size 3"):
        graphc.zeros(2, 4).cross(graphc.zeros(2, 4))


def test_batched_products():
    base, a, b = floats(3, 5), floats(2, 3, 4), floats(2, 4, 5)
    tensors = [graphc.tensor(v) for v in (base, a, b)]
    close(tensors[0].addbmm(*tensors[1:], beta=0.5), 0.5 * base + (a @ b).sum(0))
    close(tensors[0].baddbmm(*tensors[1:], alpha=2), base + 2 * (a @ b))


def test_a_base_of_no_weight_is_not_read():
    """With beta 0 not even a NaN of the base counts."""
    base = graphc.full((2, 2), float("nan"))
    assert base.addr(graphc.ones(2), graphc.ones(2), beta=0).tolist() == [[1, 1], [1, 1]]


def test_norms():
    a, b = floats(4, 3), floats(4, 3, seed=1)
    close(graphc.tensor(a).dist(graphc.tensor(b), 3), (np.abs(a - b) ** 3).sum() ** (1 / 3))
    limited = graphc.tensor(a).renorm(2, 0, 1.0).numpy()
    norms = np.linalg.norm(a, axis=1)
    np.testing.assert_allclose(np.linalg.norm(limited, axis=1), np.minimum(norms, 1), rtol=1e-6)
    np.testing.assert_array_equal(limited[norms <= 1], a[norms <= 1])


def test_covariances():
    rows = floats(3, 7)
    close(graphc.tensor(rows).cov(), np.cov(rows))
    close(graphc.tensor(rows).cov(correction=0), np.cov(rows, ddof=0))
    close(graphc.tensor(rows[0]).cov(), np.cov(rows[0]))
    close(graphc.tensor(rows).corrcoef(), np.corrcoef(rows))
    assert graphc.tensor(rows[0]).corrcoef().item() == 1


def test_trapezoid():
    y, x = floats(3, 5), np.array([0.0, 1.0, 1.5, 4.0, 5.0])
    close(graphc.tensor(y).trapezoid(), np.trapezoid(y))
    close(graphc.tensor(y).trapezoid(dx=0.5, dim=0), np.trapezoid(y, dx=0.5, axis=0))
    close(graphc.tensor(y).trapezoid(graphc.tensor(x)), np.trapezoid(y, x))
