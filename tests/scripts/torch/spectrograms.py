"""Sounds told apart by log-mel spectrograms: short-time Fourier transforms, masking, a convolutional classifier."""

import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

SAMPLE_RATE, LENGTH = 8000, 2048


def hz_to_mel(f):
    return 2595.0 * torch.log10(torch.as_tensor(1.0 + f / 700.0))


def mel_filterbank(n_freqs, n_mels):
    all_freqs = torch.linspace(0, SAMPLE_RATE // 2, n_freqs)
    m_pts = torch.linspace(hz_to_mel(0.0).item(), hz_to_mel(SAMPLE_RATE / 2).item(), n_mels + 2)
    f_pts = 700.0 * (10.0 ** (m_pts / 2595.0) - 1.0)
    f_diff = f_pts[1:] - f_pts[:-1]
    slopes = f_pts.unsqueeze(0) - all_freqs.unsqueeze(1)
    down = (-1.0 * slopes[:, :-2]) / f_diff[:-1]
    up = slopes[:, 2:] / f_diff[1:]
    return torch.max(torch.zeros(1), torch.min(down, up))


class LogMel(nn.Module):
    def __init__(self, n_fft=256, hop_length=128, n_mels=20):
        super().__init__()
        self.n_fft, self.hop_length = n_fft, hop_length
        self.register_buffer("window", torch.hann_window(n_fft))
        self.register_buffer("fb", mel_filterbank(n_fft // 2 + 1, n_mels), persistent=False)

    def forward(self, wave):
        spec = torch.stft(
            wave, n_fft=self.n_fft, hop_length=self.hop_length, window=self.window, center=True, return_complex=True
        )
        power = spec.abs().pow(2.0)
        mel = torch.matmul(power.transpose(-1, -2), self.fb).transpose(-1, -2)
        return torch.log(mel.clamp(min=1e-5)).unsqueeze(1)


class Classifier(nn.Module):
    def __init__(self, n_classes):
        super().__init__()
        self.frontend = LogMel()
        self.conv1 = nn.Conv2d(1, 8, 3, padding="same")
        self.pool = nn.MaxPool2d(2)
        self.conv2 = nn.Conv2d(8, 16, 3, padding="same")
        self.norm = nn.InstanceNorm2d(1, affine=True)
        self.fc = nn.Linear(16, n_classes)

    def forward(self, wave, mask=None):
        x = self.norm(self.frontend(wave))
        if mask is not None:
            x = x.masked_fill(mask[:, None, :, None], 0.0)
        x = self.pool(F.gelu(self.conv1(x), approximate="tanh"))
        x = F.gelu(self.conv2(x))
        return self.fc(x.mean(dim=(2, 3)))


def sounds(rng, n):
    t = torch.arange(LENGTH) / SAMPLE_RATE
    label = rng.integers(0, 3, n)
    f0 = torch.from_numpy(rng.uniform(300, 900, (n, 1)).astype(np.float32))
    tone = torch.sin(2 * math.pi * f0 * t)
    chirp = torch.sin(2 * torch.pi * (f0 * t + 3000 * t**2))
    square = torch.sign(tone) * torch.exp(-6 * t)
    waves = torch.stack([tone, chirp, square])[torch.from_numpy(label), torch.arange(n)]
    noise = torch.from_numpy(rng.normal(0, 0.3, (n, LENGTH))).to(waves.dtype)
    return waves + noise, torch.from_numpy(label)


def main():
    torch.manual_seed(0)
    rng = np.random.default_rng(8)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    waves, labels = sounds(rng, 96)
    spectrum = torch.fft.rfft(waves[0])
    frequencies = torch.fft.rfftfreq(LENGTH, d=1 / SAMPLE_RATE)
    print("strongest frequency of the first sound:", frequencies[spectrum.abs().argmax()].item(), "Hz")
    whole = torch.stft(waves[:4], 256, 64, window=torch.hann_window(256), return_complex=True)
    back = torch.istft(whole, 256, 64, window=torch.hann_window(256), length=LENGTH)
    losses = [(back - waves[:4]).abs().mean().item(), spectrum.abs().mean().item(), whole.angle().cos().mean().item()]
    model = Classifier(3).to(device)
    for m in model.modules():
        if isinstance(m, (nn.Conv2d, nn.Linear)):
            m.weight.data = torch.tensor(rng.normal(0, 0.2, m.weight.shape), dtype=torch.float)
            m.bias.data = torch.zeros_like(m.bias)
    optimizer = torch.optim.NAdam(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_lambda=lambda epoch: 0.9**epoch)
    loader = DataLoader(TensorDataset(waves, labels), batch_size=32, drop_last=True)
    for epoch in range(5):
        for wave, label in loader:
            mask = torch.zeros(len(wave), 20, dtype=torch.bool)
            start = int(rng.integers(0, 16))
            mask[:, start : start + 4] = True
            loss = F.cross_entropy(model(wave.to(device), mask.to(device)), label.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        scheduler.step()
        with torch.no_grad():
            acc = (model(waves).argmax(1) == labels).float().mean().item()
        print(f"epoch {epoch} loss {loss.item():.4f} accuracy {acc:.3f}")
    target, guess = waves[:1], (waves[:1] + 0.2).clone().requires_grad_()
    opt = torch.optim.SGD([guess], lr=20.0)
    for _ in range(4):
        difference = torch.fft.rfft(guess, norm="ortho").abs() - torch.fft.rfft(target, norm="ortho").abs()
        loss = difference.square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses


if __name__ == "__main__":
    print(main())
