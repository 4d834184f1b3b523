"""Classify images in a folder for each class, with augmentation."""

import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

for i, (image, label) in enumerate(zip(*load_digits(return_X_y=True), strict=True)):
    path = Path("out", "test" if i % 5 == 0 else "train", str(label), f"{i}.png")
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray((image.reshape(8, 8) * 15).astype(np.uint8)).save(path)


class ImageFolder(Dataset):
    def __init__(self, root, transform):
        self.paths, self.transform = sorted(Path(root).glob("*/*.png")), transform
        self.classes = sorted({path.parent.name for path in self.paths})

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        path = self.paths[index]
        return self.transform(Image.open(path)), self.classes.index(path.parent.name)


def plain(image):
    return torch.from_numpy(np.array(image, np.float32) / 255)[None]


def augment(image):
    padded = F.pad(plain(image), (1, 1, 1, 1))
    top, left = torch.randint(0, 3, (2,)).tolist()
    crop = padded[:, top : top + 8, left : left + 8]
    return (crop + 0.05 * torch.randn(crop.shape)).clamp(0, 1)


train = DataLoader(ImageFolder("out/train", augment), 64, shuffle=True)
valid = DataLoader(ImageFolder("out/test", plain), 360)

torch.manual_seed(0)
net = nn.Sequential(
    *(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
    *(nn.Flatten(), nn.Linear(512, 10)),
)
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(6):
    start = time.perf_counter()
    for x, y in train:
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()
    with torch.no_grad():
        correct = sum((net(x).argmax(1) == y).sum().item() for x, y in valid)
    if epoch == 0:
        print(f"first epoch: {time.perf_counter() - start:.2f} s")
    print(f"epoch {epoch + 1}: accuracy {correct / len(valid.dataset):.3f}")
print(f"accuracy {correct / len(valid.dataset):.3f}")
