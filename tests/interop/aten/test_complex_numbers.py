"""Rules of complex numbers and Fourier transforms."""

from __future__ import annotations

import pytest

from tests.interop.aten.compare import Sample, check, torch

X = torch.linspace(-2, 2, 24).reshape(2, 3, 4)
Z = torch.complex(X, X.flip(0) * 0.5)
SAMPLES: list[Sample] = [
    *[(name, x) for name in ("real", "isreal", "angle") for x in (X, Z)],
    ("isreal", torch.complex(X, X.floor())),
    *[(name, Z) for name in ("imag", "view_as_real", "_conj_physical", "conj_physical", "resolve_conj")],
    ("view_as_complex", X.reshape(2, 3, 2, 2)),
    *[(name, X, X * 2) for name in ("complex", "polar")],
    *[(f"fft_{name}", Z, 3, 1, "ortho") for name in ("fft", "ifft", "irfft", "hfft")],
    *[(f"fft_{name}", X, None, -1) for name in ("rfft", "ihfft", "fft")],
    *[(f"fft_{name}", Z) for name in ("fft2", "ifft2", "irfft2", "fftn", "ifftn", "irfftn", "fftshift", "ifftshift")],
    *[(f"fft_{name}", Z) for name in ("hfft2", "hfftn")],
    *[(f"fft_{name}", X, [2, -1], [2, 0]) for name in ("rfft2", "rfftn", "ihfft2", "ihfftn")],
    *[("_fft_r2c", X, [0, 2], n, onesided) for n in range(3) for onesided in (True, False)],
    *[("_fft_c2c", Z, [1, 2], n, forward) for n in range(3) for forward in (True, False)],
    *[("_fft_c2r", Z, [0, 2], n, 6) for n in range(3)],
    ("_fft_c2r", Z[..., :3].clone(), [2], 2, 5),
    *[(name, X) for name in ("mH", "adjoint", "conj")],
]
CONJUGATES: list[Sample] = [
    *[(name, Z) for name in ("_conj", "conj", "mH", "adjoint")],
    ("matrix_H", Z[0].clone()),
]
"""Which PyTorch makes of the memory of the argument, and graphc at once."""


@pytest.mark.parametrize("sample", SAMPLES + CONJUGATES, ids=lambda sample: sample[0])
def test_an_operator_gives_what_pytorch_gives(sample: Sample):
    check(sample)
