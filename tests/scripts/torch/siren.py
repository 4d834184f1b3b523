"""A network of sines (SIREN) fits an image, its gradient and its Laplacian, and gives all of them everywhere."""

from collections import OrderedDict

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class SineLayer(nn.Module):
    def __init__(self, in_features, out_features, rng, bias=True, is_first=False, omega_0=30.0):
        super().__init__()
        self.omega_0, self.is_first, self.in_features = omega_0, is_first, in_features
        self.linear = nn.Linear(in_features, out_features, bias=bias)
        self.init_weights(rng)

    def init_weights(self, rng):
        bound = 1 / self.in_features if self.is_first else np.sqrt(6 / self.in_features) / self.omega_0
        with torch.no_grad():
            for p in self.linear.parameters():
                p.copy_(torch.from_numpy(rng.uniform(-bound, bound, p.shape)))

    def forward(self, input):
        return torch.sin(self.omega_0 * self.linear(input))

    def forward_with_intermediate(self, input):
        intermediate = self.omega_0 * self.linear(input)
        return torch.sin(intermediate), intermediate


class Siren(nn.Module):
    def __init__(self, in_features, hidden_features, hidden_layers, out_features, rng, omega=12.0):
        super().__init__()
        net = [SineLayer(in_features, hidden_features, rng, is_first=True, omega_0=omega)]
        for _ in range(hidden_layers):
            net.append(SineLayer(hidden_features, hidden_features, rng, omega_0=omega))
        final_linear = nn.Linear(hidden_features, out_features)
        bound = np.sqrt(6 / hidden_features) / omega
        with torch.no_grad():
            final_linear.weight.copy_(torch.from_numpy(rng.uniform(-bound, bound, final_linear.weight.shape)))
            final_linear.bias.zero_()
        net.append(final_linear)
        self.net = nn.Sequential(*net)

    def forward(self, coords):
        coords = coords.clone().detach().requires_grad_(True)  # allows to take derivative w.r.t. input
        return self.net(coords), coords

    def forward_with_activations(self, coords):
        activations, x, count = OrderedDict(), coords.clone().detach().requires_grad_(True), 0
        activations["input"] = x
        for layer in self.net:
            if isinstance(layer, SineLayer):
                x, intermed = layer.forward_with_intermediate(x)
                activations["_".join((str(layer.__class__), "%d" % count))] = intermed
                count += 1
            else:
                x = layer(x)
            activations["_".join((str(layer.__class__), "%d" % count))] = x
            count += 1
        return activations


def gradient(y, x, grad_outputs=None):
    if grad_outputs is None:
        grad_outputs = torch.ones_like(y)
    return torch.autograd.grad(y, [x], grad_outputs=grad_outputs, create_graph=True)[0]


def divergence(y, x):
    div = 0.0
    for i in range(y.shape[-1]):
        div += torch.autograd.grad(y[..., i], x, torch.ones_like(y[..., i]), create_graph=True)[0][..., i : i + 1]
    return div


def laplace(y, x):
    return divergence(gradient(y, x), x)


def get_mgrid(sidelen, dim=2):
    tensors = tuple(dim * [torch.linspace(-1, 1, steps=sidelen)])
    return torch.stack(torch.meshgrid(*tensors, indexing="ij"), dim=-1).reshape(-1, dim)


class ImageFitting(Dataset):
    def __init__(self, sidelength):
        super().__init__()
        self.coords = get_mgrid(sidelength, 2)
        x, y = self.coords.unbind(-1)
        self.pixels = (torch.exp(-4 * (x**2 + y**2)) + 0.3 * torch.cos(4 * x)).view(-1, 1)
        self.gradient = torch.stack(
            [-8 * x * torch.exp(-4 * (x**2 + y**2)) - 1.2 * torch.sin(4 * x), -8 * y * torch.exp(-4 * (x**2 + y**2))],
            -1,
        )

    def __len__(self):
        return 1

    def __getitem__(self, idx):
        if idx > 0:
            raise IndexError
        return self.coords, {"pixels": self.pixels, "gradient": self.gradient}


def main():
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    dataloader = DataLoader(ImageFitting(16), batch_size=1, pin_memory=False, num_workers=0)
    img_siren = Siren(2, 32, 2, 1, rng)
    model_input, ground_truth = next(iter(dataloader))
    losses = []
    optim = torch.optim.Adam(lr=1e-3, params=img_siren.parameters())
    for step in range(30):
        model_output, coords = img_siren(model_input)
        loss = ((model_output - ground_truth["pixels"]) ** 2).mean()
        if step >= 15:  # then its slopes, too
            loss = loss + 0.1 * ((gradient(model_output, coords) - ground_truth["gradient"]) ** 2).mean()
        if not step % 10:
            img_grad, img_laplacian = gradient(model_output, coords), laplace(model_output, coords)
            print("Step %d, Total loss %0.6f" % (step, loss), tuple(img_grad.size()), tuple(img_laplacian.size()))
            losses.append(1e-3 * img_laplacian.abs().mean().item())
        optim.zero_grad()
        loss.backward()
        optim.step()
        losses.append(loss.item())
    with torch.no_grad():
        activations = img_siren.forward_with_activations(get_mgrid(5))
    losses += [a.std().item() for a in activations.values()]
    return losses


if __name__ == "__main__":
    print(main())
