"""A U-Net finds discs in noise: skip connections, Dice and focal losses, accumulated gradients, the IoU."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset


class DoubleConv(nn.Module):
    """(convolution => [BN] => ReLU) * 2"""

    def __init__(self, in_channels, out_channels, mid_channels=None):
        super().__init__()
        if not mid_channels:
            mid_channels = out_channels
        self.double_conv = nn.Sequential(
            nn.Conv2d(in_channels, mid_channels, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(mid_channels),
            nn.ReLU(inplace=True),
            nn.Conv2d(mid_channels, out_channels, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(out_channels),
            nn.ReLU(inplace=True),
        )

    def forward(self, x):
        return self.double_conv(x)


class Down(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.maxpool_conv = nn.Sequential(nn.MaxPool2d(2), DoubleConv(in_channels, out_channels))

    def forward(self, x):
        return self.maxpool_conv(x)


class Up(nn.Module):
    def __init__(self, in_channels, out_channels, bilinear=True):
        super().__init__()
        if bilinear:
            self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
            self.conv = DoubleConv(in_channels, out_channels, in_channels // 2)
        else:
            self.up = nn.ConvTranspose2d(in_channels, in_channels // 2, kernel_size=2, stride=2)
            self.conv = DoubleConv(in_channels, out_channels)

    def forward(self, x1, x2):
        x1 = self.up(x1)
        diffY = x2.size()[2] - x1.size()[2]
        diffX = x2.size()[3] - x1.size()[3]
        x1 = F.pad(x1, [diffX // 2, diffX - diffX // 2, diffY // 2, diffY - diffY // 2])
        return self.conv(torch.cat([x2, x1], dim=1))


class UNet(nn.Module):
    def __init__(self, n_channels, n_classes):
        super().__init__()
        self.inc = DoubleConv(n_channels, 6)
        self.down1, self.down2 = Down(6, 12), Down(12, 12)
        self.up1, self.up2 = Up(24, 6), Up(12, 6, bilinear=True)
        self.outc = nn.Conv2d(6, n_classes, kernel_size=1)
        self.use_checkpointing = False

    def forward(self, x):
        x1 = self.inc(x)
        if self.use_checkpointing:
            x2 = checkpoint(self.down1, x1, use_reentrant=False)
        else:
            x2 = self.down1(x1)
        x = self.up1(self.down2(x2), x2)
        return self.outc(self.up2(x, x1))


def dice_coeff(input, target, reduce_batch_first=False, epsilon=1e-6):
    sum_dim = (-1, -2) if input.dim() == 2 or not reduce_batch_first else (-1, -2, -3)
    inter = 2 * (input * target).sum(dim=sum_dim)
    sets_sum = input.sum(dim=sum_dim) + target.sum(dim=sum_dim)
    sets_sum = torch.where(sets_sum == 0, inter, sets_sum)
    return ((inter + epsilon) / (sets_sum + epsilon)).mean()


def focal_loss(logits, target, gamma=2.0, alpha=0.25):
    ce = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
    p_t = torch.exp(-ce)
    alpha_t = alpha * target + (1 - alpha) * (1 - target)
    return (alpha_t * (1 - p_t) ** gamma * ce).mean()


class Discs(Dataset):
    def __init__(self, n, rng, side=22):
        yy, xx = np.mgrid[0:side, 0:side]
        c, r = rng.uniform(5, side - 5, (n, 2, 1, 1)), rng.uniform(3, 6, (n, 1, 1))
        self.masks = np.hypot(yy - c[:, 0], xx - c[:, 1]) < r
        self.images = (self.masks + rng.normal(0, 0.5, self.masks.shape)).astype(np.float32)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, idx):
        image = torch.as_tensor(self.images[idx].copy()).float().contiguous()
        return {"image": image.unsqueeze(0), "mask": torch.as_tensor(self.masks[idx].copy()).long().contiguous()}


def main():
    torch.manual_seed(0)
    rng = np.random.default_rng(2)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    loader = DataLoader(Discs(32, rng), shuffle=False, batch_size=8, num_workers=0, pin_memory=False)
    model = UNet(n_channels=1, n_classes=1)
    model = model.to(memory_format=torch.channels_last) if device.type == "cuda" else model.to(device)
    for m in model.modules():
        if isinstance(m, nn.modules.conv._ConvNd):
            fan_in = m.weight[0].numel()
            m.weight.data.copy_(torch.from_numpy(rng.normal(0, np.sqrt(2 / fan_in), m.weight.shape)))
            if m.bias is not None:
                m.bias.data.zero_()
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters, {len(list(model.buffers()))} buffers")
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3, weight_decay=1e-8, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "max", patience=1)  # goal: maximize Dice score
    losses, accumulation = [], 2
    for epoch in range(3):
        model.train()
        model.use_checkpointing = epoch == 1
        optimizer.zero_grad(set_to_none=True)
        for step, batch in enumerate(loader):
            images = batch["image"].to(device=device, dtype=torch.float32, memory_format=torch.channels_last)
            true_masks = batch["mask"].to(device=device, dtype=torch.long)
            masks_pred = model(images)
            target = true_masks.float()
            loss = focal_loss(masks_pred.squeeze(1), target)
            loss += 1 - dice_coeff(torch.sigmoid(masks_pred.squeeze(1)), target)
            (loss / accumulation).backward()
            if (step + 1) % accumulation == 0:
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            predicted = torch.cat([model(b["image"].to(device)).squeeze(1) > 0 for b in loader])
            truth = torch.cat([b["mask"] for b in loader]).bool()
            iou = (predicted & truth).sum().item() / (predicted | truth).sum().item()
        scheduler.step(iou)
        print(f"epoch {epoch}: loss {losses[-1]:.4f} IoU {iou:.3f}")
    return losses


if __name__ == "__main__":
    print(main())
