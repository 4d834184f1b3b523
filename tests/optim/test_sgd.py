"""SGD in single precision, its state, its update, its errors."""

from __future__ import annotations

import pytest

import graphc
from graphc.optim import SGD
from tests.optim.compare import parameters, steps_agree


def test_in_single_precision_as_torch():
    steps_agree("SGD", dtype="float32", rtol=1e-5, lr=0.1, momentum=0.9, weight_decay=0.01)


def test_state_is_only_what_is_needed():
    p = parameters()[0]
    assert SGD([p], lr=0.1).init_state(p) == {}
    assert set(SGD([p], lr=0.1, momentum=0.9).init_state(p)) == {"momentum_buffer"}
    assert set(SGD([p], lr=0.1, momentum=0.9, dampening=0.1).init_state(p)) == {"momentum_buffer", "step"}


def test_update_is_pure():
    p = parameters()[0]
    optimizer = SGD([p], lr=0.1, momentum=0.9)
    state = optimizer.init_state(p)
    before, gradient = p.tolist(), graphc.ones(3, 4, dtype=graphc.float64)
    with graphc.no_grad():
        new, new_state = optimizer.update(p, gradient, state, optimizer.hyper(optimizer.param_groups[0]))
    assert p.tolist() == before and not state["momentum_buffer"].numpy().any()
    assert new is not p and new_state["momentum_buffer"].tolist() == gradient.tolist()


def test_numbers_may_be_tensors():
    p = parameters()[0]
    optimizer = SGD([p], lr=0.1, momentum=0.9, weight_decay=0.01)
    hyper = optimizer.hyper(optimizer.param_groups[0])
    gradient = graphc.ones(3, 4, dtype=graphc.float64)
    with graphc.no_grad():
        plain, _ = optimizer.update(p, gradient, optimizer.init_state(p), hyper)
        traced = hyper | {name: graphc.tensor(hyper[name]) for name in optimizer.schedulable}
        tensors, _ = optimizer.update(p, gradient, optimizer.init_state(p), traced)
    assert plain.allclose(tensors, rtol=1e-6)


def test_errors():
    p = parameters()
    with pytest.raises(ValueError, match="lr must be 0 or more, got -1"):
        SGD(p, lr=-1)
    with pytest.raises(ValueError, match=r"nesterov does not work with momentum 0.0 and dampening 0.0"):
        SGD(p, nesterov=True)
    with pytest.raises(ValueError, match="nesterov"):
        SGD(p, momentum=0.9, dampening=0.1, nesterov=True)
