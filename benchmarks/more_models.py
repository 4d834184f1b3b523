"""Models beside those that the targets were set for, so that what is fast is the mechanism and not the table."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

from benchmarks import models


def build_mobilenet(nn: ModuleType) -> Any:
    """MobileNetV2: inverted residuals of 1x1, depthwise 3x3 and 1x1 convolutions."""
    F = nn.functional

    def unit(channels: int, filters: int, kernel: int, stride: int = 1, groups: int = 1) -> Any:
        conv = nn.Conv2d(channels, filters, kernel, stride, kernel // 2, groups=groups, bias=False)
        return nn.Sequential(conv, nn.BatchNorm2d(filters), nn.ReLU6())

    class InvertedResidual(nn.Module):
        def __init__(self, channels: int, filters: int, stride: int, factor: int):
            super().__init__()
            wide = channels * factor
            layers = [unit(channels, wide, 1)] if factor != 1 else []
            layers.append(unit(wide, wide, 3, stride, wide))
            self.body = nn.Sequential(*layers, nn.Conv2d(wide, filters, 1, bias=False), nn.BatchNorm2d(filters))
            self.residual = stride == 1 and channels == filters

        def forward(self, x):
            return x + self.body(x) if self.residual else self.body(x)

    class MobileNetV2(nn.Module):
        def __init__(self):
            super().__init__()
            layers, channels = [unit(3, 32, 3, 2)], 32
            for factor, filters, count, stride in (
                (1, 16, 1, 1),
                (6, 24, 2, 2),
                (6, 32, 3, 2),
                (6, 64, 4, 2),
                (6, 96, 3, 1),
                (6, 160, 3, 2),
                (6, 320, 1, 1),
            ):
                for i in range(count):
                    layers.append(InvertedResidual(channels, filters, stride if i == 0 else 1, factor))
                    channels = filters
            self.features = nn.Sequential(*layers, unit(channels, 1280, 1))
            self.fc = nn.Linear(1280, 1000)

        def forward(self, x):
            return self.fc(F.adaptive_avg_pool2d(self.features(x), 1).flatten(1))

    return MobileNetV2()


def build_unet(nn: ModuleType) -> Any:
    """A U-Net of three levels with 32 to 128 channels, transposed convolutions on the way up."""
    F = nn.functional

    def double(channels: int, filters: int) -> Any:
        return nn.Sequential(
            nn.Conv2d(channels, filters, 3, padding=1),
            nn.BatchNorm2d(filters),
            nn.ReLU(),
            nn.Conv2d(filters, filters, 3, padding=1),
            nn.BatchNorm2d(filters),
            nn.ReLU(),
        )

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.down1, self.down2, self.bottom = double(3, 32), double(32, 64), double(64, 128)
            self.lift2, self.up2 = nn.ConvTranspose2d(128, 64, 2, 2), double(128, 64)
            self.lift1, self.up1 = nn.ConvTranspose2d(64, 32, 2, 2), double(64, 32)
            self.head = nn.Conv2d(32, 2, 1)

        def forward(self, x):
            a = self.down1(x)
            b = self.down2(F.max_pool2d(a, 2))
            y = self.lift2(self.bottom(F.max_pool2d(b, 2)))
            y = self.lift1(self.up2(_cat(nn, [y, b])))
            return self.head(self.up1(_cat(nn, [y, a])))

    return UNet()


def _cat(nn: ModuleType, parts: list[Any]) -> Any:
    """``cat`` along channels, from the package that ``nn`` belongs to."""
    return import_module(nn.__name__.partition(".")[0]).cat(parts, 1)


def build_vit(nn: ModuleType) -> Any:
    """A vision transformer of ViT-Tiny's shape with six layers: 16x16 patches, width 192, 3 heads."""

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(192), nn.LayerNorm(192)
            self.qkv, self.out = nn.Linear(192, 576), nn.Linear(192, 192)
            self.up, self.down = nn.Linear(192, 768), nn.Linear(768, 192)

        def forward(self, x):
            batch, length, width = x.shape
            parts = self.qkv(self.norm1(x)).reshape(batch, length, 3, 3, width // 3).permute(2, 0, 3, 1, 4)
            y = nn.functional.scaled_dot_product_attention(parts[0], parts[1], parts[2])
            x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
            return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))

    class ViT(nn.Module):
        def __init__(self):
            super().__init__()
            self.patches = nn.Conv2d(3, 192, 16, 16)
            self.blocks = nn.Sequential(*[Block() for _ in range(6)])
            self.norm, self.head = nn.LayerNorm(192), nn.Linear(192, 1000)

        def forward(self, x):
            x = self.patches(x).flatten(2).transpose(1, 2)
            return self.head(self.norm(self.blocks(x)).mean(1))

    return ViT()


def build_long_gpt(nn: ModuleType) -> Any:
    """The byte-level decoder with 1024 positions."""
    return models.build_gpt(nn, 1024)


def build_gru(nn: ModuleType) -> Any:
    """A bidirectional GRU of two layers over 64 steps, a linear layer on every step."""

    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = nn.GRU(64, 96, num_layers=2, batch_first=True, bidirectional=True)
            self.out = nn.Linear(192, 12)

        def forward(self, x):
            y, _ = self.rnn(x)
            return self.out(y)

    return Tagger()


def build_autoencoder(nn: ModuleType) -> Any:
    """A convolutional autoencoder of 64x64 images: strided convolutions down, transposed ones up."""

    class Autoencoder(nn.Module):
        def __init__(self):
            super().__init__()
            down, up, channels = [], [], 3
            for filters in (32, 64, 128):
                down += [nn.Conv2d(channels, filters, 4, 2, 1), nn.ReLU()]
                channels = filters
            for filters in (64, 32, 3):
                up += [nn.ConvTranspose2d(channels, filters, 4, 2, 1), nn.ReLU() if filters > 3 else nn.Sigmoid()]
                channels = filters
            self.down, self.up = nn.Sequential(*down), nn.Sequential(*up)

        def forward(self, x):
            return self.up(self.down(x))

    return Autoencoder()


def build_tcn(nn: ModuleType) -> Any:
    """A temporal convolutional network: four residual blocks of dilated 1-d convolutions over 256 samples."""
    F = nn.functional

    class Block(nn.Module):
        def __init__(self, dilation: int):
            super().__init__()
            self.one = nn.Conv1d(64, 64, 3, padding=dilation, dilation=dilation)
            self.two = nn.Conv1d(64, 64, 3, padding=dilation, dilation=dilation)

        def forward(self, x):
            return F.relu(x + self.two(F.relu(self.one(x))))

    class Tcn(nn.Module):
        def __init__(self):
            super().__init__()
            self.lift = nn.Conv1d(8, 64, 1)
            self.blocks = nn.Sequential(*[Block(2**i) for i in range(4)])
            self.head = nn.Linear(64, 5)

        def forward(self, x):
            return self.head(self.blocks(self.lift(x)).mean(2))

    return Tcn()
