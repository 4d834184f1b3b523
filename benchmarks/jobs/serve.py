"""Train a network, export it, and let a new process answer requests by HTTP, with PyTorch."""

import json
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import urlopen

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

SERVER = """
import json
from http.server import BaseHTTPRequestHandler, HTTPServer
import torch

model = torch.export.load("out/net.pt2").module()

class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        images = torch.tensor(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.end_headers()
        with torch.inference_mode():
            self.wfile.write(json.dumps(model(images).argmax(1).tolist()).encode())

    def log_message(self, format, *args):
        pass

server = HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""

torch.manual_seed(0)
images, labels = load_digits(return_X_y=True)
split = train_test_split(images.astype("float32") / 16, labels, test_size=0.2, random_state=0)
x, test_x, y, test_y = map(torch.tensor, split)
net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
start = time.perf_counter()
for epoch in range(10):
    total = 0.0
    for batch, target in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(batch), target)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(batch)
    if epoch == 0:
        print(f"first epoch: {time.perf_counter() - start:.2f} s")
    print(f"epoch {epoch + 1}: loss {total / len(x):.4f}")
Path("out").mkdir(exist_ok=True)
torch.export.save(torch.export.export(net.eval(), (test_x[:1],)), "out/net.pt2")

with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True) as server:
    assert server.stdout
    url = f"http://127.0.0.1:{int(server.stdout.readline())}"
    answers = [json.load(urlopen(url, json.dumps([image.tolist()]).encode()))[0] for image in test_x]
    server.terminate()
print(f"{len(answers)} answers, accuracy {(torch.tensor(answers) == test_y).float().mean():.3f}")
