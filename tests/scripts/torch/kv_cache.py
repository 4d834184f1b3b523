"""A decoder with rotary positions, grouped heads and a KV cache learns to count, then generates with the cache."""

from typing import Optional

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def precompute_freqs_cis(dim, end, theta=10000.0):
    freqs = 1.0 / (theta ** (torch.arange(0, dim, 2)[: (dim // 2)].float() / dim))
    angles = torch.outer(torch.arange(end), freqs).float()
    return torch.polar(torch.ones_like(angles), angles)


def apply_rotary_emb(x, freqs_cis):
    x_ = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(x_ * freqs_cis[None, :, None, :]).flatten(3).type_as(x)


def repeat_kv(x, n_rep):
    bs, slen, n_kv_heads, head_dim = x.shape
    if n_rep == 1:
        return x
    return x[:, :, :, None, :].expand(bs, slen, n_kv_heads, n_rep, head_dim).reshape(bs, slen, -1, head_dim)


class Attention(nn.Module):
    def __init__(self, dim, n_heads, n_kv_heads, max_batch, max_len):
        super().__init__()
        self.n_heads, self.n_kv_heads, self.head_dim = n_heads, n_kv_heads, dim // n_heads
        self.wq = nn.Linear(dim, n_heads * self.head_dim, bias=False)
        self.wk = nn.Linear(dim, n_kv_heads * self.head_dim, bias=False)
        self.wv = nn.Linear(dim, n_kv_heads * self.head_dim, bias=False)
        self.wo = nn.Linear(n_heads * self.head_dim, dim, bias=False)
        self.register_buffer("cache_k", torch.zeros(max_batch, max_len, n_kv_heads, self.head_dim), persistent=False)
        self.register_buffer("cache_v", torch.zeros(max_batch, max_len, n_kv_heads, self.head_dim), persistent=False)

    def forward(self, x, start_pos, freqs_cis, mask: Optional[torch.Tensor]):
        bsz, seqlen, _ = x.shape
        xq = self.wq(x).view(bsz, seqlen, self.n_heads, self.head_dim)
        keys = self.wk(x).view(bsz, seqlen, self.n_kv_heads, self.head_dim)
        values = self.wv(x).view(bsz, seqlen, self.n_kv_heads, self.head_dim)
        xq, keys = apply_rotary_emb(xq, freqs_cis), apply_rotary_emb(keys, freqs_cis)
        if not self.training:
            self.cache_k[:bsz, start_pos : start_pos + seqlen] = keys
            self.cache_v[:bsz, start_pos : start_pos + seqlen] = values
            keys = self.cache_k[:bsz, : start_pos + seqlen]
            values = self.cache_v[:bsz, : start_pos + seqlen]
        keys = repeat_kv(keys, self.n_heads // self.n_kv_heads)
        values = repeat_kv(values, self.n_heads // self.n_kv_heads)
        xq, keys, values = xq.transpose(1, 2), keys.transpose(1, 2), values.transpose(1, 2)
        scores = torch.matmul(xq, keys.transpose(2, 3)) / self.head_dim**0.5
        if mask is not None:
            scores = scores + mask
        scores = F.softmax(scores.float(), dim=-1).type_as(xq)
        return self.wo(torch.matmul(scores, values).transpose(1, 2).contiguous().view(bsz, seqlen, -1))


class FeedForward(nn.Module):
    def __init__(self, dim, hidden_dim):
        super().__init__()
        self.w1, self.w3 = nn.Linear(dim, hidden_dim, bias=False), nn.Linear(dim, hidden_dim, bias=False)
        self.w2 = nn.Linear(hidden_dim, dim, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps, self.weight = eps, nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class Transformer(nn.Module):
    def __init__(self, vocab, dim=32, n_layers=2, max_len=32):
        super().__init__()
        self.tok_embeddings = nn.Embedding(vocab, dim)
        self.layers = nn.ModuleList()
        for _ in range(n_layers):
            parts = {"attention": Attention(dim, 4, 2, 4, max_len), "feed_forward": FeedForward(dim, 64)}
            self.layers.append(nn.ModuleDict({**parts, "n1": RMSNorm(dim), "n2": RMSNorm(dim)}))
        self.norm, self.output = RMSNorm(dim), nn.Linear(dim, vocab, bias=False)
        self.freqs_cis = precompute_freqs_cis(dim // 4, max_len * 2)

    def forward(self, tokens, start_pos=0):
        _bsz, seqlen = tokens.shape
        h = self.tok_embeddings(tokens)
        freqs_cis = self.freqs_cis[start_pos : start_pos + seqlen]
        mask = None
        if seqlen > 1:
            mask = torch.full((seqlen, seqlen), float("-inf"), device=tokens.device)
            mask = torch.triu(mask, diagonal=1)
            mask = torch.hstack([torch.zeros((seqlen, start_pos), device=tokens.device), mask]).type_as(h)
        for layer in self.layers:
            h = h + layer["attention"](layer["n1"](h), start_pos, freqs_cis, mask)
            h = h + layer["feed_forward"](layer["n2"](h))
        return self.output(self.norm(h)).float()


@torch.inference_mode()
def generate(model, prompt, total_len, pad_id=-1):
    model.eval()
    tokens = torch.full((len(prompt), total_len), pad_id, dtype=torch.long)
    for k, t in enumerate(prompt):
        tokens[k, : len(t)] = torch.tensor(t, dtype=torch.long)
    prev_pos, input_text_mask, gaps = 0, tokens != pad_id, []
    for cur_pos in range(min(len(t) for t in prompt), total_len):
        logits = model(tokens[:, prev_pos:cur_pos], prev_pos)
        probs = torch.softmax(logits[:, -1] / 0.6, dim=-1)
        probs_sort, probs_idx = torch.sort(probs, dim=-1, descending=True)
        probs_sort[torch.cumsum(probs_sort, dim=-1) - probs_sort > 0.9] = 0.0
        next_token = torch.gather(probs_idx, -1, probs_sort.argmax(-1, keepdim=True)).reshape(-1)
        tokens[:, cur_pos] = torch.where(input_text_mask[:, cur_pos], tokens[:, cur_pos], next_token)
        gaps.append(probs_sort.sum(-1).mean().item())
        prev_pos = cur_pos
    return tokens, gaps


def main():
    torch.manual_seed(1)
    rng = np.random.default_rng(1)
    model = Transformer(12)
    for p in model.parameters():
        if p.dim() > 1:
            p.data.copy_(torch.from_numpy(rng.normal(0, 0.15, p.shape)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, betas=(0.9, 0.95))
    losses = []
    for _ in range(25):
        start, stride = rng.integers(0, 12, (16, 1)), rng.integers(1, 3, (16, 1))
        data = torch.from_numpy((start + stride * np.arange(13)) % 12)
        logits = model(data[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), data[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    tokens, gaps = generate(model, [[1, 2, 3, 4], [0, 2, 4, 6, 8]], 16)
    print(tokens)
    with torch.no_grad():
        whole = torch.softmax(model(tokens[:, :-1])[:, -1], -1)
        again = model(tokens[:, -2:-1], start_pos=14).softmax(-1)[:, -1]
    assert torch.allclose(whole, again, atol=1e-5), (whole, again)
    return losses + gaps + whole[0].tolist()


if __name__ == "__main__":
    print(main())
