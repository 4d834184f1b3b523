"""The cross entropy of a linear layer against PyTorch's, whole and in parts of the batch."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
import graphc.nn.functional as F
from graphc import nn
from graphc.errors import AttributeValueError, ShapeError
from graphc.nn import LinearCrossEntropyOptions as Options

RANDOM = np.random.default_rng(14)
X, W, B, WEIGHT = (RANDOM.normal(size=s) for s in ((7, 3), (5, 3), (5,), (5,)))
TARGET = RANDOM.integers(0, 5, 7)


def given(library, *arrays):
    return [library.tensor(a, requires_grad=True) for a in arrays]


def losses(library, target, **options):
    """The loss and the gradients of input, weight and bias."""
    x, w, b = given(library, X, W, B)
    weight = library.tensor(np.abs(WEIGHT))
    loss = library.nn.functional.linear_cross_entropy(
        x, w, library.tensor(target), linear_bias=b, weight=weight, **options
    )
    weights = library.tensor(np.cos(np.arange(loss.numel())).reshape(tuple(loss.shape)))
    return [t.detach().numpy() for t in (loss, *library.autograd.grad(loss, (x, w, b), weights))]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("options", [{}, {"ignore_index": 2}, {"label_smoothing": 0.1}])
@pytest.mark.parametrize("rows", [None, 3])
def test_class_numbers_as_torch(torch, reduction: str, options: dict, rows: int | None):
    expected = losses(torch, TARGET, reduction=reduction, **options)
    parts = None if rows is None else Options(batch_chunk_size=rows)
    for a, b in zip(losses(gc, TARGET, reduction=reduction, options=parts, **options), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def test_probabilities_as_torch(torch):
    shares = np.abs(RANDOM.normal(size=(7, 5)))
    for a, b in zip(losses(gc, shares, options=Options()), losses(torch, shares), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def test_weights_with_further_dimensions_and_inputs_without_a_batch(torch):
    wide, bias = RANDOM.normal(size=(5, 2, 4, 3)), RANDOM.normal(size=(5, 2, 4))
    targets = RANDOM.integers(0, 5, (7, 2, 4))
    result, expected = (
        lib.nn.functional.linear_cross_entropy(
            lib.tensor(X), lib.tensor(wide), lib.tensor(targets), linear_bias=lib.tensor(bias), reduction="none"
        )
        for lib in (gc, torch)
    )
    np.testing.assert_allclose(result.numpy(), expected.numpy())
    one = F.linear_cross_entropy(gc.tensor(X[0]), gc.tensor(W), gc.tensor(TARGET[0]), options=Options())
    assert one.shape == () and one.allclose(F.cross_entropy(gc.tensor(W @ X[0]), gc.tensor(TARGET[0])))


def test_parts_are_compiled_and_hold_fewer_results_at_a_time():
    x, w = gc.randn(64, 4, requires_grad=True), gc.randn(1000, 4)
    target = gc.randint(0, 1000, (64,))

    def step(x, options):
        (grad,) = gc.autograd.grad(F.linear_cross_entropy(x, w, target, options=options), x)
        return grad

    whole, parts = (gc.compile(lambda x, o=o: step(x, o)) for o in (None, Options(batch_chunk_size=8)))
    assert whole(x).allclose(parts(x), atol=1e-6)
    assert 4 * parts.plan(x).arena < whole.plan(x).arena


def test_rows_are_chosen_by_shapes():
    assert Options(chunking_method="aspect_ratio").rows(1024, 64, 6400) == 16
    assert Options().rows(1024, 64, 6400) == 8
    assert Options(chunking_method="aspect_ratio:100").rows(1024, 64, 6400) == 1
    assert Options(chunking_method=None).rows(1024, 64, 6400) == 1024
    assert Options(batch_chunk_size=5).rows(1024, 64, 6400) == 5


@pytest.mark.parametrize("out_features", [(), (2, 3)])
@pytest.mark.parametrize("bias", [True, False])
def test_a_layer_has_the_names_of_torch(torch, out_features: tuple[int, ...], bias: bool):
    theirs = torch.nn.LinearCrossEntropyLoss(3, 5, out_features=out_features, bias=bias).double()
    ours = nn.LinearCrossEntropyLoss(3, 5, out_features=out_features, bias=bias).double()
    ours.load_state_dict(theirs.state_dict())
    targets = RANDOM.integers(0, 5, (7, *out_features))
    result, expected = (m(lib.tensor(X), lib.tensor(targets)) for m, lib in ((ours, gc), (theirs, torch)))
    np.testing.assert_allclose(result.detach().numpy(), expected.detach().numpy())
    assert "num_classes=5" in repr(ours)


def test_wrong_calls_are_named():
    x, w, t = gc.tensor(X), gc.tensor(W), gc.tensor(TARGET)
    for call, error, message in (
        (lambda: F.linear_cross_entropy(x.unsqueeze(0), w, t), ShapeError, "input and weight have shapes"),
        (lambda: F.linear_cross_entropy(x, w[:, :2], t), ShapeError, "differ in their last dimension"),
        (lambda: F.linear_cross_entropy(x, w, t, linear_bias=t), ShapeError, "the bias has shape"),
        (lambda: F.linear_cross_entropy(x[0], w.unsqueeze(1), t), ShapeError, "needs a batch"),
        (lambda: F.linear_cross_entropy(x, w, x @ w.mT, ignore_index=0), AttributeValueError, "probabilities"),
        (lambda: F.linear_cross_entropy(x, w, t[:3], options=Options(batch_chunk_size=2)), ShapeError, "targets have"),
        (lambda: nn.LinearCrossEntropyLoss(3, 5, weight=gc.ones(3)), ShapeError, r"expected \[5\]"),
        (lambda: nn.LinearCrossEntropyLoss(3, 5, label_smoothing=2.0), AttributeValueError, "not between"),
        (lambda: Options(batch_chunk_size=0), AttributeValueError, "batch_chunk_size is 0"),
        (lambda: Options(chunking_method="some"), AttributeValueError, "'some' is not known"),
        (lambda: Options(acc_policy="best"), AttributeValueError, "'best' is not known"),
    ):
        with pytest.raises(error, match=message):
            call()
