"""Find the operation that makes the first NaN of a training, with PyTorch: a look at each result."""

import time
import traceback

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.data import DataLoader, TensorDataset


class Normalize(nn.Module):
    """Divides each image by its length."""

    def forward(self, x):
        return x / x.square().sum(1, keepdim=True).sqrt()


class FirstNan(TorchDispatchMode):
    """Raises FloatingPointError at the first operation that makes a NaN."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        outputs = result if isinstance(result, tuple | list) else [result]
        if any(isinstance(x, torch.Tensor) and x.is_floating_point() and not x.isfinite().all() for x in outputs):
            shapes = ", ".join(str(tuple(x.shape)) for x in args if isinstance(x, torch.Tensor))
            raise FloatingPointError(f"{func} of {shapes} in {', '.join(current)}")
        return result


torch.manual_seed(0)
images, labels = load_digits(return_X_y=True)
images[1000] = 0
data = TensorDataset(torch.tensor(images, dtype=torch.float32) / 16, torch.tensor(labels))
loader = DataLoader(data, batch_size=32)
net = nn.Sequential(Normalize(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
current = []
for name, module in net.named_children():
    module.register_forward_pre_hook(
        lambda module, args, name=name: current.append(f"{name} ({type(module).__name__})")
    )
optimizer = torch.optim.Adam(net.parameters())
start = time.perf_counter()
try:
    with FirstNan():
        for step, (x, y) in enumerate(loader, 1):
            current[:] = [f"step {step}"]
            optimizer.zero_grad()
            F.cross_entropy(net(x), y).backward()
            optimizer.step()
except FloatingPointError as error:
    print(f"first epoch: {time.perf_counter() - start:.2f} s")
    print(next(line for line in traceback.format_exception(error) if "in forward" in line and __file__ in line))
    print(f"found: {error}")
