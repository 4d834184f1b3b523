"""Classify images in a folder for each class, with augmentation."""

from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

import graphc as gc
from graphc import nn
from graphc.data import DataLoader, Dataset, transforms
from graphc.nn import functional as F

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


plain = transforms.ToTensor()
augment = transforms.Compose([plain, transforms.RandomCrop(8, padding=1), transforms.GaussianNoise(0, 0.05)])
train = DataLoader(ImageFolder("out/train", augment), 64, shuffle=True)
valid = DataLoader(ImageFolder("out/test", plain), 360)

gc.manual_seed(0)
net = nn.Sequential(
    *(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
    *(nn.Flatten(), nn.Linear(512, 10)),
)
optimizer, metrics = gc.optim.Adam(net.parameters(), lr=3e-3), {"accuracy": gc.metrics.Accuracy()}
history = gc.fit(net, train, loss=F.cross_entropy, optimizer=optimizer, valid=valid, epochs=6, metrics=metrics)
print(f"first epoch: {history[0]['seconds']:.2f} s")
print(f"accuracy {history['valid.accuracy'][-1]:.3f}")
