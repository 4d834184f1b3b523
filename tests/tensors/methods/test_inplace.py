"""Methods that write: memory, versions, element types, autograd."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.autograd import gradcheck
from graphc.errors import ArgumentError, DTypeError, GradientError, ShapeError


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("add_", (2,), [3.0, 6.0]),
        ("sub_", (1,), [0.0, 3.0]),
        ("mul_", (3,), [3.0, 12.0]),
        ("div_", (2,), [0.5, 2.0]),
        ("pow_", (2,), [1.0, 16.0]),
        ("clamp_", (2, 3), [2.0, 3.0]),
        ("clamp_min_", (2,), [2.0, 4.0]),
        ("clamp_max_", (2,), [1.0, 2.0]),
        ("zero_", (), [0.0, 0.0]),
        ("fill_", (7,), [7.0, 7.0]),
        ("neg_", (), [-1.0, -4.0]),
        ("sqrt_", (), [1.0, 2.0]),
        ("copy_", ([5, 6],), [5.0, 6.0]),
        ("remainder_", (3,), [1.0, 1.0]),
    ],
)
def test_values_are_written_to_the_same_memory(name, arguments, expected):
    x = graphc.tensor([1.0, 4.0])
    memory = x.numpy()
    assert getattr(x, name)(*arguments) is x
    assert memory.tolist() == expected
    assert x._version == 1


def test_update_rules_of_optimizers():
    x = graphc.tensor([1.0, 2.0])
    a, b = graphc.tensor([2.0, 3.0]), graphc.tensor([4.0, 6.0])
    x.addcmul_(a, b, value=0.5)
    assert x.tolist() == [5, 11]
    x.addcdiv_(b, a, value=-1)
    assert x.tolist() == [3, 9]
    x.lerp_(a, 0.5)
    assert x.tolist() == [2.5, 6]
    x.add_(a, alpha=-1)
    assert x.tolist() == [0.5, 3]


def test_what_is_copied_gets_a_gradient_and_keeps_its_own_hooks():
    source = graphc.tensor([1.0, 2.0]).requires_grad_()
    kept = graphc.zeros(2).copy_(source)
    (kept * 3).sum().backward()
    assert kept.requires_grad and not kept.is_leaf
    assert source.grad.tolist() == [3, 3] and source.is_leaf
    source.grad = None
    product = source * 2
    kept = graphc.zeros(2).copy_(product)
    kept.register_hook(lambda g: g * 10)
    (kept + product).sum().backward()
    assert source.grad.tolist() == [22, 22]
    point = graphc.tensor(5.0).requires_grad_()
    graphc.zeros(()).fill_(point).backward()
    assert point.grad.item() == 1


def test_limits_in_place_have_names():
    x = graphc.tensor([-2.0, 0.0, 2.0])
    assert x.clone().clamp_(min=-1).tolist() == [-1, 0, 2]
    assert x.clone().clip_(max=1).tolist() == [-2, 0, 1]
    assert x.clone().pow_(exponent=2).tolist() == [4, 0, 4]
    assert graphc.tensor([1.25, 2.56]).round_(decimals=1).numpy() == pytest.approx([1.2, 2.6])


def test_operators_in_place():
    x = y = graphc.tensor([8, 9])
    x += 1
    x *= 2
    x -= 2
    x //= 3
    assert y.tolist() == [5, 6]


def test_results_must_fit():
    x = graphc.tensor([1, 2])
    with pytest.raises(DTypeError, match="f32 cannot be written to a i64"):
        x += 0.5
    with pytest.raises(ShapeError, match="cannot be written"):
        graphc.ones(2).add_(graphc.ones(3, 2))
    y = graphc.zeros(2, dtype=graphc.float64)
    y.add_(graphc.ones(2))
    assert y.dtype is graphc.float64
    z = graphc.zeros(2, dtype=graphc.int32)
    z.copy_(graphc.tensor([1.7, -1.7]))
    assert z.tolist() == [1, -1]


def test_leaves_that_require_gradients_are_protected():
    x = graphc.ones(2, requires_grad=True)
    with pytest.raises(GradientError, match="a leaf tensor that requires gradients"):
        x.add_(1)
    with pytest.raises(GradientError, match="a view of a leaf"):
        x[:1].add_(1)
    with graphc.no_grad():
        x.add_(1)
        x[0] = 5
    assert x.tolist() == [5, 2]
    assert x.is_leaf


@pytest.mark.parametrize(
    "change",
    [
        lambda y: y.mul_(y.clone()),
        lambda y: y.exp_(),
        lambda y: y.relu_(),
        lambda y: y[0].mul_(3),
        lambda y: y.t()[1:].mul_(y.t()[:-1].clone()),
        lambda y: y.__setitem__((slice(None), 0), y[:, 1] * 2),
        lambda y: y.view(-1)[2:5].copy_(y.view(-1)[:3]),
        lambda y: y.__setitem__(graphc.tensor([0, 2]), y[1].clone() ** 2),
        lambda y: y.__setitem__(y > 0, 0.5),
        lambda y: y.masked_fill_(y > 0, 2.0),
        lambda y: y.index_add_(0, graphc.tensor([0, 0]), y[:2] * 2),
        lambda y: y.scatter_add_(1, graphc.tensor([[0, 0]]), y[:1, :2].clone() ** 2),
        lambda y: y.tril_(),
        lambda y: y.addcmul_(y.clone(), y.clone(), value=0.3),
    ],
)
def test_gradients_through_writes(change):
    def function(x):
        y = x * 1
        change(y)
        return y * y

    x = graphc.from_numpy(np.random.default_rng(3).standard_normal((3, 4))).requires_grad_()
    assert gradcheck(function, (x,))


def test_a_tensor_without_history_takes_that_of_what_is_written():
    w = graphc.tensor([2.0, 3.0], requires_grad=True)
    out = graphc.zeros(3, 2)
    for i in range(3):
        out[i] = w * i
    assert out.requires_grad
    out.sum().backward()
    assert w.grad.tolist() == [3, 3]


def test_other_views_follow_a_write():
    w = graphc.tensor([2.0, 3.0], requires_grad=True)
    base = graphc.zeros(2, 2)
    row = base[0]
    assert not row.requires_grad
    base.mul_(0).add_(w)
    assert row.requires_grad
    (row * 2).sum().backward()
    assert w.grad.tolist() == [2, 2]


def test_values_needed_for_gradients_must_not_be_overwritten():
    x = graphc.ones(2, requires_grad=True)
    y = x.exp()
    y.add_(1)
    with pytest.raises(GradientError, match=r"modified by an in-place operation: a result of exp.*version 1, not 0"):
        y.sum().backward()
    y = x * 2
    z = y * y
    y.zero_()
    with pytest.raises(GradientError, match="an operand of mul"):
        z.sum().backward()
    y = x * 2
    y.mul_(y)
    with pytest.raises(GradientError, match="modified by an in-place"):
        y.sum().backward()
    y = x + 1
    y += 1
    y.sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_distributions():
    graphc.manual_seed(0)
    x = graphc.empty(20_000)
    x.uniform_(-1, 3)
    assert x.min().item() >= -1 and x.max().item() < 3
    assert abs(x.mean().item() - 1) < 0.05
    x.normal_(2, 0.5)
    assert abs(x.mean().item() - 2) < 0.02 and abs(x.std().item() - 0.5) < 0.02
    x.bernoulli_(0.25)
    assert set(x.numpy().tolist()) == {0.0, 1.0} and abs(x.mean().item() - 0.25) < 0.02
    x.exponential_(2.0)
    assert abs(x.mean().item() - 0.5) < 0.02
    k = graphc.empty(1000, dtype=graphc.int64).random_(2, 5)
    assert set(k.tolist()) == {2, 3, 4}
    with pytest.raises(ArgumentError, match="must be 0 or more"):
        x.normal_(0, -1)


def test_indexed_writes():
    x = graphc.zeros(3, 3)
    x.index_fill_(1, graphc.tensor([0, 2]), 4.0)
    assert x.tolist() == [[4, 0, 4]] * 3
    x.index_copy_(0, graphc.tensor([2]), graphc.ones(1, 3))
    assert x[2].tolist() == [1, 1, 1]
    x.index_put_((graphc.tensor([0, 0]), graphc.tensor([1, 1])), graphc.tensor([1.0, 2.0]), accumulate=True)
    assert x[0, 1].item() == 3
    x.scatter_(1, graphc.tensor([[0]]), 9.0)
    assert x[0].tolist() == [9, 3, 4]


def test_more_distributions():
    graphc.manual_seed(5)
    x = graphc.empty(200_000, dtype=graphc.float64)
    logs = np.log(x.log_normal_(0.5, 0.25).numpy())
    assert abs(logs.mean() - 0.5) < 0.005 and abs(logs.std() - 0.25) < 0.005
    tries = x.geometric_(0.3).numpy()
    assert tries.min() == 1 and (tries == np.floor(tries)).all()
    assert abs(tries.mean() - 1 / 0.3) < 0.05 and abs((tries == 1).mean() - 0.3) < 0.01
    assert graphc.empty(10, dtype=graphc.int64).geometric_(0.5).dtype is graphc.int64
    low, middle, high = np.quantile(x.cauchy_(2.0, 3.0).numpy(), [0.25, 0.5, 0.75])
    assert abs(middle - 2) < 0.1 and abs(low + 1) < 0.1 and abs(high - 5) < 0.1
    for wrong in (lambda: x.log_normal_(std=0), lambda: x.geometric_(1.0), lambda: x.cauchy_(sigma=0)):
        with pytest.raises(ArgumentError):
            wrong()


@pytest.mark.parametrize("name", ["log_normal_", "cauchy_"])
def test_more_distributions_compiled(name: str):
    draw = lambda x: getattr(x * 1, name)()  # noqa: E731
    graphc.manual_seed(2)
    eager = draw(graphc.ones(50))
    graphc.manual_seed(2)
    np.testing.assert_allclose(graphc.compile(draw)(graphc.ones(50)).numpy(), eager.numpy(), 2e-5)
