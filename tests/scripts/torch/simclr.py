"""Contrastive learning after SimCLR: two noisy views of each picture, NT-Xent, LARS-like warm-up, a linear probe."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR


class Encoder(nn.Module):
    def __init__(self, dim: int = 32) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, stride=2, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(inplace=True),
            nn.Conv2d(8, 16, 3, stride=2, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(inplace=True),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )
        self.projector = nn.Sequential(nn.Linear(16, dim), nn.ReLU(inplace=True), nn.Linear(dim, dim, bias=False))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h = self.features(x)
        return h, F.normalize(self.projector(h), dim=-1)


def info_nce_loss(features: Tensor, temperature: float = 0.2, n_views: int = 2) -> tuple[Tensor, Tensor]:
    batch = features.shape[0] // n_views
    labels = torch.cat([torch.arange(batch) for _ in range(n_views)], dim=0)
    labels = (labels.unsqueeze(0) == labels.unsqueeze(1)).float()
    similarity_matrix = torch.matmul(features, features.T)
    mask = torch.eye(labels.shape[0], dtype=torch.bool)
    labels = labels[~mask].view(labels.shape[0], -1)
    similarity_matrix = similarity_matrix[~mask].view(similarity_matrix.shape[0], -1)
    positives = similarity_matrix[labels.bool()].view(labels.shape[0], -1)
    negatives = similarity_matrix[~labels.bool()].view(similarity_matrix.shape[0], -1)
    logits = torch.cat([positives, negatives], dim=1) / temperature
    return logits, torch.zeros(logits.shape[0], dtype=torch.long)


def accuracy(output: Tensor, target: Tensor, topk: tuple[int, ...] = (1,)) -> list[Tensor]:
    with torch.no_grad():
        maxk = max(topk)
        _, pred = output.topk(maxk, 1, True, True)
        correct = pred.t().eq(target.view(1, -1).expand_as(pred.t()))
        return [correct[:k].reshape(-1).float().sum(0, keepdim=True).mul_(100.0 / target.size(0)) for k in topk]


def augment(x: Tensor, rng: np.random.Generator) -> Tensor:
    x = torch.roll(x, shifts=tuple(int(s) for s in rng.integers(-2, 3, 2)), dims=(2, 3))
    flips = torch.from_numpy(rng.random(x.size(0)) < 0.5)
    x = torch.where(flips[:, None, None, None], x.flip(dims=[3]), x)
    gain = torch.from_numpy(rng.uniform(0.7, 1.3, (x.size(0), 1, 1, 1)).astype(np.float32))
    return (x * gain + torch.from_numpy(rng.normal(0, 0.1, x.shape).astype(np.float32))).clamp(-2, 2)


def main() -> list[float]:
    torch.manual_seed(0)
    rng = np.random.default_rng(42)
    device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")
    yy, xx = np.mgrid[0:16, 0:16] / 15
    kind = rng.integers(0, 4, 128)
    waves = np.stack([np.sin(7 * xx), np.sin(7 * yy), np.sin(7 * (xx + yy)), np.sin(9 * xx) * np.sin(9 * yy)])
    images = torch.from_numpy(waves[kind][:, None]).float()
    labels = torch.from_numpy(kind).to(device)
    model = Encoder().to(device)
    with torch.no_grad():
        for p in model.parameters():
            if p.dim() > 1:
                fan_in = p[0].numel()
                p.copy_(torch.from_numpy(rng.normal(0, np.sqrt(2 / fan_in), tuple(p.shape))))
        for m in model.modules():
            if isinstance(m, (nn.Conv2d, nn.Linear)) and m.bias is not None:
                nn.init.zeros_(m.bias)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3, weight_decay=1e-4)
    warmup = LinearLR(optimizer, start_factor=0.1, total_iters=4)
    cosine = CosineAnnealingLR(optimizer, T_max=16)
    scheduler = SequentialLR(optimizer, schedulers=[warmup, cosine], milestones=[4])
    criterion = nn.CrossEntropyLoss()
    losses = []
    for step in range(20):
        batch = images[torch.from_numpy(rng.choice(128, 32, replace=False))]
        views = torch.cat([augment(batch, rng), augment(batch, rng)], dim=0).to(device)
        _, z = model(views)
        logits, target = info_nce_loss(z)
        loss = criterion(logits, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
        if step % 5 == 0:
            top1, top5 = accuracy(logits, target, topk=(1, 5))
            print(f"step {step}\tloss {loss:.4f}\ttop1 {top1[0]:.2f}\ttop5 {top5[0]:.2f}")
    model.eval()
    for p in model.parameters():
        p.requires_grad = False
    probe = nn.Linear(16, 4)
    probe.weight.data.zero_(), probe.bias.data.zero_()
    optimizer = torch.optim.SGD(filter(lambda p: p.requires_grad, probe.parameters()), lr=0.5)
    for _ in range(10):
        optimizer.zero_grad()
        loss = criterion(probe(model(images)[0]), labels)
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    return losses


if __name__ == "__main__":
    print(main())
