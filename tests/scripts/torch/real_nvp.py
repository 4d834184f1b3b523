"""A normalising flow of affine couplings (RealNVP) fits two moons; densities, inverses and samples."""

import numpy as np
import torch
from torch import distributions, nn
from torch.distributions import transforms as T


class AffineCoupling(nn.Module):
    def __init__(self, mask, hidden):
        super().__init__()
        self.register_buffer("mask", mask)
        self.net_s = nn.Sequential(nn.Linear(2, hidden), nn.LeakyReLU(), nn.Linear(hidden, 2), nn.Tanh())
        self.net_t = nn.Sequential(nn.Linear(2, hidden), nn.LeakyReLU(), nn.Linear(hidden, 2))
        self.log_scale = nn.Parameter(torch.zeros(1))

    def _st(self, kept):
        s = self.net_s(kept) * (1 - self.mask) * self.log_scale.exp()
        return s, self.net_t(kept) * (1 - self.mask)

    def forward(self, x):
        kept = x * self.mask
        s, t = self._st(kept)
        return kept + (1 - self.mask) * (x - t) * torch.exp(-s), -s.sum(dim=1)

    def inverse(self, z):
        kept = z * self.mask
        s, t = self._st(kept)
        return kept + (1 - self.mask) * (z * s.exp() + t)


class RealNVP(nn.Module):
    def __init__(self, n_layers=4, hidden=24):
        super().__init__()
        masks = torch.tensor([[0.0, 1.0], [1.0, 0.0]]).repeat(n_layers // 2, 1)
        self.layers = nn.ModuleList([AffineCoupling(m, hidden) for m in masks])
        self.register_buffer("loc", torch.zeros(2))
        self.register_buffer("cov", torch.eye(2))

    @property
    def prior(self):
        return distributions.MultivariateNormal(self.loc, self.cov)

    def f(self, x):
        log_det_J = x.new_zeros(x.shape[0])
        for layer in reversed(self.layers):
            x, ld = layer(x)
            log_det_J += ld
        return x, log_det_J

    def g(self, z):
        for layer in self.layers:
            z = layer.inverse(z)
        return z

    def log_prob(self, x):
        z, logp = self.f(x)
        return self.prior.log_prob(z) + logp


def moons(rng, n):
    angle, side = rng.uniform(0, np.pi, n), rng.integers(0, 2, n)
    x = np.where(side, 1 - np.cos(angle), np.cos(angle))
    y = np.where(side, 0.5 - np.sin(angle), np.sin(angle))
    return torch.tensor(np.stack([x, y], 1) + rng.normal(0, 0.08, (n, 2)), dtype=torch.float32)


def main():
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    flow = RealNVP()
    for m in flow.modules():
        if isinstance(m, nn.Linear):
            k = m.in_features**-0.5
            nn.init.zeros_(m.bias)
            with torch.no_grad():
                m.weight[:] = torch.from_numpy(rng.uniform(-k, k, m.weight.shape))
    optimizer = torch.optim.Adam([p for p in flow.parameters() if p.requires_grad], lr=5e-3)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[30, 45], gamma=0.3)
    losses = []
    for t in range(60):
        loss = -flow.log_prob(moons(rng, 128)).mean()
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
        if t % 15 == 0:
            print("iter %s:" % t, "loss = %.3f" % loss)
    with torch.no_grad():
        z = torch.from_numpy(rng.standard_normal((200, 2))).float()
        x = flow.g(z)
        back, _ = flow.f(x)
        print("inverse is off by", (back - z).abs().max())
        torch.testing.assert_close(back, z, rtol=1e-3, atol=1e-3)
        losses += x.mean(0).tolist()
    # One dimension, with the library's own transforms: a log-normal told as a transformed normal.
    loc, scale = torch.zeros(1, requires_grad=True), torch.ones(1, requires_grad=True)
    data = torch.from_numpy(rng.lognormal(0.5, 0.4, 256)).float()
    optimizer = torch.optim.SGD([loc, scale], lr=0.1)
    for _ in range(15):
        base = distributions.Normal(torch.zeros(1), torch.ones(1))
        d = distributions.TransformedDistribution(base, [T.AffineTransform(loc, scale), T.ExpTransform()])
        loss = -d.log_prob(data).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    exact = distributions.LogNormal(loc.detach(), scale.detach().abs())
    independent = distributions.Independent(distributions.Normal(torch.zeros(3, 2), torch.ones(3, 2)), 1)
    print("median", exact.icdf(torch.tensor([0.5])), independent.batch_shape, independent.event_shape)
    return [*losses, exact.mean.item(), exact.log_prob(data).mean().item(), independent.entropy().sum().item()]


if __name__ == "__main__":
    print(main())
