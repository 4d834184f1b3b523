"""Operator calls for measuring eager mode, over all families, each an expression for any framework.

``lib`` is ``torch`` or ``graphc``, ``F`` its ``nn.functional``; `operands` supplies the other names.
"""

from __future__ import annotations

from typing import Any

import numpy as np

CALLS: dict[str, tuple[str, ...]] = {
    "arithmetic": ("x + y", "x + 1.0", "2.0 * x", "x - v", "x / p", "-x", "x.abs()", "x ** 2", "p ** 0.5", "w * x"),
    "functions": (
        *("x.exp()", "p.log()", "p.sqrt()", "x.tanh()", "x.sigmoid()", "x.sin()", "lib.erf(x)", "p.rsqrt()"),
        *("x.clamp(-1, 1)", "lib.maximum(x, y)", "x.round()", "lib.where(m, x, y)"),
    ),
    "comparisons": ("x > y", "x == y", "m & m", "~m", "x.isnan()", "i + i", "i % 3", "x.to(lib.float64)"),
    "reductions": (
        *("x.sum()", "x.sum(1)", "x.mean()", "x.mean(0)", "x.max()", "x.max(1)", "x.argmax(1)", "x.var(1)", "x.std()"),
        *("x.prod(1)", "m.any()", "x.norm()", "x.logsumexp(1)", "x.cumsum(1)"),
    ),
    "shapes": (
        *(
            "x[0]",
            "x[1:3]",
            "x[:, None]",
            "x.view(-1)",
            "x.t()",
            "x.reshape(-1)",
            "x.transpose(0, 1)",
            "x.unsqueeze(0)",
        ),
        *("x.expand(2, -1, -1)", "lib.cat([x, y])", "lib.stack([x, y])", "x.chunk(2, 1)", "x.split(4)", "x.clone()"),
        *("x.detach()", "x.flip(0)", "x.repeat(2, 1)", "F.pad(x, (1, 1))"),
    ),
    "places": (
        *("x[r]", "x.index_select(0, r)", "x.gather(1, c)", "z.scatter_add(1, c, x)", "x.masked_fill(m, 0.0)"),
        *("x.topk(4)", "x.sort(1)", "x.argsort(1)", "x.tril()", "x[m]"),
    ),
    "products": ("x @ q", "x @ v", "b @ b", "lib.einsum('ij,kj->ik', x, y)", "F.linear(x, q)", "lib.addmm(v, x, q)"),
    "layers": (
        *("F.relu(x)", "F.gelu(x)", "F.silu(x)", "F.softmax(x, -1)", "F.log_softmax(x, -1)", "F.dropout(x, 0.1)"),
        *("F.layer_norm(x, (x.shape[1],), v, v)", "F.conv2d(a, k, padding=1)", "F.max_pool2d(a, 2)"),
        *("F.avg_pool2d(a, 2)", "F.batch_norm(a, s, s, None, None, True)", "F.embedding(r, x)"),
        *("F.scaled_dot_product_attention(b, b, b)", "F.interpolate(a, scale_factor=2)"),
    ),
    "losses": ("F.cross_entropy(x, t)", "F.mse_loss(x, y)", "F.binary_cross_entropy_with_logits(x, p)"),
    "makers": ("lib.zeros(x.shape)", "lib.ones_like(x)", "lib.arange(64)", "lib.randn(x.shape)", "lib.rand(x.shape)"),
}
"""Expressions by family."""
SIZES = {"small": (8, 16), "medium": (128, 256)}
"""Rows and columns of the matrices."""


def expressions() -> list[str]:
    return [e for family in CALLS.values() for e in family]


def operands(lib: Any, rows: int, columns: int) -> dict[str, Any]:
    """Return tensors of a framework: ``x``, ``y`` any numbers, ``p`` positive ones, ``z`` zeros, ``m`` bools and ``i``
    whole numbers of rows x columns; ``w`` as x, with gradients; ``q`` square, ``v`` a row, ``s`` a row of channels;
    ``b`` two batches of matrices; ``a`` images, ``k`` windows; ``t`` labels, ``r`` numbers of rows, ``c`` of
    columns."""
    random = np.random.default_rng(0)
    x, y = (random.standard_normal((rows, columns), np.float32) for _ in range(2))
    channels, side = (4, 8) if rows < 64 else (16, 28)
    arrays = {
        **{"x": x, "y": y, "p": np.abs(x) + 0.5, "z": np.zeros_like(x), "m": x > 0},
        "i": random.integers(0, 100, x.shape),
        "q": random.standard_normal((columns, columns), np.float32),
        "v": random.standard_normal(columns, np.float32),
        "s": np.abs(random.standard_normal(channels, np.float32)) + 0.5,
        "b": random.standard_normal((2, rows, rows), np.float32),
        "a": random.standard_normal((4, channels, side, side), np.float32),
        "k": random.standard_normal((channels, channels, 3, 3), np.float32),
        "t": random.integers(0, columns, rows),
        "r": random.integers(0, rows, rows),
        "c": random.integers(0, columns, x.shape),
    }
    tensors = {name: lib.tensor(array) for name, array in arrays.items()}
    tensors["w"] = lib.tensor(x, requires_grad=True)
    return tensors
