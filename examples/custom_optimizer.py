"""A custom optimizer in ten lines, with a learning rate per layer, run eagerly and inside one compiled step."""

from __future__ import annotations

import numpy as np

import graphc as gc
from graphc import nn
from graphc.nn import functional as F


class Lion(gc.optim.Optimizer):
    """Steps by the sign of an interpolated momentum (Chen et al., Symbolic Discovery of Optimization Algorithms)."""

    def __init__(self, params, lr=1e-3, beta1=0.9, beta2=0.99):
        super().__init__(params, {"lr": lr, "beta1": beta1, "beta2": beta2})

    def init_state(self, param):
        return {"momentum": gc.zeros_like(param)}

    def update(self, param, grad, state, hyper):
        direction = gc.sign(hyper["beta1"] * state["momentum"] + (1 - hyper["beta1"]) * grad)
        momentum = hyper["beta2"] * state["momentum"] + (1 - hyper["beta2"]) * grad
        return param - hyper["lr"] * direction, {"momentum": momentum}


def make_model() -> nn.Sequential:
    gc.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))


def make_optimizer(model: nn.Sequential) -> Lion:
    """Return the last layer learns at half the rate."""
    first, _, last = model
    return Lion([{"params": first.parameters()}, {"params": last.parameters(), "lr": 5e-4}])


def main() -> None:
    generator = np.random.default_rng(0)
    x = gc.tensor(generator.standard_normal((256, 8)).astype(np.float32))
    y = (x[:, :1] * x[:, 1:2]).tanh()
    eager, compiled = make_model(), make_model()
    optimizer, step = make_optimizer(eager), gc.compile_step(compiled, F.mse_loss, make_optimizer(compiled))
    value = gc.tensor(0.0)
    for index in range(500):
        optimizer.zero_grad()
        loss = F.mse_loss(eager(x), y)
        loss.backward()
        optimizer.step()
        value = step(x, y)
        if index % 100 == 0:
            print(f"step {index}: eager {loss.item():.4f}, compiled {value.item():.4f}")
    pairs = zip(eager.parameters(), compiled.parameters(), strict=True)
    apart = max(np.abs(a.detach().numpy() - b.detach().numpy()).max() for a, b in pairs)
    print(f"last loss {value.item():.4f}; the two models differ by at most {apart:.1e}")


if __name__ == "__main__":
    main()
