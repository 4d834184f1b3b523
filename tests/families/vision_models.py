"""Small models of images, written once for graphc and PyTorch: ``t`` is the library."""

from __future__ import annotations

from itertools import pairwise
from typing import Any


def mnist_cnn(t: Any) -> Any:
    """Two convolutions and two linear layers."""
    nn, F = t.nn, t.nn.functional

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(1, 4, kernel_size=5)
            self.conv2 = nn.Conv2d(4, 6, kernel_size=5)
            self.conv2_drop = nn.Dropout2d(0.0)
            self.fc1 = nn.Linear(96, 20)
            self.fc2 = nn.Linear(20, 10)

        def forward(self, x):
            x = F.relu(F.max_pool2d(self.conv1(x), 2))
            x = F.relu(F.max_pool2d(self.conv2_drop(self.conv2(x)), 2))
            x = F.relu(self.fc1(x.view(-1, 96)))
            return F.log_softmax(self.fc2(x), dim=1)

    return Net()


def resnet18(t: Any, width: int = 4) -> Any:
    """ResNet-18 (He et al. 2016): four stages of two blocks, with few channels."""
    nn, F = t.nn, t.nn.functional

    class Block(nn.Module):
        def __init__(self, channels, out, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(out)
            self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(out)
            self.shortcut = nn.Identity()
            if stride != 1 or channels != out:
                self.shortcut = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

        def forward(self, x):
            y = F.relu(self.bn1(self.conv1(x)), inplace=True)
            return F.relu(self.bn2(self.conv2(y)) + self.shortcut(x))

    class ResNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Sequential(
                nn.Conv2d(3, width, 7, 2, 3, bias=False),
                nn.BatchNorm2d(width),
                nn.ReLU(inplace=True),
                nn.MaxPool2d(3, 2, 1),
            )
            sizes = [width, width, 2 * width, 4 * width, 8 * width]
            stages = []
            for i, (a, b) in enumerate(pairwise(sizes)):
                stages.append(nn.Sequential(Block(a, b, 1 if i == 0 else 2), Block(b, b, 1)))
            self.stages = nn.Sequential(*stages)
            self.pool = nn.AdaptiveAvgPool2d(1)
            self.fc = nn.Linear(8 * width, 10)

        def forward(self, x):
            return self.fc(self.pool(self.stages(self.stem(x))).flatten(1))

    return ResNet()


def unet(t: Any, width: int = 4) -> Any:
    """U-Net (Ronneberger et al. 2015) of two levels."""
    nn = t.nn

    def double(a, b):
        layers = [nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(), nn.Conv2d(b, b, 3, padding=1), nn.ReLU()]
        return nn.Sequential(*layers)

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.down1, self.down2 = double(3, width), double(width, 2 * width)
            self.bottom = double(2 * width, 4 * width)
            self.up2 = nn.ConvTranspose2d(4 * width, 2 * width, 2, 2)
            self.join2 = double(4 * width, 2 * width)
            self.up1 = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)
            self.join1 = double(3 * width, width)
            self.head = nn.Conv2d(width, 2, 1)
            self.pool = nn.MaxPool2d(2)

        def forward(self, x):
            a = self.down1(x)
            b = self.down2(self.pool(a))
            c = self.bottom(self.pool(b))
            b = self.join2(t.cat([b, self.up2(c)], dim=1))
            return self.head(self.join1(t.cat([a, self.up1(b)], dim=1)))

    return UNet()


def vae(t: Any) -> Any:
    """A variational auto-encoder (Kingma and Welling 2014); the noise is an input."""
    nn = t.nn

    class VAE(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.Sequential(
                nn.Conv2d(1, 4, 3, 2, 1), nn.LeakyReLU(0.1), nn.Conv2d(4, 8, 3, 2, 1), nn.LeakyReLU(0.1), nn.Flatten()
            )
            self.mean, self.logvar = nn.Linear(72, 3), nn.Linear(72, 3)
            self.decoder = nn.Sequential(
                nn.Linear(3, 72),
                nn.ReLU(),
                nn.Unflatten(1, (8, 3, 3)),
                nn.ConvTranspose2d(8, 4, 4, 2, 1),
                nn.ReLU(),
                nn.ConvTranspose2d(4, 1, 4, 2, 1),
                nn.Sigmoid(),
            )

        def forward(self, x, noise):
            h = self.encoder(x)
            mean, logvar = self.mean(h), self.logvar(h)
            z = mean + t.exp(0.5 * logvar) * noise
            return self.decoder(z), mean, logvar

    return VAE()


def vit(t: Any, width: int = 16) -> Any:
    """A vision transformer (Dosovitskiy et al. 2021)."""
    nn = t.nn

    class ViT(nn.Module):
        def __init__(self):
            super().__init__()
            self.patches = nn.Conv2d(3, width, 4, 4)
            self.token = nn.Parameter(t.zeros(1, 1, width))
            self.position = nn.Parameter(t.zeros(1, 10, width))
            layer = nn.TransformerEncoderLayer(width, 4, 32, 0.0, "gelu", batch_first=True, norm_first=True)
            self.encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(width), enable_nested_tensor=False)
            self.head = nn.Linear(width, 5)

        def forward(self, x):
            x = self.patches(x).flatten(2).transpose(1, 2)
            x = t.cat([self.token.expand(x.shape[0], -1, -1), x], dim=1) + self.position
            return self.head(self.encoder(x)[:, 0])

    return ViT()


