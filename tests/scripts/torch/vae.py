"""A variational autoencoder on small binary pictures, after the example that PyTorch ships."""

import argparse

import numpy as np
import torch
import torch.utils.data
from torch import nn, optim
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, Sampler


class Bars(Dataset):
    """Pictures of a few horizontal and vertical bars."""

    def __init__(self, size, rng):
        rows, columns = rng.random((2, size, 8)) < 0.25
        self.images = (rows[:, :, None] | columns[:, None, :]).astype(np.float32)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return torch.from_numpy(self.images[index]).unsqueeze(0), index % 2


class NumpySampler(Sampler):
    def __init__(self, length, rng):
        self.length, self.rng = length, rng

    def __iter__(self):
        return iter(self.rng.permutation(self.length).tolist())

    def __len__(self):
        return self.length


class VAE(nn.Module):
    def __init__(self, rng):
        super().__init__()
        self.rng = rng
        self.fc1 = nn.Linear(64, 40)
        self.fc21 = nn.Linear(40, 4)
        self.fc22 = nn.Linear(40, 4)
        self.fc3 = nn.Linear(4, 40)
        self.fc4 = nn.Linear(40, 64)
        for layer in self.children():
            bound = 1 / np.sqrt(layer.in_features)
            with torch.no_grad():
                layer.weight.copy_(torch.from_numpy(rng.uniform(-bound, bound, layer.weight.shape)))
                layer.bias.zero_()

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.from_numpy(self.rng.standard_normal(std.shape)).to(std)
        return mu + eps * std

    def decode(self, z):
        h3 = F.relu(self.fc3(z))
        return torch.sigmoid(self.fc4(h3))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 64))
        z = self.reparameterize(mu, logvar)
        return self.decode(z), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy(recon_x, x.view(-1, 64), reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + KLD


def train(epoch, model, device, train_loader, optimizer, log_interval):
    model.train()
    train_loss, history = 0, []
    for batch_idx, (data, _) in enumerate(train_loader):
        data = data.to(device)
        optimizer.zero_grad()
        recon_batch, mu, logvar = model(data)
        loss = loss_function(recon_batch, data, mu, logvar)
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
        history.append(loss.item() / len(data))
        if batch_idx % log_interval == 0:
            print(
                "Train Epoch: {} [{}/{} ({:.0f}%)]\tLoss: {:.6f}".format(
                    epoch,
                    batch_idx * len(data),
                    len(train_loader.dataset),
                    100.0 * batch_idx / len(train_loader),
                    loss.item() / len(data),
                )
            )
    print(f"====> Epoch: {epoch} Average loss: {train_loss / len(train_loader.dataset):.4f}")
    return history


def main(argv=()):
    parser = argparse.ArgumentParser(description="VAE bars example")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log-interval", type=int, default=4)
    args = parser.parse_args(argv)
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    use_cuda = torch.cuda.is_available()
    device = torch.device("cuda" if use_cuda else "cpu")
    kwargs = {"num_workers": 1, "pin_memory": True} if use_cuda else {}
    dataset = Bars(256, rng)
    sampler = NumpySampler(len(dataset), rng)
    train_loader = DataLoader(dataset, batch_size=args.batch_size, sampler=sampler, drop_last=True, **kwargs)
    test_loader = DataLoader(Bars(64, rng), batch_size=args.batch_size, **kwargs)
    model = VAE(rng).to(device)
    optimizer = optim.Adam(model.parameters(), lr=3e-3)
    losses = []
    for epoch in range(1, args.epochs + 1):
        losses += train(epoch, model, device, train_loader, optimizer, args.log_interval)
        model.eval()
        test_loss = 0
        with torch.no_grad():
            for data, _ in test_loader:
                recon_batch, mu, logvar = model(data.to(device))
                test_loss += loss_function(recon_batch, data, mu, logvar).item()
        print(f"====> Test set loss: {test_loss / len(test_loader.dataset):.4f}")
        losses.append(test_loss / len(test_loader.dataset))
    with torch.no_grad():
        sample = torch.from_numpy(rng.standard_normal((4, 4))).float().to(device)
        losses.append(model.decode(sample).cpu().view(4, 1, 8, 8).mean().item())
    return losses


if __name__ == "__main__":
    print(main())
