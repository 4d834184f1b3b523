"""Singular values from products with random vectors, beside those of the whole matrix."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc import linalg
from graphc.base.errors import AttributeValueError

RANDOM = np.random.default_rng(13)
LEFT, RIGHT = RANDOM.normal(size=(2, 9, 3)), RANDOM.normal(size=(2, 3, 7))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("x", [LEFT @ RIGHT, (LEFT @ RIGHT).swapaxes(1, 2), LEFT @ RIGHT + 1j * LEFT @ RIGHT])
def test_a_matrix_of_low_rank_is_found_again(x: np.ndarray, compiled: bool):
    run = gc.compile(lambda a: gc.svd_lowrank(a, 4)) if compiled else lambda a: gc.svd_lowrank(a, 4)
    u, s, v = run(gc.tensor(x))
    assert (u.shape[-1], s.shape, v.shape[-1]) == (4, (2, 4), 4)
    np.testing.assert_allclose((u * s.unsqueeze(-2) @ v.mH).numpy(), x, atol=1e-10)
    np.testing.assert_allclose(s.numpy(), np.linalg.svd(x)[1][..., :4], atol=1e-10)


def test_largest_values_of_a_matrix_of_full_rank_are_nearly_found():
    values = 0.5 ** np.arange(20)
    basis = np.linalg.qr(RANDOM.normal(size=(20, 20)))[0]
    x = gc.tensor(basis * values @ basis.T)
    gc.manual_seed(0)
    np.testing.assert_allclose(gc.svd_lowrank(x, 8).S[:4].numpy(), values[:4], rtol=1e-3)
    near = gc.svd_lowrank(x + 3.0, 8, 4, gc.tensor(3.0))
    np.testing.assert_allclose(near.S[:4].numpy(), values[:4], rtol=1e-3)


def test_principal_components_are_those_of_rows_without_their_mean():
    x = gc.tensor(LEFT @ RIGHT + 5.0)
    centred = x - x.mean(-2, keepdim=True)
    np.testing.assert_allclose(gc.pca_lowrank(x, 3).S.numpy(), linalg.svdvals(centred)[..., :3].numpy())
    assert gc.pca_lowrank(x).S.shape == (2, 6) and gc.pca_lowrank(x[..., :4]).S.shape == (2, 4)
    np.testing.assert_allclose(gc.pca_lowrank(x, 4, False).S.numpy(), linalg.svdvals(x)[..., :4].numpy(), atol=1e-9)


def test_gradients_are_those_of_torch(torch):
    x = (LEFT @ RIGHT)[0]
    mine, theirs = gc.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    for library, given in ((gc, mine), (torch, theirs)):
        (library.arange(3.0) * library.svd_lowrank(given, 3)[1]).sum().backward()
    np.testing.assert_allclose(mine.grad.numpy(), theirs.grad.numpy(), atol=1e-9)


def test_counts_are_checked():
    for call in (
        lambda: gc.svd_lowrank(gc.ones(3, 3), -1),
        lambda: gc.pca_lowrank(gc.ones(3, 3), 4),
        lambda: gc.pca_lowrank(gc.ones(3, 3), niter=-1),
    ):
        with pytest.raises(AttributeValueError):
            call()
