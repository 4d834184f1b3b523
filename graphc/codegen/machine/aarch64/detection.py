"""Detection of aarch64 features at run time, from the identification registers that Linux lets programs read.

Source: Arm Architecture Reference Manual for A-profile, ID_AA64ISAR0_EL1 and ID_AA64ISAR1_EL1; Linux since 4.11,
Documentation/arch/arm64/cpu-feature-registers.rst.
"""

from __future__ import annotations

from typing import NamedTuple

from graphc.codegen.machine.machine_code import emit_machine_code


class RegisterField(NamedTuple):
    """Four bits of an identification register, which are 0 where the processor lacks a feature."""

    register: int
    """The register's number: n of ID_AA64ISARn_EL1."""
    bit: int


FIELDS = {"dotprod": RegisterField(0, 44), "i8mm": RegisterField(1, 52)}
"""Fields of features that compiled code uses and some processors lack."""
_BITS = 0xF


def emit_detection(features: str, name: str) -> str:
    """Return LLVM text of a function of this name that returns (i1) whether the processor has these features. Return an
    empty string if all aarch64 processors have them."""
    fields = {feature: FIELDS[feature] for feature in (f[1:] for f in features.split(",")) if feature in FIELDS}
    if not fields:
        return ""
    lines, functions, total = ["entry:"], [], "true"
    for register in sorted({field.register for field in fields.values()}):
        functions.append(emit_machine_code(f"i64 @{name}.isar{register}()", _reading(register)))
        lines.append(f"  %isar{register} = call i64 @{name}.isar{register}()")
    for feature, (register, bit) in fields.items():
        lines += [
            f"  %{feature}.m = and i64 %isar{register}, {_BITS << bit}",
            f"  %{feature}.ok = icmp ne i64 %{feature}.m, 0",
            f"  %{feature} = and i1 {total}, %{feature}.ok",
        ]
        total = f"%{feature}"
    body = "\n".join([*lines, f"  ret i1 {total}"])
    return "\n".join([*functions, f"define hidden i1 @{name}() nounwind {{\n{body}\n}}"]) + "\n"


def _reading(register: int) -> bytes:
    """Return machine code that returns a register: ``mrs x0, ID_AA64ISARn_EL1; ret``."""
    words = 0xD5380600 | register << 5, 0xD65F03C0
    return b"".join(word.to_bytes(4, "little") for word in words)
