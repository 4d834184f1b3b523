"""Train on handwritten digits in two processes, with PyTorch: torchrun --nproc-per-node 2 two_processes.py."""

import time

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
torch.manual_seed(0)
images, labels = load_digits(return_X_y=True)
split = train_test_split(images.astype("float32") / 16, labels, test_size=0.2, random_state=0)
x, test_x, y, test_y = map(torch.tensor, split)
data = TensorDataset(x, y)
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=64 // dist.get_world_size(), sampler=sampler, drop_last=True)
net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
model = DistributedDataParallel(net)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
start = time.perf_counter()
for epoch in range(10):
    sampler.set_epoch(epoch)
    losses = []
    for batch, target in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(batch), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    mean = torch.stack(losses).mean() / dist.get_world_size()
    dist.all_reduce(mean)
    if dist.get_rank() == 0:
        if epoch == 0:
            print(f"first epoch: {time.perf_counter() - start:.2f} s")
        print(f"epoch {epoch + 1}: loss {mean:.4f}")
with torch.no_grad():
    accuracy = (net(test_x).argmax(1) == test_y).float().mean().item()
if dist.get_rank() == 0:
    print(f"accuracy {accuracy:.3f}")
dist.destroy_process_group()
