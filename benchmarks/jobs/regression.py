"""Predict the progression of diabetes, stop early, and keep the best weights."""

import copy
import time

import numpy as np
import torch
from sklearn.datasets import load_diabetes
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

x, y = load_diabetes(return_X_y=True)
x, y = StandardScaler().fit_transform(x).astype(np.float32), ((y - 152) / 77).astype(np.float32)[:, None]
x_train, x_test, y_train, y_test = map(torch.from_numpy, train_test_split(x, y, test_size=0.3, random_state=0))

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3, weight_decay=1e-3)
train = DataLoader(TensorDataset(x_train, y_train), 32, shuffle=True)
best_loss, best_epoch, best_state = float("inf"), 0, {}
for epoch in range(100):
    start = time.perf_counter()
    net.train()
    for inputs, targets in train:
        optimizer.zero_grad()
        F.mse_loss(net(inputs), targets).backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        loss = F.mse_loss(net(x_test), y_test).item()
    if epoch == 0:
        print(f"first epoch: {time.perf_counter() - start:.2f} s")
    print(f"epoch {epoch + 1}: valid loss {loss:.4f}")
    if loss < best_loss:
        best_loss, best_epoch, best_state = loss, epoch, copy.deepcopy(net.state_dict())
    if epoch - best_epoch >= 10:
        break

net.load_state_dict(best_state)
with torch.no_grad():
    print(f"r2 {r2_score(y_test, net(x_test)):.3f}")
