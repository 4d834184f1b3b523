"""Random arrays for timing: valid indices, expected sizes, and every weight that some part of a program reads."""

from __future__ import annotations

import numpy as np

import graphc as gc
from graphc import nn
from graphc.base.dtypes import numbers
from graphc.compiler.example_arrays import example_arrays, random_array
from graphc.compiler.freeze import watch
from graphc.compiler.stages import Stages
from graphc.files.manifest import TensorSpec
from graphc.models.model_trace import snapshot


def test_random_integers_are_valid_indices():
    assert set(random_array(TensorSpec("i", "i64", (100,)), 0).tolist()) == {0, 1}


def test_random_floats_of_narrow_types_are_spread():
    assert numbers(random_array(TensorSpec("x", "bf16", (100,)), 0)).std() > 0.5


def test_weights_that_only_the_prepacking_program_reads_have_arrays():
    traced = snapshot(nn.Linear(64, 96).eval(), [gc.zeros(48, 64)])
    stages = Stages(watch(traced.graph, list(traced.state())), tuned={})
    assert stages.prepacking is not None
    bias = np.ones(96, np.float32)
    inputs, weights = example_arrays(stages, {"bias": bias})
    assert [a.shape for a in inputs] == [(48, 64)]
    assert weights["bias"] is bias and weights["weight"].shape == (96, 64)
