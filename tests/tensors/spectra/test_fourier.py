"""Transforms as users call them against PyTorch: lengths, dimensions, norms, gradients, errors."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from tests.tensors.against_torch import agree, numbers

C, Q = numbers(3, 8), numbers(4, 5, 6, seed=5)


def called(name, *args, **options):
    return lambda library, x: getattr(library.fft, name)(x, *args, **options)


@pytest.mark.torch
@pytest.mark.parametrize("name", ["fft", "ifft", "irfft", "hfft"])
def test_transforms_of_complex_numbers(name):
    agree(
        {
            f"{n} {dim} {norm}": called(name, n, dim, norm)
            for n, dim, norm in [(None, -1, None), (5, 0, "ortho"), (12, 1, "forward"), (7, -1, "backward")]
        },
        C,
    )


@pytest.mark.torch
@pytest.mark.parametrize("name", ["rfft", "ihfft", "fft", "irfft"])
def test_transforms_of_real_numbers(name):
    agree(
        {f"{n} {norm}": called(name, n, -1, norm) for n, norm in [(None, None), (5, "ortho"), (12, "forward")]}, C.real
    )


@pytest.mark.torch
def test_transforms_along_several_dimensions():
    names = ["fft2", "ifft2", "fftn", "ifftn", "irfft2", "irfftn"]
    agree({f"{n}{i}": called(n, **o) for n in names for i, o in enumerate([{}, {"s": (3, 7)}, {"dim": (0, 2)}])}, Q)
    agree({n: called(n, s=(3, 7)) for n in ("rfft2", "rfftn")}, Q.real.copy())
    agree({n: called(n, s=3) for n in ("fftn", "ifftn", "irfftn")}, Q)


@pytest.mark.torch
@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
def test_transforms_of_halves_along_several_dimensions(norm):
    options = [{}, {"s": (3, 7)}, {"dim": (0, 2)}]
    for names, x in ((["hfft2", "hfftn"], Q), (["ihfft2", "ihfftn"], Q.real.copy())):
        agree({f"{n}{i}": called(n, norm=norm, **o) for n in names for i, o in enumerate(options)}, x)
    assert graphc.fft.hfft2(graphc.fft.ihfft2(graphc.tensor(Q.real.copy()))).allclose(graphc.tensor(Q.real.copy()))


def test_frequencies_and_shifts(torch):
    for n in (1, 6, 7):
        np.testing.assert_allclose(graphc.fft.fftfreq(n, 0.1).numpy(), torch.fft.fftfreq(n, 0.1).numpy(), rtol=1e-6)
        np.testing.assert_allclose(graphc.fft.rfftfreq(n).numpy(), torch.fft.rfftfreq(n).numpy(), rtol=1e-6)
    assert graphc.fft.fftfreq(3, 0.0).isfinite().tolist() == torch.fft.fftfreq(3, 0.0).isfinite().tolist()
    agree({"all": called("fftshift"), "some": called("ifftshift", (0, 1)), "one": called("fftshift", 2)}, Q)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: graphc.fft.fft(x, norm="half"), "unknown norm 'half'"),
        (lambda x: graphc.fft.fft(x, 0), "0 points"),
        (lambda x: graphc.fft.rfft(x), "rfft takes a real tensor"),
        (lambda x: graphc.fft.irfft(x[:, :1]), "0 points"),
        (lambda x: graphc.fft.ihfftn(x), "ihfftn takes a real tensor"),
        (lambda x: graphc.fft.hfftn(x, dim=()), "hfftn needs at least one dimension"),
        (lambda x: graphc.fft.fftn(x, s=(2,), dim=(0, 1)), "1 sizes for 2 dimensions"),
        (lambda x: graphc.fft.fft2(x, dim=(0, 0)), "listed twice"),
        (lambda x: graphc.fft.fft(x[0, 0]), "with dimensions"),
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(graphc.errors.GraphcError, match=message):
        call(graphc.tensor(C))


@pytest.mark.parametrize(("name", "dim"), [("fft", -1), ("rfft", -1), ("hfft", 0), ("fftn", (0,)), ("irfft2", (0,))])
def test_a_tensor_without_dimensions_has_no_dimension_of_that_number(name: str, dim: int | tuple[int, ...]):
    with pytest.raises(IndexError, match="dimension"):
        getattr(graphc.fft, name)(graphc.tensor(1.0), dim=dim)


def _energy_gradient(x: graphc.Tensor) -> graphc.Tensor:
    x = x.detach().requires_grad_()
    return graphc.autograd.grad(graphc.fft.rfft(x).abs().pow(2).sum(), [x])[0]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: graphc.fft.rfft(x),
        lambda x: graphc.fft.fft(x, norm="ortho"),
        lambda x: graphc.fft.irfft(graphc.fft.rfft(x), x.shape[-1]),
        lambda x: graphc.fft.irfft(x + 0j),
        lambda x: graphc.stft(x, 4, return_complex=True),
        _energy_gradient,
    ],
    ids=["rfft", "fft", "and back", "irfft", "stft", "gradient"],
)
def test_of_a_named_number_of_points_there_is_a_program_for_each_number(function):
    batch, points = graphc.Dim("batch", max=8), graphc.Dim("points", max=64)
    fast = graphc.compile(function, dims=[(batch, points)])
    for shape in ((3, 7), (3, 6), (2, 12), (5, 6)):
        x = graphc.tensor(numbers(*shape).real)
        np.testing.assert_allclose(fast(x).numpy(), function(x).numpy(), rtol=1e-10, atol=1e-12)


def test_files_hold_transforms_of_a_named_number_of_points(tmp_path):
    points = graphc.Dim("points", max=64)
    x = graphc.tensor(numbers(3, 7).real)
    graphc.export(lambda x: graphc.fft.rfft(x).abs(), x, path=tmp_path / "f.gcm", dims=[(None, points)])
    loaded = graphc.load(tmp_path / "f.gcm")
    for count in (7, 4):
        np.testing.assert_allclose(loaded(x[:, :count]), np.abs(np.fft.rfft(x.numpy()[:, :count])), rtol=1e-10)
