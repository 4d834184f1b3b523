"""Quantize a trained network to int8, ship it as a file, and compare accuracy and size."""

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import graphc as gc
from graphc import nn
from graphc.data import DataLoader, TensorDataset
from graphc.nn import functional as F

pixels, labels = load_digits(return_X_y=True)
x, y = (pixels / 16).astype(np.float32), labels
gc.manual_seed(0)
net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
train = DataLoader(TensorDataset(x[:1400], y[:1400]), 50, shuffle=True)
history = gc.fit(net, train, loss=F.cross_entropy, optimizer=gc.optim.Adam(net.parameters(), lr=1e-3), epochs=10)
print(f"first epoch: {history[0]['seconds']:.2f} s")

small = gc.quantize(net.eval(), train)
Path("out").mkdir(exist_ok=True)
results = []
for name, model in {"f32": net, "int8": small}.items():
    path = Path("out", f"{name}.gcm")
    gc.export(model, x[:1], path=path, dims=[(gc.Dim("batch", max=1024), 64)])
    accuracy = (gc.load(path)(x[1400:]).argmax(1) == y[1400:]).mean()
    results.append(f"{name} {accuracy:.3f} {path.stat().st_size / 1024:.0f} KiB")
print(", ".join(results))
