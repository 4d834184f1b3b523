"""Write a web page of a network: its layers, the graph after each pass of the compiler, kernels with their times."""

import subprocess
import sys
from pathlib import Path

import graphc as gc
from graphc import nn

gc.manual_seed(0)
net = nn.Sequential(
    *(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)),
    *(nn.Flatten(), nn.Linear(256, 10)),
)
Path("out").mkdir(exist_ok=True)
gc.export(net.eval(), gc.zeros(1, 1, 8, 8), path="out/net.gcm")
subprocess.run([sys.executable, "-m", "graphc", "view", "out/net.gcm", "-o", "out/net.html"], check=True)
