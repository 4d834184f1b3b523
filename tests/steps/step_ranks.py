"""A training that several processes run together: how far each is from one on the whole batch."""

import copy
import hashlib
from typing import Any

import numpy as np

import graphc as gc
import graphc.distributed as dist
from graphc import nn
from graphc.distributed.communicator import Alone
from graphc.distributed.group import Group
from graphc.nn import functional as F
from graphc.nn.parallel import DistributedDataParallel
from graphc.optim import SGD, AdamW

ROWS = 24


def mlp():
    """Two layers."""
    gc.manual_seed(3)
    return nn.Sequential(nn.Linear(12, 8), nn.Tanh(), nn.Linear(8, 4)).double()


def cnn():
    """Windows, a norm of layers, and a product."""
    gc.manual_seed(4)
    layers = [nn.Conv2d(1, 3, 2), nn.GroupNorm(1, 3), nn.ReLU(), nn.MaxPool2d(2, 1), nn.Flatten(), nn.Linear(6, 4)]
    return nn.Sequential(nn.Unflatten(1, (1, 3, 4)), *layers).double()


def trained(
    net, steps=3, micro=1, buckets=0.0005, wrap: Any = DistributedDataParallel, traced=False, rule: Any = SGD, **options
) -> Any:
    """A copy of the network after some steps on this process's rows of the batches, and the step; with ``traced`` the
    graph of the step."""
    net, here = copy.deepcopy(net), dist.group()
    module = net if wrap is None else wrap(net, bucket_cap_mb=buckets)
    optimizer = rule(net.parameters(), lr=0.02)
    schedule = gc.optim.lr_scheduler.ExponentialLR(optimizer, 0.8)
    step = gc.compile_step(module, F.cross_entropy, optimizer, accumulate=micro, **options)
    if traced:
        return step.prepare(gc.ones(6, 12).double(), gc.zeros(6, dtype=gc.int64)).graph
    random = np.random.default_rng(0)
    for _ in range(steps):
        x, y = random.standard_normal((ROWS, 12)), random.integers(0, 4, ROWS)
        for i in range(micro):
            rows = slice(i * ROWS // micro + here.rank, (i + 1) * ROWS // micro, here.size)
            step(gc.tensor(x[rows]), gc.tensor(y[rows]))
        schedule.step()
    return net, step


def weights(net):
    """All weights in a row."""
    return np.concatenate([p.detach().numpy().ravel() for p in net.parameters()])


def main():
    """Trains twice, with the others and alone."""
    here = dist.init()
    for make in (mlp, cnn):
        many = weights(trained(make(), 20, 2, clip_norm=0.5, rule=AdamW)[0])
        with dist.using(Group(Alone())):
            one = weights(trained(make(), 20, 2, wrap=None, clip_norm=0.5, rule=AdamW)[0])
        row = f"{make.__name__} {here.rank} {np.abs(many - one).max():.1e} {hashlib.sha256(many.tobytes()).hexdigest()}"
        rows = here.gather_objects(row)
        if here.rank == 0:
            print("\n".join(rows))


if __name__ == "__main__":
    main()
