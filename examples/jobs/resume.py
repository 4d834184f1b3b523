"""Stop a training after three epochs, resume it, and compare the weights with those of a training without the stop."""

import hashlib

from sklearn.datasets import load_digits

import graphc as gc
from graphc import nn
from graphc.data import DataLoader, TensorDataset
from graphc.nn import functional as F

images, labels = load_digits(return_X_y=True)
data = TensorDataset(images.astype("float32") / 16, labels)


def train(epochs, folder):
    gc.manual_seed(0)
    net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.2), nn.Linear(128, 10))
    optimizer = gc.optim.AdamW(net.parameters(), lr=1e-3)
    schedule = gc.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=6)
    step = gc.compile_step(net, F.cross_entropy, optimizer)
    loader = DataLoader(data, batch_size=64, shuffle=True)
    history = gc.fit(step, loader, epochs=epochs, checkpoint=folder, callbacks=[schedule], bar=False)
    weights = b"".join(parameter.detach().numpy().tobytes() for parameter in net.parameters())
    return history, hashlib.sha256(weights).hexdigest()


history, expected = train(6, "out/whole")
print(f"first epoch: {history['seconds'][0]:.2f} s")
train(3, "out/run")
history, digest = train(6, "out/run")
print(f"loss {history['loss'][-1]:.4f}, weights {digest[:16]}, without the stop {expected[:16]}")
print(f"same weights: {digest == expected}")
