"""The eager dispatcher: checks, views, memory."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import graphc
from graphc import eager
from graphc.errors import GradientError, ShapeError, TraceError
from graphc.ops import dispatch, shape
from graphc.ops import elementwise as ew


def test_type_rules_run_in_eager_mode_too():
    with pytest.raises(ShapeError, match="do not broadcast: 2 and 3") as caught:
        graphc.ones(2) + graphc.ones(3)
    assert "where  add(%x: f32[2], %y: f32[3])" in str(caught.value)


def test_rules_run_once_for_each_signature():
    dispatcher = eager.EagerDispatcher()
    with dispatch.use(dispatcher):
        for _ in range(3):
            graphc.ones(2) * graphc.ones(2)
        assert len(dispatcher._checked) == 1
        graphc.ones(3) * graphc.ones(3)
        assert len(dispatcher._checked) == 2
        shape.reshape(graphc.ones(2), shape=[2, 1])  # A list cannot be a key; the call works all the same.
        assert len(dispatcher._checked) == 2


def test_results_do_not_share_memory_unless_they_are_views():
    x = graphc.ones(2, 3)
    assert not np.shares_memory(x.flip(0).numpy(), x.numpy())
    assert not np.shares_memory(ew.cast(x, dtype=graphc.float32).numpy(), x.numpy())
    assert np.shares_memory(x.t().numpy(), x.numpy())
    assert x.t()._view is not None and x.flip(0)._view is None


def test_views_of_views_have_one_base():
    x = graphc.ones(2, 3)
    assert x.t()[1:].unsqueeze(0)._base is x


def test_floating_point_exceptions_are_silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert graphc.zeros(1).log().item() == -np.inf
        assert np.isnan((graphc.zeros(1) / 0).item())
        (graphc.full((1,), 1e38) * 1e38).item()


def test_traced_tensors_do_not_escape():
    kept = []
    graphc.trace(lambda x: kept.append(x * 2) or x, graphc.ones(2))
    with pytest.raises(TraceError, match="traced as %mul is used outside of its trace"):
        kept[0] + 1
    with pytest.raises(TraceError, match="outside of its trace"):
        kept[0].numpy()
    assert "%mul: f32[2]" in repr(kept[0])


def test_data_of_a_result_keeps_its_shape():
    y = graphc.ones(2, requires_grad=True) * 2
    with pytest.raises(GradientError, match="keeps its shape"):
        y.data = graphc.ones(3)
