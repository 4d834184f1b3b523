"""Train a policy that balances a pole by PPO, compile it ahead of time, and balance with the library, with PyTorch."""

import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch._inductor import aoti_compile_and_package, aoti_load_package
from torch.nn import functional as F

POLES, STEPS = 32, 64
rng = np.random.default_rng(0)


def move(state, action):
    """Return the states [n, 4] 0.02 s after a push to the left (0) or right (1), and which poles have fallen."""
    x, v, angle, spin = state.T
    push = (np.where(action == 1, 10.0, -10.0) + 0.05 * spin**2 * np.sin(angle)) / 1.1
    turn = (9.8 * np.sin(angle) - np.cos(angle) * push) / (0.5 * (4 / 3 - 0.1 * np.cos(angle) ** 2 / 1.1))
    speed_up = push - 0.05 * turn * np.cos(angle) / 1.1
    after = np.stack([x + 0.02 * v, v + 0.02 * speed_up, angle + 0.02 * spin, spin + 0.02 * turn], 1)
    return after.astype("float32"), (np.abs(after[:, 0]) > 2.4) | (np.abs(after[:, 2]) > 0.2095)


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.policy = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 2))
        self.value = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))

    def forward(self, state):
        return F.log_softmax(self.policy(state), 1), self.value(state).squeeze(1)


def ppo_loss(output, action, old, advantage, worth):
    log, value = output
    ratio = (log.gather(1, action.unsqueeze(1)).squeeze(1) - old).exp()
    gain = torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()
    return 0.5 * F.mse_loss(value, worth) - gain + 0.01 * (log.exp() * log).sum(1).mean()


torch.manual_seed(0)
agent = Agent()
optimizer = torch.optim.Adam(agent.parameters(), lr=3e-3)
state, start = 0.1 * rng.random((POLES, 4), "float32") - 0.05, time.perf_counter()
for epoch in range(30):
    states, actions = np.zeros((STEPS, POLES, 4), "float32"), np.zeros((STEPS, POLES), "int64")
    logs, values, falls, advantages = np.zeros((4, STEPS, POLES), "float32")
    for t in range(STEPS):
        with torch.no_grad():
            log, values[t] = (x.numpy() for x in agent(torch.from_numpy(state)))
        states[t], actions[t] = state, (log + rng.gumbel(size=log.shape)).argmax(1)
        logs[t] = log[np.arange(POLES), actions[t]]
        state, falls[t] = move(state, actions[t])
        state = np.where(falls[t, :, None], 0.1 * rng.random((POLES, 4), "float32") - 0.05, state)
    with torch.no_grad():
        following, gain = agent(torch.from_numpy(state))[1].numpy(), 0.0
    for t in reversed(range(STEPS)):
        gain = 1 + 0.99 * (1 - falls[t]) * (following + 0.95 * gain) - values[t]
        advantages[t], following = gain, values[t]
    scaled = (advantages - advantages.mean()) / advantages.std()
    rows = [x.reshape(STEPS * POLES, -1).squeeze(1) for x in (actions, logs, scaled, advantages + values)]
    for part in np.concatenate([rng.permutation(STEPS * POLES).reshape(8, -1) for _ in range(4)]):
        batch, *targets = (torch.from_numpy(x[part]) for x in (states.reshape(-1, 4), *rows))
        optimizer.zero_grad()
        ppo_loss(agent(batch), *targets).backward()
        nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
        optimizer.step()
    if epoch == 0:
        print(f"first epoch: {time.perf_counter() - start:.2f} s")
Path("out").mkdir(exist_ok=True)
exported = torch.export.export(agent.policy, (torch.zeros(20, 4),))
with torch.no_grad():
    policy = aoti_load_package(aoti_compile_and_package(exported, package_path=str(Path("out/policy.pt2").absolute())))
state, standing = 0.1 * rng.random((20, 4), "float32") - 0.05, np.ones(20, bool)
for _ in range(500):
    state, fell = move(state, policy(torch.from_numpy(state)).numpy().argmax(1))
    standing &= ~fell
print(f"the library balances {standing.sum()} of 20 poles for 500 steps")
