"""A neural ODE learns a spiral: Runge-Kutta steps, and the adjoint method as an autograd Function."""

import numpy as np
import torch
import torch.nn as nn
from torch.nn.utils import parameters_to_vector


class ODEFunc(nn.Module):
    def __init__(self, rng):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 2))
        for m in self.net.modules():
            if isinstance(m, nn.Linear):
                m.weight.data.copy_(torch.from_numpy(rng.normal(0, 0.1, m.weight.shape)))
                nn.init.constant_(m.bias, val=0)

    def forward(self, t, y):
        return self.net(y**3)


def rk4_step(func, t, dt, y):
    k1 = func(t, y)
    k2 = func(t + dt / 2, y + dt * k1 / 2)
    k3 = func(t + dt / 2, y + dt * k2 / 2)
    k4 = func(t + dt, y + dt * k3)
    return y + dt * (k1 + 2 * k2 + 2 * k3 + k4) / 6


def odeint(func, y0, t):
    ys = [y0]
    for t0, t1 in zip(t[:-1], t[1:]):
        ys.append(rk4_step(func, t0, t1 - t0, ys[-1]))
    return torch.stack(ys)


class OdeAdjoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, func, y0, t, flat_params):
        ctx.func = func
        with torch.no_grad():
            ys = odeint(func, y0, t)
        ctx.save_for_backward(ys, t, flat_params)
        return ys

    @staticmethod
    def backward(ctx, grad_ys):
        ys, t, flat_params = ctx.saved_tensors
        func, params = ctx.func, tuple(ctx.func.parameters())

        def augmented(t, state):
            y, adjoint, _ = state
            with torch.enable_grad():
                y = y.detach().requires_grad_(True)
                out = func(t, y)
                vjp_y, *vjp_params = torch.autograd.grad(out, (y, *params), -adjoint, allow_unused=True)
            flat = torch.cat([g.flatten() if g is not None else torch.zeros(0) for g in vjp_params])
            return out, vjp_y, flat

        adjoint, grad_params = grad_ys[-1], torch.zeros_like(flat_params)
        for i in range(len(t) - 1, 0, -1):
            dt, state = t[i - 1] - t[i], (ys[i], adjoint, grad_params)
            k1 = augmented(t[i], state)
            k2 = augmented(t[i], tuple(s + dt / 2 * k for s, k in zip(state, k1)))
            k3 = augmented(t[i], tuple(s + dt / 2 * k for s, k in zip(state, k2)))
            k4 = augmented(t[i], tuple(s + dt * k for s, k in zip(state, k3)))
            steps = [dt / 6 * (a + 2 * b + 2 * c + d) for a, b, c, d in zip(k1, k2, k3, k4)]
            adjoint = adjoint + steps[1] + grad_ys[i - 1]
            grad_params = grad_params + steps[2]
        return None, adjoint, None, grad_params


def main():
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    true_y0 = torch.tensor([[2.0, 0.0]]).to(device)
    t = torch.linspace(0.0, 5.0, 60).to(device)
    true_A = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]]).to(device)
    with torch.no_grad():
        true_y = odeint(lambda t, y: torch.mm(y**3, true_A), true_y0, t)
    func = ODEFunc(rng).to(device)
    optimizer = torch.optim.RMSprop(func.parameters(), lr=2e-3)
    losses = []
    for itr in range(1, 21):
        s = torch.from_numpy(rng.choice(np.arange(50, dtype=np.int64), 8, replace=False))
        batch_y0, batch_t = true_y[s], t[:8]
        batch_y = torch.stack([true_y[s + i] for i in range(8)], dim=0)
        optimizer.zero_grad()
        if itr % 2:
            pred_y = odeint(func, batch_y0, batch_t)
        else:
            pred_y = OdeAdjoint.apply(func, batch_y0, batch_t, parameters_to_vector(func.parameters()))
        loss = torch.mean(torch.abs(pred_y - batch_y))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if itr % 5 == 0:
            with torch.no_grad():
                total = torch.mean(torch.abs(odeint(func, true_y0, t) - true_y))
                print(f"Iter {itr:04d} | Total Loss {total.item():.6f}")
                losses.append(total.item())
    return losses


if __name__ == "__main__":
    print(main())
