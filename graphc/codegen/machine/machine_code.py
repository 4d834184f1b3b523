"""Functions in LLVM text whose bodies are machine code, for instructions that no LLVM intrinsic names."""

from __future__ import annotations


def emit_machine_code(signature: str, code: bytes, linkage: str = "internal") -> str:
    """Return a function with this machine code as its body, for example ``i32 @f(i32)``. Inline assembly would need an
    assembly parser."""
    data = "".join(f"\\{byte:02X}" for byte in code)
    head = f'define {linkage} {signature} nounwind noinline naked prologue [{len(code)} x i8] c"{data}"'
    return f"{head} {{\n  unreachable\n}}"
