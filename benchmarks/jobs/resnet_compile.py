"""Train a small ResNet of PyTorch on handwritten digits through torch.compile with its own compiler."""

import time

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


class Block(nn.Module):
    """Two convolutions with a residual connection."""

    def __init__(self, width):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)

    def forward(self, x):
        return F.relu(x + self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))))


torch.manual_seed(0)
images, labels = load_digits(return_X_y=True)
images = images.astype("float32").reshape(-1, 1, 8, 8) / 16
x, test_x, y, test_y = map(torch.tensor, train_test_split(images, labels, test_size=0.2, random_state=0))
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True, drop_last=True)
net = nn.Sequential(
    *(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), Block(16), Block(16), Block(16)),
    *(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(64, 10)),
)
model = torch.compile(net)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
start = time.perf_counter()
for epoch in range(4):
    total = 0.0
    for batch, target in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(batch), target)
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch == 0:
        print(f"first epoch: {time.perf_counter() - start:.2f} s")
    print(f"epoch {epoch + 1}: loss {total / len(loader):.4f}")
net.eval()
with torch.inference_mode():
    accuracy = (model(test_x).argmax(1) == test_y).float().mean().item()
print(f"accuracy {accuracy:.3f}")
