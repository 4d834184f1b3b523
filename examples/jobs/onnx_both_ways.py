"""Write a trained network as an ONNX file for any batch size, read the file back, and compare both."""

from pathlib import Path

from sklearn.datasets import load_digits

import graphc as gc
from graphc import nn
from graphc.data import DataLoader, TensorDataset
from graphc.nn import functional as F

gc.manual_seed(0)
images, labels = load_digits(return_X_y=True)
images = images.astype("float32").reshape(-1, 1, 8, 8) / 16
net = nn.Sequential(
    *(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)),
    *(nn.Flatten(), nn.Linear(256, 10)),
)
step = gc.compile_step(net, F.cross_entropy, gc.optim.Adam(net.parameters(), lr=2e-3))
history = gc.fit(step, DataLoader(TensorDataset(images, labels), batch_size=64, shuffle=True), epochs=5)
print(f"first epoch: {history['seconds'][0]:.2f} s")

Path("out").mkdir(exist_ok=True)
gc.export(net.eval(), images[:2], path="out/net.onnx", dims=[(gc.Dim("batch", max=2048),)])
model = gc.from_onnx("out/net.onnx")
with gc.no_grad():
    expected, scores = net(gc.tensor(images)), gc.compile(model, dims=model.dims)(gc.tensor(images))
print(f"largest difference {(scores - expected).abs().max().item():.1e}")
print(f"accuracy of the file {(scores.argmax(1).numpy() == labels).mean():.3f}")
