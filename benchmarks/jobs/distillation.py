"""Distil a convolutional teacher into a small student, by softened scores."""

import time

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

TEMPERATURE = 3.0
pixels, labels = load_digits(return_X_y=True)
x = torch.from_numpy((pixels / 16).astype(np.float32).reshape(-1, 1, 8, 8))
y = torch.from_numpy(labels)


def accuracy(net):
    net.eval()
    with torch.no_grad():
        return (net(x[1400:]).argmax(1) == y[1400:]).float().mean().item()


torch.manual_seed(0)
teacher = nn.Sequential(
    *(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
    *(nn.Flatten(), nn.Dropout(0.2), nn.Linear(512, 10)),
)
train = DataLoader(TensorDataset(x[:1400], y[:1400]), 50, shuffle=True)
optimizer = torch.optim.Adam(teacher.parameters(), lr=2e-3)
for epoch in range(5):
    start = time.perf_counter()
    teacher.train()
    for inputs, targets in train:
        optimizer.zero_grad()
        F.cross_entropy(teacher(inputs), targets).backward()
        optimizer.step()
    result = accuracy(teacher)
    if epoch == 0:
        print(f"first epoch: {time.perf_counter() - start:.2f} s")
    print(f"teacher, epoch {epoch + 1}: accuracy {result:.3f}")
with torch.no_grad():
    soft = (teacher(x[:1400]) / TEMPERATURE).softmax(1)


def loss_of(logits, targets, soft):
    imitation = F.kl_div(F.log_softmax(logits / TEMPERATURE, 1), soft, reduction="batchmean")
    return 0.3 * F.cross_entropy(logits, targets) + 0.7 * TEMPERATURE**2 * imitation


student = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))
optimizer = torch.optim.Adam(student.parameters(), lr=5e-3)
loader = DataLoader(TensorDataset(x[:1400], y[:1400], soft), 50, shuffle=True)
for epoch in range(20):
    total = 0.0
    for inputs, targets, soft_targets in loader:
        optimizer.zero_grad()
        loss = loss_of(student(inputs), targets, soft_targets)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"student, epoch {epoch + 1}: loss {total / len(loader):.4f}")
print(f"teacher {accuracy(teacher):.3f}, student {accuracy(student):.3f}")
