"""Computed attributes: read, assigned, copied, pickled, removed."""

from __future__ import annotations

import copy
import pickle

import pytest

import graphc
from graphc import nn
from graphc.errors import ArgumentError
from graphc.nn.computed import compute_attribute, own_class, rules_of, stop_computing


class Doubled:
    """Twice a parameter."""

    def compute(self, module):
        return module.half_weight * 2

    def assign(self, module, value):
        with graphc.no_grad():
            module.half_weight.copy_(value / 2)


def layer() -> nn.Linear:
    made = nn.Linear(2, 2)
    made.half_weight = nn.Parameter(made.weight.detach() / 2)
    del made.weight
    compute_attribute(made, "weight", Doubled())
    return made


def test_reads_compute_and_assignments_invert():
    made = layer()
    made.weight = graphc.ones(2, 2)
    assert made.half_weight.tolist() == [[0.5, 0.5], [0.5, 0.5]]
    made(graphc.ones(1, 2)).sum().backward()
    assert made.half_weight.grad.tolist() == [[2, 2], [2, 2]]
    with pytest.raises(ArgumentError, match="is computed from parameters"):
        made.weight = 3
    assert isinstance(made, nn.Linear) and type(made).__name__ == "ParametrizedLinear" and "weight" in dir(made)


def test_compiled_code_computes_it_too():
    made = layer()
    fast = graphc.compile(made)
    x = graphc.randn(3, 2)
    assert graphc.allclose(fast(x), made(x), atol=1e-6)
    made.weight = graphc.ones(2, 2)
    assert graphc.allclose(fast(x), made(x), atol=1e-6)
    fast(x).sum().backward()
    grad = made.half_weight.grad
    made.half_weight.grad = None
    made(x).sum().backward()
    assert graphc.allclose(grad, made.half_weight.grad, atol=1e-6)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_are_independent(copied):
    made = layer()
    other = copied(made)
    assert graphc.equal(other.weight, made.weight) and own_class(other) is nn.Linear
    stop_computing(made, "weight")
    assert type(made) is nn.Linear and not hasattr(made, "weight") and not rules_of(made)
    assert graphc.equal(other.weight, other.half_weight * 2)
