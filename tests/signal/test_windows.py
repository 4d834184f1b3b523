"""Windows against PyTorch's: values at all small lengths, types, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.signal import windows

OPTIONS = {"general_cosine": {"a": [0.3, 0.2, 0.5]}, "kaiser": {"beta": 5.0}, "gaussian": {"std": 2.0}}


@pytest.mark.parametrize("name", windows.__all__)
@pytest.mark.parametrize("sym", [True, False])
def test_windows_are_those_of_torch(torch, name: str, sym: bool):
    for length in (0, 1, 2, 7, 8):
        options = OPTIONS.get(name, {}) | {"sym": sym}
        found = getattr(windows, name)(length, dtype=graphc.float64, **options).numpy()
        wanted = getattr(torch.signal.windows, name)(length, dtype=torch.float64, **options).numpy()
        np.testing.assert_allclose(found, wanted, atol=1e-14, strict=True)


@pytest.mark.parametrize("length", [1, 6])
def test_a_window_that_falls_from_another_point(torch, length: int):
    found = windows.exponential(length, center=2.0, tau=3.0, sym=False, dtype=graphc.float64)
    wanted = torch.signal.windows.exponential(length, center=2.0, tau=3.0, sym=False, dtype=torch.float64)
    np.testing.assert_allclose(found.numpy(), wanted.numpy())


def test_windows_take_types_and_gradients():
    assert windows.hann(4).dtype is graphc.float32
    assert windows.cosine(4, dtype=graphc.float64, requires_grad=True).requires_grad


@pytest.mark.parametrize("name", windows.__all__)
def test_lengths_and_types_are_checked(name: str):
    options = OPTIONS.get(name, {})
    with pytest.raises(ValueError, match="-1 p"):
        getattr(windows, name)(-1, **options)
    for dtype in (graphc.int64, graphc.float16):
        with pytest.raises(ValueError, match="f32 or f64"):
            getattr(windows, name)(3, dtype=dtype, **options)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: windows.exponential(3, tau=0.0), ValueError, "tau is 0.0"),
        (lambda: windows.exponential(3, center=1.0), ValueError, "symmetric window"),
        (lambda: windows.gaussian(3, std=-1.0), ValueError, "std is -1.0"),
        (lambda: windows.kaiser(3, beta=-1.0), ValueError, "beta is -1.0"),
        (lambda: windows.general_cosine(3, a=[]), ValueError, "no weights"),
        (lambda: windows.general_cosine(3, a=0.5), TypeError, "weights are 0.5"),
    ],
)
def test_wrong_arguments_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
