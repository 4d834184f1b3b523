"""Balance a pole on a cart: a policy learns from gradients that pass through the simulator.

Equations and limits: Barto, Sutton and Anderson, "Neuronlike adaptive elements", 1983, as in CartPole-v1: steps of
0.02 s, a force of -10 or 10 N, and a fall at 12 degrees or 2.4 m. The policy is trained with all forces between these,
for one second, and tested by the rules, for 500 steps.
"""

import math

import graphc as gc
from graphc import nn

GRAVITY, CART, POLE, LENGTH, FORCE, DT = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02


def move(state, force):
    """Return position, speed, angle and angular speed [4, n] after an Euler step."""
    x, v, angle, spin = state
    sine, cosine = angle.sin(), angle.cos()
    push = (force + POLE * LENGTH * spin**2 * sine) / (CART + POLE)
    turn = (GRAVITY * sine - cosine * push) / (LENGTH * (4 / 3 - POLE * cosine**2 / (CART + POLE)))
    speed_up = push - POLE * LENGTH * turn * cosine / (CART + POLE)
    return gc.stack([x + DT * v, v + DT * speed_up, angle + DT * spin, spin + DT * turn])


gc.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = gc.optim.Adam(policy.parameters(), lr=0.01)


@gc.compile
def train(start):
    """Take one step of the optimizer by the mean cost of 64 runs; all runs advance together."""

    def step(state, _):
        state = move(state, FORCE * policy(state.T)[:, 0].tanh())
        return state, (state[2] / 0.2).square() + 0.1 * state[0].square()

    optimizer.zero_grad()
    loss = gc.scan(step, start, length=50)[1].mean()
    loss.backward()
    nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
    optimizer.step()
    return loss


def balance(start):
    """Return the number of steps until the cart leaves or the pole falls, at most 500, for one start [4]."""

    def standing(state):
        now, steps = state
        return (now[0].abs() < 2.4) & (now[2].abs() < math.radians(12)) & (steps < 500)

    def step(state):
        now, steps = state
        return move(now, gc.where(policy(now)[0] > 0, FORCE, -FORCE)), steps + 1

    return gc.while_loop(standing, step, (start, gc.tensor(0)))[1]


def test() -> None:
    with gc.no_grad():
        steps = gc.compile(gc.vmap(balance))(0.1 * gc.rand(100, 4) - 0.05)
    print(
        f"balanced for {steps.double().mean().item():.0f} steps; all 500 steps in {(steps == 500).sum().item()} of 100"
    )


def main(rounds: int = 300) -> None:
    test()
    for number in range(rounds):
        loss = train(gc.randn(4, 64) * gc.tensor([[0.5], [0.3], [0.1], [0.3]]))
        if number % 100 == 0 or number == rounds - 1:
            print(f"round {number}: cost {loss.item():.3f}")
    test()


if __name__ == "__main__":
    main()
