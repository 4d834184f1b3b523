"""Write a notebook that trains on the iris flowers, run it, and convert it to a page."""

from pathlib import Path

import nbformat
from nbconvert import HTMLExporter
from nbconvert.preprocessors import ExecutePreprocessor

DATA = """
import time

import numpy as np
import torch
from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

x, y = load_iris(return_X_y=True)
x = ((x - x.mean(0)) / x.std(0)).astype(np.float32)
x_train, x_test, y_train, y_test = map(torch.from_numpy, train_test_split(x, y, random_state=0, stratify=y))
"""
TRAIN = """
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
loader = DataLoader(TensorDataset(x_train, y_train), 16, shuffle=True)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(30):
    start, total = time.perf_counter(), 0.0
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(inputs), targets)
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch == 0:
        print(f"first epoch: {time.perf_counter() - start:.2f} s")
    print(f"epoch {epoch + 1}: loss {total / len(loader):.4f}")
"""
RESULT = """
with torch.no_grad():
    classes = net(x_test).argmax(1)
print(f"accuracy {(classes == y_test).float().mean().item():.3f}")
"""

cells = [nbformat.v4.new_markdown_cell("# Iris"), *(nbformat.v4.new_code_cell(c) for c in (DATA, TRAIN, RESULT))]
notebook = nbformat.v4.new_notebook(cells=cells)
ExecutePreprocessor(timeout=120, kernel_name="python3").preprocess(notebook)
Path("out").mkdir(exist_ok=True)
nbformat.write(notebook, "out/iris.ipynb")
page, _ = HTMLExporter().from_notebook_node(notebook)
Path("out/iris.html").write_text(page, encoding="utf-8")
for cell in notebook.cells[1:]:
    print("".join(output.get("text", "") for output in cell.outputs), end="")
