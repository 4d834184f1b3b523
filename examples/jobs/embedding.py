"""Recommend items by matrix factorisation: learn ratings as products of embeddings."""

import numpy as np

import graphc as gc
from graphc import nn
from graphc.data import DataLoader, TensorDataset
from graphc.nn import functional as F

USERS, ITEMS, RATINGS = 300, 200, 12000
random = np.random.default_rng(0)
tastes, traits = random.standard_normal((USERS, 4)), random.standard_normal((ITEMS, 4))
users, items = random.integers(0, USERS, RATINGS), random.integers(0, ITEMS, RATINGS)
ratings = ((tastes[users] * traits[items]).sum(1) / 2 + 0.1 * random.standard_normal(RATINGS)).astype(np.float32)
pairs = np.stack([users, items], 1)


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


gc.manual_seed(0)
net = Recommender()
train = DataLoader(TensorDataset(pairs[:10000], ratings[:10000]), 100, shuffle=True)
valid = DataLoader(TensorDataset(pairs[10000:], ratings[10000:]), 1000)
optimizer = gc.optim.Adam(net.parameters(), lr=1e-2)
history = gc.fit(
    net, train, loss=F.mse_loss, optimizer=optimizer, valid=valid, epochs=15, metrics={"rmse": gc.metrics.RMSE()}
)
print(f"first epoch: {history[0]['seconds']:.2f} s")
print(f"rmse {history['valid.rmse'][-1]:.3f}")
