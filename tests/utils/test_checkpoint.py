"""The import path of PyTorch for checkpoints."""

import graphc
from graphc.utils.checkpoint import checkpoint, checkpoint_sequential


def test_the_names_are_those_of_graphc():
    assert checkpoint is graphc.checkpoint and checkpoint_sequential is graphc.checkpoint_sequential
