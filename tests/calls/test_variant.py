"""Programs of compiled functions: the target that their forward and backward code is made for."""

import pickle

import numpy as np

import graphc
from graphc import nn
from tests.native import target_or_skip


def test_code_for_a_machine_with_fewer_instructions():
    target_or_skip("avx2")
    model, x = nn.Linear(32, 16).eval(), graphc.rand(4, 32)
    compiled = graphc.compile(model, target="avx2")
    again = pickle.loads(pickle.dumps(compiled))
    for made in (compiled, again):
        with graphc.no_grad():
            np.testing.assert_allclose(made(x).numpy(), model(x).numpy(), rtol=1e-5, atol=1e-6)
        (variant,) = made.variants
        assert variant.program.manifest.target.cpu == "x86-64-v3"


def test_backward_programs_are_for_the_same_target():
    target_or_skip("sse2")
    w = graphc.rand(8, 8).requires_grad_()
    f = graphc.compile(lambda x: (x @ w).sum(), target="sse2")
    f(graphc.rand(4, 8)).backward()
    (variant,) = f.variants
    assert variant.backward_program.manifest.target.features == ("sse2",)
