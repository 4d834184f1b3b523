"""Write a trained network as an ONNX file, run the file by ONNX Runtime, and compare both, with PyTorch."""

import time
from pathlib import Path

import onnxruntime
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
images, labels = load_digits(return_X_y=True)
x = torch.tensor(images, dtype=torch.float32).reshape(-1, 1, 8, 8) / 16
y = torch.tensor(labels)
net = nn.Sequential(
    *(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)),
    *(nn.Flatten(), nn.Linear(256, 10)),
)
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
start = time.perf_counter()
for epoch in range(5):
    total = 0.0
    for batch, target in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(batch), target)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(batch)
    if epoch == 0:
        print(f"first epoch: {time.perf_counter() - start:.2f} s")
    print(f"epoch {epoch + 1}: loss {total / len(x):.4f}")

Path("out").mkdir(exist_ok=True)
torch.onnx.export(net.eval(), (x[:2],), "out/net.onnx", dynamic_shapes=({0: torch.export.Dim("batch", max=2048)},))
session = onnxruntime.InferenceSession("out/net.onnx")
with torch.no_grad():
    expected = net(x)
scores = torch.tensor(session.run(None, {session.get_inputs()[0].name: x.numpy()})[0])
print(f"largest difference {(scores - expected).abs().max().item():.1e}")
print(f"accuracy of the file {(scores.argmax(1) == y).float().mean().item():.3f}")
