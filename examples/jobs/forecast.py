"""Forecast the next value of a mix of sines with an LSTM."""

import numpy as np

import graphc as gc
from graphc import nn
from graphc.data import DataLoader, TensorDataset
from graphc.nn import functional as F

time = np.arange(2000)
noise = 0.05 * np.random.default_rng(0).standard_normal(2000)
series = (np.sin(time / 5) + 0.5 * np.sin(time / 13) + noise).astype(np.float32)
windows = np.lib.stride_tricks.sliding_window_view(series, 33)
x, y = windows[:, :32, None].copy(), windows[:, 32:].copy()


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(1, 32, batch_first=True)
        self.head = nn.Linear(32, 1)

    def forward(self, x):
        outputs, _ = self.lstm(x)
        return self.head(outputs[:, -1])


gc.manual_seed(0)
net = Forecaster()
train = DataLoader(TensorDataset(x[:1600], y[:1600]), 64, shuffle=True)
valid = DataLoader(TensorDataset(x[1600:], y[1600:]), 512)
optimizer = gc.optim.Adam(net.parameters(), lr=1e-2)
history = gc.fit(
    net, train, loss=F.mse_loss, optimizer=optimizer, valid=valid, epochs=15, metrics={"rmse": gc.metrics.RMSE()}
)
print(f"first epoch: {history[0]['seconds']:.2f} s")
print(f"rmse {history['valid.rmse'][-1]:.3f}")
