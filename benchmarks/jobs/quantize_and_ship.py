"""Quantize a trained network to int8, ship it as a file, and compare accuracy and size."""

import time
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.ao.quantization import get_default_qconfig_mapping
from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

pixels, labels = load_digits(return_X_y=True)
x, y = torch.from_numpy((pixels / 16).astype(np.float32)), torch.from_numpy(labels)
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
train = DataLoader(TensorDataset(x[:1400], y[:1400]), 50, shuffle=True)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(10):
    start, total = time.perf_counter(), 0.0
    for inputs, targets in train:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(inputs), targets)
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch == 0:
        print(f"first epoch: {time.perf_counter() - start:.2f} s")
    print(f"epoch {epoch + 1}: loss {total / len(train):.4f}")

prepared = prepare_fx(net.eval(), get_default_qconfig_mapping("x86"), (x[:1],))
with torch.no_grad():
    for inputs, _ in train:
        prepared(inputs)
small = convert_fx(prepared)
Path("out").mkdir(exist_ok=True)
results = []
for name, model in {"f32": net, "int8": small}.items():
    path = Path("out", f"{name}.pt")
    torch.jit.save(torch.jit.trace(model, x[:1]), path)
    with torch.no_grad():
        accuracy = (torch.jit.load(path)(x[1400:]).argmax(1) == y[1400:]).float().mean().item()
    results.append(f"{name} {accuracy:.3f} {path.stat().st_size / 1024:.0f} KiB")
print(", ".join(results))
