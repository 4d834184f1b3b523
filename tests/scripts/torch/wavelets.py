"""Wavelets as strided convolutions: filters that are learned to reconstruct, shrinkage, denoising of a signal."""

import math
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Coefficients(NamedTuple):
    approximation: Tensor
    details: list[Tensor]


class Wavelet(nn.Module):
    """An orthogonal filter bank whose low-pass filter is learned; the high-pass filter mirrors it."""

    sign: Tensor

    def __init__(self, taps, levels=3):
        super().__init__()
        self.levels = levels
        self.low = nn.Parameter(torch.as_tensor(taps, dtype=torch.float32))
        self.register_buffer("sign", torch.tensor([(-1.0) ** i for i in range(len(taps))]))

    @property
    def high(self):
        return torch.flip(self.low, [0]) * self.sign

    def bank(self):
        return torch.stack((self.low, self.high)).unsqueeze(1)

    def analyse(self, x) -> Coefficients:
        details, a = [], x.unsqueeze(1)
        for _ in range(self.levels):
            a = F.pad(a, (self.low.numel() - 2, 0), mode="circular")
            a, d = F.conv1d(a, self.bank(), stride=2).chunk(2, dim=1)
            details.append(d)
        return Coefficients(a, details)

    def synthesise(self, c):
        a = c.approximation
        pad = self.low.numel() - 2
        for d in reversed(c.details):
            y = F.conv_transpose1d(torch.cat([a, d], dim=1), self.bank(), stride=2)
            n = y.shape[-1] - pad
            a = y[..., pad:] + F.pad(y[..., :pad], (n - pad, 0)) if pad else y
        return a.squeeze(1)

    def orthogonality(self):
        n = self.low.shape[0]
        shifts = [(self.low[2 * k :] * self.low[: n - 2 * k]).sum() for k in range(n // 2)]
        target = torch.eye(1, n // 2)[0]
        return (torch.stack(shifts) - target).square().sum() + (self.low.sum() - math.sqrt(2)) ** 2


class Denoiser(nn.Module):
    def __init__(self, wavelet):
        super().__init__()
        self.wavelet = wavelet
        self.log_threshold = nn.Parameter(torch.full((wavelet.levels,), -2.0))

    def forward(self, x):
        a, details = self.wavelet.analyse(x)
        thresholds = self.log_threshold.exp()
        shrunk = [torch.sign(d) * F.relu(d.abs() - t) for d, t in zip(details, thresholds)]
        return self.wavelet.synthesise(Coefficients(a, shrunk)), sum(s.abs().sum() for s in shrunk) / x.numel()


def haar_matrix(n):
    if n == 1:
        return torch.ones(1, 1)
    top = torch.kron(haar_matrix(n // 2), torch.tensor([[1.0, 1.0]]))
    bottom = torch.kron(torch.eye(n // 2), torch.tensor([[1.0, -1.0]]))
    return torch.vstack([top, bottom]) / 2**0.5


def signals(rng, n, length=64):
    t = torch.linspace(0, 1, length + 1)[:-1]
    steps = torch.from_numpy(rng.uniform(0.2, 0.8, (n, 1))).float()
    waves = torch.from_numpy(rng.integers(1, 4, (n, 1))).float()
    clean = torch.where(t > steps, 1.0, -1.0) + 0.5 * torch.sin(2 * torch.pi * waves * t)
    return clean, clean + 0.3 * torch.from_numpy(rng.standard_normal((n, length))).float()


def main():
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    H = haar_matrix(8)
    assert torch.allclose(H @ H.T, torch.eye(8), atol=1e-6)
    s3 = math.sqrt(3.0)
    db2 = np.array([1 + s3, 3 + s3, 3 - s3, 1 - s3]) / (4 * math.sqrt(2))
    clean, noisy = signals(rng, 32)
    exact = Wavelet(db2)
    with torch.no_grad():
        c = exact.analyse(clean)
        back = exact.synthesise(c)
        energy = sum(d.pow(2).sum() for d in (c.approximation, *c.details)) / clean.pow(2).sum()
        print("energy kept", energy.item(), "off by", (back - clean).abs().max().item())
    model = Denoiser(Wavelet(db2 + rng.normal(0, 0.1, 4)))
    optimizer = torch.optim.Adamax(
        [{"params": model.wavelet.parameters(), "lr": 5e-3}, {"params": model.log_threshold, "lr": 5e-2}]
    )
    scheduler = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=40, power=0.9)
    losses = [energy.item(), (back - clean).abs().max().item(), H.sum().item()]
    for step in range(40):
        out, sparsity = model(noisy)
        loss = F.l1_loss(out, clean) + 2.0 * model.wavelet.orthogonality() + 0.01 * sparsity
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
        if step % 10 == 0:
            snr = 10 * torch.log10(clean.var() / (out - clean).var())
            print(
                f"{step:3d} loss {loss.item():.4f} snr {snr.item():.2f} dB thresholds {model.log_threshold.exp().data}"
            )
    print("filter", [round(v, 4) for v in model.wavelet.low.tolist()])
    return losses + model.wavelet.low.tolist()


if __name__ == "__main__":
    print(main())
