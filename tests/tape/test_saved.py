"""Hooks of saved tensors."""

import graphc as gc
from graphc.tape.saved import saving


def test_hooks_hold_inside_of_their_block_only():
    assert saving.get() is None
    with gc.autograd.graph.saved_tensors_hooks(id, id):
        assert saving.get() == (id, id)
    assert saving.get() is None
