"""Denoising diffusion of points on a spiral, with an exponential moving average of the weights that samples."""

import copy
import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn


class SinusoidalPositionEmbeddings(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, time):
        half_dim = self.dim // 2
        embeddings = math.log(10000) / (half_dim - 1)
        embeddings = torch.exp(torch.arange(half_dim, device=time.device) * -embeddings)
        embeddings = time[:, None] * embeddings[None, :]
        return torch.cat((embeddings.sin(), embeddings.cos()), dim=-1)


class Denoiser(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.time_mlp = nn.Sequential(SinusoidalPositionEmbeddings(16), nn.Linear(16, hidden), nn.SiLU())
        self.inp = nn.Linear(2, hidden)
        self.blocks = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(2))
        self.norms = nn.ModuleList(nn.GroupNorm(4, hidden) for _ in range(2))
        self.out = nn.Linear(hidden, 2)

    def forward(self, x, t):
        h = self.inp(x) + self.time_mlp(t)
        for block, norm in zip(self.blocks, self.norms):
            h = h + F.silu(norm(block(h)))
        return self.out(h)


class Diffusion(nn.Module):
    def __init__(self, steps=40):
        super().__init__()
        betas = torch.linspace(1e-4, 0.12, steps)
        alphas = 1.0 - betas
        alphas_cumprod = torch.cumprod(alphas, axis=0)
        alphas_cumprod_prev = F.pad(alphas_cumprod[:-1], (1, 0), value=1.0)
        self.steps = steps
        self.register_buffer("betas", betas)
        self.register_buffer("sqrt_recip_alphas", torch.sqrt(1.0 / alphas))
        self.register_buffer("sqrt_alphas_cumprod", torch.sqrt(alphas_cumprod))
        self.register_buffer("sqrt_one_minus_alphas_cumprod", torch.sqrt(1.0 - alphas_cumprod))
        self.register_buffer("posterior_variance", betas * (1.0 - alphas_cumprod_prev) / (1.0 - alphas_cumprod))

    def extract(self, a, t, x_shape):
        out = a.gather(-1, t)
        return out.reshape(t.shape[0], *((1,) * (len(x_shape) - 1))).to(t.device)

    def q_sample(self, x_start, t, noise):
        scale = self.extract(self.sqrt_alphas_cumprod, t, x_start.shape)
        return scale * x_start + self.extract(self.sqrt_one_minus_alphas_cumprod, t, x_start.shape) * noise

    @torch.no_grad()
    def sample(self, model, x, rng):
        for i in reversed(range(self.steps)):
            t = torch.full((x.shape[0],), i, dtype=torch.long)
            betas_t = self.extract(self.betas, t, x.shape)
            one_minus = self.extract(self.sqrt_one_minus_alphas_cumprod, t, x.shape)
            mean = self.extract(self.sqrt_recip_alphas, t, x.shape) * (x - betas_t * model(x, t) / one_minus)
            if i == 0:
                return mean
            noise = torch.from_numpy(rng.standard_normal(tuple(x.shape))).type_as(x)
            x = mean + torch.sqrt(self.extract(self.posterior_variance, t, x.shape)) * noise


class EMA:
    """A shadow of a model, as many repositories carry it."""

    def __init__(self, model, decay):
        self.decay = decay
        self.module = copy.deepcopy(model).eval().requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for ema_p, p in zip(self.module.parameters(), model.parameters()):
            ema_p.lerp_(p.detach(), 1.0 - self.decay)
        for ema_b, b in zip(self.module.buffers(), model.buffers()):
            ema_b.copy_(b)


def main():
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    angle = rng.uniform(0.5, 3.0, 512) * np.pi
    data = np.stack([angle * np.cos(angle), angle * np.sin(angle)], 1) / 5 + 0.05 * rng.standard_normal((512, 2))
    data = torch.from_numpy(data).float()
    model, diffusion = Denoiser().to(device), Diffusion().to(device)
    for m in model.modules():
        if isinstance(m, nn.Linear):
            m.weight.data.copy_(torch.from_numpy(rng.normal(0, m.in_features**-0.5, m.weight.shape)))
            m.bias.data.zero_()
    ema = EMA(model, 0.9)
    averaged = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=5e-3, total_steps=60)
    losses = []
    for step in range(60):
        index = torch.from_numpy(rng.integers(0, len(data), 64))
        t = torch.from_numpy(rng.integers(0, diffusion.steps, 64)).long().to(device)
        noise = torch.from_numpy(rng.standard_normal((64, 2))).float().to(device)
        x_noisy = diffusion.q_sample(data[index], t, noise)
        loss = F.smooth_l1_loss(noise, model(x_noisy, t))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        scheduler.step()
        ema.update(model)
        averaged.update_parameters(model)
        losses.append(loss.detach().cpu().item())
        if step % 20 == 0:
            print(f"step {step:3d} | loss {losses[-1]:.4f} | lr {optimizer.param_groups[0]['lr']:.5f}")
    start = torch.from_numpy(rng.standard_normal((64, 2)).astype(np.float32))
    seed = rng.integers(1 << 30)
    points = diffusion.sample(ema.module, start.clone(), np.random.default_rng(seed))
    same = diffusion.sample(averaged, start.clone(), np.random.default_rng(seed))
    print("samples around", points.mean(dim=0).numpy().round(3), "spread", points.std(dim=0))
    return [*losses, points.norm(dim=1).mean().item(), same.norm(dim=1).mean().item()]


if __name__ == "__main__":
    print(main())
