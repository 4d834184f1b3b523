"""The pass that gives products of matrices to a device's library."""

from __future__ import annotations

from dataclasses import dataclass, replace

from graphc.base.sizes.size import hint
from graphc.codegen.machine.cuda.costs import GPU, GpuCosts
from graphc.codegen.schedule.base import Context, PassResult, Scheduled, count_changes
from graphc.codegen.schedule.contraction.product import Product
from graphc.codegen.schedule.gpu.product import find_product
from graphc.codegen.schedule.gpu.split_epilogue import split_epilogue
from graphc.codegen.schedule.gpu_parts import can_be_two, unused, with_two_for_one
from graphc.ir.kernel.statements import Kernel, Program

TF32 = "tf32"
"""The feature of a target that lets f32 factors be rounded to tf32."""


@dataclass(frozen=True)
class LibraryProducts:
    """Needs: kernels of one nest each, without threads. Does: finds large products of matrices, and makes what the
    library does not do with their results a kernel behind them. Leaves: an equivalent program, and beside it by the
    names of kernels what the library computes in their place.

    ``@k: y[i] = erf(sum(a[i, l] * b[l]))`` -> ``@k_product: t[i] = sum(a[i, l] * b[l]); @k: y[i] = erf(t[i])``."""

    name: str = "library-products"
    costs: GpuCosts = GPU

    def run(self, given: Scheduled, context: Context) -> PassResult:
        """Chooses by the size of the product."""
        tf32 = context.target.has(TF32)
        program, reasons = given.program, []
        products = dict(given.execution.products)
        for kernel in given.program.kernels:
            product = find_product(kernel, tf32)
            if product is None:
                parts = self.split(program, kernel, tf32)
                if parts is not None:
                    producer, consumer, product = parts
                    program = with_two_for_one(program, producer, consumer)
                    products[producer.name] = product
                    reasons.append(f"{producer.name}: {self.words(product)}; {kernel.name} does the rest")
            elif self.pays(product):
                products[kernel.name] = product
                reasons.append(f"{kernel.name}: {self.words(product)}")
        changed = count_changes(given.program, program) + len(products) - len(given.execution.products)
        execution = replace(given.execution, products=products)
        return PassResult(replace(given, program=program, execution=execution), changed, tuple(reasons))

    def pays(self, product: Product) -> bool:
        """Whether a product is large enough for the library."""
        work = hint(product.m) * hint(product.n) * hint(product.k) * hint(product.batch)
        return work >= self.costs.product_work and min(hint(product.m), hint(product.n)) >= self.costs.product_side

    def words(self, product: Product) -> str:
        """Says what the library computes."""
        sizes = f"{product.m}x{product.n}, {product.k} terms"
        batch = f", {product.batch} of them" if hint(product.batch) > 1 else ""
        return f"the library's product of {sizes}{batch}, epilogue {product.epilogue}"

    def split(self, program: Program, kernel: Kernel, tf32: bool) -> tuple[Kernel, Kernel, Product] | None:
        """A kernel as a product and the rest, where that pays."""
        if not can_be_two(program, kernel, "_product"):
            return None
        parts = split_epilogue(kernel, unused("sums", {b.name for b in kernel.buffers}))
        if parts is None:
            return None
        product = find_product(parts[0], tf32)
        if product is None or not self.pays(product) or hint(product.k) < self.costs.product_split:
            return None
        return *parts, product
