"""Train on handwritten digits in two processes, each with half of every batch: mpiexec -n 2 python two_processes.py."""

import time

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import graphc as gc
import graphc.distributed as dist
from graphc import nn
from graphc.data import DataLoader, DistributedSampler, TensorDataset
from graphc.nn import functional as F
from graphc.nn.parallel import DistributedDataParallel

dist.init()
gc.manual_seed(0)
images, labels = load_digits(return_X_y=True)
x, test_x, y, test_y = train_test_split(images.astype("float32") / 16, labels, test_size=0.2, random_state=0)
data = TensorDataset(x, y)
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=64 // dist.size(), sampler=sampler, drop_last=True)
net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
model = DistributedDataParallel(net)
step = gc.compile_step(model, F.cross_entropy, gc.optim.Adam(model.parameters(), lr=1e-3))
start = time.perf_counter()
for epoch in range(10):
    sampler.set_epoch(epoch)
    loss = dist.reduced(gc.stack([step(*batch) for batch in loader]).mean(), "mean").item()
    if dist.rank() == 0:
        if epoch == 0:
            print(f"first epoch: {time.perf_counter() - start:.2f} s")
        print(f"epoch {epoch + 1}: loss {loss:.4f}")
with gc.no_grad():
    accuracy = (net(gc.tensor(test_x)).argmax(1).numpy() == test_y).mean()
if dist.rank() == 0:
    print(f"accuracy {accuracy:.3f}")
