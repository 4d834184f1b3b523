"""PyTorch's import path for discrete Fourier transforms."""

from graphc.tensors.spectra.fourier import *
from graphc.tensors.spectra.fourier import __all__ as __all__
