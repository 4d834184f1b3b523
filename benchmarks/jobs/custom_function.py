"""Train a network with binary weights by a function with a gradient of its own, with PyTorch."""

import time

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


class Sign(torch.autograd.Function):
    """Sign of a weight, whose gradient is that of the weight between -1 and 1, and 0 beyond."""

    @staticmethod
    def forward(ctx, weight):
        ctx.save_for_backward(weight)
        return torch.where(weight < 0, -1.0, 1.0)

    @staticmethod
    def backward(ctx, *gradients):
        (weight,) = ctx.saved_tensors
        return gradients[0] * (weight.abs() <= 1)


class BinaryLinear(nn.Linear):
    """Linear layer whose weights are -1 or 1."""

    def forward(self, input):
        return F.linear(input, Sign.apply(self.weight), self.bias)


torch.manual_seed(0)
images, labels = load_digits(return_X_y=True)
split = train_test_split(images.astype("float32") / 16, labels, test_size=0.2, random_state=0)
x, test_x, y, test_y = map(torch.tensor, split)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
test_loader = DataLoader(TensorDataset(test_x, test_y), batch_size=360)
net = nn.Sequential(BinaryLinear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), BinaryLinear(128, 10), nn.BatchNorm1d(10))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
accuracy = 0.0
start = time.perf_counter()
for epoch in range(20):
    net.train()
    for batch, target in loader:
        optimizer.zero_grad()
        F.cross_entropy(net(batch), target).backward()
        optimizer.step()
    if epoch == 0:
        print(f"first epoch: {time.perf_counter() - start:.2f} s")
    net.eval()
    with torch.no_grad():
        right = sum((net(batch).argmax(1) == target).sum().item() for batch, target in test_loader)
    accuracy = right / len(test_x)
    print(f"epoch {epoch + 1}: accuracy {accuracy:.3f}")
print(f"accuracy {accuracy:.3f}")
