"""Linear algebra of matrices and batches of them, as ``torch.linalg`` names it.

Small matrices are computed by native code, large ones by numpy's LAPACK; docs/linalg.md says which.
"""

from graphc.linalg.checks import LinAlgError
from graphc.linalg.norms import cond, matrix_norm, norm, vector_norm
from graphc.linalg.products import (
    cross,
    diagonal,
    matmul,
    matrix_exp,
    matrix_power,
    multi_dot,
    tensorinv,
    tensorsolve,
    vander,
    vecdot,
)
from graphc.linalg.reflections import householder_product
from graphc.linalg.spectra import (
    eig,
    eigh,
    eigvals,
    eigvalsh,
    lstsq,
    matrix_rank,
    pinv,
    qr,
    svd,
    svdvals,
)
from graphc.linalg.systems import (
    cholesky,
    cholesky_ex,
    det,
    inv,
    inv_ex,
    lu,
    lu_factor,
    lu_factor_ex,
    lu_solve,
    slogdet,
    solve,
    solve_ex,
    solve_triangular,
)

__all__ = [
    "LinAlgError",
    "cholesky",
    "cholesky_ex",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "householder_product",
    "inv",
    "inv_ex",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_factor_ex",
    "lu_solve",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_ex",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensorinv",
    "tensorsolve",
    "vander",
    "vecdot",
    "vector_norm",
]
