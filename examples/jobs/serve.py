"""Train a network, export it, and let a new process, which does not have the model's code, answer requests by HTTP."""

import json
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

from sklearn.datasets import load_digits
from sklearn.metrics import accuracy_score
from sklearn.model_selection import train_test_split

import graphc as gc
from graphc import nn
from graphc.data import DataLoader, TensorDataset
from graphc.nn import functional as F

SERVER = """
import json
from http.server import BaseHTTPRequestHandler, HTTPServer
import numpy as np
import graphc as gc

model = gc.load("out/net.gcm")

class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        images = np.array(json.loads(self.rfile.read(int(self.headers["Content-Length"]))), np.float32)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(model(images).argmax(1).tolist()).encode())

    def log_message(self, format, *args):
        pass

server = HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""

gc.manual_seed(0)
images, labels = load_digits(return_X_y=True)
x, test_x, y, test_y = train_test_split(images.astype("float32") / 16, labels, test_size=0.2, random_state=0)
net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
step = gc.compile_step(net, F.cross_entropy, gc.optim.Adam(net.parameters(), lr=2e-3))
history = gc.fit(step, DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True), epochs=10)
print(f"first epoch: {history['seconds'][0]:.2f} s")
Path("out").mkdir(exist_ok=True)
gc.export(net.eval(), test_x[:1], path="out/net.gcm")

with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True) as server:
    assert server.stdout
    url = f"http://127.0.0.1:{int(server.stdout.readline())}"
    answers = [json.load(urlopen(url, json.dumps([image.tolist()]).encode()))[0] for image in test_x]
    server.terminate()
print(f"{len(answers)} answers, accuracy {accuracy_score(test_y, answers):.3f}")
