"""Creation of modules, and hints that change nothing."""

from __future__ import annotations

import pytest

import graphc
from graphc import nn
from graphc.errors import ArgumentError


def test_a_module_is_made_as_its_class_makes_it():
    net = nn.utils.skip_init(nn.Linear, 2, 3, bias=False)
    assert net.weight.shape == (3, 2) and net.bias is None


def test_a_memory_format_changes_no_module():
    net = nn.Conv2d(1, 2, 3)
    assert nn.utils.convert_conv2d_weight_memory_format(net, graphc.channels_last) is net
    with pytest.raises(ArgumentError, match="not a memory format"):
        nn.utils.convert_conv3d_weight_memory_format(net, "channels_last_3d")
