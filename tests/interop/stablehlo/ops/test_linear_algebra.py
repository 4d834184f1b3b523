"""Rules of factorizations and Fourier transforms."""

import numpy as np
import pytest

from tests.interop.stablehlo.kept import check_kept, run


@pytest.mark.parametrize("name", ["solves", "decompositions", "matrix_gradients", "batched_matrices", "fourier"])
def test_kept_programs_give_what_jax_gives(name):
    check_kept(name)


@pytest.mark.parametrize("lower", ["true", "false"])
def test_cholesky_reads_one_triangle(lower):
    body = f"""(%x: tensor<3x3xf64>) -> tensor<3x3xf64>
    %0 = stablehlo.cholesky %x, lower = {lower} : tensor<3x3xf64>
    return %0 : tensor<3x3xf64>"""
    a = np.array([[4.0, 2.0, 1.0], [2.0, 5.0, 3.0], [1.0, 3.0, 6.0]])
    factor = np.linalg.cholesky(a)
    read = np.tril(a) if lower == "true" else np.triu(a)
    np.testing.assert_allclose(run(body, read), factor if lower == "true" else factor.T, rtol=1e-12)


@pytest.mark.parametrize("form", ["NO_TRANSPOSE", "TRANSPOSE"])
@pytest.mark.parametrize("left", ["true", "false"])
def test_triangular_systems_have_both_sides_and_forms(form, left):
    body = f"""(%a: tensor<3x3xf64>, %b: tensor<3x3xf64>) -> tensor<3x3xf64>
    %0 = "stablehlo.triangular_solve"(%a, %b) <{{left_side = {left}, lower = true, unit_diagonal = true,
      transpose_a = #stablehlo<transpose {form}>}}> : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
    return %0 : tensor<3x3xf64>"""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(3, 3)), rng.normal(size=(3, 3))
    x = run(body, a, b)
    triangle = np.tril(a, -1) + np.eye(3)
    matrix = triangle if form == "NO_TRANSPOSE" else triangle.T
    np.testing.assert_allclose(matrix @ x if left == "true" else x @ matrix, b, rtol=1e-10)
