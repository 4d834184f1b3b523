"""Losses of classification: types of targets, large numbers, old flags, errors."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
import graphc as gc
import graphc.nn.functional as F
from graphc import nn
from graphc.errors import AttributeValueError, DTypeError, IndexRangeError, ShapeError
from graphc.nn import LinearCrossEntropyOptions as Options
from tests.nn.compare import floats, tensor


def test_small_integer_types_are_class_numbers():
    x = tensor(floats(3, 4))
    expected = F.cross_entropy(x, graphc.tensor([0, 3, 1])).item()
    for dtype in ("uint8", "int8", "int32"):
        assert F.cross_entropy(x, tensor(np.array([0, 3, 1], dtype))).item() == expected


def test_cross_entropy_of_large_logits_is_finite():
    x = graphc.tensor([[1000.0, -1000.0]]).requires_grad_()
    loss = F.cross_entropy(x, graphc.tensor([1]))
    loss.backward()
    assert loss.item() == 2000.0
    np.testing.assert_array_equal(x.grad.numpy(), [[1.0, -1.0]])


@pytest.mark.parametrize(
    ("target", "error", "message"),
    [
        (np.array([0, 5, 1]), IndexRangeError, r"target 5 \(at \[1\]\) is out of range[\s\S]*0 to 4, -100"),
        (np.array([0, -1, 1]), IndexRangeError, r"target -1 \(at \[1\]\) is out of range"),
        (np.array([[0], [1], [2]]), ShapeError, r"targets have shape \[3, 1\], the input \[3, 5\] needs \[3\]"),
        (np.zeros(3), ShapeError, "probabilities"),
        (np.zeros(3, bool), DTypeError, "class indices must be integers, got bool"),
    ],
)
def test_wrong_targets(target: np.ndarray, error: type, message: str):
    with pytest.raises(error, match=message):
        F.cross_entropy(tensor(floats(3, 5)), tensor(target))


def test_wrong_options():
    x, y = tensor(floats(3, 5)), graphc.tensor([0, 1, 2])
    with pytest.raises(AttributeValueError, match="reduction 'average' is not known"):
        F.cross_entropy(x, y, reduction="average")
    with pytest.raises(AttributeValueError, match="label_smoothing 2"):
        F.cross_entropy(x, y, label_smoothing=2)
    with pytest.raises(ShapeError, match=r"weights have shape \[2\], expected \[5\]"):
        F.cross_entropy(x, y, weight=graphc.ones(2))
    with pytest.raises(ShapeError, match="no dimension for classes"):
        F.nll_loss(graphc.tensor(1.0), graphc.tensor(0))


@pytest.mark.parametrize(
    ("flags", "reduction"),
    [
        ({"size_average": True}, "mean"),
        ({"size_average": False}, "sum"),
        ({"reduce": False}, "none"),
        ({"reduce": True, "size_average": False}, "sum"),
    ],
)
def test_flags_of_old_programs(flags: dict, reduction: str):
    x, y = tensor(floats(3, 5)), graphc.tensor([0, 1, 2])
    with pytest.warns(UserWarning, match="deprecated"):
        old = F.cross_entropy(x, y, **flags)
    np.testing.assert_array_equal(old.numpy(), F.cross_entropy(x, y, reduction=reduction).numpy())


def test_binary_cross_entropy_is_finite_at_the_ends():
    loss = F.binary_cross_entropy(graphc.tensor([0.0, 1.0]), graphc.tensor([1.0, 1.0]), reduction="none")
    np.testing.assert_array_equal(loss.numpy(), [100.0, 0.0])


def test_gradient_of_logits_at_zero():
    x = graphc.zeros(2).requires_grad_()
    F.binary_cross_entropy_with_logits(x, graphc.tensor([0.0, 1.0]), reduction="sum").backward()
    np.testing.assert_allclose(x.grad.numpy(), [0.5, -0.5])


@pytest.mark.parametrize("name", ["binary_cross_entropy", "binary_cross_entropy_with_logits"])
def test_binary_targets_have_the_inputs_shape(name: str):
    with pytest.raises(ShapeError, match=r"the input has shape \[2, 1\], the target \[2\]"):
        getattr(F, name)(graphc.zeros(2, 1), graphc.zeros(2))


def test_kl_div_of_zero_probability_is_zero():
    loss = F.kl_div(graphc.tensor([-1.0, -2.0]), graphc.tensor([0.0, 1.0]), reduction="none")
    np.testing.assert_array_equal(loss.numpy(), [0.0, 2.0])


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


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_binary_cross_entropy_of_saturated_probabilities_has_finite_gradients(compiled: bool):
    """In f32 the sigmoid of 20 is 1 and that of -200 is 0, where the derivatives of the logarithms are infinite."""
    function = gc.compile(F.binary_cross_entropy) if compiled else F.binary_cross_entropy
    logits = gc.tensor([20.0, -200.0, 0.0, -200.0, 200.0], requires_grad=True)
    loss = function(gc.sigmoid(logits), gc.tensor([1.0, 1.0, 1.0, 0.0, 0.0]), reduction="none")
    assert loss.tolist() == pytest.approx([0.0, 100.0, np.log(2), 0.0, 100.0])
    (gradient,) = gc.autograd.grad(loss.sum(), [logits])
    assert gradient.tolist() == [0.0, 0.0, -0.5, 0.0, 0.0]


def test_binary_cross_entropy_divides_by_no_less_than_pytorch():
    x = gc.tensor([0.0, 0.0, 1.0, 1.0, 0.25], dtype=gc.float64, requires_grad=True)
    target = gc.tensor([0.0, 1.0, 0.0, 1.0, 1.0], dtype=gc.float64, requires_grad=True)
    loss = F.binary_cross_entropy(x, target, reduction="sum")
    (first,) = gc.autograd.grad(loss, [x], create_graph=True)
    assert first.tolist() == [0.0, -1e12, 1e12, 0.0, -4.0]
    second, mixed = gc.autograd.grad(first.sum(), [x, target])
    assert second.tolist() == [1e12, 1e12, 1e12, 1e12, 16.0]
    assert mixed.tolist() == pytest.approx([-1e12, -1e12, -1e12, -1e12, -16 / 3])


def test_binary_cross_entropy_names_nan():
    target = gc.zeros(3)
    with pytest.raises(AttributeValueError, match="1 of 3 elements of the input are NaN"):
        F.binary_cross_entropy(gc.tensor([0.5, float("nan"), 2.0]), target)
    with pytest.raises(AttributeValueError, match=r"outside of 0\.\.1"):
        F.binary_cross_entropy(gc.tensor([0.5, 0.0, 2.0]), target)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_a_variance_below_the_least_one_has_the_gradient_of_the_least_one(compiled: bool):
    function = gc.compile(F.gaussian_nll_loss) if compiled else F.gaussian_nll_loss
    variance = gc.tensor([1e-9, 1.0, float("inf")], dtype=gc.float64, requires_grad=True)
    loss = function(gc.ones(3, dtype=gc.float64), gc.zeros(3, dtype=gc.float64), variance, reduction="none")
    assert loss[0].item() == pytest.approx((np.log(1e-6) + 1e6) / 2)
    loss.sum().backward()
    assert variance.grad.tolist() == pytest.approx([(1e6 - 1e12) / 2, 0.0, 0.0])
