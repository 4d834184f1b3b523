"""Simulate the Sun, Jupiter and Saturn for a century, and fit a Kepler ellipse to noisy observations of Jupiter.

Newton's law in astronomical units, years and solar masses; steps of Forest and Ruth, "Fourth-order symplectic
integration", 1990. The fit solves Kepler's equation E - e sin E = M for each observation. Without Saturn, axis^3 /
period^2 is the mass of Sun and Jupiter, 1.00095. The orbits are those of JPL's elements for J2000.
"""

import math

import numpy as np

import graphc as gc

F64 = gc.float64
JUPITER, SATURN = 1 / 1047.35, 1 / 3497.9  # masses
ORBITS = [[5.2026, 0.0484, 0.2575, 0.3429], [9.5549, 0.0555, 1.6132, 5.5412]]  # as ``ellipse`` takes them
THETA = 1 / (2 - 2 ** (1 / 3))
STAGES = [(THETA / 2, THETA), ((1 - THETA) / 2, 1 - 2 * THETA), ((1 - THETA) / 2, THETA), (THETA / 2, 0.0)]


def ellipse(elements, period, t):
    """Return positions [times, 2] on an ellipse, as seen from its focus."""
    axis, e, perihelion, anomaly = elements
    mean = anomaly + 2 * math.pi * t / period
    angle = gc.optimize.root_scalar(lambda E, M, e: E - e * E.sin() - M, mean - 1, mean + 1, mean, e)
    x, y, c, s = angle.cos() - e, (1 - e * e).sqrt() * angle.sin(), perihelion.cos(), perihelion.sin()
    return axis * gc.stack([c * x - s * y, s * x + c * y], 1)


def start(masses):
    """Return positions and velocities [bodies, 2], with the centre of mass at rest in the origin."""
    t, states = gc.zeros(1, dtype=F64), [gc.zeros(2, 2, dtype=F64)]
    for mass, orbit in zip(masses[1:], gc.tensor(ORBITS, dtype=F64), strict=True):
        period = (orbit[0] ** 3 / (masses[0] + mass)).sqrt()
        states.append(gc.cat(gc.jvp(lambda t, o=orbit, p=period: ellipse(o, p, t), (t,), (t + 1,))))
    x, v = gc.stack(states, 1)
    return x - masses @ x / masses.sum(), v - masses @ v / masses.sum()


@gc.compile
def simulate(masses, dt):
    """Return positions [1000, bodies, 2] and energies [1000], each after ten steps of ``dt``."""

    def potential(x):
        distances = (x[None] - x[:, None]).square().sum(2) + gc.eye(3, dtype=F64)
        return -4 * math.pi**2 * (masses[:, None] * masses / distances.sqrt()).triu(1).sum()

    def step(_, state):
        x, v = state
        for drift, kick in STAGES:
            x = x + drift * dt * v
            v = v - kick * dt * gc.grad(potential)(x) / masses[:, None]
        return x, v

    def sample(state, _):
        x, v = gc.fori_loop(0, 10, step, state)
        return (x, v), (x, (masses @ v.square()).sum() / 2 + potential(x))

    return gc.scan(sample, start(masses), length=1000)[1]


@gc.compile
def fit(seen):
    t, guess = gc.linspace(0.1, 100, 1000, dtype=F64), gc.tensor([5.0, 0.1, 0.0, 0.0, 12.0], dtype=F64)
    return gc.optimize.levenberg_marquardt(lambda p: ellipse(p[:4], p[4], t) - seen, guess)


def main() -> None:
    random = np.random.default_rng(0)
    for name, saturn in (("without Saturn", 1e-12), ("with Saturn", SATURN)):
        path, energy = simulate(gc.tensor([1.0, JUPITER, saturn], dtype=F64), gc.tensor(0.01, dtype=F64))
        print(f"{name}: the energy changes by {(energy / energy[0] - 1).abs().max().item():.1e}")
        seen = path[:, 1] - path[:, 0] + gc.tensor(random.normal(0, 1e-3, (1000, 2)))
        axis, e, _, _, period = fit(seen).tolist()
        print(f"  axis {axis:.4f}, eccentricity {e:.4f}, period {period:.4f}, mass {axis**3 / period**2:.5f}")


if __name__ == "__main__":
    main()
