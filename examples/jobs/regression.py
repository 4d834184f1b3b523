"""Predict the progression of diabetes, stop early, and keep the best weights."""

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import graphc as gc
from graphc import nn
from graphc.data import DataLoader, TensorDataset
from graphc.nn import functional as F

x, y = load_diabetes(return_X_y=True)
x, y = StandardScaler().fit_transform(x).astype(np.float32), (np.subtract(y, 152) / 77).astype(np.float32)[:, None]
x_train, x_test, y_train, y_test = train_test_split(x, y, test_size=0.3, random_state=0)

gc.manual_seed(0)
net = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 1))
optimizer = gc.optim.Adam(net.parameters(), lr=3e-3, weight_decay=1e-3)
train = DataLoader(TensorDataset(x_train, y_train), 32, shuffle=True)
valid = DataLoader(TensorDataset(x_test, y_test), 256)
history = gc.fit(
    *(net, train),
    loss=F.mse_loss,
    optimizer=optimizer,
    valid=valid,
    epochs=100,
    patience=10,
    keep_best=True,
    metrics={"r2": gc.metrics.R2()},
)
print(f"first epoch: {history[0]['seconds']:.2f} s")
print(f"r2 {history['valid.r2'][(history.best_epoch or 1) - 1]:.3f}")
