"""Distil a convolutional teacher into a small student, by softened scores."""

import numpy as np
from sklearn.datasets import load_digits

import graphc as gc
from graphc import nn
from graphc.data import DataLoader, TensorDataset
from graphc.nn import functional as F

TEMPERATURE = 3.0
pixels, labels = load_digits(return_X_y=True)
x = gc.tensor((pixels / 16).astype(np.float32).reshape(-1, 1, 8, 8))
y = gc.tensor(labels)
valid, metrics = DataLoader(TensorDataset(x[1400:], y[1400:]), 397), {"accuracy": gc.metrics.Accuracy()}

gc.manual_seed(0)
teacher = nn.Sequential(
    *(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
    *(nn.Flatten(), nn.Dropout(0.2), nn.Linear(512, 10)),
)
train = DataLoader(TensorDataset(x[:1400], y[:1400]), 50, shuffle=True)
optimizer = gc.optim.Adam(teacher.parameters(), lr=2e-3)
history = gc.fit(teacher, train, loss=F.cross_entropy, optimizer=optimizer, valid=valid, epochs=5, metrics=metrics)
print(f"first epoch: {history[0]['seconds']:.2f} s")
teacher.eval()
with gc.no_grad():
    soft = (teacher(x[:1400]) / TEMPERATURE).softmax(1)


def loss(logits, targets, soft):
    imitation = F.kl_div(F.log_softmax(logits / TEMPERATURE, 1), soft, reduction="batchmean")
    return 0.3 * F.cross_entropy(logits, targets) + 0.7 * TEMPERATURE**2 * imitation


student = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))
step = gc.compile_step(student, loss, gc.optim.Adam(student.parameters(), lr=5e-3))
gc.fit(step, DataLoader(TensorDataset(x[:1400], y[:1400], soft), 50, shuffle=True), epochs=20)
with gc.no_grad():
    accuracies = [(net(x[1400:]).argmax(1) == y[1400:]).float().mean().item() for net in (teacher, student)]
print("teacher {:.3f}, student {:.3f}".format(*accuracies))
