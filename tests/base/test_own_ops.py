"""Names of ops that a user defines are known without the ops."""

from __future__ import annotations

import graphc as gc
from graphc.base import own_ops
from graphc.ir.op import REGISTRY


def test_ops_of_a_user_are_named_and_those_of_graphc_are_not():
    assert not own_ops.NAMES & {"add", "matmul"}

    def infer(x):
        return x

    gc.define_op("named_here", "x", "x", infer, reference=lambda x: x, decompose=lambda x: x + 0.0)
    try:
        assert "named_here" in own_ops.NAMES
    finally:
        del REGISTRY["named_here"]
        own_ops.NAMES.discard("named_here")
