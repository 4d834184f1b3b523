"""Read data in two processes that compute the spectrogram of each signal."""

import numpy as np

import graphc as gc
from graphc import nn
from graphc.data import DataLoader, Dataset
from graphc.nn import functional as F

CHIRPS = (0.5, 1.0, 1.5, 2.0)


class Spectrograms(Dataset):
    """Spectrograms of noisy chirps, which take time to compute."""

    def __init__(self, first, count):
        self.first, self.count = first, count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        random, label = np.random.default_rng(self.first + index), index % len(CHIRPS)
        t = np.linspace(0, 1, 16384)
        signal = np.sin(2000 * (t + CHIRPS[label] * t**2) + random.uniform(0, 6)) + random.standard_normal(t.size)
        frames = np.lib.stride_tricks.sliding_window_view(signal, 512)[::256] * np.hanning(512)
        power = np.abs(np.fft.rfft(frames))[:, :128].reshape(-1, 32, 4).mean(2)
        return np.log1p(power).astype(np.float32)[None], label


def main():
    gc.manual_seed(0)
    net = nn.Sequential(
        *(nn.Conv2d(1, 8, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(16 * 16 * 8, len(CHIRPS))),
    )
    train = DataLoader(Spectrograms(0, 1024), 32, shuffle=True, num_workers=2)
    valid = DataLoader(Spectrograms(10000, 256), 64, num_workers=2)
    optimizer, metrics = gc.optim.Adam(net.parameters(), lr=1e-3), {"accuracy": gc.metrics.Accuracy()}
    history = gc.fit(net, train, loss=F.cross_entropy, optimizer=optimizer, valid=valid, epochs=3, metrics=metrics)
    print(f"first epoch: {history[0]['seconds']:.2f} s")
    print(f"accuracy {history['valid.accuracy'][-1]:.3f}")


if __name__ == "__main__":
    main()
