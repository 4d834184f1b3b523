"""Functions that PyTorch calls otherwise at the top than in ``nn.functional``."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import graphc
from graphc.errors import ArgumentError, AttributeValueError
from graphc.nn.functional import reordered

torch = pytest.importorskip("torch")
RNG = np.random.default_rng(0)


def f(*shape):
    return RNG.normal(size=shape)


IMAGE, PAIR = f(2, 3, 4, 4), (f(2, 4), f(2, 4))
CALLS = [
    ("batch_norm", IMAGE, f(3), f(3), f(3), f(3) ** 2, True, 0.1, 1e-5, False),
    ("batch_norm", IMAGE, None, None, f(3), f(3) ** 2, False, 0.1, 1e-5, False),
    ("instance_norm", IMAGE, f(3), f(3), None, None, True, 0.1, 1e-5, False),
    ("layer_norm", IMAGE, (4, 4), f(4, 4), f(4, 4), 1e-5, False),
    ("group_norm", IMAGE, 3, f(3), f(3), 1e-5),
    ("embedding", f(5, 3), np.array([1, 2, 1])),
    ("dropout", IMAGE, 0.5, False),
    ("alpha_dropout", IMAGE, 0.5, False),
    ("feature_alpha_dropout", IMAGE, 0.5, False),
    ("kl_div", f(3, 4), f(3, 4) ** 2, 2),
    ("binary_cross_entropy_with_logits", f(3), f(3) ** 2, None, None, 1),
    ("poisson_nll_loss", f(3), f(3) ** 2, True, False, 1e-8, 1),
    ("triplet_margin_loss", f(3, 4), f(3, 4), f(3, 4), 1.0, 2.0, 1e-6, False, 0),
    ("margin_ranking_loss", f(3), f(3), np.sign(f(3)), 0.5, 2),
    ("hinge_embedding_loss", f(3), np.sign(f(3)), 0.5, 1),
    ("cosine_embedding_loss", f(3, 4), f(3, 4), np.sign(f(3)), 0.1, 0),
    ("ctc_loss", f(5, 2, 4), np.array([[1, 2], [3, 1]]), np.array([5, 5]), np.array([2, 2]), 0, 2),
    ("grid_sampler", IMAGE, f(2, 3, 3, 2), 0, 1, False),
    ("affine_grid_generator", f(2, 2, 3), (2, 3, 4, 4), False),
    ("constant_pad_nd", f(3), (1, 2), 3.0),
    ("lstm_cell", f(2, 3), PAIR, f(16, 3), f(16, 4), f(16), f(16)),
    ("gru_cell", f(2, 3), f(2, 4), f(12, 3), f(12, 4), f(12), f(12)),
    ("rnn_tanh_cell", f(2, 3), f(2, 4), f(4, 3), f(4, 4)),
    ("rnn_relu_cell", f(2, 3), f(2, 4), f(4, 3), f(4, 4), f(4), f(4)),
    ("conv2d", IMAGE, f(5, 3, 3, 3), f(5), 2, 1),
    ("max_pool2d", IMAGE, 2),
    ("max_pool1d_with_indices", f(2, 3, 6), 2),
    ("adaptive_max_pool1d", f(2, 3, 6), 2),
    ("prelu", IMAGE, f(3)),
    ("pairwise_distance", f(3, 4), f(3, 4)),
    ("threshold", f(3), 0.1, -1.0),
    ("rms_norm", IMAGE, (4,)),
    ("relu_", f(3)),
    ("sigmoid_", f(3)),
]


def made(library, value):
    if isinstance(value, np.ndarray):
        return library.tensor(value)
    if isinstance(value, tuple) and isinstance(value[0], np.ndarray):
        return tuple(made(library, v) for v in value)
    return value


@pytest.mark.parametrize("call", CALLS, ids=[c[0] for c in CALLS])
def test_they_are_called_as_those_of_torch(call):
    name, *arguments = call
    results = []
    for library in (graphc, torch):
        found = getattr(library, name)(*[made(library, v) for v in arguments])
        results.append(found if isinstance(found, tuple) else (found,))
    for mine, other in zip(*results, strict=True):
        np.testing.assert_allclose(mine.numpy(), other.numpy(), rtol=1e-9, atol=1e-9)


def test_names_of_arguments_are_those_of_torch():
    x = graphc.ones(2, 3)
    assert graphc.equal(graphc.dropout(x, p=0.5, train=False), x)
    assert graphc.embedding(weight=x, indices=graphc.tensor([1])).shape == (1, 3)
    assert list(inspect.signature(graphc.embedding).parameters)[:2] == ["weight", "indices"]


def test_wrong_arguments_are_told():
    with pytest.raises(ArgumentError, match="kl_div takes the arguments input, target, reduction, log_target"):
        graphc.kl_div(graphc.ones(2), graphc.ones(2), reduce=True)
    with pytest.raises(AttributeValueError, match="reduction is 5"):
        graphc.kl_div(graphc.ones(2), graphc.ones(2), 5)
    with pytest.raises(ArgumentError, match="dropout takes the arguments input, p, train"):
        graphc.dropout(graphc.ones(2), 0.5, p=0.3)


@pytest.mark.parametrize("padding", [-1, 2])
def test_a_negative_row_of_padding_is_none(padding):
    gradients = []
    for library in (graphc, torch):
        weight = library.ones((3, 2), requires_grad=True)
        library.embedding(weight, library.tensor([0, 2, 2]), padding).sum().backward()
        gradients.append(weight.grad.tolist())
    assert gradients[0] == gradients[1]


def test_each_stands_at_the_top():
    assert all(getattr(graphc, name) is getattr(reordered, name) for name in reordered.__all__)


def test_they_are_traced():
    compiled = graphc.compile(lambda x, w: graphc.layer_norm(x, (3,), w))
    x, w = graphc.randn(2, 3), graphc.randn(3)
    assert graphc.allclose(compiled(x, w), graphc.layer_norm(x, (3,), w), atol=1e-6)
