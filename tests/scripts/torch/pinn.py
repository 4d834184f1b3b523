"""A physics-informed network solves Burgers' equation: derivatives of the network by autograd, then L-BFGS."""

import numpy as np
import torch
import torch.nn as nn

torch.set_default_dtype(torch.float32)
torch.set_printoptions(precision=6)

nu = 0.01 / np.pi


class PINN(nn.Module):
    def __init__(self, layers, rng):
        super().__init__()
        self.activation = nn.Tanh()
        self.linears = nn.ModuleList([nn.Linear(layers[i], layers[i + 1]) for i in range(len(layers) - 1)])
        for linear in self.linears:
            gain = nn.init.calculate_gain("tanh")
            std = gain * np.sqrt(2.0 / (linear.in_features + linear.out_features))
            linear.weight.data = torch.from_numpy(rng.normal(0, std, linear.weight.shape)).float()
            nn.init.zeros_(linear.bias.data)

    def forward(self, x, t):
        a = torch.cat([x, t], dim=1)
        for linear in self.linears[:-1]:
            a = self.activation(linear(a))
        return self.linears[-1](a)


def residual(model, x, t):
    u = model(x, t)
    u_t = torch.autograd.grad(u, t, grad_outputs=torch.ones_like(u), retain_graph=True, create_graph=True)[0]
    u_x = torch.autograd.grad(u, x, grad_outputs=torch.ones_like(u), retain_graph=True, create_graph=True)[0]
    u_xx = torch.autograd.grad(u_x, x, grad_outputs=torch.ones_like(u_x), retain_graph=True, create_graph=True)[0]
    return u_t + u * u_x - nu * u_xx


def main():
    torch.manual_seed(1234)
    rng = np.random.default_rng(1234)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    x_f = torch.tensor(rng.uniform(-1, 1, (256, 1)), dtype=torch.float32, requires_grad=True, device=device)
    t_f = torch.tensor(rng.uniform(0, 1, (256, 1)), dtype=torch.float32, requires_grad=True, device=device)
    x_0 = torch.linspace(-1, 1, 50).reshape(-1, 1).to(device)
    t_0 = torch.zeros_like(x_0)
    u_0 = -torch.sin(np.pi * x_0)
    t_b = torch.linspace(0, 1, 25).view(-1, 1).to(device)
    edges = torch.cat([-torch.ones_like(t_b), torch.ones_like(t_b)])
    model = PINN([2, 20, 20, 20, 1], rng).to(device)
    mse = nn.MSELoss(reduction="mean")

    def loss_fn():
        initial = mse(model(x_0, t_0), u_0)
        boundary = model(edges, torch.cat([t_b, t_b])).pow(2).mean()
        f = residual(model, x_f, t_f)
        return initial + boundary + mse(f, torch.zeros_like(f))

    losses = []
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, amsgrad=False)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.98)
    for epoch in range(30):
        optimizer.zero_grad()
        loss = loss_fn()
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
        if epoch % 10 == 0:
            print(f"epoch {epoch:3d} loss {loss.item():.6f} lr {scheduler.get_last_lr()[0]:.2e}")

    lbfgs = torch.optim.LBFGS(
        model.parameters(), lr=1.0, max_iter=8, history_size=50, tolerance_grad=1e-7, line_search_fn="strong_wolfe"
    )

    def closure():
        lbfgs.zero_grad()
        loss = loss_fn()
        loss.backward()
        return loss

    first = lbfgs.step(closure)
    print("L-BFGS began at", first)
    losses.append(first.item())
    losses.append(loss_fn().item())
    return losses


if __name__ == "__main__":
    print(main())
