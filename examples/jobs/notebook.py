"""Write a notebook that trains on the iris flowers, run it, and convert it to a page."""

from pathlib import Path

import nbformat
from nbconvert import HTMLExporter
from nbconvert.preprocessors import ExecutePreprocessor

DATA = """
import numpy as np
from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split

import graphc as gc
from graphc import nn
from graphc.data import DataLoader, TensorDataset
from graphc.nn import functional as F

x, y = load_iris(return_X_y=True)
x = ((x - x.mean(0)) / x.std(0)).astype(np.float32)
x_train, x_test, y_train, y_test = train_test_split(x, y, random_state=0, stratify=y)
"""
TRAIN = """
gc.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
loader = DataLoader(TensorDataset(x_train, y_train), 16, shuffle=True)
history = gc.fit(net, loader, loss=F.cross_entropy, optimizer=gc.optim.Adam(net.parameters(), lr=1e-2), epochs=30)
print(f"first epoch: {history[0]['seconds']:.2f} s")
"""
RESULT = """
with gc.no_grad():
    classes = net(gc.tensor(x_test)).argmax(1).numpy()
print(f"accuracy {(classes == y_test).mean():.3f}")
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
