"""Low-rank adapters: a trained network is frozen, small matrices beside its layers learn another task, then merge."""

import math
from functools import partial

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class LoRALinear(nn.Module):
    def __init__(self, base: nn.Linear, r: int, alpha: int, rng, dropout: float = 0.0):
        super().__init__()
        self.base = base
        self.base.weight.requires_grad_(False)
        if self.base.bias is not None:
            self.base.bias.requires_grad_(False)
        self.scaling = alpha / r
        self.lora_A = nn.Parameter(torch.empty(r, base.in_features))
        self.lora_B = nn.Parameter(base.weight.new_zeros(base.out_features, r))
        bound = 1 / math.sqrt(base.in_features)
        with torch.no_grad():
            self.lora_A.copy_(torch.from_numpy(rng.uniform(-bound, bound, self.lora_A.shape)))
        self.dropout = nn.Dropout(dropout) if dropout > 0.0 else nn.Identity()
        self.merged = False

    def forward(self, x):
        out = self.base(x)
        if self.merged:
            return out
        return out + self.scaling * F.linear(F.linear(self.dropout(x), self.lora_A), self.lora_B)

    def merge(self):
        if not self.merged:
            self.base.weight.data += self.scaling * (self.lora_B @ self.lora_A).detach()
            self.merged = True


def replace(model, r, alpha, rng, targets=("q_proj", "v_proj", "fc1")):
    for name, module in list(model.named_modules()):
        for child_name, child in list(module.named_children()):
            if isinstance(child, nn.Linear) and child_name in targets:
                setattr(module, child_name, LoRALinear(child, r, alpha, rng))
    return model


class Layer(nn.Module):
    def __init__(self, d, heads=2):
        super().__init__()
        self.heads = heads
        self.q_proj, self.k_proj, self.v_proj = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)
        self.out_proj, self.fc1, self.fc2 = nn.Linear(d, d), nn.Linear(d, 2 * d), nn.Linear(2 * d, d)
        self.norm1, self.norm2 = nn.RMSNorm(d), nn.RMSNorm(d)

    def forward(self, x):
        h = self.norm1(x)
        q, k, v = (
            p(h).unflatten(-1, (self.heads, -1)).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj)
        )
        attention = torch.softmax(torch.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(q.shape[-1]), dim=-1)
        x = x + self.out_proj(torch.einsum("bhij,bhjd->bhid", attention, v).transpose(1, 2).flatten(2))
        return x + self.fc2(F.silu(self.fc1(self.norm2(x))))


class Net(nn.Module):
    def __init__(self, d=16, classes=4):
        super().__init__()
        self.embed = nn.Embedding(20, d)
        self.layers = nn.ModuleList([Layer(d) for _ in range(2)])
        self.head = nn.Linear(d, classes)

    def forward(self, tokens):
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(x.mean(dim=1))


def fit(model, tokens, labels, lr, steps):
    params = [p for p in model.parameters() if p.requires_grad]
    optimizer, losses = torch.optim.AdamW(params, lr=lr, eps=1e-6), []
    for _ in range(steps):
        loss = F.cross_entropy(model(tokens), labels)
        grads = torch.autograd.grad(loss, params)
        for p, g in zip(params, grads, strict=True):
            p.grad = g
        norm = nn.utils.clip_grad_norm_(params, max_norm=1.0)
        optimizer.step()
        losses += [loss.item(), 0.1 * norm.item()]
    return losses


def main():
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    model = Net()
    init = partial(rng.normal, 0.0, 0.25)
    state = {k: torch.from_numpy(init(v.shape)).to(v.dtype) for k, v in model.state_dict().items() if v.ndim > 1}
    result = model.load_state_dict(state, strict=False)
    for name in result.missing_keys:
        with torch.no_grad():
            model.get_parameter(name).fill_(1.0 if "norm" in name else 0.0)
    tokens = torch.from_numpy(rng.integers(0, 20, (64, 10)))
    losses = fit(model, tokens, tokens.sum(1) % 4, 5e-3, 15)
    frozen = {name: p.clone() for name, p in model.named_parameters()}
    replace(model, 4, 8, rng)
    for name, p in model.named_parameters():
        p.requires_grad = "lora_" in name
    trainable = sum(p.numel() for p in model.parameters() if p.requires_grad)
    total = sum(p.numel() for p in model.parameters())
    print(f"trainable params: {trainable:,d} || all params: {total:,d} || trainable%: {100 * trainable / total:.2f}")
    losses += fit(model, tokens, (tokens > 9).sum(1) % 4, 1e-2, 15)
    adapters = {k: v.cpu() for k, v in model.state_dict().items() if "lora_" in k}
    print(f"{len(adapters)} adapter tensors")
    for name, p in model.named_parameters():
        if name.replace(".base", "") in frozen and "lora_" not in name:
            assert torch.equal(p, frozen[name.replace(".base", "")]), name
    before = model(tokens)
    for module in model.modules():
        if isinstance(module, LoRALinear):
            module.merge()
    after = model(tokens)
    print("merging changes by", (before - after).abs().max().item())
    return [*losses, F.cross_entropy(after, (tokens > 9).sum(1) % 4).item()]


if __name__ == "__main__":
    print(main())
