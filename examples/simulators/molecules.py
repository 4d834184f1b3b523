"""Learn the forces between atoms, and simulate molecular dynamics with them.

The teacher is argon in Lennard-Jones units. The network learns the energy of a bond from its length; forces are the
gradient, so training needs second derivatives: Behler and Parrinello, "Generalized neural-network representation of
high-dimensional potential-energy surfaces", 2007. One compiled program serves all numbers of bonds.
"""

import numpy as np

import graphc as gc
from graphc import nn

CUTOFF, DT = 2.5, 0.004
SIZES = {"x": (gc.Dim("atoms", max=13), 3), "bonds": (2, gc.Dim("bonds", max=78))}  # the open sizes of a cluster


def energy(bond_energy, x, bonds):
    r = (x[bonds[0]] - x[bonds[1]]).norm(dim=1)
    return (bond_energy(r) * (1 - (r / CUTOFF).clamp(max=1) ** 2) ** 2).sum()


slopes = gc.grad(energy, argnums=1)  # minus the forces
gc.manual_seed(0)
layers = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = gc.optim.Adam(layers.parameters())


def network(r):
    return layers((-50 * (r[:, None] - gc.linspace(0.8, CUTOFF, 16)) ** 2).exp())[:, 0]


@gc.compile(dims=SIZES)
def train(x, bonds):
    """Take one step by the error of the forces, as a share of the forces; return this share."""
    optimizer.zero_grad()
    truth = slopes(lambda r: 4 * (r**-12 - r**-6), x, bonds)
    loss = (slopes(network, x, bonds) - truth).square().sum() / truth.square().sum()
    loss.backward()
    optimizer.step()
    return loss.sqrt()


@gc.compile
def simulate(x, steps):
    """Return kinetic and total energies after each step of velocity Verlet from rest; all pairs are bonds."""
    pairs = gc.triu_indices(len(x), len(x), 1)

    def step(state, _):
        x, v, before = state
        x = x + DT * v - DT**2 / 2 * before
        slope = slopes(network, x, pairs)
        v = v - DT / 2 * (before + slope)
        return (x, v, slope), (v.square().sum() / 2, v.square().sum() / 2 + energy(network, x, pairs))

    return gc.scan(step, (x, x * 0, slopes(network, x, pairs)), steps)[1]


def cluster(random, atoms):
    """Return random positions, at least 0.95 from each other, and the bonds within the cutoff."""
    x = np.zeros((1, 3), np.float32)
    while len(x) < atoms:
        new = x[random.integers(len(x))] + random.normal(0, 0.8, 3).astype(np.float32)
        x = np.vstack([x, new]) if np.linalg.norm(x - new, axis=1).min() > 0.95 else x
    return gc.tensor(x), gc.tensor(np.argwhere(np.triu(np.linalg.norm(x[:, None] - x, axis=2) < CUTOFF, 1)).T)


def main(steps: int = 3000) -> None:
    random, errors = np.random.default_rng(0), []
    for number in range(steps + 1):
        optimizer.param_groups[0]["lr"] = 3e-3 * (1 - number / steps)
        errors.append(train(*cluster(random, random.integers(4, 14))).item())
        if number % (steps // 4) == 0:
            print(f"step {number}: forces are wrong by {np.median(errors[-100:]):.1%}")
    kinetic, total = simulate(cluster(random, 13)[0], gc.zeros(2000))
    print(f"{len(train.programs)} program; motion {kinetic.max():.1f}, energy within {total.max() - total.min():.4f}")


if __name__ == "__main__":
    main()
