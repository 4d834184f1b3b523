"""Learn embeddings of digits from triplets, and classify by the nearest neighbour."""

import time

import numpy as np
from sklearn.datasets import load_digits

import graphc as gc
from graphc import nn
from graphc.nn import functional as F

pixels, labels = load_digits(return_X_y=True)
x = (pixels / 16).astype(np.float32)
x_train, y_train, x_test, y_test = x[:1400], labels[:1400], x[1400:], labels[1400:]
random = np.random.default_rng(0)
same = [np.flatnonzero(y_train == label) for label in range(10)]
other = [np.flatnonzero(y_train != label) for label in range(10)]

gc.manual_seed(0)
net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 16))
optimizer = gc.optim.Adam(net.parameters(), lr=1e-3)


def loss(anchors, positives, negatives):
    return F.triplet_margin_loss(net(anchors), net(positives), net(negatives), margin=1.0)


step = gc.compile_step(loss, optimizer=optimizer)
for epoch in range(10):
    start, losses = time.perf_counter(), []
    for rows in random.permutation(1400).reshape(-1, 50):
        positives = [random.choice(same[y]) for y in y_train[rows]]
        negatives = [random.choice(other[y]) for y in y_train[rows]]
        losses.append(step(*(gc.tensor(x_train[i]) for i in (rows, positives, negatives))).item())
    if epoch == 0:
        print(f"first epoch: {time.perf_counter() - start:.2f} s")
    print(f"epoch {epoch + 1}: loss {np.mean(losses):.4f}")

with gc.no_grad():
    nearest = gc.cdist(net(gc.tensor(x_test)), net(gc.tensor(x_train))).argmin(1).numpy()
print(f"accuracy {(y_train[nearest] == y_test).mean():.3f}")
