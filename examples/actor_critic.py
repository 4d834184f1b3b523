"""An actor and a critic with an optimizer each in one compiled step: balls are pushed to the middle of a table."""

from __future__ import annotations

import numpy as np

import graphc as gc
from graphc import nn
from graphc.nn import functional as F

BALLS = 64
PUSHES = np.array([-0.1, 0.0, 0.1], np.float32)


class Agent(nn.Module):
    """Policy and value function: logits of the actions, and the value of a state."""

    def __init__(self):
        super().__init__()
        self.policy = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 3))
        self.value = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self, state):
        return self.policy(state), self.value(state).squeeze(1)


def losses(output, action, worth):
    """Return the losses by optimizer name, and the entropy of the policy."""
    logits, value = output
    log = F.log_softmax(logits, 1)
    entropy = -(log.exp() * log).sum(1).mean()
    chosen = log.gather(1, action.unsqueeze(1)).squeeze(1)
    advantage = (worth - value).detach()
    return {"actor": -(chosen * advantage).mean() - 0.01 * entropy, "critic": F.mse_loss(value, worth)}, entropy


def move(state: np.ndarray, action: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return positions and speeds after a push, and the rewards: less the farther a ball is from the middle."""
    speed = 0.9 * state[:, 1] + PUSHES[action]
    position = np.clip(state[:, 0] + speed, -2, 2)
    return np.stack([position, speed], 1), -np.abs(position)


def main() -> None:
    gc.manual_seed(0)
    rng = np.random.default_rng(0)
    agent = Agent()
    look = gc.compile(agent)
    optimizers = {
        "actor": gc.optim.Adam(agent.policy.parameters(), lr=3e-3),
        "critic": gc.optim.Adam(agent.value.parameters(), lr=1e-2),
    }
    step = gc.compile_step(agent, losses, optimizers, clip_norm=1.0)
    entropy = gc.tensor(0.0)
    for episode in range(60):
        state = rng.uniform(-1, 1, (BALLS, 2)).astype(np.float32) * np.array([1, 0.1], np.float32)
        total = np.zeros(BALLS, np.float32)
        for _ in range(20):
            with gc.no_grad():
                logits, _ = look(gc.from_numpy(state))
                noise = rng.gumbel(size=logits.shape).astype(np.float32)
                action = (logits.numpy() + noise).argmax(1)
                after, reward = move(state, action)
                worth = reward + 0.9 * look(gc.from_numpy(after))[1].numpy()
            _, entropy = step(gc.from_numpy(state), gc.from_numpy(action), gc.from_numpy(worth))
            total, state = total + reward, after
        if episode % 10 == 0 or episode == 59:
            print(f"episode {episode}: reward {total.mean():.2f}, entropy {entropy.item():.2f}")


if __name__ == "__main__":
    main()
