"""Find outliers by the error of an autoencoder that learned one kind of digit."""

import numpy as np
from sklearn.datasets import load_digits

import graphc as gc
from graphc import nn
from graphc.data import DataLoader, TensorDataset
from graphc.nn import functional as F

pixels, labels = load_digits(return_X_y=True)
x = (pixels / 16).astype(np.float32)
zeros, others = x[labels == 0], x[labels != 0]
test = np.concatenate([zeros[120:], others])
is_outlier = np.arange(len(test)) >= len(zeros[120:])

gc.manual_seed(0)
net = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 4), nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 64))
loader = DataLoader(TensorDataset(zeros[:120], zeros[:120]), 20, shuffle=True)
history = gc.fit(net, loader, loss=F.mse_loss, optimizer=gc.optim.Adam(net.parameters(), lr=3e-3), epochs=60)
print(f"first epoch: {history[0]['seconds']:.2f} s")

with gc.no_grad():
    errors = F.mse_loss(net(gc.tensor(test)), gc.tensor(test), reduction="none").mean(1)
auroc = gc.metrics.AUROC()
auroc(errors, gc.tensor(is_outlier))
print(f"auroc {auroc.compute():.3f}")
