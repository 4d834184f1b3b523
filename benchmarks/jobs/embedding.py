"""Recommend items by matrix factorisation: learn ratings as products of embeddings."""

import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

USERS, ITEMS, RATINGS = 300, 200, 12000
random = np.random.default_rng(0)
tastes, traits = random.standard_normal((USERS, 4)), random.standard_normal((ITEMS, 4))
users, items = random.integers(0, USERS, RATINGS), random.integers(0, ITEMS, RATINGS)
ratings = ((tastes[users] * traits[items]).sum(1) / 2 + 0.1 * random.standard_normal(RATINGS)).astype(np.float32)
pairs, ratings = torch.from_numpy(np.stack([users, items], 1)), torch.from_numpy(ratings)


class Recommender(nn.Module):
    def __init__(self, size=8):
        super().__init__()
        self.users, self.items = nn.Embedding(USERS, size), nn.Embedding(ITEMS, size)
        self.user_bias, self.item_bias = nn.Embedding(USERS, 1), nn.Embedding(ITEMS, 1)
        for table in (self.users, self.items, self.user_bias, self.item_bias):
            nn.init.normal_(table.weight, std=0.1)

    def forward(self, pairs):
        user, item = pairs[:, 0], pairs[:, 1]
        biases = self.user_bias(user) + self.item_bias(item)
        return (self.users(user) * self.items(item)).sum(1) + biases.squeeze(1)


torch.manual_seed(0)
net = Recommender()
train = DataLoader(TensorDataset(pairs[:10000], ratings[:10000]), 100, shuffle=True)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(15):
    start = time.perf_counter()
    for inputs, targets in train:
        optimizer.zero_grad()
        F.mse_loss(net(inputs), targets).backward()
        optimizer.step()
    with torch.no_grad():
        rmse = F.mse_loss(net(pairs[10000:]), ratings[10000:]).sqrt().item()
    if epoch == 0:
        print(f"first epoch: {time.perf_counter() - start:.2f} s")
    print(f"epoch {epoch + 1}: rmse {rmse:.3f}")
print(f"rmse {rmse:.3f}")
