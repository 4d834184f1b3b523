"""Watch the activations of a network while it trains, with PyTorch."""

import time

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
images, labels = load_digits(return_X_y=True)
data = TensorDataset(torch.tensor(images, dtype=torch.float32) / 16, torch.tensor(labels))
loader = DataLoader(data, batch_size=64, shuffle=True)
layers = [module for _ in range(4) for module in (nn.Linear(64, 64), nn.ReLU())]
net = nn.Sequential(*layers, nn.Linear(64, 10))
latest = {}


def watch(name):
    def hook(module, args, output):
        values = output.detach()
        latest[name] = values.mean().item(), values.std().item(), (values == 0).float().mean().item()

    return hook


handles = [module.register_forward_hook(watch(name)) for name, module in net.named_children()]
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
losses = []
start = time.perf_counter()
for epoch in range(10):
    losses = []
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    if epoch == 0:
        print(f"first epoch: {time.perf_counter() - start:.2f} s")
for name, (mean, deviation, zeros) in latest.items():
    print(f"{name}: mean {mean:.3f}, deviation {deviation:.3f}, zeros {zeros:.1%}")
for handle in handles:
    handle.remove()
print(f"{len(latest)} layers watched, loss {losses[-1]:.3f}")
