"""Swing a pendulum up and hold it there: model predictive control with a motor that is too weak to lift it at once.

Every 0.05 s the controller minimizes the cost of the next 1.5 s by Levenberg-Marquardt, from the last plan on, and
applies the first torque; Rawlings, Mayne and Diehl, "Model predictive control", 2017. The whole closed loop is one
native call. Near the top the controller must agree with the linear-quadratic regulator, whose gain solves the Riccati
equation.
"""

import numpy as np

import graphc as gc

F64 = gc.float64
GRAVITY, DAMPING, DT, HORIZON = 9.81, 0.1, 0.05, 30
LIMIT, TORQUE_WEIGHT = 5.0, 0.1


def move(state, torque):
    """Return angle from the top and speed after a step of Runge-Kutta 4, at a constant torque."""

    def rate(t, y):
        return gc.stack([y[1], GRAVITY * y[0].sin() - DAMPING * y[1] + torque])

    return gc.integrate.odeint(rate, state, gc.tensor([0.0, DT], dtype=F64), method="rk4")[-1]


def residuals(plan, state):
    """Return the weighted errors of a plan: 0 for a pendulum at rest on top and no torque."""

    def step(state, torque):
        state = move(state, LIMIT * torque.tanh())
        return state, gc.stack([2 * (state[0] / 2).sin(), 0.3 * state[1], TORQUE_WEIGHT * LIMIT * torque.tanh()])

    return gc.scan(step, state, plan)[1].reshape(-1)


@gc.compile
def closed_loop(state, plan, steps):
    """Return the state and the torque of each step."""

    def step(carry, _):
        state, plan = carry
        plan = gc.optimize.levenberg_marquardt(residuals, plan, state, max_steps=10, full_output=True)[0]
        torque = LIMIT * plan[0].tanh()
        state = move(state, torque)
        return (state, gc.cat([plan[1:], plan[-1:]])), (state, torque)

    return gc.scan(step, (state, plan), steps)[1]


def riccati_gain():
    """Return the gain of the regulator near the top, by the iteration of the Riccati equation."""
    rest, zero = gc.zeros(2, dtype=F64), gc.zeros(1, dtype=F64)
    a = gc.func.jacfwd(lambda y: move(y, zero[0]))(rest).numpy()
    b = gc.func.jacfwd(lambda u: move(rest, u[0]))(zero).numpy()
    weight, r = np.diag([1.0, 0.3**2]), TORQUE_WEIGHT**2
    p, gain = weight, np.zeros((1, 2))
    for _ in range(HORIZON):
        gain = np.linalg.solve(r + b.T @ p @ b, b.T @ p @ a)
        p = weight + a.T @ p @ (a - b @ gain)
    return gain[0]


def main() -> None:
    plan, hanging = gc.full((HORIZON,), 0.5, dtype=F64), gc.tensor([np.pi, 0.0], dtype=F64)
    states, torques = closed_loop(hanging, plan, gc.zeros(180, dtype=F64))
    angle = np.angle(np.exp(1j * states[:, 0].numpy()))
    up = np.flatnonzero(np.abs(angle) > 0.1)[-1] + 1
    print(f"upright after {up * DT:.2f} s with at most {torques.abs().max().item():.2f} Nm; last angle {angle[-1]:.1e}")
    near = gc.tensor([0.01, -0.02], dtype=F64)
    torque = closed_loop(near, plan * 0, gc.zeros(1, dtype=F64))[1].item()
    print(f"near the top: torque {torque:.4f}, the linear-quadratic regulator's {-riccati_gain() @ near.numpy():.4f}")


if __name__ == "__main__":
    main()
