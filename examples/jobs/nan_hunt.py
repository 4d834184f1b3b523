"""Find the operation that makes the first NaN of a training: a blank image has length 0, and is divided by it."""

import time

from sklearn.datasets import load_digits

import graphc as gc
from graphc import nn
from graphc.data import DataLoader, TensorDataset
from graphc.nn import functional as F


class Normalize(nn.Module):
    """Divides each image by its length."""

    def forward(self, x):
        return x / x.square().sum(1, keepdim=True).sqrt()


gc.manual_seed(0)
images, labels = load_digits(return_X_y=True)
images[1000] = 0
loader = DataLoader(TensorDataset(images.astype("float32") / 16, labels), batch_size=32)
net = nn.Sequential(Normalize(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
step = gc.compile_step(net, F.cross_entropy, gc.optim.Adam(net.parameters()), first_nan=True)
start = time.perf_counter()
try:
    for x, y in loader:
        step(x, y)
except gc.errors.NonFiniteError as error:
    print(f"first epoch: {time.perf_counter() - start:.2f} s")
    print(error)
    print(f"found: {str(error).splitlines()[0]}")
