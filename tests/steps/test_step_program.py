"""One signature of a compiled step: its graph, what it binds, and what it sets after a call."""

from __future__ import annotations

import graphc
from graphc import nn


def test_numbers_that_forward_assigns_are_assigned_by_each_step():
    class Noting(nn.Linear):
        def forward(self, x):
            self.rows = x.shape[0]
            return super().forward(x)

    net = Noting(2, 2)
    step = graphc.compile_step(net, lambda y: y.sum(), graphc.optim.SGD(net.parameters(), lr=0.1))
    for rows in (1, 2, 1, 2):
        step(graphc.ones(rows, 2))
        assert net.rows == rows


def test_the_graph_names_parameters_and_states_of_the_optimizer():
    net = nn.Linear(2, 2)
    step = graphc.compile_step(net, lambda y: y.sum(), graphc.optim.SGD(net.parameters(), lr=0.1, momentum=0.9))
    step(graphc.ones(3, 2))
    paths = {v.node.attrs["path"] for v in step.graphs[0].inputs}
    assert {"weight", "bias", "optimizer.weight.momentum_buffer", "optimizer.bias.momentum_buffer"} <= paths
