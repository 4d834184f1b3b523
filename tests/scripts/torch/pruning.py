"""Iterative pruning of a network by magnitude: prune, train on, count what is left, make it permanent."""

import numpy as np
import torch
import torch.nn.functional as F
import torch.nn.utils.prune as prune
from torch import nn, optim


class LeNet(nn.Module):
    def __init__(self):
        super(LeNet, self).__init__()
        self.conv1 = nn.Conv2d(1, 6, 3)
        self.conv2 = nn.Conv2d(6, 12, 3)
        self.fc1 = nn.Linear(12 * 2 * 2, 40)
        self.fc2 = nn.Linear(40, 3)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), (2, 2))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = x.view(-1, int(x.nelement() / x.shape[0]))
        return self.fc2(F.relu(self.fc1(x)))


class EveryOther(prune.BasePruningMethod):
    """Prune every other entry in a tensor."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        mask = default_mask.clone()
        mask.view(-1)[::2] = 0
        return mask


def sparsity(model):
    zeros = sum(float(torch.sum(m.weight == 0)) for m in model.modules() if hasattr(m, "weight"))
    return zeros / sum(float(m.weight.nelement()) for m in model.modules() if hasattr(m, "weight"))


def train(model, x, y, steps, lr=0.02):
    optimizer = optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main():
    torch.manual_seed(0)
    rng = np.random.default_rng(5)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    y = rng.integers(0, 3, 48)
    stripes = np.sin(np.arange(16) * np.array([0.6, 1.1, 1.9])[:, None])
    x = stripes[y][:, None, None, :] + rng.normal(0, 0.4, (48, 1, 16, 16))
    x, y = torch.tensor(x, dtype=torch.float32, device=device), torch.tensor(y, device=device)
    model = LeNet().to(device=device)
    for p in model.parameters():
        std = 0.3 if p.dim() > 1 else 0.05
        p.data = torch.from_numpy(rng.normal(0, std, p.shape).astype("float32"))
    losses = train(model, x, y, 8)

    module = model.conv1
    prune.l1_unstructured(module, name="weight", amount=0.3)
    print([name for name, _ in module.named_parameters()], [name for name, _ in module.named_buffers()])
    prune.l1_unstructured(module, name="bias", amount=2)
    prune.ln_structured(model.conv2, name="weight", amount=0.25, n=2, dim=0)
    losses += train(model, x, y, 5)
    print(module._forward_pre_hooks.__class__.__name__, len(module._forward_pre_hooks))

    parameters_to_prune = ((model.fc1, "weight"), (model.fc2, "weight"))
    for amount in (0.2, 0.4):
        prune.global_unstructured(parameters_to_prune, pruning_method=prune.L1Unstructured, amount=amount)
        losses += train(model, x, y, 4)
        print(f"Sparsity in fc1.weight: {100.0 * (model.fc1.weight == 0).float().mean():.2f}%")
        losses.append(sparsity(model))
    EveryOther.apply(model.fc2, "bias")
    prune.custom_from_mask(model.conv2, name="bias", mask=torch.arange(12).remainder(3).ne(0))
    losses += train(model, x, y, 3)

    state = model.state_dict()
    assert "fc1.weight_orig" in state and "fc1.weight_mask" in state
    assert prune.is_pruned(model)
    for m in model.children():
        for name in ("weight", "bias"):
            if hasattr(m, name + "_mask"):
                prune.remove(m, name)
    assert not prune.is_pruned(model) and "fc1.weight" in model.state_dict()
    losses.append(sparsity(model))
    with torch.no_grad():
        losses.append(F.cross_entropy(model(x), y).item())
    return losses


if __name__ == "__main__":
    print(main())