def yolo_head(t: Any, anchors: int = 2, classes: int = 3) -> Any:
    """A detector's backbone and head: boxes, objectness and classes per cell, decoded to pixels."""
    nn = t.nn

    def conv(a, b, stride):
        return nn.Sequential(nn.Conv2d(a, b, 3, stride, 1, bias=False), nn.BatchNorm2d(b), nn.SiLU())

    class Head(nn.Module):
        def __init__(self):
            super().__init__()
            self.backbone = nn.Sequential(conv(3, 6, 2), conv(6, 12, 2))
            self.deep = conv(12, 12, 2)
            self.up = nn.Upsample(scale_factor=2)
            self.mix = conv(24, 12, 1)
            self.predict = nn.Conv2d(12, anchors * (5 + classes), 1)
            self.register_buffer("sizes", t.tensor([[1.0, 2.0], [3.0, 1.5]]))

        def forward(self, x):
            a = self.backbone(x)
            x = self.mix(t.cat([a, self.up(self.deep(a))], 1))
            batch, _, rows, columns = x.shape
            x = self.predict(x).view(batch, anchors, 5 + classes, rows, columns).permute(0, 1, 3, 4, 2)
            y, x_ = t.meshgrid(t.arange(rows), t.arange(columns), indexing="ij")
            grid = t.stack([x_, y], dim=-1).float()
            centre = (x[..., 0:2].sigmoid() * 2 - 0.5 + grid) * 4
            size = (x[..., 2:4].sigmoid() * 2) ** 2 * self.sizes[:, None, None]
            boxes = t.cat([centre - size / 2, centre + size / 2], -1)
            return t.cat([boxes, x[..., 4:].sigmoid()], -1).reshape(batch, -1, 5 + classes)

    return Head()


def diffusion_block(t: Any, width: int = 8) -> Any:
    """A U-Net block of a diffusion model: group norms, a time embedding, residual connections, self-attention."""
    nn, F = t.nn, t.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.time = nn.Sequential(nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, 2 * width))
            self.norm1, self.conv1 = nn.GroupNorm(4, width), nn.Conv2d(width, 2 * width, 3, padding=1)
            self.norm2, self.conv2 = nn.GroupNorm(4, 2 * width), nn.Conv2d(2 * width, 2 * width, 3, padding=1)
            self.shortcut = nn.Conv2d(width, 2 * width, 1)
            self.norm3 = nn.GroupNorm(4, 2 * width)
            self.qkv, self.out = nn.Conv2d(2 * width, 6 * width, 1), nn.Conv2d(2 * width, 2 * width, 1)
            self.down, self.up = nn.Conv2d(2 * width, width, 3, 2, 1), nn.Conv2d(3 * width, 3, 3, padding=1)

        def embed(self, step):
            half, dtype = width // 2, self.norm1.weight.dtype
            speed = t.exp(-t.arange(half).to(dtype) * (9.21 / half))
            angle = step[:, None].to(dtype) * speed
            return self.time(t.cat([t.sin(angle), t.cos(angle)], dim=-1))

        def attend(self, x):
            batch, channels, rows, columns = x.shape
            q, k, v = self.qkv(self.norm3(x)).reshape(batch, 3, 2, channels // 2, rows * columns).unbind(1)
            q, k, v = (part.transpose(-1, -2) for part in (q, k, v))
            y = F.scaled_dot_product_attention(q, k, v).transpose(-1, -2).reshape(batch, channels, rows, columns)
            return x + self.out(y)

        def forward(self, x, step):
            h = self.conv1(F.silu(self.norm1(x))) + self.embed(step)[:, :, None, None]
            h = self.attend(self.conv2(F.silu(self.norm2(h))) + self.shortcut(x))
            low = F.interpolate(self.down(h), scale_factor=2, mode="nearest")
            return self.up(t.cat([h, low], dim=1))

    return Block()
