"""How contagious was the flu in a boarding school in 1978? Hamiltonian Monte Carlo over the SIR equations, compiled.

Data: boys in bed on each of 14 days, British Medical Journal, 4 March 1978. Model and priors: Grinsztajn et al.,
"Bayesian workflow for disease transmission modeling in Stan", 2021, whose posterior has means of 1.73 for the rate of
infection and 0.54 for that of recovery. Each draw follows Hamilton's equations; the gradients pass through the solver.
"""

import graphc as gc

F64 = gc.float64
IN_BED = gc.tensor([3, 8, 26, 76, 225, 298, 258, 233, 189, 128, 68, 29, 14, 4], dtype=F64)
BOYS, STEP, LEAPS = 763.0, 0.2, 8
SCALES = gc.tensor([0.04, 0.09, 0.6], dtype=F64)
"""Rough deviations of the logarithms of the parameters, which make all directions alike to the sampler."""


def sir(t, y, infection, recovery):
    """Return the rates of the susceptible and the infected."""
    infections = infection * y[0] * y[1] / BOYS
    return gc.stack([-infections, infections - recovery * y[1]])


def log_density(position):
    """Return the logarithm of the posterior density of log(infection, recovery, dispersion), but for a constant."""
    infection, recovery, dispersion = position.exp()
    days = gc.arange(15, dtype=F64)
    start = gc.tensor([BOYS - 1, 1.0], dtype=F64)
    mean = gc.integrate.odeint(sir, start, days, infection, recovery, method="rk4", substeps=4)[1:, 1]
    r = 1 / dispersion  # a negative binomial distribution of this mean and of variance mean + mean^2 / r
    likelihood = (IN_BED + r).lgamma() - r.lgamma() + r * (r / (r + mean)).log() + IN_BED * (mean / (r + mean)).log()
    prior = -((infection - 2) ** 2) / 2 - ((recovery - 0.4) / 0.5) ** 2 / 2 - 5 * dispersion
    return likelihood.sum() + prior + position.sum()


def draw(position):
    """Return the next state of the chain, and whether it moved: Neal, "MCMC using Hamiltonian dynamics", 2011."""
    slope = lambda x: gc.grad(log_density)(x) * SCALES  # noqa: E731

    def leap(_, state):
        x, p = state
        p = p + STEP * slope(x) / 2
        x = x + STEP * SCALES * p
        return x, p + STEP * slope(x) / 2

    momentum = gc.randn(3, dtype=F64)
    x, p = gc.fori_loop(0, LEAPS, leap, (position, momentum))
    gain = log_density(x) - log_density(position) - (p.square().sum() - momentum.square().sum()) / 2
    accepted = gc.rand((), dtype=F64).log() < gain
    return gc.where(accepted, x, position), accepted


@gc.compile
def sample(starts, steps):
    """Return the draws [steps, chains, 3] of independent chains, and the share of accepted ones."""
    step = gc.vmap(draw, randomness="different")

    def both(positions, _):
        positions, accepted = step(positions)
        return positions, (positions, accepted)

    draws, accepted = gc.scan(both, starts, steps)[1]
    return draws, accepted.double().mean()


def main(count: int = 1500) -> None:
    gc.manual_seed(1)
    starts = gc.tensor([1.5, 0.5, 0.2], dtype=F64).log() + 0.1 * gc.randn(4, 3, dtype=F64)
    draws, accepted = sample(starts, gc.zeros(count))
    draws = draws[count // 5 :].exp()
    between, within = draws.mean(0).var(0), draws.var(0).mean(0)
    print(f"accepted {accepted.item():.2f}, R-hat at most {(1 + between / within).sqrt().max().item():.3f}")
    for name, values in zip(("infection", "recovery", "dispersion"), draws.reshape(-1, 3).T, strict=True):
        print(f"{name}: {values.mean().item():.3f} +- {values.std().item():.3f}")
    print(f"each boy infects {(draws[..., 0] / draws[..., 1]).mean().item():.2f} others at first")


if __name__ == "__main__":
    main()
