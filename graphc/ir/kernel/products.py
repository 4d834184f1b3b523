"""Products that accumulators sum: an update with such a product may multiply and add in one rounding."""

from __future__ import annotations

from collections import Counter

from graphc.ir.kernel.statements import Acc, Kernel, Let, Store, Update, walk

FACTORS = ("mul", "weigh")
"""Products of two numbers."""
PRODUCTS = (*FACTORS, "dot2", "dot4", "dot2i")
"""Binary operations whose results a contraction sums."""


def fused_products(kernel: Kernel) -> dict[str, Let]:
    """Return the products that are only added to one accumulator, by name."""
    uses: Counter[str] = Counter()
    products: dict[str, Let] = {}
    added: set[str] = set()
    combines: dict[str, str] = {}
    for stmt, _ in walk(kernel.body):
        if isinstance(stmt, Let):
            uses.update(a for a in stmt.args if isinstance(a, str))
            if stmt.op in PRODUCTS and (stmt.op not in FACTORS or stmt.dtype.kind == "f"):
                products[stmt.name] = stmt
        elif isinstance(stmt, Acc):
            combines[stmt.name] = stmt.combine
            uses.update([stmt.init] if isinstance(stmt.init, str) else [])
        elif isinstance(stmt, (Update, Store)) and isinstance(stmt.value, str):
            uses[stmt.value] += 1
            if isinstance(stmt, Update) and combines[stmt.acc] == "add":
                added.add(stmt.value)
    return {name: let for name, let in products.items() if name in added and uses[name] == 1}
