"""A small student learns from the softened answers and the middle layers of a larger teacher, under autocast too."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset, random_split

device = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"


class MLP(nn.Module):
    def __init__(self, sizes, seed):
        super().__init__()
        rng = np.random.default_rng(seed)
        layers = []
        for n_in, n_out in zip(sizes[:-2], sizes[1:-1]):
            layers += [nn.Linear(n_in, n_out), nn.LayerNorm(n_out), nn.Hardswish()]
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Linear(sizes[-2], sizes[-1])
        for m in self.modules():
            if isinstance(m, nn.Linear):
                weight = rng.standard_normal((m.out_features, m.in_features)) / np.sqrt(m.in_features)
                m.weight = nn.Parameter(torch.tensor(weight, dtype=torch.get_default_dtype()))
                m.bias = nn.Parameter(torch.zeros(m.out_features))

    def forward(self, x):
        return self.classifier(self.features(x))


class DistillationLoss(nn.Module):
    def __init__(self, T=2.0, alpha=0.25):
        super().__init__()
        self.T, self.alpha = T, alpha
        self.ce = nn.CrossEntropyLoss()
        self.kl = nn.KLDivLoss(reduction="batchmean")

    def forward(self, student_logits, teacher_logits, labels):
        soft_targets = nn.functional.softmax(teacher_logits / self.T, dim=-1)
        soft_prob = nn.functional.log_softmax(student_logits / self.T, dim=-1)
        return self.alpha * self.kl(soft_prob, soft_targets) * self.T**2 + (1 - self.alpha) * self.ce(
            student_logits, labels
        )


def test(model, loader):
    model.to(device)
    model.eval()
    correct = total = 0
    with torch.no_grad():
        for inputs, labels in loader:
            inputs, labels = inputs.to(device), labels.to(device)
            _, predicted = torch.max(model(inputs).data, 1)
            total += labels.size(0)
            correct += (predicted == labels).sum().item()
    return 100 * correct / total


def main():
    torch.manual_seed(42)
    rng = np.random.default_rng(42)
    x = torch.from_numpy(rng.standard_normal((320, 12))).float()
    y = (x[:, :3].sum(1) > 0).long() + 2 * (x[:, 3] > x[:, 4].abs() - 0.5).long()
    train_set, test_set = random_split(TensorDataset(x, y), [256, 64], generator=torch.Generator().manual_seed(42))
    # The split is PyTorch's; what is learned from is taken in order, so that it does not matter here.
    train_set.indices, test_set.indices = list(range(256)), list(range(256, 320))
    train_loader, test_loader = DataLoader(train_set, batch_size=64), DataLoader(test_set, batch_size=64)
    teacher, student = MLP([12, 48, 48, 4], 1).to(device), MLP([12, 12, 4], 2).to(device)
    optimizer, losses = optim.Adam(teacher.parameters(), lr=1e-2), []
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=6, eta_min=1e-4)
    scaler = torch.amp.GradScaler("cuda", enabled=False)
    for epoch in range(6):
        for inputs, labels in train_loader:
            optimizer.zero_grad()
            with torch.autocast(device_type=device, dtype=torch.bfloat16, enabled=False):
                loss = F.cross_entropy(teacher(inputs), labels)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            losses.append(loss.item())
        scheduler.step()
    losses.append(test(teacher, test_loader) / 100)
    print(f"Test Accuracy of the teacher: {losses[-1]:.2%}")

    middle = {}
    handles = [
        teacher.features[2].register_forward_hook(lambda m, args, out: middle.update(teacher=out.detach())),
        student.features.register_forward_hook(lambda m, args, out: middle.update(student=out)),
    ]
    regressor = nn.Linear(12, 48, bias=False)
    regressor.weight.data.copy_(torch.from_numpy(rng.normal(0, 0.2, (48, 12))))
    criterion, hint = DistillationLoss(), nn.HuberLoss(delta=0.5)
    optimizer = optim.RAdam([*student.parameters(), *regressor.parameters()], lr=4e-2)
    teacher.eval()
    for epoch in range(6):
        student.train()
        for inputs, labels in train_loader:
            optimizer.zero_grad()
            with torch.no_grad():
                teacher_logits = teacher(inputs)
            loss = criterion(student(inputs), teacher_logits, labels) + hint(
                regressor(middle["student"]), middle["teacher"]
            )
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    for handle in handles:
        handle.remove()
    losses.append(test(student, test_loader) / 100)
    # A look at narrow numbers: how far is the student's answer under autocast?
    with torch.inference_mode(), torch.autocast(device_type="cpu", dtype=torch.bfloat16):
        narrow = student(x)
    off = (narrow.float() - student(x)).abs().mean().item()
    print(f"Test Accuracy of the student: {losses[-1]:.2%}; {narrow.dtype} is off by {off:.4f}")
    assert narrow.dtype == torch.bfloat16 and off < 0.1
    return losses


if __name__ == "__main__":
    print(main())
