"""A Gaussian process by Cholesky: kernel parameters by the marginal likelihood, predictions, posterior samples."""

import math

import numpy as np
import torch
from torch import nn
from torch.distributions import MultivariateNormal

torch.set_default_dtype(torch.float64)


def softplus_inverse(x):
    return x + torch.log(-torch.expm1(-x))


class RBF(nn.Module):
    def __init__(self, dims, lengthscale=1.0, variance=1.0):
        super().__init__()
        self.raw_lengthscale = nn.Parameter(softplus_inverse(torch.full((dims,), lengthscale)))
        self.raw_variance = nn.Parameter(softplus_inverse(torch.tensor(variance)))

    @property
    def lengthscale(self):
        return nn.functional.softplus(self.raw_lengthscale)

    @property
    def variance(self):
        return nn.functional.softplus(self.raw_variance)

    def forward(self, X, Z=None):
        Z = X if Z is None else Z
        scaled_X, scaled_Z = X / self.lengthscale, Z / self.lengthscale
        r2 = scaled_X.pow(2).sum(-1, keepdim=True) - 2 * scaled_X @ scaled_Z.mT + scaled_Z.pow(2).sum(-1)
        return self.variance * torch.exp(-0.5 * r2.clamp_min(0))


class Matern32(RBF):
    def forward(self, X, Z=None):
        Z = X if Z is None else Z
        r = math.sqrt(3) * ((X[:, None] - Z[None]) / self.lengthscale).pow(2).sum(-1).add(1e-12).sqrt()
        return self.variance * (1 + r) * torch.exp(-r)


class ExactGP(nn.Module):
    def __init__(self, X, y, kernel, noise=0.1):
        super().__init__()
        self.register_buffer("X", X)
        self.register_buffer("y", y)
        self.kernel = kernel
        self.mean = nn.Parameter(torch.zeros(()))
        self.log_noise = nn.Parameter(torch.tensor(math.log(noise)))

    def factor(self):
        K = self.kernel(self.X) + self.log_noise.exp() * torch.eye(len(self.X), dtype=self.X.dtype)
        return torch.linalg.cholesky(K)

    def neg_log_likelihood(self):
        L = self.factor()
        residual = (self.y - self.mean).unsqueeze(-1)
        alpha = torch.cholesky_solve(residual, L)
        fit = 0.5 * (residual.mT @ alpha).squeeze()
        return fit + L.diagonal(dim1=-2, dim2=-1).log().sum() + 0.5 * len(self.y) * math.log(2 * math.pi)

    @torch.no_grad()
    def predict(self, X_new):
        L = self.factor()
        Ks = self.kernel(self.X, X_new)
        v = torch.linalg.solve_triangular(L, Ks, upper=False)
        w = torch.linalg.solve_triangular(L, (self.y - self.mean)[:, None], upper=False)
        mean = self.mean + (v.T @ w).squeeze(-1)
        return mean, self.kernel(X_new) - v.T @ v


def train(gp, steps, lr=0.1):
    optimizer = torch.optim.Adam(gp.parameters(), lr=lr)
    history = []
    for i in range(steps):
        optimizer.zero_grad()
        loss = gp.neg_log_likelihood()
        loss.backward()
        optimizer.step()
        history.append(loss.item())
        if i % 10 == 0:
            print(f"{i:3d} nll {loss.item():8.3f} lengthscale {gp.kernel.lengthscale.detach().numpy()}")
    return history


def main():
    torch.manual_seed(0)
    rng = np.random.default_rng(3)
    try:
        X = torch.from_numpy(np.sort(rng.uniform(-3, 3, (40, 1)), axis=0))
        y = torch.sin(2 * X[:, 0]) + 0.3 * X[:, 0] + torch.from_numpy(rng.normal(0, 0.1, 40))
        losses, grid = [], torch.linspace(-4, 4, 25).unsqueeze(1)
        for kernel in (RBF(1), Matern32(1, lengthscale=0.5)):
            gp = ExactGP(X, y, kernel)
            losses += train(gp, 25)
            mean, covariance = gp.predict(grid)
            std = covariance.diagonal().clamp(min=1e-10).sqrt()
            inside = ((torch.sin(2 * grid[:, 0]) + 0.3 * grid[:, 0] - mean).abs() < 2 * std + 0.05).double().mean()
            posterior = MultivariateNormal(mean, covariance + 1e-6 * torch.eye(25))
            draw = mean + posterior.scale_tril @ torch.from_numpy(rng.standard_normal(25))
            losses += [std.mean().item(), posterior.log_prob(draw).item() / 25, posterior.entropy().item() / 25]
            eigenvalues = torch.linalg.eigvalsh(kernel(X))
            print(f"covered {inside.item():.2f}, largest eigenvalue {eigenvalues[-1].item():.4f}")
            sign, logdet = torch.linalg.slogdet(kernel(X).detach() + 0.01 * torch.eye(40))
            losses += [eigenvalues[-1].item(), (sign * logdet).item()]
        return losses
    finally:
        torch.set_default_dtype(torch.float32)


if __name__ == "__main__":
    print(main())
