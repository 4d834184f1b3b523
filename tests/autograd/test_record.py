"""Records of ops on the tape, and checks of saved tensors."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.autograd.record import OpNode, Saved, Snapshot, real
from graphc.errors import GradientError


def test_only_what_has_a_gradient_is_recorded():
    x = graphc.ones(2, requires_grad=True)
    i = graphc.tensor([0, 1])
    node = x[i].grad_fn
    assert isinstance(node, OpNode) and node.op.name == "gather"
    assert [e is not None for e in node.edges] == [True, False]
    assert (x > 0).grad_fn is None


def test_release_frees_data_and_keeps_shapes():
    x = graphc.ones(2, 3, requires_grad=True)
    node = (x * x).grad_fn
    node.release()
    assert [s.shape for s in node.operands] == [(2, 3), (2, 3)]
    with pytest.raises(GradientError, match="freed"):
        node.run([graphc.ones(2, 3)])


def test_saved_tensors_check_when_they_are_read():
    x = graphc.ones(2)
    saved = Saved.of(Snapshot(x, None, "an operand of test"))
    assert saved.shape == (2,) and saved.dtype is graphc.float32
    assert np.shares_memory(real(saved).numpy(), x.numpy())
    x.add_(1)
    assert saved.shape == (2,)
    with pytest.raises(GradientError, match=r"an operand of test, f32\[2\], is at version 1, not 0"):
        saved + 1


def test_a_saved_tensor_is_at_its_place_in_the_graph():
    x = graphc.ones(2, requires_grad=True)
    y = x * 2
    (s, _) = y.grad_fn.operands
    assert Saved.of(s).requires_grad
    (Saved.of(s) * 3).sum().backward()
    assert x.grad.tolist() == [3, 3]
    assert real(x) is x
