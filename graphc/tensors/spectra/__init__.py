"""Spectra of tensors: Fourier transforms, short-time transforms, and window functions."""
