"""DCGAN: a generator and a discriminator of convolutions play against each other over small pictures."""

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
import torch.utils.data

nz, ngf, ndf, nc = 16, 8, 8, 1
batch_size, num_epochs, lr, beta1 = 16, 3, 0.0005, 0.5
rng = None


def pictures(n):
    """Bright discs on dark ground, between -1 and 1."""
    yy, xx = np.mgrid[0:16, 0:16]
    center, radius = rng.uniform(5, 11, (n, 2, 1, 1)), rng.uniform(2, 5, (n, 1, 1))
    distance = np.hypot(yy - center[:, 0], xx - center[:, 1])
    return np.tanh(radius - distance)[:, None].astype(np.float32)


def weights_init(m):
    classname = m.__class__.__name__
    if classname.find("Conv") != -1:
        m.weight.data.copy_(torch.from_numpy(rng.normal(0.0, 0.02, m.weight.size())))
    elif classname.find("BatchNorm") != -1:
        m.weight.data.copy_(torch.from_numpy(rng.normal(1.0, 0.02, m.weight.size())))
        nn.init.constant_(m.bias.data, 0)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(nz, ngf * 2, 4, 1, 0, bias=False),
            nn.BatchNorm2d(ngf * 2),
            nn.ReLU(True),
            nn.ConvTranspose2d(ngf * 2, ngf, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ngf),
            nn.ReLU(True),
            nn.ConvTranspose2d(ngf, nc, 4, 2, 1, bias=False),
            nn.Tanh(),
        )

    def forward(self, input):
        return self.main(input)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(nc, ndf, 4, 2, 1, bias=False),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf, ndf * 2, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ndf * 2),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf * 2, 1, 4, 1, 0, bias=False),
            nn.Sigmoid(),
        )

    def forward(self, input):
        return self.main(input)


def main():
    global rng
    rng = np.random.default_rng(999)
    torch.manual_seed(999)
    torch.use_deterministic_algorithms(True)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    dataset = torch.utils.data.TensorDataset(torch.from_numpy(pictures(96)))
    dataloader = torch.utils.data.DataLoader(dataset, batch_size=batch_size, shuffle=False, num_workers=0)
    netG, netD = Generator().to(device), Discriminator().to(device)
    netG.apply(weights_init)
    netD.apply(weights_init)
    criterion = nn.BCELoss()
    fixed_noise = torch.from_numpy(rng.standard_normal((16, nz, 1, 1)).astype(np.float32)).to(device)
    real_label, fake_label = 1.0, 0.0
    optimizerD = optim.Adam(netD.parameters(), lr=lr, betas=(beta1, 0.999))
    optimizerG = optim.Adam(netG.parameters(), lr=lr, betas=(beta1, 0.999))
    G_losses, D_losses = [], []
    for epoch in range(num_epochs):
        for i, data in enumerate(dataloader, 0):
            netD.zero_grad()
            real_cpu = data[0].to(device)
            b_size = real_cpu.size(0)
            label = torch.full((b_size,), real_label, dtype=torch.float, device=device)
            output = netD(real_cpu).view(-1)
            errD_real = criterion(output, label)
            errD_real.backward()
            D_x = output.mean().item()
            noise = torch.tensor(rng.standard_normal((b_size, nz, 1, 1)), dtype=torch.float, device=device)
            fake = netG(noise)
            label.fill_(fake_label)
            output = netD(fake.detach()).view(-1)
            errD_fake = criterion(output, label)
            errD_fake.backward()
            errD = errD_real + errD_fake
            optimizerD.step()
            netG.zero_grad()
            label.fill_(real_label)
            output = netD(fake).view(-1)
            errG = criterion(output, label)
            errG.backward()
            optimizerG.step()
            if i % 3 == 0:
                print(
                    "[%d/%d][%d/%d]\tLoss_D: %.4f\tLoss_G: %.4f\tD(x): %.4f"
                    % (epoch, num_epochs, i, len(dataloader), errD.item(), errG.item(), D_x)
                )
            G_losses.append(errG.item())
            D_losses.append(errD.item())
    with torch.no_grad():
        fake = netG(fixed_noise).detach().cpu()
    return G_losses + D_losses + [fake.abs().mean().item()]


if __name__ == "__main__":
    print(main())
