"""Deep Q-learning on a small grid: replay memory, a target network that follows slowly, exploration that decays."""

import math
import random
from collections import deque, namedtuple
from itertools import count

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

device = torch.device("cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu")
Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))
BATCH_SIZE, GAMMA, EPS_START, EPS_END, EPS_DECAY, TAU, LR = 32, 0.95, 0.9, 0.05, 60, 0.02, 1e-3


class ReplayMemory:
    def __init__(self, capacity):
        self.memory = deque([], maxlen=capacity)

    def push(self, *args):
        """Save a transition"""
        self.memory.append(Transition(*args))

    def sample(self, batch_size):
        return random.sample(self.memory, batch_size)

    def __len__(self):
        return len(self.memory)


class Grid:
    """Walk from one corner of a grid to the other."""

    moves = ((0, 1), (0, -1), (1, 0), (-1, 0))

    def reset(self):
        self.place = np.zeros(2)
        return self.place / 4

    def step(self, action):
        self.place = np.clip(self.place + self.moves[action], 0, 4)
        done = bool((self.place == 4).all())
        return self.place / 4, 1.0 if done else -0.05, done


class DQN(nn.Module):
    def __init__(self, n_observations, n_actions):
        super().__init__()
        self.layer1 = nn.Linear(n_observations, 32)
        self.layer2 = nn.Linear(32, 32)
        self.value, self.advantage = nn.Linear(32, 1), nn.Linear(32, n_actions)

    def forward(self, x):
        x = F.relu(self.layer1(x))
        x = F.relu(self.layer2(x))
        advantage = self.advantage(x)
        return self.value(x) + advantage - advantage.mean(dim=1, keepdim=True)


def select_action(policy_net, state, steps_done):
    eps_threshold = EPS_END + (EPS_START - EPS_END) * math.exp(-1.0 * steps_done / EPS_DECAY)
    if random.random() > eps_threshold:
        with torch.no_grad():
            return policy_net(state).max(1).indices.view(1, 1)
    return torch.tensor([[random.randrange(4)]], device=device, dtype=torch.long)


def optimize_model(memory, policy_net, target_net, optimizer):
    if len(memory) < BATCH_SIZE:
        return None
    batch = Transition(*zip(*memory.sample(BATCH_SIZE)))
    non_final_mask = torch.tensor(tuple(s is not None for s in batch.next_state), device=device, dtype=torch.bool)
    non_final_next_states = torch.cat([s for s in batch.next_state if s is not None])
    state_batch, action_batch, reward_batch = torch.cat(batch.state), torch.cat(batch.action), torch.cat(batch.reward)
    state_action_values = policy_net(state_batch).gather(1, action_batch)
    next_state_values = torch.zeros(BATCH_SIZE, device=device)
    with torch.no_grad():
        best = policy_net(non_final_next_states).argmax(1, keepdim=True)
        next_state_values[non_final_mask] = target_net(non_final_next_states).gather(1, best).squeeze(1)
    expected_state_action_values = (next_state_values * GAMMA) + reward_batch
    criterion = nn.SmoothL1Loss()
    loss = criterion(state_action_values, expected_state_action_values.unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_value_(policy_net.parameters(), 100)
    optimizer.step()
    return loss.item()


def main():
    random.seed(3)
    torch.manual_seed(3)
    rng = np.random.default_rng(3)
    env = Grid()
    policy_net, target_net = DQN(2, 4).to(device), DQN(2, 4).to(device)
    with torch.no_grad():
        for p in policy_net.parameters():
            p.copy_(torch.as_tensor(rng.normal(0, 0.25, p.shape), dtype=p.dtype, device=p.device))
    target_net.load_state_dict(policy_net.state_dict())
    target_net.eval()
    optimizer = optim.AdamW(policy_net.parameters(), lr=LR, amsgrad=True)
    memory, losses, steps_done, durations = ReplayMemory(500), [], 0, []
    for i_episode in range(5):
        state = torch.tensor(env.reset(), dtype=torch.float32, device=device).unsqueeze(0)
        for t in count():
            action = select_action(policy_net, state, steps_done)
            steps_done += 1
            observation, reward, terminated = env.step(action.item())
            reward = torch.tensor([reward], device=device)
            next_state = None if terminated else torch.tensor(observation, dtype=torch.float32).unsqueeze(0)
            memory.push(state, action, next_state, reward)
            state = next_state
            loss = optimize_model(memory, policy_net, target_net, optimizer)
            if loss is not None:
                losses.append(loss)
            target_state, policy_state = target_net.state_dict(), policy_net.state_dict()
            for key in policy_state:
                target_state[key] = policy_state[key] * TAU + target_state[key] * (1 - TAU)
            target_net.load_state_dict(target_state)
            if terminated or t > 40:
                durations.append(t + 1)
                break
        print(f"episode {i_episode}: {durations[-1]} steps, memory {len(memory)}")
    mean = torch.tensor(durations, dtype=torch.float).unfold(0, 3, 1).mean(1).view(-1)
    return losses + mean.tolist()


if __name__ == "__main__":
    print(main())
