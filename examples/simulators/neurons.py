"""A chain of Hodgkin-Huxley neurons: a pulse runs along it, and its recordings tell the conductances of the membrane.

Equations and constants: Hodgkin and Huxley, "A quantitative description of membrane current", 1952, with the voltage
measured from outside, in mV, ms, uA/cm^2 and mS/cm^2; neighbours are joined by gap junctions.
"""

import numpy as np

import graphc as gc

F64 = gc.float64
NEURONS, JUNCTION = 10, 0.3
CONDUCTANCES = [120.0, 36.0, 0.3]
"""Of sodium, potassium and the leak."""


def opening(x):
    """Return x / (1 - exp(-x)), also at 0."""
    near = x.abs() < 1e-4
    safe = gc.where(near, 1.0, x)
    return gc.where(near, 1 + x / 2, safe / (1 - (-safe).exp()))


def rate(t, state, conductances, current):
    """Return the rates of voltage and gates [4, neurons]; the first neuron is stimulated for a millisecond."""
    v, m, h, n = state
    sodium, potassium, leak = conductances
    edges = gc.cat([v[:1], v, v[-1:]])
    inward = JUNCTION * (edges[2:] - 2 * v + edges[:-2]) + gc.where(t < 1.0, 1.0, 0.0) * current
    inward = inward - sodium * m**3 * h * (v - 50) - potassium * n**4 * (v + 77) - leak * (v + 54.387)
    return gc.stack(
        [
            inward,
            opening((v + 40) / 10) * (1 - m) - 4 * (-(v + 65) / 18).exp() * m,
            0.07 * (-(v + 65) / 20).exp() * (1 - h) - h / (1 + (-(v + 35) / 10).exp()),
            0.1 * opening((v + 55) / 10) * (1 - n) - 0.125 * (-(v + 65) / 80).exp() * n,
        ]
    )


def simulate(conductances, t):
    """Return voltages [times, neurons] of a chain that rests at first."""
    rest = gc.tensor([-65.0, 0.0529, 0.5961, 0.3177], dtype=F64)[:, None].expand(4, NEURONS)
    current = gc.tensor([50.0] + [0.0] * (NEURONS - 1), dtype=F64)
    return gc.integrate.odeint(rate, rest, t, conductances, current, method="rk4", substeps=10)[:, 0]


@gc.compile
def fit(t, seen):
    """Return the conductances that explain the voltages of the last neuron, from a start 10 percent off."""
    start = gc.tensor(CONDUCTANCES, dtype=F64).log() + gc.tensor([-0.1, 0.1, 0.1], dtype=F64)
    residuals = lambda p: simulate(p.exp(), t)[:, -1] - seen  # noqa: E731
    return gc.optimize.levenberg_marquardt(residuals, start, tol=1e-3).exp()


def main() -> None:
    t = gc.linspace(0, 20, 101, dtype=F64)
    voltages = gc.compile(simulate)(gc.tensor(CONDUCTANCES, dtype=F64), t).numpy()
    peaks = t.numpy()[voltages.argmax(0)]
    print(f"peak of {voltages.max():.0f} mV; it passes a neuron in {(peaks[-2] - peaks[1]) / (NEURONS - 3):.2f} ms")
    noise = np.random.default_rng(0).normal(0, 1, len(t))
    print("conductances", [f"{x:.2f}" for x in fit(t, gc.tensor(voltages[:, -1] + noise)).tolist()])


if __name__ == "__main__":
    main()
