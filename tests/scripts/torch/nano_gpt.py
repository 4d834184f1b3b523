"""A character GPT after nanoGPT: tied weights, decay groups, warm-up and cosine, clipping, checkpoint, generation."""

import inspect
import math
import os
import tempfile
from contextlib import nullcontext
from dataclasses import asdict, dataclass

import numpy as np
import torch
import torch.nn as nn
from torch.nn import functional as F

TEXT = "to be or not to be that is the question whether tis nobler in the mind to suffer the slings and arrows " * 8


@dataclass
class GPTConfig:
    block_size: int = 24
    vocab_size: int = 27
    n_layer: int = 2
    n_head: int = 2
    n_embd: int = 32
    dropout: float = 0.0
    bias: bool = False


class LayerNorm(nn.Module):
    def __init__(self, ndim, bias):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(ndim))
        self.bias = nn.Parameter(torch.zeros(ndim)) if bias else None

    def forward(self, input):
        return F.layer_norm(input, self.weight.shape, self.weight, self.bias, 1e-5)


class CausalSelfAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        assert config.n_embd % config.n_head == 0
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd, bias=config.bias)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd, bias=config.bias)
        self.n_head, self.n_embd, self.dropout = config.n_head, config.n_embd, config.dropout
        self.flash = hasattr(torch.nn.functional, "scaled_dot_product_attention")

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(self.n_embd, dim=2)
        k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        dropout = self.dropout if self.training else 0
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=None, dropout_p=dropout, is_causal=True)
        return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.ln_1 = LayerNorm(config.n_embd, bias=config.bias)
        self.attn = CausalSelfAttention(config)
        self.ln_2 = LayerNorm(config.n_embd, bias=config.bias)
        self.mlp = nn.ModuleDict(
            dict(
                c_fc=nn.Linear(config.n_embd, 4 * config.n_embd, bias=config.bias),
                gelu=nn.GELU(),
                c_proj=nn.Linear(4 * config.n_embd, config.n_embd, bias=config.bias),
            )
        )

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp.c_proj(self.mlp.gelu(self.mlp.c_fc(self.ln_2(x))))


class GPT(nn.Module):
    def __init__(self, config, rng):
        super().__init__()
        self.config, self.rng = config, rng
        self.transformer = nn.ModuleDict(
            dict(
                wte=nn.Embedding(config.vocab_size, config.n_embd),
                wpe=nn.Embedding(config.block_size, config.n_embd),
                drop=nn.Dropout(config.dropout),
                h=nn.ModuleList([Block(config) for _ in range(config.n_layer)]),
                ln_f=LayerNorm(config.n_embd, bias=config.bias),
            )
        )
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.transformer.wte.weight = self.lm_head.weight  # weight tying
        self.apply(self._init_weights)
        print("number of parameters: %.2fK" % (self.get_num_params() / 1e3,))

    def get_num_params(self):
        return sum(p.numel() for p in self.parameters()) - self.transformer.wpe.weight.numel()

    def _init_weights(self, module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            module.weight.data.copy_(torch.from_numpy(self.rng.normal(0, 0.08, tuple(module.weight.shape))))
        if isinstance(module, nn.Linear) and module.bias is not None:
            torch.nn.init.zeros_(module.bias)

    def forward(self, idx, targets=None):
        device = idx.device
        _b, t = idx.size()
        assert t <= self.config.block_size
        pos = torch.arange(0, t, dtype=torch.long, device=device)
        x = self.transformer.drop(self.transformer.wte(idx) + self.transformer.wpe(pos))
        for block in self.transformer.h:
            x = block(x)
        x = self.transformer.ln_f(x)
        if targets is None:
            return self.lm_head(x[:, [-1], :]), None
        logits = self.lm_head(x)
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)

    def configure_optimizers(self, weight_decay, learning_rate, betas, device_type):
        params = {pn: p for pn, p in self.named_parameters() if p.requires_grad}
        decay = [p for _, p in params.items() if p.dim() >= 2]
        nodecay = [p for _, p in params.items() if p.dim() < 2]
        groups = [{"params": decay, "weight_decay": weight_decay}, {"params": nodecay, "weight_decay": 0.0}]
        use_fused = "fused" in inspect.signature(torch.optim.AdamW).parameters and device_type == "cuda"
        extra_args = dict(fused=True) if use_fused else dict()
        return torch.optim.AdamW(groups, lr=learning_rate, betas=betas, **extra_args)

    @torch.no_grad()
    def generate(self, idx, max_new_tokens, top_k=None):
        for _ in range(max_new_tokens):
            idx_cond = idx if idx.size(1) <= self.config.block_size else idx[:, -self.config.block_size :]
            logits, _ = self(idx_cond)
            logits = logits[:, -1, :]
            v, _ = torch.topk(logits, min(top_k, logits.size(-1)))
            logits[logits < v[:, [-1]]] = -float("Inf")
            idx = torch.cat((idx, F.softmax(logits, dim=-1).argmax(-1, keepdim=True)), dim=1)
        return idx


def get_lr(it, learning_rate=3e-3, warmup=5, decay_iters=40, min_lr=3e-4):
    if it < warmup:
        return learning_rate * (it + 1) / (warmup + 1)
    ratio = (it - warmup) / (decay_iters - warmup)
    return min_lr + 0.5 * (1.0 + math.cos(math.pi * ratio)) * (learning_rate - min_lr)


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    dtype = "float32"
    torch.manual_seed(1337)
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True
    ptdtype = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}[dtype]
    ctx = nullcontext() if device == "cpu" else torch.amp.autocast(device_type=device, dtype=ptdtype)
    rng = np.random.default_rng(1337)
    stoi = {c: i for i, c in enumerate(sorted(set(TEXT)))}
    data = np.array([stoi[c] for c in TEXT], dtype=np.uint16)

    def get_batch(config, batch_size=8):
        ix = rng.integers(0, len(data) - config.block_size, batch_size)
        x = torch.stack([torch.from_numpy((data[i : i + config.block_size]).astype(np.int64)) for i in ix])
        y = torch.stack([torch.from_numpy((data[i + 1 : i + 1 + config.block_size]).astype(np.int64)) for i in ix])
        return x.to(device), y.to(device)

    config = GPTConfig(vocab_size=len(stoi))
    model = GPT(config, rng).to(device)
    scaler = torch.amp.GradScaler(device, enabled=(dtype == "float16"))
    optimizer = model.configure_optimizers(1e-1, 3e-3, (0.9, 0.95), device)
    losses = []
    for it in range(40):
        for group in optimizer.param_groups:
            group["lr"] = get_lr(it)
        with ctx:
            _, loss = model(*get_batch(config))
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
        if it % 10 == 0:
            print(f"iter {it}: loss {loss.item():.4f}, lr {optimizer.param_groups[0]['lr']:.2e}")
    with tempfile.TemporaryDirectory() as out_dir:
        checkpoint = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "config": asdict(config)}
        torch.save(checkpoint, os.path.join(out_dir, "ckpt.pt"))
        checkpoint = torch.load(os.path.join(out_dir, "ckpt.pt"), map_location=device)
    other = GPT(GPTConfig(**checkpoint["config"]), rng)
    other.load_state_dict(checkpoint["model"])
    other.eval()
    out = other.generate(torch.zeros((1, 1), dtype=torch.long, device=device), 30, top_k=3)[0].tolist()
    itos = {i: c for c, i in stoi.items()}
    print("".join(itos[i] for i in out))
    losses.append(float(np.mean(out)))
    return losses


if __name__ == "__main__":
    print(main())
