"""Watch the activations of a network while it trains: mean, deviation and share of dead units by layer."""

import time

from sklearn.datasets import load_digits

import graphc as gc
from graphc import nn
from graphc.data import DataLoader, TensorDataset
from graphc.hooks import tap, traced
from graphc.nn import functional as F

gc.manual_seed(0)
images, labels = load_digits(return_X_y=True)
loader = DataLoader(TensorDataset(images.astype("float32") / 16, labels), batch_size=64, shuffle=True)
layers = [module for _ in range(4) for module in (nn.Linear(64, 64), nn.ReLU())]
net = nn.Sequential(*layers, nn.Linear(64, 10))
latest = {}


def watch(name):
    return traced(lambda module, args, output: tap(output, lambda s: latest.update({name: s}), "mean zeros"))


handles = [module.register_forward_hook(watch(name)) for name, module in net.named_children()]
step = gc.compile_step(net, F.cross_entropy, gc.optim.Adam(net.parameters(), lr=1e-3))
losses = []
start = time.perf_counter()
for epoch in range(10):
    losses = [step(x, y).item() for x, y in loader]
    if epoch == 0:
        print(f"first epoch: {time.perf_counter() - start:.2f} s")
for name, s in latest.items():
    print(f"{name}: mean {s.mean:.3f}, deviation {s.std:.3f}, zeros {s.zeros:.1%}")
for handle in handles:
    handle.remove()
print(f"{len(latest)} layers watched, loss {losses[-1]:.3f}")
