"""Write the StableHLO texts and the numbers that the tests read without JAX: ``python -m tools.stablehlo``.

Needs JAX: ``pip install '.[jax]'``. Every function of ``functions`` and ``models`` becomes one text; arguments and
results are arrays of ``values.npz``. Every fourth text has MLIR's generic form.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax  # pyright: ignore[reportMissingImports]
import numpy as np
from jax import export  # pyright: ignore[reportMissingImports]
from jax.interpreters import mlir  # pyright: ignore[reportMissingImports]
from jaxlib.mlir import ir  # pyright: ignore[reportMissingImports]

from tools.stablehlo import models
from tools.stablehlo.functions import CASES

FILES = Path(__file__).resolve().parents[2] / "tests" / "interop" / "stablehlo" / "files"


def text_of(function: Any, args: tuple[Any, ...], generic: bool = False) -> tuple[str, list[int]]:
    """Return the exported text without source locations, and the indices of the arguments that it takes."""
    exported = export.export(jax.jit(function), platforms=["cpu"])(*args)
    with mlir.make_ir_context():
        module = ir.Module.parse(exported.mlir_module())
        text = module.operation.get_asm(enable_debug_info=False, print_generic_op_form=generic)
    return text, list(exported.module_kept_var_idx)


def main() -> None:
    """Write all files."""
    values: dict[str, np.ndarray] = {}
    FILES.mkdir(exist_ok=True)
    for path in FILES.glob("*.mlir"):
        path.unlink()
    for number, (name, (function, args)) in enumerate(CASES.items()):
        text, kept = text_of(function, args, number % 4 == 3)
        (FILES / f"{name}.mlir").write_text(text)
        leaves = jax.tree.leaves(args)
        values |= {f"{name}.in{i}": np.asarray(leaves[j]) for i, j in enumerate(kept)}
        results = jax.tree.leaves(jax.jit(function)(*args))
        values |= {f"{name}.out{i}": np.asarray(result) for i, result in enumerate(results)}
    np.savez_compressed(FILES / "values.npz", allow_pickle=False, **values)
    total = sum(path.stat().st_size for path in FILES.iterdir())
    print(f"{len(CASES)} functions of {models.__name__} and tools.stablehlo.functions, {total // 1024} KiB")


if __name__ == "__main__":
    main()
