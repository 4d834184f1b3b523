"""Actor-critic on a cart with a pole: a categorical policy, returns, entropy, after PyTorch's own example."""

from collections import namedtuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Categorical, kl_divergence

SavedAction = namedtuple("SavedAction", ["log_prob", "value", "entropy"])
eps = np.finfo(np.float32).eps.item()


class CartPole:
    """The equations of Barto, Sutton and Anderson."""

    def __init__(self, rng):
        self.rng = rng

    def reset(self):
        self.state = self.rng.uniform(-0.05, 0.05, 4)
        return self.state

    def step(self, action):
        x, x_dot, theta, theta_dot = self.state
        force = 10.0 if action == 1 else -10.0
        cos, sin = np.cos(theta), np.sin(theta)
        temp = (force + 0.05 * theta_dot**2 * sin) / 1.1
        theta_acc = (9.8 * sin - cos * temp) / (0.5 * (4.0 / 3.0 - 0.1 * cos**2 / 1.1))
        x_acc = temp - 0.05 * theta_acc * cos / 1.1
        change = np.array([x_dot, x_acc, theta_dot, theta_acc])
        self.state = self.state + 0.02 * change
        return self.state, 1.0, bool(abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.21)


class Policy(nn.Module):
    """Actor and critic in one model."""

    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(4, 32)
        self.action_head = nn.Linear(32, 2)
        self.value_head = nn.Linear(32, 1)
        self.saved_actions = []
        self.rewards = []

    def forward(self, x):
        x = F.relu(self.affine1(x))
        action_prob = F.softmax(self.action_head(x), dim=-1)
        return action_prob, self.value_head(x)


def select_action(model, state, rng):
    state = torch.from_numpy(state).float()
    probs, state_value = model(state)
    m = Categorical(probs)
    # The draw is NumPy's, so that a run can be repeated anywhere.
    action = torch.tensor(int(rng.random() < m.probs[1].item()))
    model.saved_actions.append(SavedAction(m.log_prob(action), state_value, m.entropy()))
    return action.item()


def finish_episode(model, optimizer, gamma=0.99):
    R = 0
    policy_losses, value_losses, returns = [], [], []
    for r in model.rewards[::-1]:
        R = r + gamma * R
        returns.insert(0, R)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + eps)
    entropy = torch.stack([saved.entropy for saved in model.saved_actions]).mean()
    for (log_prob, value, _), R in zip(model.saved_actions, returns):
        advantage = R - value.item()
        policy_losses.append(-log_prob * advantage)
        value_losses.append(F.smooth_l1_loss(value, torch.tensor([R])))
    optimizer.zero_grad()
    loss = torch.stack(policy_losses).sum() + torch.stack(value_losses).sum() - 0.01 * entropy
    loss.backward()
    optimizer.step()
    del model.rewards[:]
    del model.saved_actions[:]
    return loss.item()


def main():
    torch.manual_seed(543)
    rng = np.random.default_rng(543)
    env = CartPole(rng)
    model = Policy()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.from_numpy(rng.normal(0, 0.3, p.shape)))
    optimizer = optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    running_reward = 10
    probe = torch.from_numpy(rng.uniform(-0.1, 0.1, (16, 4)).astype(np.float32))
    before = Categorical(probs=model(probe)[0].detach())
    for i_episode in range(12):
        state, ep_reward = env.reset(), 0
        for _t in range(1, 60):
            action = select_action(model, state, rng)
            state, reward, done = env.step(action)
            model.rewards.append(reward)
            ep_reward += reward
            if done:
                break
        running_reward = 0.05 * ep_reward + (1 - 0.05) * running_reward
        losses.append(finish_episode(model, optimizer))
        if i_episode % 4 == 0:
            print(f"Episode {i_episode}\tLast reward: {ep_reward:.2f}\tAverage reward: {running_reward:.2f}")
    after = Categorical(logits=model(probe)[0].detach().log())
    drift = kl_divergence(before, after)
    print(f"mean KL of the policy to its start: {drift.mean().item():.5f} over {after.batch_shape}")
    return [*losses, drift.mean().item(), running_reward]


if __name__ == "__main__":
    print(main())
