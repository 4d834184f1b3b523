"""Train a network with binary weights: a function takes their sign, and passes gradients straight on."""

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import graphc as gc
from graphc import nn
from graphc.data import DataLoader, TensorDataset
from graphc.nn import functional as F


class Sign(gc.autograd.Function):
    """Sign of a weight, whose gradient is that of the weight between -1 and 1, and 0 beyond."""

    @staticmethod
    def forward(ctx, weight):
        ctx.save_for_backward(weight)
        return gc.where(weight < 0, -1.0, 1.0)

    @staticmethod
    def backward(ctx, *gradients):
        (weight,) = ctx.saved_tensors
        return gradients[0] * (weight.abs() <= 1)


class BinaryLinear(nn.Linear):
    """Linear layer whose weights are -1 or 1."""

    def forward(self, input):
        return F.linear(input, Sign.apply(self.weight), self.bias)


gc.manual_seed(0)
images, labels = load_digits(return_X_y=True)
x, test_x, y, test_y = train_test_split(images.astype("float32") / 16, labels, test_size=0.2, random_state=0)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
test_loader = DataLoader(TensorDataset(test_x, test_y), batch_size=360)
net = nn.Sequential(BinaryLinear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), BinaryLinear(128, 10), nn.BatchNorm1d(10))
step = gc.compile_step(net, F.cross_entropy, gc.optim.Adam(net.parameters(), lr=1e-3))
history = gc.fit(step, loader, valid=test_loader, metrics={"accuracy": gc.metrics.Accuracy()}, epochs=20)
print(f"first epoch: {history['seconds'][0]:.2f} s")
print(f"accuracy {history['valid.accuracy'][-1]:.3f}")
