"""Classify handwritten digits with a convolutional network."""

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import graphc as gc
from graphc import nn
from graphc.data import DataLoader, TensorDataset
from graphc.nn import functional as F

gc.manual_seed(0)
images, labels = load_digits(return_X_y=True)
images = images.astype("float32").reshape(-1, 1, 8, 8) / 16
x, test_x, y, test_y = train_test_split(images, labels, test_size=0.2, random_state=0)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
test_loader = DataLoader(TensorDataset(test_x, test_y), batch_size=360)

net = nn.Sequential(
    *(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU()),
    *(nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2)),
    *(nn.Flatten(), nn.Dropout(0.2), nn.Linear(512, 10)),
)
step = gc.compile_step(net, F.cross_entropy, gc.optim.Adam(net.parameters(), lr=1e-3))
history = gc.fit(step, loader, valid=test_loader, metrics={"accuracy": gc.metrics.Accuracy()}, epochs=10)
print(f"first epoch: {history['seconds'][0]:.2f} s")
print(f"accuracy {history['valid.accuracy'][-1]:.3f}")
