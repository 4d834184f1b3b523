"""Ops that are sums of products: matrix products, convolutions, Fourier transforms."""
