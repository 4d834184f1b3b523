"""A small ResNet on drawn digits: augmentation, warm restarts, label smoothing, evaluation, best checkpoint."""

import copy
import logging
import os
import tempfile
from collections import OrderedDict

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, Dataset, Subset, default_collate

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger(__name__)
# Digits of three by five points.
GLYPHS = [0b111101101101111, 0b010110010010111, 0b111001111100111, 0b111001111001111, 0b101101111001001]
GLYPHS += [0b111100111001111, 0b111100111101111, 0b111001001010010, 0b111101111101111, 0b111101111001111]


class Digits(Dataset):
    def __init__(self, n, rng, transform=None):
        bits = np.array([[g >> (14 - i) & 1 for i in range(15)] for g in GLYPHS], np.float32).reshape(10, 5, 3)
        self.labels = rng.integers(0, 10, n)
        self.images = np.zeros((n, 16, 16), np.float32)
        for image, label in zip(self.images, self.labels):
            image[3:13, 5:11] = np.kron(bits[label], np.ones((2, 2)))
        self.images += rng.normal(0, 0.2, self.images.shape).astype(np.float32)
        self.transform = transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        image = torch.as_tensor(self.images[i])[None]
        return (self.transform(image) if self.transform else image), int(self.labels[i])


class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, x):
        for t in self.transforms:
            x = t(x)
        return x


class RandomCrop:
    def __init__(self, size, padding, rng):
        self.size, self.padding, self.rng = size, padding, rng

    def __call__(self, x):
        x = F.pad(x.unsqueeze(0), [self.padding] * 4, mode="reflect").squeeze(0)
        i, j = self.rng.integers(0, 2 * self.padding + 1, 2)
        return x[..., i : i + self.size, j : j + self.size]


class RandomRotation:
    def __init__(self, degrees, rng):
        self.degrees, self.rng = degrees, rng

    def __call__(self, x):
        angle = torch.deg2rad(torch.tensor(self.rng.uniform(-self.degrees, self.degrees)))
        theta = torch.stack([torch.cos(angle), -torch.sin(angle), torch.zeros(()), torch.sin(angle), torch.cos(angle)])
        theta = torch.cat([theta, torch.zeros(1)]).view(1, 2, 3).float()
        grid = F.affine_grid(theta, [1, *x.shape], align_corners=False)
        return F.grid_sample(x[None], grid, align_corners=False)[0]


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, in_planes, planes, stride=1):
        super(BasicBlock, self).__init__()
        self.conv1 = nn.Conv2d(in_planes, planes, kernel_size=3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, kernel_size=3, stride=1, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.shortcut = nn.Sequential()
        if stride != 1 or in_planes != self.expansion * planes:
            conv = nn.Conv2d(in_planes, self.expansion * planes, kernel_size=1, stride=stride, bias=False)
            self.shortcut = nn.Sequential(OrderedDict([("conv", conv), ("bn", nn.BatchNorm2d(planes))]))

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)), inplace=True)
        out = self.bn2(self.conv2(out))
        out += self.shortcut(x)
        return F.relu(out)


class ResNet(nn.Module):
    def __init__(self, num_classes=10):
        super().__init__()
        self.in_planes = 8
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.layer1, self.layer2 = self._make_layer(8, 1, stride=1), self._make_layer(16, 2, stride=2)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.linear = nn.Linear(16, num_classes)

    def _make_layer(self, planes, num_blocks, stride):
        layers = []
        for stride in [stride] + [1] * (num_blocks - 1):
            layers.append(BasicBlock(self.in_planes, planes, stride))
            self.in_planes = planes * BasicBlock.expansion
        return nn.Sequential(*layers)

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.avgpool(self.layer2(self.layer1(out)))
        return self.linear(torch.flatten(out, 1))


def evaluate(model, loader, criterion, device):
    model.eval()
    correct, loss = 0, 0.0
    with torch.inference_mode():
        for images, labels in loader:
            images, labels = images.to(device, non_blocking=True), labels.to(device, non_blocking=True)
            outputs = model(images)
            loss += criterion(outputs, labels).item() * labels.size(0)
            _, predicted = outputs.max(1)
            correct += predicted.eq(labels).sum().item()
    return loss / len(loader.dataset), correct / len(loader.dataset)


def main():
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.deterministic = False
    device = torch.device(
        "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    )
    rng = np.random.default_rng(0)
    train_set = Digits(96, rng, Compose([RandomCrop(16, 2, rng), RandomRotation(10, rng)]))
    test_loader = DataLoader(Subset(Digits(48, rng), range(40)), batch_size=20, pin_memory=False)
    model = ResNet().to(device)
    for m in model.modules():
        if isinstance(m, (nn.Conv2d, nn.Linear)):
            fan_in, _ = nn.init._calculate_fan_in_and_fan_out(m.weight)
            m.weight.data.copy_(torch.from_numpy(rng.normal(0, (2 / fan_in) ** 0.5, m.weight.shape)))
        elif isinstance(m, (nn.BatchNorm2d, nn.GroupNorm)):
            nn.init.constant_(m.weight, 1)
            nn.init.constant_(m.bias, 0)
    nn.init.zeros_(model.linear.bias)
    if device.type == "cuda":
        model = torch.nn.DataParallel(model)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    scheduler = lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2, T_mult=2)
    losses, best_acc, best_wts = [], -1.0, None
    for epoch in range(3):
        model.train()
        order = Subset(train_set, rng.permutation(len(train_set)).tolist())
        loader = DataLoader(order, batch_size=32, collate_fn=default_collate)
        for i, (inputs, targets) in enumerate(loader):
            inputs, targets = inputs.to(device), targets.to(device)
            optimizer.zero_grad()
            loss = criterion(model(inputs), targets)
            loss.backward()
            optimizer.step()
            scheduler.step(epoch + i / len(loader))
            losses.append(loss.item())
        val_loss, acc = evaluate(model, test_loader, criterion, device)
        losses.append(val_loss)
        log.info("Epoch %d: val loss %.4f acc %.3f lr %.4f", epoch, val_loss, acc, scheduler.get_last_lr()[0])
        if acc > best_acc:
            best_acc, best_wts = acc, copy.deepcopy(model.state_dict())
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "best.pth")
        torch.save({"epoch": epoch, "state_dict": best_wts, "best_acc": best_acc}, path)
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    missing, unexpected = model.load_state_dict(checkpoint["state_dict"], strict=False)
    assert not missing and not unexpected
    losses.append(evaluate(model, test_loader, criterion, device)[0])
    return losses


if __name__ == "__main__":
    print(main())
