"""Ops that factorize matrices: Cholesky, LU, QR, eigenvalues."""
