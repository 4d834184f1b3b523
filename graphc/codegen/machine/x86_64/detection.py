"""Detection of x86-64 features at run time: CPUID, and XGETBV for the registers saved by the system.

Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, CPUID; volume 1, section 14.3.
"""

from __future__ import annotations

from typing import NamedTuple

from graphc.codegen.machine.machine_code import emit_machine_code


class Bit(NamedTuple):
    """One bit of the output of CPUID."""

    leaf: int
    subleaf: int
    register: int
    """0 to 3: EAX, EBX, ECX, EDX."""
    bit: int


_BASIC, _EXTENDED = 0, 0x80000000
_B, _C, _D = 1, 2, 3
BITS = {
    **{
        name: Bit(1, 0, _C, bit)
        for name, bit in {
            **{"sse3": 0, "pclmul": 1, "ssse3": 9, "fma": 12, "cx16": 13, "sse4.1": 19, "sse4.2": 20, "movbe": 22},
            **{"popcnt": 23, "aes": 25, "avx": 28, "f16c": 29},
        }.items()
    },
    **{
        name: Bit(7, 0, _B, bit)
        for name, bit in {
            **{"bmi": 3, "avx2": 5, "bmi2": 8, "avx512f": 16, "avx512dq": 17, "adx": 19, "avx512ifma": 21},
            **{"avx512cd": 28, "sha": 29, "avx512bw": 30, "avx512vl": 31},
        }.items()
    },
    **{
        name: Bit(7, 0, _C, bit)
        for name, bit in {
            **{"avx512vbmi": 1, "avx512vbmi2": 6, "gfni": 8, "vaes": 9, "vpclmulqdq": 10, "avx512vnni": 11},
            **{"avx512bitalg": 12, "avx512vpopcntdq": 14},
        }.items()
    },
    **{"avx512vp2intersect": Bit(7, 0, _D, 8), "avx512fp16": Bit(7, 0, _D, 23)},
    **{"avxvnni": Bit(7, 1, 0, 4), "avx512bf16": Bit(7, 1, 0, 5)},
    "lzcnt": Bit(0x80000001, 0, _C, 5),
}
"""Bits of CPUID for features that compiled code uses and some processors lack."""
_SYSTEM = Bit(1, 0, _C, 27)
"""OSXSAVE: whether XGETBV reports the saved registers."""
_AVX_STATE, _AVX512_STATE = 0x6, 0xE6
"""Bits of XCR0: 16- and 32-byte registers; for AVX-512 also masks and 64-byte registers."""


_CONVENTION = "win64cc"
"""Calling convention of CPUID's code, on every system. NOTE: a call by that of Linux may change XMM6 to XMM15, which
code for Windows then saves first, by instructions that the processor may lack."""
_CPUID = bytes.fromhex("53 89c8 89d1 0fa2 418900 41895804 41894808 4189500c 5b c3")
"""Machine code of ``void (i32 leaf, i32 subleaf, ptr registers)``: push rbx; mov eax, ecx; mov ecx, edx; cpuid; mov
[r8], eax; mov [r8+4], ebx; mov [r8+8], ecx; mov [r8+12], edx; pop rbx; ret."""
_XGETBV = bytes.fromhex("31c9 0f01d0 c3")
"""Machine code of ``i32 ()``: xor ecx, ecx; xgetbv; ret."""


def emit_detection(features: str, name: str) -> str:
    """Return LLVM text of a function of this name that returns (i1) whether the processor has these features and the
    system saves their registers. Return an empty string if all x86-64 processors have them."""
    names = [feature[1:] for feature in features.split(",") if feature[1:] in BITS]
    bits = [BITS[feature] for feature in names]
    vectors = any(feature.startswith(("avx", "fma", "f16c", "vaes", "vpclmul")) for feature in names)
    masks: dict[tuple[int, int, int], int] = {}
    for leaf, subleaf, register, bit in [*bits, *([_SYSTEM] if vectors else [])]:
        masks[leaf, subleaf, register] = masks.get((leaf, subleaf, register), 0) | 1 << bit
    if not masks:
        return ""
    lines = ["entry:", "  %registers = alloca [4 x i32], align 16"]
    for base in (_BASIC, _EXTENDED):
        most = max((leaf for leaf, _, _ in masks if base <= leaf < base + _EXTENDED), default=base)
        if most > base:
            lines += [_ask(name, base, 0), *_need(f"%most{base}", 0, f"icmp uge i32 %most{base}, {_signed(most)}")]
    for leaf, subleaf in dict.fromkeys((leaf, subleaf) for leaf, subleaf, _ in sorted(masks)):
        lines.append(_ask(name, leaf, subleaf))
        for register in (r for x, y, r in sorted(masks) if (x, y) == (leaf, subleaf)):
            value, mask = f"%c{leaf}.{subleaf}.{register}", masks[leaf, subleaf, register]
            lines += _need(value, register, f"icmp eq i32 {value}.m, {_signed(mask)}", mask)
    if vectors:
        mask = _AVX512_STATE if any(feature.startswith("avx512") for feature in names) else _AVX_STATE
        lines += [f"  %x = call i32 @{name}.xgetbv()", f"  %x.m = and i32 %x, {mask}"]
        lines += [f"  %x.ok = icmp eq i32 %x.m, {mask}", "  br i1 %x.ok, label %has, label %lacks", "has:"]
    body = "\n".join([*lines, "  ret i1 true", "lacks:", "  ret i1 false"])
    functions = [
        emit_machine_code(f"{_CONVENTION} void @{name}.cpuid(i32, i32, ptr)", _CPUID),
        *([emit_machine_code(f"i32 @{name}.xgetbv()", _XGETBV)] if vectors else []),
        f"define hidden i1 @{name}() nounwind {{\n{body}\n}}",
    ]
    return "\n".join(functions) + "\n"


def _ask(name: str, leaf: int, subleaf: int) -> str:
    return f"  call {_CONVENTION} void @{name}.cpuid(i32 {_signed(leaf)}, i32 {subleaf}, ptr %registers)"


def _need(value: str, register: int, condition: str, mask: int = -1) -> list[str]:
    """Load a register from CPUID's output, and continue only if the condition holds."""
    label = f"after.{value[1:]}"
    return [
        f"  {value}.p = getelementptr i32, ptr %registers, i64 {register}",
        f"  {value} = load i32, ptr {value}.p, align 4",
        f"  {value}.m = and i32 {value}, {_signed(mask)}",
        f"  {value}.ok = {condition}",
        f"  br i1 {value}.ok, label %{label}, label %lacks",
        f"{label}:",
    ]


def _signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 > 0 else value
