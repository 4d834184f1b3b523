"""Parameter and Buffer."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.errors import ArgumentError
from graphc.nn.parameter import empty_parameter, filled


def test_parameter_is_a_leaf_that_requires_gradients():
    p = nn.Parameter(graphc.ones(2))
    assert isinstance(p, graphc.Tensor) and p.requires_grad and p.is_leaf
    assert not nn.Parameter(graphc.ones(2), requires_grad=False).requires_grad
    assert nn.Parameter().shape == (0,)


def test_parameter_shares_memory_and_no_history():
    x = graphc.ones(2).requires_grad_()
    y = x * 2
    p = nn.Parameter(y)
    assert p.is_leaf and p.grad_fn is None
    with graphc.no_grad():
        y[0] = 7
    assert p.tolist() == [7, 2]


def test_requires_grad_survives_no_grad():
    with graphc.no_grad():
        assert nn.Parameter(graphc.ones(1)).requires_grad


def test_results_of_operations_are_plain_tensors():
    assert type(nn.Parameter(graphc.ones(2)) * 2) is graphc.Tensor


def test_text():
    text = repr(nn.Parameter(graphc.ones(2)))
    assert text == "Parameter containing:\ntensor([1., 1.], requires_grad=True)"


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))])
def test_copies(copied: object):
    p = nn.Parameter(graphc.ones(2), requires_grad=False)
    q = copied(p)
    assert type(q) is nn.Parameter and not q.requires_grad
    with graphc.no_grad():
        q.fill_(3)
    assert p.tolist() == [1, 1]


def test_only_tensors():
    with pytest.raises(TypeError, match="Parameter: ndarray is not a tensor"):
        nn.Parameter(np.ones(2))
    with pytest.raises(TypeError, match="Buffer: list is not a tensor"):
        nn.Buffer([1.0])


def test_buffer():
    b = nn.Buffer(graphc.ones(2), persistent=False)
    assert not b.requires_grad and not b.persistent and isinstance(b, graphc.Tensor)
    assert nn.Buffer().persistent


def test_makers():
    p = empty_parameter((2, 3))
    assert p.shape == (2, 3) and p.dtype is graphc.float32 and isinstance(p, nn.Parameter)
    assert filled((2,), 1, graphc.int64, "cpu").tolist() == [1, 1]
    assert filled((2,), 1, None, "cuda-emu").device == "cuda-emu"
    with pytest.raises(ArgumentError, match="there is no device"):
        filled((2,), 0, None, "tpu")
