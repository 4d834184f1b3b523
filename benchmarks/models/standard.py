"""Measured models, each written once for any framework with PyTorch's ``nn`` namespace.

A builder takes the ``nn`` of a framework (``torch.nn`` or ``graphc.nn``) and returns a new module. Both frameworks
therefore use the same parameter names, and ``state_dict`` moves weights between them.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any


def module(nn: ModuleType, name: str, forward: Callable[..., Any], **parts: Any) -> Any:
    """Return a module whose class has a name and ``forward(self, ...)``, with the parts as attributes."""
    model = type(name, (nn.Module,), {"forward": forward})()
    for attribute, part in parts.items():
        setattr(model, attribute, part)
    return model


def _net(nn: ModuleType, name: str, *layers: Any) -> Any:
    """Return a module that calls its ``net`` of these layers."""
    return module(nn, name, lambda self, x: self.net(x), net=nn.Sequential(*layers))


def build_policy(nn: ModuleType) -> Any:
    """Return a small control policy, bound by the latency of a call: 17 observations to 6 actions."""
    return _net(nn, "Policy", nn.Linear(17, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 6))


def build_mlp(nn: ModuleType) -> Any:
    """Return three wide layers: bound by memory at batch 1, by arithmetic at batch 64."""
    return _net(
        nn, "WideMlp", nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 1000)
    )


def build_net(nn: ModuleType) -> Any:
    """Return the network of examples/mnist.py: two small convolutions, dropout, two linear layers."""
    F = nn.functional

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(self.conv2_drop(self.conv2(x)), 2))
        x = F.relu(self.fc1(x.view(-1, 320)))
        x = F.dropout(x, training=self.training)
        return F.log_softmax(self.fc2(x), dim=1)

    convolutions = {"conv1": nn.Conv2d(1, 10, kernel_size=5), "conv2": nn.Conv2d(10, 20, kernel_size=5)}
    rest = {"conv2_drop": nn.Dropout2d(), "fc1": nn.Linear(320, 50), "fc2": nn.Linear(50, 10)}
    return module(nn, "Net", forward, **convolutions, **rest)


def _bottleneck(nn: ModuleType, channels: int, width: int, stride: int) -> Any:
    """Return one residual block: 1x1 down to `width`, 3x3 with `stride`, 1x1 up to four times `width`."""
    F, wide = nn.functional, 4 * width

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return F.relu(y + (x if self.shortcut is None else self.shortcut(x)))

    parts = {"conv1": nn.Conv2d(channels, width, 1, bias=False), "bn1": nn.BatchNorm2d(width)}
    parts |= {"conv2": nn.Conv2d(width, width, 3, stride=stride, padding=1, bias=False), "bn2": nn.BatchNorm2d(width)}
    parts |= {"conv3": nn.Conv2d(width, wide, 1, bias=False), "bn3": nn.BatchNorm2d(wide), "shortcut": None}
    if stride != 1 or channels != wide:
        projection = nn.Conv2d(channels, wide, 1, stride=stride, bias=False)
        parts["shortcut"] = nn.Sequential(projection, nn.BatchNorm2d(wide))
    return module(nn, "Bottleneck", forward, **parts)


def build_resnet50(nn: ModuleType) -> Any:
    """Return ResNet-50 with the stride in the 3x3 convolution."""
    F = nn.functional

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn(self.stem(x))), 3, stride=2, padding=1)
        return self.fc(self.blocks(x).mean((2, 3)))

    parts = {"stem": nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False), "bn": nn.BatchNorm2d(64)}
    blocks, channels = [], 64
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for index in range(count):
            blocks.append(_bottleneck(nn, channels, width, stride if index == 0 else 1))
            channels = 4 * width
    return module(nn, "ResNet50", forward, **parts, blocks=nn.Sequential(*blocks), fc=nn.Linear(channels, 1000))


def _transformer_block(nn: ModuleType, width: int, heads: int, inner: int, causal: bool) -> Any:
    """Return attention and a two-layer perceptron; norms before each when `causal` (GPT), else after each (BERT)."""
    F = nn.functional

    class TransformerBlock(nn.Module):
        def __init__(self):
            super().__init__()
            self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)

        def split(self, x):
            return x.view(x.shape[0], x.shape[1], heads, width // heads).transpose(1, 2)

        def attend(self, x):
            query, key, value = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
            y = F.scaled_dot_product_attention(query, key, value, is_causal=causal)
            return self.out(y.transpose(1, 2).reshape(x.shape[0], x.shape[1], width))

        def feed(self, x):
            return self.down(F.gelu(self.up(x)))

        def forward(self, x):
            if causal:
                x = x + self.attend(self.norm1(x))
                return x + self.feed(self.norm2(x))
            x = self.norm1(x + self.attend(x))
            return self.norm2(x + self.feed(x))

    return TransformerBlock()


def build_minilm(nn: ModuleType) -> Any:
    """Return an encoder like MiniLM-L6: 6 layers of width 384, 12 heads, inner width 1536; mean over tokens."""

    def forward(self, ids):
        x = self.norm(self.tokens(ids) + self.positions.weight[: ids.shape[1]])
        return self.blocks(x).mean(1)

    parts = {"tokens": nn.Embedding(30522, 384), "positions": nn.Embedding(512, 384), "norm": nn.LayerNorm(384)}
    blocks = nn.Sequential(*[_transformer_block(nn, 384, 12, 1536, causal=False) for _ in range(6)])
    return module(nn, "Encoder", forward, **parts, blocks=blocks)


def build_gpt(nn: ModuleType, length: int = 128) -> Any:
    """Return a byte-level decoder: 4 layers of width 256, 8 heads, ``length`` positions."""

    def forward(self, ids):
        x = self.tokens(ids) + self.positions.weight[: ids.shape[1]]
        return self.head(self.norm(self.blocks(x)))

    parts = {"tokens": nn.Embedding(256, 256), "positions": nn.Embedding(length, 256)}
    parts["blocks"] = nn.Sequential(*[_transformer_block(nn, 256, 8, 1024, causal=True) for _ in range(4)])
    return module(nn, "Gpt", forward, **parts, norm=nn.LayerNorm(256), head=nn.Linear(256, 256))


def build_lstm(nn: ModuleType) -> Any:
    """Return an LSTM of 64 inputs and 128 states, and a linear layer on the last state."""

    def forward(self, x):
        y, _ = self.rnn(x)
        return self.out(y[:, -1])

    return module(nn, "Tagger", forward, rnn=nn.LSTM(64, 128, batch_first=True), out=nn.Linear(128, 10))


def build_pointwise(nn: ModuleType) -> Any:
    """Return a chain of elementwise operations on two arrays, bound by memory when it is fused."""
    F = nn.functional
    return module(nn, "Pointwise", lambda self, a, b: F.gelu(a * b + a) * b.tanh() + a.sigmoid())


def build_rownorm(nn: ModuleType) -> Any:
    """Return layer normalisation and softmax over rows of 1024."""
    F = nn.functional
    return module(nn, "RowNorm", lambda self, x: F.softmax(self.norm(x), dim=-1), norm=nn.LayerNorm(1024))
