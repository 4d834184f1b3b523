"""The backward pass: accumulation, hooks, higher orders, errors."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import graphc
from graphc.autograd import backward, grad
from graphc.errors import ArgumentError, GradientError, ShapeError


def leaf(*values: float) -> graphc.Tensor:
    return graphc.tensor(list(values), dtype=graphc.float32, requires_grad=True)


def test_gradients_accumulate():
    x = leaf(1, 2)
    for _ in range(3):
        (x * x).sum().backward()
    assert x.grad.tolist() == [6, 12]
    assert x.grad.is_leaf and not x.grad.requires_grad


def test_gradient_memory_belongs_to_the_leaf():
    x, y = leaf(1, 2), leaf(3, 4)
    seed = graphc.ones(2)
    (x + y).backward(seed)
    x.grad.add_(1)
    assert y.grad.tolist() == [1, 1]
    assert seed.tolist() == [1, 1]
    x.sum().backward()
    x.grad += 1
    assert x.grad.tolist() == [4, 4]


def test_shared_subexpressions_are_visited_once():
    x = leaf(2)
    y = x
    for _ in range(40):
        y = y + y
    y.backward(graphc.ones(1))
    assert x.grad.item() == 2**40


def test_deep_graphs_do_not_recurse():
    x = leaf(1)
    y = x
    for _ in range(5000):
        y = y + 1
    y.backward()
    assert x.grad.item() == 1


def test_only_scalars_have_an_implied_gradient():
    x = leaf(1, 2)
    with pytest.raises(GradientError, match="implied only for a scalar output; output 0 has shape \\[2\\]"):
        (x * 2).backward()
    (x * 2).backward(graphc.tensor([1.0, 10.0]))
    assert x.grad.tolist() == [2, 20]
    with pytest.raises(ShapeError, match="gradient 0 has shape \\[3\\]"):
        (x * 2).backward(graphc.ones(3))
    with pytest.raises(ArgumentError, match="must be a tensor or None"):
        (x * 2).backward(1.0)


def test_a_result_without_history_has_no_gradient():
    with pytest.raises(GradientError, match="output 0 does not require gradients"):
        graphc.ones(1).backward()
    with graphc.no_grad():
        y = leaf(1) * 2
    with pytest.raises(GradientError):
        y.backward()


def test_saved_values_are_freed():
    x = leaf(1, 2)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [4, 8]
    with pytest.raises(GradientError, match="run backward once"):
        y.backward()
    z = x.sum()  # Nothing is saved, so nothing is missing.
    z.backward()
    z.backward()


def test_grad_returns_instead_of_accumulating():
    x, y = leaf(2), leaf(3)
    gx, gy = grad((x * y * y).sum(), [x, y])
    assert (gx.item(), gy.item()) == (9, 12)
    assert x.grad is None
    with pytest.raises(GradientError, match="do not depend on input 1"):
        grad(x.sum(), [x, y])
    assert grad(x.sum(), [x, y], allow_unused=True)[1] is None
    assert grad(x.sum(), [x, y], materialize_grads=True)[1].tolist() == [0]
    with pytest.raises(GradientError, match="input 0 does not require"):
        grad(x.sum(), [graphc.ones(1)])


def test_grad_with_respect_to_a_result_in_the_middle():
    x = leaf(2)
    y = x * 3
    z = y * y
    assert grad(z, y)[0].item() == 12
    z = y * y + x
    gy, gx = grad(z.sum(), [y, x])
    assert (gy.item(), gx.item()) == (12, 37)


def test_parts_that_lead_to_no_input_are_skipped():
    class Explosive(graphc.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            raise AssertionError("not needed")

    x, y = leaf(1), leaf(1)
    assert grad((x * 2 + Explosive.apply(y)).sum(), x)[0].item() == 2


def test_higher_orders():
    x = leaf(2)
    (g,) = grad((x**4).sum(), x, create_graph=True)
    (h,) = grad(g.sum(), x, create_graph=True)
    (k,) = grad(h.sum(), x)
    assert (g.item(), h.item(), k.item()) == (32, 48, 48)
    y = (x**3).sum()
    y.backward(create_graph=True)
    assert x.grad.requires_grad
    x.grad.sum().backward()
    assert x.grad.item() == 12 + 12


def test_backward_limited_to_inputs():
    x, y = leaf(2), leaf(3)
    z = x * y
    backward([z], inputs=[x])
    assert x.grad.item() == 3 and y.grad is None
    m = x * 2
    m.sum().backward(inputs=[m])
    with pytest.warns(UserWarning, match="not a leaf"):
        assert m.grad.item() == 1
    with pytest.raises(GradientError, match="must not be empty"):
        backward([z], inputs=[])


def test_several_outputs_with_weights():
    x = leaf(1, 2)
    backward([x * 2, x.sum()], [graphc.tensor([1.0, 2.0]), None])
    assert x.grad.tolist() == [3, 5]
    with pytest.raises(ArgumentError, match="as many gradients"):
        backward([x * 2, x.sum()], [None])


def test_broadcast_operands_get_gradients_of_their_shape():
    a, b = graphc.ones(3, 1, requires_grad=True), graphc.ones(4, requires_grad=True)
    (a * b).sum().backward()
    assert a.grad.tolist() == [[4]] * 3
    assert b.grad.tolist() == [3] * 4


def test_hooks_in_order():
    x = leaf(1)
    y = x * 2
    z = y * 3
    seen = []
    y.register_hook(lambda g: seen.append(("first", g.item())))
    y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: seen.append(("third", g.item())))
    y.retain_grad()
    y.grad_fn.register_prehook(lambda gs: seen.append(("pre", gs[0].item())))
    y.grad_fn.register_hook(lambda gi, go: seen.append(("post", gi[0].item(), go[0].item())))
    x.register_hook(lambda g: seen.append(("leaf", g.item())))
    x.register_post_accumulate_grad_hook(lambda t: seen.append(("after", t.grad.item())))
    z.backward()
    assert seen == [("first", 3), ("third", 30), ("pre", 30), ("post", 60, 30), ("leaf", 60), ("after", 60)]
    assert y.grad.item() == 30 and x.grad.item() == 60


def test_hooks_can_be_removed_and_must_fit():
    x = leaf(1)
    handle = x.register_hook(lambda g: g * 5)
    handle.remove()
    (x * 1).backward()
    assert x.grad.item() == 1
    x.register_hook(lambda g: graphc.ones(7))
    with pytest.raises(GradientError, match="hook returned \\[7\\]"):
        (x * 1).backward()
    y = leaf(1) * 1
    y.grad_fn.register_hook(lambda gi, go: (None, None, None))
    with pytest.raises(GradientError, match="returned 3 gradients"):
        y.backward()


def test_hooks_set_before_a_write_stay_with_the_old_value():
    x = leaf(2)
    y = x * 1
    seen = []
    y.register_hook(lambda g: seen.append(g.item()))
    y.mul_(5)
    y.backward()
    assert seen == [5]
    assert x.grad.item() == 5


def test_retained_gradients_follow_a_write():
    x = leaf(2)
    y = x * 1
    y.retain_grad()
    y.mul_(5)
    (y * 3).backward()
    assert y.grad.item() == 3


def test_grad_of_a_result_warns():
    y = leaf(1) * 2
    with pytest.warns(UserWarning, match="only after retain_grad"):
        assert y.grad is None


def test_a_leaf_without_gradients_is_left_alone():
    x, w = leaf(1), graphc.ones(1)
    (x * w).backward()
    assert w.grad is None


def test_a_network_in_plain_tensors_agrees_with_pytorch(torch):
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(s).astype(np.float32) for s in ((8, 5), (5, 7), (7,), (7, 3))]

    def loss(lib, x, w, b, v):
        h = lib.tanh(x @ w + b)
        z = h @ v
        z = z - z.mean(0, keepdim=True)
        return (lib.log_softmax(z, 1)[lib.arange(8), lib.tensor([0, 1, 2, 0, 1, 2, 0, 1])] * -1).mean()

    ours = [graphc.tensor(a, requires_grad=True) for a in arrays]
    theirs = [torch.tensor(a, requires_grad=True) for a in arrays]
    a, b = loss(graphc, *ours), loss(torch, *theirs)
    assert a.item() == pytest.approx(b.item(), rel=1e-6)
    a.backward()
    b.backward()
    for p, q in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-5, atol=1e-6)


def test_batched_gradients_are_stacked():
    x = graphc.tensor([1.0, 2.0, 3.0], requires_grad=True)
    unused = graphc.ones(1, requires_grad=True)
    y, z = x * x, x.sum()
    seeds = graphc.eye(3)
    both = grad((y, z), (x, unused), (seeds, seeds[0]), is_grads_batched=True, allow_unused=True)
    assert both[0].tolist() == [[3, 1, 1], [0, 4, 0], [0, 0, 6]] and both[1] is None
    with pytest.raises(GradientError, match="freed"):
        grad(y, x, seeds, is_grads_batched=True)
    for wrong in (None, graphc.tensor(1.0), graphc.ones(0, 3)):
        with pytest.raises(ArgumentError, match="is_grads_batched"):
            grad((x * x).sum(), x, wrong, is_grads_batched=True)


def test_batched_gradients_can_be_differentiated():
    x = graphc.tensor([1.0, 2.0], requires_grad=True)
    (found,) = grad(x**3, x, graphc.eye(2), is_grads_batched=True, create_graph=True)
    found.sum().backward()
    assert x.grad.tolist() == [6, 12]


def test_a_pass_that_has_ended_holds_nothing():
    x = leaf(1, 2)
    kept = weakref.ref((y := (x * x).sum()).grad_fn)
    gc.disable()
    try:
        y.backward()
        del y
        assert kept() is None
    finally:
        gc.enable()
