"""More models than those with performance targets, to show that the mechanism is fast and not the table."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

from benchmarks.models import standard
from benchmarks.models.standard import module


def build_mobilenet(nn: ModuleType) -> Any:
    """Return MobileNetV2: inverted residuals of 1x1, depthwise 3x3 and 1x1 convolutions."""
    F = nn.functional

    def unit(channels: int, filters: int, kernel: int, stride: int = 1, groups: int = 1) -> Any:
        conv = nn.Conv2d(channels, filters, kernel, stride, kernel // 2, groups=groups, bias=False)
        return nn.Sequential(conv, nn.BatchNorm2d(filters), nn.ReLU6())

    def inverted(channels: int, filters: int, stride: int, factor: int) -> Any:
        def forward(self, x):
            return x + self.body(x) if self.residual else self.body(x)

        wide = channels * factor
        layers = [unit(channels, wide, 1)] if factor != 1 else []
        layers.append(unit(wide, wide, 3, stride, wide))
        body = nn.Sequential(*layers, nn.Conv2d(wide, filters, 1, bias=False), nn.BatchNorm2d(filters))
        return module(nn, "InvertedResidual", forward, body=body, residual=stride == 1 and channels == filters)

    def forward(self, x):
        return self.fc(F.adaptive_avg_pool2d(self.features(x), 1).flatten(1))

    layers, channels = [unit(3, 32, 3, 2)], 32
    stages = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
    for factor, filters, count, stride in stages:
        for i in range(count):
            layers.append(inverted(channels, filters, stride if i == 0 else 1, factor))
            channels = filters
    features = nn.Sequential(*layers, unit(channels, 1280, 1))
    return module(nn, "MobileNetV2", forward, features=features, fc=nn.Linear(1280, 1000))


def build_unet(nn: ModuleType) -> Any:
    """Return a U-Net of three levels with 32 to 128 channels, transposed convolutions on the way up."""
    F = nn.functional

    def double(channels: int, filters: int) -> Any:
        layers = []
        for inputs in (channels, filters):
            layers += [nn.Conv2d(inputs, filters, 3, padding=1), nn.BatchNorm2d(filters), nn.ReLU()]
        return nn.Sequential(*layers)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        y = self.lift2(self.bottom(F.max_pool2d(b, 2)))
        y = self.lift1(self.up2(_cat(nn, [y, b])))
        return self.head(self.up1(_cat(nn, [y, a])))

    parts = {"down1": double(3, 32), "down2": double(32, 64), "bottom": double(64, 128)}
    parts |= {"lift2": nn.ConvTranspose2d(128, 64, 2, 2), "up2": double(128, 64)}
    parts |= {"lift1": nn.ConvTranspose2d(64, 32, 2, 2), "up1": double(64, 32)}
    return module(nn, "UNet", forward, **parts, head=nn.Conv2d(32, 2, 1))


def package_of(nn: ModuleType) -> ModuleType:
    return import_module(nn.__name__.partition(".")[0])


def _cat(nn: ModuleType, tensors: list[Any]) -> Any:
    return package_of(nn).cat(tensors, 1)


def build_vit(nn: ModuleType) -> Any:
    """Return a vision transformer of ViT-Tiny's shape with six layers: 16x16 patches, width 192, 3 heads."""

    def block() -> Any:
        def forward(self, x):
            batch, length, width = x.shape
            heads = self.qkv(self.norm1(x)).reshape(batch, length, 3, 3, width // 3).permute(2, 0, 3, 1, 4)
            y = nn.functional.scaled_dot_product_attention(heads[0], heads[1], heads[2])
            x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
            return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))

        parts = {"norm1": nn.LayerNorm(192), "norm2": nn.LayerNorm(192), "qkv": nn.Linear(192, 576)}
        parts |= {"out": nn.Linear(192, 192), "up": nn.Linear(192, 768), "down": nn.Linear(768, 192)}
        return module(nn, "Block", forward, **parts)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        return self.head(self.norm(self.blocks(x)).mean(1))

    parts = {"patches": nn.Conv2d(3, 192, 16, 16), "blocks": nn.Sequential(*[block() for _ in range(6)])}
    return module(nn, "ViT", forward, **parts, norm=nn.LayerNorm(192), head=nn.Linear(192, 1000))


def build_long_gpt(nn: ModuleType) -> Any:
    return standard.build_gpt(nn, 1024)


def build_gru(nn: ModuleType) -> Any:
    """Return a bidirectional GRU of two layers over 64 steps, a linear layer on every step."""

    def forward(self, x):
        y, _ = self.rnn(x)
        return self.out(y)

    rnn = nn.GRU(64, 96, num_layers=2, batch_first=True, bidirectional=True)
    return module(nn, "Tagger", forward, rnn=rnn, out=nn.Linear(192, 12))


