"""Rules of operators of linear algebra."""

from __future__ import annotations

import pytest

import graphc
from graphc.interop.aten.table import find
from tests.interop.aten.compare import Sample, check, target_of, torch

M = torch.tensor([[3.0, 1.0, 0.5], [0.2, -2.0, 0.7], [1.0, 0.3, 4.0]], dtype=torch.float64)
S = M @ M.T
B = torch.linspace(-1, 1, 6, dtype=torch.float64).reshape(3, 2)
LU, PIVOTS = torch.linalg.lu_factor(M)
T = torch.tensor(0.3, dtype=torch.float64)
SAMPLES: list[Sample] = [
    *[(name, M) for name in ("det", "inverse", "logdet", "slogdet", "matrix_exp", "pinverse", "qr")],
    *[(f"linalg_{name}", M) for name in ("det", "eigvals", "inv", "lu_factor", "slogdet", "svdvals", "vander", "cond")],
    *[(f"_linalg_{name}", M) for name in ("det", "slogdet")],
    *[(f"linalg_{name}", S) for name in ("cholesky", "eigvalsh")],
    ("chain_matmul", [M, S, B]),
    ("linalg_cond.p_str", M, "nuc"),
    ("linalg_diagonal", M, {"offset": 1}),
    ("linalg_matmul", M, B),
    ("linalg_matrix_norm", M, 2),
    ("linalg_matrix_rank", M, 3.0),
    ("linalg_matrix_rank.atol_rtol_float", M, {"rtol": 0.6}),
    ("linalg_matrix_rank.atol_rtol_tensor", M, {"atol": T}),
    ("linalg_matrix_rank.tol_tensor", M, 8 * T),
    ("linalg_pinv", M, 0.1),
    ("linalg_pinv.atol_rtol_float", M, {"atol": 2.2}),
    ("linalg_pinv.atol_rtol_tensor", B, {"rtol": T}),
    ("linalg_pinv.rcond_tensor", B, T),
    ("linalg_solve", M, B),
    ("linalg_solve_ex", M, B),
    ("_linalg_solve_ex", M, B),
    ("linalg_tensorinv", M.reshape(3, 1, 3), 1),
    ("linalg_tensorsolve", M, B[:, 0]),
    ("linalg_vecdot", M, S),
    ("lu_solve", B, LU, PIVOTS),
    ("lu_unpack", LU, PIVOTS),
    ("orgqr", B, B[0]),
    ("linalg_norm.ord_str", M, "nuc"),
    ("matrix_power", M, -2),
]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample[0])
def test_the_rule_gives_what_pytorch_gives(sample: Sample):
    check(sample)


FIRST: list[Sample] = [("linalg_eig", S), ("linalg_eigh", S), ("_linalg_eigh", S)]


@pytest.mark.parametrize("sample", FIRST, ids=lambda sample: sample[0])
def test_the_values_are_those_of_pytorch(sample: Sample):
    check(sample, results=1)


MORE: list[Sample] = [("linalg_svd", S, False), ("_linalg_svd", S), ("svd", S)]


@pytest.mark.parametrize("sample", MORE, ids=lambda sample: sample[0])
def test_singular_values_are_those_of_pytorch_and_give_the_matrix_again(sample: Sample):
    name, *args = sample
    function = find(target_of(name))
    assert function is not None
    u, s, v = function(graphc.from_numpy(S.numpy()), *args[1:])
    right = v.mT if name == "svd" else v
    torch.testing.assert_close(torch.from_numpy(((u * s) @ right).numpy()), S)
    torch.testing.assert_close(torch.from_numpy(s.numpy()), torch.linalg.svdvals(S))


def test_a_matrix_without_a_result_is_refused_where_pytorch_checks():
    function = find("aten._linalg_check_errors.default")
    assert function is not None
    function(graphc.zeros(2, dtype=graphc.int32), "linalg.inv", is_matrix=False)
    with pytest.raises(RuntimeError, match=r"linalg\.inv: the computation failed"):
        function(graphc.ones(2, dtype=graphc.int32), "linalg.inv", is_matrix=False)
