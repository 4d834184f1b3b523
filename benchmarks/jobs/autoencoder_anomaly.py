"""Find outliers by the error of an autoencoder that learned one kind of digit."""

import time

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

pixels, labels = load_digits(return_X_y=True)
x = torch.from_numpy((pixels / 16).astype(np.float32))
zeros, others = x[labels == 0], x[labels != 0]
test = torch.cat([zeros[120:], others])
is_outlier = np.arange(len(test)) >= len(zeros[120:])

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 4), nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 64))
loader = DataLoader(TensorDataset(zeros[:120]), 20, shuffle=True)
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(60):
    start, total = time.perf_counter(), 0.0
    for (inputs,) in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(net(inputs), inputs)
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch == 0:
        print(f"first epoch: {time.perf_counter() - start:.2f} s")
    print(f"epoch {epoch + 1}: loss {total / len(loader):.4f}")

with torch.no_grad():
    errors = F.mse_loss(net(test), test, reduction="none").mean(1)
print(f"auroc {roc_auc_score(is_outlier, errors):.3f}")
