"""Forecast the next value of a mix of sines with an LSTM."""

from time import perf_counter

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

time = np.arange(2000)
noise = 0.05 * np.random.default_rng(0).standard_normal(2000)
series = torch.from_numpy((np.sin(time / 5) + 0.5 * np.sin(time / 13) + noise).astype(np.float32))
windows = series.unfold(0, 33, 1)
x, y = windows[:, :32, None], windows[:, 32:]


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(1, 32, batch_first=True)
        self.head = nn.Linear(32, 1)

    def forward(self, x):
        outputs, _ = self.lstm(x)
        return self.head(outputs[:, -1])


torch.manual_seed(0)
net = Forecaster()
train = DataLoader(TensorDataset(x[:1600], y[:1600]), 64, shuffle=True)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(15):
    start = perf_counter()
    for inputs, targets in train:
        optimizer.zero_grad()
        F.mse_loss(net(inputs), targets).backward()
        optimizer.step()
    with torch.no_grad():
        rmse = F.mse_loss(net(x[1600:]), y[1600:]).sqrt().item()
    if epoch == 0:
        print(f"first epoch: {perf_counter() - start:.2f} s")
    print(f"epoch {epoch + 1}: rmse {rmse:.3f}")
print(f"rmse {rmse:.3f}")
