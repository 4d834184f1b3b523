"""Compiled steps of models of which the loss depends on a part only."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc import nn


@pytest.mark.parametrize("name", ["SGD", "AdamW", "Adam"])
def test_parameters_that_the_loss_does_not_depend_on_are_left_alone(name: str):
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.unused, self.cut, self.seen = (nn.Linear(2, 2) for _ in range(4))

        def forward(self, x: graphc.Tensor) -> tuple[graphc.Tensor, graphc.Tensor]:
            self.unused(x)
            return self.used(x + self.cut(x).detach()), self.seen(x)

    def trained(compiled: bool) -> dict[str, graphc.Tensor]:
        graphc.manual_seed(0)
        net = Net()
        optimizer = getattr(graphc.optim, name)(net.parameters(), lr=0.1, weight_decay=0.5)
        step = graphc.compile_step(net, lambda y: y[0].sum(), optimizer)
        for _ in range(2):
            if compiled:
                step(graphc.ones(1, 2))
            else:
                optimizer.zero_grad()
                net(graphc.ones(1, 2))[0].sum().backward()
                optimizer.step()
        return net.state_dict()

    for (path, found), expected in zip(trained(True).items(), trained(False).values(), strict=True):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-6, err_msg=path)
