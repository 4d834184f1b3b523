"""Stop a training after three epochs, resume it, and compare the weights, with PyTorch."""

import hashlib
import time
from pathlib import Path

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

images, labels = load_digits(return_X_y=True)
data = TensorDataset(torch.tensor(images, dtype=torch.float32) / 16, torch.tensor(labels))


def train(epochs, folder):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.2), nn.Linear(128, 10))
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=6)
    loader = DataLoader(data, batch_size=64, shuffle=True)
    path = Path(folder, "checkpoint.pt")
    path.parent.mkdir(parents=True, exist_ok=True)
    first, mean, first_s = 0, 0.0, 0.0
    if path.exists():
        saved = torch.load(path)
        net.load_state_dict(saved["net"])
        optimizer.load_state_dict(saved["optimizer"])
        schedule.load_state_dict(saved["schedule"])
        torch.set_rng_state(saved["random"])
        first = saved["epoch"]
    start = time.perf_counter()
    for epoch in range(first, epochs):
        total = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(x)
        mean = total / len(data)
        schedule.step()
        if epoch == first:
            first_s = time.perf_counter() - start
        parts = {"net": net, "optimizer": optimizer, "schedule": schedule}
        state = {name: part.state_dict() for name, part in parts.items()}
        torch.save({**state, "random": torch.get_rng_state(), "epoch": epoch + 1}, path)
    weights = b"".join(parameter.detach().numpy().tobytes() for parameter in net.parameters())
    return first_s, mean, hashlib.sha256(weights).hexdigest()


first_s, mean, expected = train(6, "out/whole")
print(f"first epoch: {first_s:.2f} s")
train(3, "out/run")
_, mean, digest = train(6, "out/run")
print(f"loss {mean:.4f}, weights {digest[:16]}, without the stop {expected[:16]}")
print(f"same weights: {digest == expected}")
