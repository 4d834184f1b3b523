"""Native calls in place of operations in eager loops."""

import graphc
from graphc import nn
from graphc.eager.dispatcher import references
from graphc.tensors.native import native_loop


def test_wishes_and_switches():
    params = [nn.Parameter(graphc.zeros(2)), nn.Parameter(graphc.zeros(3))]
    assert native_loop(params) is None
    assert native_loop(params, True) is not None
    params[1]._in_compiled = True
    assert native_loop(params) is native_loop(params, True)
    assert native_loop(params, False) is None
    with references():
        assert native_loop(params, True) is None
    seen = []
    graphc.trace(lambda x: seen.append(native_loop(params, True)) or x, graphc.zeros(2))
    assert seen == [None]