def build_autoencoder(nn: ModuleType) -> Any:
    """Return a convolutional autoencoder of 64x64 images: strided convolutions down, transposed ones up."""
    down, up, channels = [], [], 3
    for filters in (32, 64, 128):
        down += [nn.Conv2d(channels, filters, 4, 2, 1), nn.ReLU()]
        channels = filters
    for filters in (64, 32, 3):
        up += [nn.ConvTranspose2d(channels, filters, 4, 2, 1), nn.ReLU() if filters > 3 else nn.Sigmoid()]
        channels = filters
    parts = {"down": nn.Sequential(*down), "up": nn.Sequential(*up)}
    return module(nn, "Autoencoder", lambda self, x: self.up(self.down(x)), **parts)


def build_tcn(nn: ModuleType) -> Any:
    """Return a temporal convolutional network: four residual blocks of dilated 1-d convolutions over 256 samples."""
    F = nn.functional

    def block(dilation: int) -> Any:
        convolutions = {n: nn.Conv1d(64, 64, 3, padding=dilation, dilation=dilation) for n in ("one", "two")}
        return module(nn, "Block", lambda self, x: F.relu(x + self.two(F.relu(self.one(x)))), **convolutions)

    parts = {"lift": nn.Conv1d(8, 64, 1), "blocks": nn.Sequential(*[block(2**i) for i in range(4)])}
    return module(
        nn, "Tcn", lambda self, x: self.head(self.blocks(self.lift(x)).mean(2)), **parts, head=nn.Linear(64, 5)
    )


def build_textcnn(nn: ModuleType) -> Any:
    """Return a sentence classifier: maxima of full-width convolutions over 3, 4 and 5 of 60 words."""
    F = nn.functional

    def forward(self, ids):
        x = self.words(ids).unsqueeze(1)
        features = [F.relu(conv(x)).squeeze(3) for conv in self.convs]
        return self.head(_cat(nn, [y.amax(2) for y in features]))

    words, convs = nn.Embedding(2000, 100), nn.ModuleList([nn.Conv2d(1, 64, (size, 100)) for size in (3, 4, 5)])
    return module(nn, "TextCnn", forward, words=words, convs=convs, head=nn.Linear(192, 5))


def build_dlrm(nn: ModuleType) -> Any:
    """Return a recommender: 13 numbers and 8 bags of 4 indices, inner products of all pairs, two small perceptrons."""
    package = package_of(nn)

    def forward(self, numbers, indices):
        x = self.bottom(numbers)
        rows = [x, *(table(indices[:, i]) for i, table in enumerate(self.tables))]
        z = package.stack(rows, 1)
        first, second = package.tril_indices(9, 9, offset=-1)
        return self.top(_cat(nn, [x, (z @ z.transpose(1, 2))[:, first, second]]))

    parts = {"tables": nn.ModuleList([nn.EmbeddingBag(1000, 32, mode="sum") for _ in range(8)])}
    parts["bottom"] = nn.Sequential(nn.Linear(13, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
    parts["top"] = nn.Sequential(nn.Linear(32 + 36, 128), nn.ReLU(), nn.Linear(128, 1))
    return module(nn, "Dlrm", forward, **parts)


def build_llama(nn: ModuleType) -> Any:
    """Return a decoder like LLaMA: RMS norms, rotary positions, 8 heads on 2 keys, gated perceptrons; 3x256."""
    F, package = nn.functional, package_of(nn)
    width, heads, keys, size = 256, 8, 2, 32

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.RMSNorm(width, eps=1e-6), nn.RMSNorm(width, eps=1e-6)
            self.query, self.out = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
            self.key, self.value = (nn.Linear(width, keys * size, bias=False) for _ in range(2))
            self.gate, self.up = nn.Linear(width, 688, bias=False), nn.Linear(width, 688, bias=False)
            self.down = nn.Linear(688, width, bias=False)

        def split(self, x, count):
            return x.view(x.shape[0], x.shape[1], count, size).transpose(1, 2)

        def turn(self, x, cos, sin):
            half = size // 2
            return x * cos + package.cat((-x[..., half:], x[..., :half]), -1) * sin

        def attend(self, x, cos, sin):
            query = self.turn(self.split(self.query(x), heads), cos, sin)
            key = self.turn(self.split(self.key(x), keys), cos, sin)
            key, value = (t.repeat_interleave(heads // keys, 1) for t in (key, self.split(self.value(x), keys)))
            y = F.scaled_dot_product_attention(query, key, value, is_causal=True)
            return self.out(y.transpose(1, 2).reshape(x.shape))

        def forward(self, x, cos, sin):
            x = x + self.attend(self.norm1(x), cos, sin)
            y = self.norm2(x)
            return x + self.down(F.silu(self.gate(y)) * self.up(y))

    class Llama(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(4000, width)
            self.layers = nn.ModuleList([Layer() for _ in range(3)])
            self.norm, self.head = nn.RMSNorm(width, eps=1e-6), nn.Linear(width, 4000, bias=False)
            rates = 10000.0 ** (-package.arange(0, size, 2).float() / size)
            angles = package.outer(package.arange(128).float(), rates)
            angles = package.cat((angles, angles), -1)
            self.register_buffer("cos", angles.cos())
            self.register_buffer("sin", angles.sin())

        def forward(self, ids):
            x, length = self.tokens(ids), ids.shape[1]
            for layer in self.layers:
                x = layer(x, self.cos[:length], self.sin[:length])
            return self.head(self.norm(x))

    return Llama()
