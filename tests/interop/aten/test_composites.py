"""Rules of operators that PyTorch makes of others, and of second names."""

from __future__ import annotations

import pytest

import graphc
from graphc.interop.aten.composites import SECOND_NAMES
from graphc.interop.aten.table import find
from tests.interop.aten.compare import Sample, check, torch

X, M = torch.linspace(-2, 2, 24).reshape(2, 3, 4) + 0.01, torch.linspace(-1, 1, 9).reshape(3, 3) + torch.eye(3)
P, N, B = X.abs() + 0.1, torch.arange(12).reshape(3, 4), torch.tensor([True, False, True])
SMALL = X / 3
SAMPLES: list[Sample] = [
    *[(name, X) for name in ("ravel", "fliplr", "flipud", "msort", "fix", "negative", "arctan")],
    *[(name, SMALL) for name in ("arcsin", "arccos", "arcsinh", "arctanh", "special_expit", "nansum", "nanmean")],
    *[(name, M[0]) for name in ("atleast_1d", "atleast_2d", "atleast_3d", "diag", "diagflat", "vander")],
    ("arccosh", P + 1),
    ("view_as", X, N.reshape(1, 12).expand(2, 12)),
    ("diff", X),
    ("dist", X, P),
    ("inner", M, M),
    ("ger", M[0], M[1]),
    ("isclose", X, X + 1e-9),
    ("arctan2", X, P),
    ("renorm", X, 2, 0, 1),
    *[(name, [M, M]) for name in ("concat", "dstack", "row_stack", "cartesian_prod")[:3]],
    ("cartesian_prod", [M[0], M[1]]),
    ("clip", X, -1, 1),
    *[(f"{n}.Tensor", X, P) for n in ("greater", "less_equal", "not_equal", "subtract", "multiply", "true_divide")],
    ("divide.Tensor_mode", X, P, {"rounding_mode": "floor"}),
    ("float_power.Tensor_Scalar", P, 2),
    ("xlogy.Tensor", X, P),
    ("special_xlog1py", X, P),
    ("special_entr", X),
    ("ldexp.Tensor", X, N[:, 0].reshape(3, 1)),
    ("moveaxis.int", X, 0, 1),
    ("tensor_split.sections", X, 2, 2),
    ("tensor_split.indices", X, [1, 3], 2),
    ("hsplit.int", X, 3),
    ("vsplit.array", X, [1]),
    ("dsplit.int", X, 2),
    ("quantile.scalar", X, 0.3, 1),
    ("histc", X, 4),
    ("__and__.Tensor", B, ~B),
    ("__or__.Scalar", N, 3),
    ("__xor__.Tensor", B, B),
    ("__lshift__.Scalar", N, 1),
    ("__rshift__.Tensor", N, N // 6),
    ("std_mean.correction", X, [1], {"correction": 0}),
    ("std_mean.dim", X, [1]),
    ("var_mean", X, False),
    ("linalg_norm", X, 3, [1]),
    ("linalg_norm", M),
    ("linalg_matrix_norm.str_ord", X),
    ("trapezoid.dx", X, {"dx": 0.5}),
    ("tensordot", X, M, [1], [0]),
    ("linalg_multi_dot", [M, M, M]),
    ("matrix_power", M, 3),
    ("matrix_power", M, 1),
    ("diag", M, 1),
    ("affine_grid_generator", M[None, :2], [1, 1, 3, 2], False),
    ("logspace", 0, 1, 4),
    ("sum_to_size", X, [1, 3, 4]),
    ("isin.Tensor_Tensor", N, N[0]),
    ("diagonal_scatter", X, P[:, 0, :3], 0, 1, 2),
]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample[0])
def test_an_operator_gives_what_pytorch_gives(sample: Sample):
    check(sample)


@pytest.mark.parametrize("name", sorted(SECOND_NAMES))
def test_a_second_name_means_the_same(name: str):
    expected, given = getattr(torch.ops.aten, name).default, getattr(torch.ops.aten, SECOND_NAMES[name]).default
    more = ([0],) if name.endswith("logsumexp") else ()
    torch.testing.assert_close(expected(P, *more), given(P, *more))
    assert find(f"aten.{name}.default") is find(f"aten.{SECOND_NAMES[name]}.default")


def test_counts_whose_number_depends_on_values_are_had_eagerly():
    count = find("aten.bincount.default")
    assert count is not None and count(graphc.tensor([0, 2, 2])).tolist() == [1, 0, 2]


def test_a_number_of_python_is_had_eagerly():
    item = find("aten.item.default")
    assert item is not None and item(graphc.tensor(3)) == 3


Q = torch.linspace(0.1, 2, 6).reshape(2, 3)
MORE: list[Sample] = [
    ("linalg_matrix_power", Q[:, :2].clone(), 3),
    ("linalg_norm.ord_str", Q, "fro"),
    ("std_mean", Q, False),
    ("var_mean.dim", Q, [1], True, True),
    ("trapz.dx", Q, {"dx": 0.5}),
]


@pytest.mark.parametrize("sample", MORE, ids=lambda sample: sample[0])
def test_another_form_gives_what_pytorch_gives(sample: Sample):
    check(sample)


EAGER: list[Sample] = [("item", Q[0, 0].clone())]


def test_a_number_is_that_of_the_element():
    check(EAGER[0], compiled=False)


RANDOM: list[Sample] = [("exponential_", torch.zeros(100, 200), 2.0)]


def test_exponential_numbers_have_the_mean_and_deviation_of_pytorch():
    function = find("aten.exponential_.default")
    assert function is not None
    drawn = function(graphc.zeros(100, 200), 2.0).numpy()
    assert (drawn >= 0).all() and abs(drawn.mean() - 0.5) < 0.02 and abs(drawn.std() - 0.5) < 0.03
