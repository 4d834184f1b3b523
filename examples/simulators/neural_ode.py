"""A neural ordinary differential equation learns a spiral, and predicts paths that it has never seen.

The rate of the state is a small network; its weights are trained through the solver by the adjoint method: Chen et al.,
"Neural ordinary differential equations", 2018, whose spiral is dy/dt = A y^3.
"""

import graphc as gc
from graphc import nn


class Field(nn.Module):
    """Rate of a batch of states [n, 2], a network of their cubes."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2))

    def forward(self, t, y):
        return self.layers(y**3)


def spiral(t, y):
    return y**3 @ gc.tensor([[-0.1, -2.0], [2.0, -0.1]])


field = Field()
optimizer = gc.optim.Adam(field.parameters(), lr=0.02)


@gc.compile
def truth(start, t):
    return gc.integrate.odeint(spiral, start, t, rtol=1e-6)


@gc.compile
def predict(start, t):
    return gc.integrate.odeint(field, start, t, rtol=1e-4)


@gc.compile
def train(start, t, path):
    """Take one step of the optimizer on pieces of paths [times, n, 2]."""
    optimizer.zero_grad()
    y = gc.integrate.odeint(field, start, t, rtol=1e-3, atol=1e-4, adjoint=True)
    loss = (y - path).abs().mean()
    loss.backward()
    optimizer.step()
    return loss


def main(steps: int = 1000) -> None:
    gc.manual_seed(0)
    times = gc.linspace(0, 8, 161)
    paths = truth(4 * gc.rand(16, 2) - 2, times)
    for step in range(steps):
        if step == 600:
            optimizer.param_groups[0]["lr"] = 0.003
        first = 10 * int(gc.randint(0, 15, ()))
        pieces = paths[first : first + 10]
        loss = train(pieces[0], times[:10], pieces)
        if step % 200 == 0 or step == steps - 1:
            print(f"step {step}: loss {loss.item():.4f}")
    with gc.no_grad():
        new = gc.tensor([[0.0, 1.8], [-1.5, 0.5], [1.0, -1.0]])
        error = (predict(new, times) - truth(new, times)).norm(dim=2).mean()
    print(f"mean error on three new paths of 8 s: {error.item():.3f}")


if __name__ == "__main__":
    main()
