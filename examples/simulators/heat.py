"""Find what is inside a plate from temperatures: an inverse problem of the heat equation in two dimensions.

The plate conducts heat as du/dt = div(k grad u), and a bad conductor is hidden inside. One edge is heated and the
others are cooled, once for each edge. L-BFGS finds k in every cell; the gradient passes back through all time steps, of
which it keeps a few (checkpoints). Finite volumes: Patankar, "Numerical heat transfer and fluid flow", chapter 4.
"""

import math

import numpy as np

import graphc as gc

F64 = gc.float64
CELLS, STEPS, DT = 16, 60, 0.2
"""Cells along an edge, steps from one picture to the next, and step over the square of a cell's width."""


def between(k):
    """Return conductances [n + 1, n] between rows of cells, and of the half cells before the edges of the plate."""
    return gc.cat([2 * k[:1], 2 * k[1:] * k[:-1] / (k[1:] + k[:-1]), 2 * k[-1:]])


def inflow(u, conductance, first, last):
    """Return the heat that flows into each cell from the rows above and below."""
    ones = gc.ones(1, CELLS, dtype=F64)
    flux = conductance * gc.cat([first * ones, u, last * ones]).diff(dim=0)
    return flux.diff(dim=0)


def simulate(k, u, edges):
    """Return four pictures [4, n, n] of a plate that begins with temperatures ``u`` and has edges of ``edges`` [4]."""
    down, across = between(k), between(k.mT)

    def step(_, u):
        return u + DT * (inflow(u, down, edges[0], edges[1]) + inflow(u.mT, across, edges[2], edges[3]).mT)

    def picture(u, _):
        u = gc.fori_loop(0, STEPS, step, u, checkpoint=True)
        return u, u

    return gc.scan(picture, u, length=4)[1]


def experiments(k):
    """Return the pictures [4, 4, n, n] of four experiments, with one hot edge each."""
    return gc.vmap(simulate, in_dims=(None, None, 0))(k, gc.zeros(CELLS, CELLS, dtype=F64), gc.eye(4, dtype=F64))


@gc.compile
def find(seen, noise):
    """Return the conductivity whose pictures are closest, with a penalty of differences between neighbours."""

    def cost(log_k):
        rough = (log_k.diff(dim=0) ** 2 + 1e-3).sqrt().sum() + (log_k.diff(dim=1) ** 2 + 1e-3).sqrt().sum()
        return ((experiments(log_k.exp()) - seen) / noise).square().sum() / 2 + 3 * rough

    x, report = gc.optimize.lbfgs(cost, gc.zeros(CELLS, CELLS, dtype=F64), max_steps=300, tol=0.1, full_output=True)
    return x.exp(), report


def main() -> None:
    x = (np.arange(CELLS) + 0.5) / CELLS
    wave = gc.tensor(np.sin(math.pi * x)[:, None] * np.sin(math.pi * x))
    last = gc.compile(simulate)(gc.ones(CELLS, CELLS, dtype=F64), wave, gc.zeros(4, dtype=F64))[-1]
    exact = math.exp(-2 * math.pi**2 * 4 * STEPS * DT / CELLS**2)
    print(f"a uniform plate cools to {(last / wave).mean().item():.4f}, exactly {exact:.4f}")
    inside = (x[:, None] - 0.4) ** 2 + (x - 0.6) ** 2 < 0.2**2
    truth = np.where(inside, 0.3, 1.0)
    seen = gc.compile(experiments)(gc.tensor(truth))
    seen = seen + gc.tensor(np.random.default_rng(0).normal(0, 1e-3, seen.shape))
    k, report = find(seen, gc.tensor(1e-3, dtype=F64))
    k = k.numpy()
    print(f"after {report.steps.item()} steps: {k[inside].mean():.3f} inside, {k[~inside].mean():.3f} outside")
    print(f"cells on the right side of 0.6: {((k < 0.6) == inside).mean():.1%}")


if __name__ == "__main__":
    main()
