"""Pass ``library-products``: let the device's library compute large products of matrices."""

from __future__ import annotations

from dataclasses import replace

from graphc.base.records import dataclass
from graphc.base.sizes.size import hint
from graphc.codegen.machine.cuda.costs import GPU, GpuCosts
from graphc.codegen.schedule.base import Context, PassResult, Scheduled, count_changes
from graphc.codegen.schedule.contraction.product import Product
from graphc.codegen.schedule.gpu.product import find_product
from graphc.codegen.schedule.gpu.split_epilogue import split_epilogue
from graphc.codegen.schedule.gpu_parts import can_split, replace_by_two, unused
from graphc.ir.kernel.statements import Kernel, Program

TF32 = "tf32"
"""Feature of a target: f32 factors may be rounded to tf32."""


@dataclass(frozen=True)
class LibraryProducts:
    """Replace kernels by calls of the device's library of matrix products.

    Needs: kernels of one nest each, without threads. Does: finds large products of matrices, and splits epilogues
    missing in the library off into a kernel after the product. Leaves: an equivalent program, and in
    ``execution.products`` the library's products, by the names of the replaced kernels.

    ``@k: y[i] = erf(sum(a[i, l] * b[l]))`` -> ``@k_product: t[i] = sum(a[i, l] * b[l]); @k: y[i] = erf(t[i])``.
    """

    name: str = "library-products"
    costs: GpuCosts = GPU

    def run(self, scheduled: Scheduled, context: Context) -> PassResult:
        """Choose by the size of the product."""
        tf32 = context.target.has(TF32)
        program, reasons = scheduled.program, []
        products = dict(scheduled.execution.products)
        for kernel in scheduled.program.kernels:
            product = find_product(kernel, tf32)
            if product is None:
                split = self.split(program, kernel, tf32)
                if split is not None:
                    producer, consumer, product = split
                    program = replace_by_two(program, producer, consumer)
                    products[producer.name] = product
                    reasons.append(f"{producer.name}: {self.describe(product)}; {kernel.name} does the rest")
            elif self.pays(product):
                products[kernel.name] = product
                reasons.append(f"{kernel.name}: {self.describe(product)}")
        changed = count_changes(scheduled.program, program) + len(products) - len(scheduled.execution.products)
        execution = replace(scheduled.execution, products=products)
        return PassResult(replace(scheduled, program=program, execution=execution), changed, tuple(reasons))

    def pays(self, product: Product) -> bool:
        """Check whether a product is large enough for the library."""
        work = hint(product.m) * hint(product.n) * hint(product.k) * hint(product.batch)
        return work >= self.costs.product_work and min(hint(product.m), hint(product.n)) >= self.costs.product_side

    def describe(self, product: Product) -> str:
        """Describe the library's product for people."""
        sizes = f"{product.m}x{product.n}, {product.k} terms"
        batch = f", {product.batch} of them" if hint(product.batch) > 1 else ""
        return f"the library's product of {sizes}{batch}, epilogue {product.epilogue}"

    def split(self, program: Program, kernel: Kernel, tf32: bool) -> tuple[Kernel, Kernel, Product] | None:
        """Return a kernel as (producer, consumer, product of the producer) where that pays, else None."""
        if not can_split(program, kernel, "_product"):
            return None
        kernels = split_epilogue(kernel, unused("sums", {b.name for b in kernel.buffers}))
        if kernels is None:
            return None
        product = find_product(kernels[0], tf32)
        if product is None or not self.pays(product) or hint(product.k) < self.costs.product_split:
            return None
        return *kernels, product
