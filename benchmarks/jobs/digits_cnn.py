"""Classify handwritten digits with a convolutional network, with PyTorch."""

import time

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
images, labels = load_digits(return_X_y=True)
images = images.astype("float32").reshape(-1, 1, 8, 8) / 16
x, test_x, y, test_y = map(torch.tensor, train_test_split(images, labels, test_size=0.2, random_state=0))
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
test_loader = DataLoader(TensorDataset(test_x, test_y), batch_size=360)

net = nn.Sequential(
    *(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU()),
    *(nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2)),
    *(nn.Flatten(), nn.Dropout(0.2), nn.Linear(512, 10)),
)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
accuracy = 0.0
start = time.perf_counter()
for epoch in range(10):
    net.train()
    total = 0.0
    for batch, target in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(batch), target)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(batch)
    if epoch == 0:
        print(f"first epoch: {time.perf_counter() - start:.2f} s")
    net.eval()
    right, test_total = 0, 0.0
    with torch.no_grad():
        for batch, target in test_loader:
            scores = net(batch)
            right += (scores.argmax(1) == target).sum().item()
            test_total += F.cross_entropy(scores, target).item() * len(batch)
    accuracy = right / len(test_x)
    print(f"epoch {epoch + 1}: loss {total / len(x):.4f}, valid.loss {test_total / len(test_x):.4f}, {accuracy:.4f}")
print(f"accuracy {accuracy:.3f}")
