"""Options of compile_step, and refusals before the trace."""

from __future__ import annotations

import pytest

import graphc
from graphc import nn
from graphc.errors import ArgumentError


def test_classes_and_objects_without_a_rule_are_refused():
    net = nn.Linear(2, 2)
    optimizer = graphc.optim.SGD(net.parameters(), lr=0.1)
    with pytest.raises(ArgumentError, match=r"MSELoss is a class\n  try    pass an instance: MSELoss\(...\)"):
        graphc.compile_step(net, nn.MSELoss, optimizer)
    with pytest.raises(ArgumentError, match="no update rule"):
        graphc.compile_step(net, nn.MSELoss(), net.parameters())
    with pytest.raises(ArgumentError, match="a callable loss"):
        graphc.compile_step(net, "mse", optimizer)


def test_levels_of_first_nan():
    net = nn.Linear(2, 2)
    optimizer = graphc.optim.SGD(net.parameters(), lr=0.1)
    for level in (None, 1, "some"):
        with pytest.raises(ArgumentError, match=r"first_nan is .*\n  try    pass True, False or \"all\""):
            graphc.compile_step(net, nn.MSELoss(), optimizer, first_nan=level)
    with pytest.raises(ArgumentError, match="first_nan on a device"):
        step = graphc.compile_step(net, nn.MSELoss(), optimizer, device="cuda-emu", first_nan=True)
        step(graphc.ones(3, 2), graphc.ones(3, 2))
