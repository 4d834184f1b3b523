"""Read-only data of a library: strings, tables, and the block of weights, which bypasses the assembler."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from graphc.base.records import dataclass
from graphc.c_library.plan import (
    HEADER_BYTES,
    STATUSES,
    TYPE_NUMBERS,
    LibraryArgument,
    LibraryPlan,
    number_or,
    shape_text,
)
from graphc.files.container import ALIGNMENT
from graphc.files.manifest import TargetSpec

STATE_MAGIC, WEIGHTS_MAGIC = b"\x89GCSTAT1", b"\x89GCWGHT1"
"""First bytes of a saved state and of a weights file."""
DIFFERS = -1
"""Value in tables for a size that depends on named dimensions."""
_TENSOR = "{ ptr, ptr, ptr, i32, i32 }"


@dataclass(frozen=True)
class Datum:
    """Constant of a library."""

    symbol: str
    kind: str
    """LLVM type."""
    value: str
    align: int = 8
    exported: bool = False
    section: str = ""

    @property
    def declaration(self) -> str:
        """Return its LLVM declaration, for modules that do not define it."""
        return f"@{self.symbol} = external {'' if self.exported else 'hidden '}constant {self.kind}, align {self.align}"

    @property
    def definition(self) -> str:
        """Return its LLVM definition."""
        section = f', section "{self.section}"' if self.section else ""
        visible = "" if self.exported else "hidden "
        return f"@{self.symbol} = {visible}constant {self.kind} {self.value}{section}, align {self.align}"


def header(magic: bytes, nbytes: int, digest: bytes) -> bytes:
    """Return the header of ``nbytes`` of content."""
    return struct.pack("<8sQ32s", magic, nbytes, digest).ljust(HEADER_BYTES, b"\0")


def weights_section(plan: LibraryPlan) -> str:
    """Return the name of the section that holds the weights."""
    return "__TEXT,__weights" if plan.is_macos else f".rodata.{plan.name}"


def data_of(plan: LibraryPlan) -> list[Datum]:
    """List all constants of a library. The weights are zeros until ``fill_section`` writes them."""
    texts = {
        "text_version": plan.version,
        "text_digest": plan.digest.hex(),
        "text_target": ", ".join(map(_target_text, plan.targets)),
        "text_unknown": "unknown code",
        **{f"text_{code}": status.text for code, status in enumerate(STATUSES)},
    }
    constants = [_text(plan.inner(name), text) for name, text in texts.items()]
    pointers = ", ".join(f"ptr @{plan.inner(f'text_{code}')}" for code in range(len(STATUSES)))
    constants.append(Datum(plan.inner("texts"), f"[{len(STATUSES)} x ptr]", f"[{pointers}]"))
    heads = {"state_header": header(STATE_MAGIC, plan.state_bytes, plan.state_digest)}
    if plan.is_beside:
        heads["weights_header"] = header(WEIGHTS_MAGIC, plan.weight_bytes, plan.weight_digest)
    constants += [_bytes(plan.inner(name), head) for name, head in heads.items()]
    for entry in plan.entries:
        for end, arguments in (("inputs", entry.inputs), ("outputs", entry.outputs)):
            constants += _table(plan, f"{entry.name}_{end}", arguments)
    if not plan.is_beside:
        kind = f"[{plan.weight_bytes} x i8]"
        section = weights_section(plan)
        constants.append(Datum(plan.inner("weights"), kind, "zeroinitializer", ALIGNMENT, section=section))
    return constants


def _target_text(target: TargetSpec) -> str:
    return " ".join([target.triple, target.cpu, *target.features]).replace("  ", " ")


def emit_data(plan: LibraryPlan, with_weights: bool = True) -> str:
    """Emit the LLVM text of the module that defines all constants, ``with_weights`` as zeros."""
    weights = "" if with_weights else plan.inner("weights")
    constants = (d.definition for d in data_of(plan) if d.symbol != weights)
    # NOTE: LLVM states how numbers are passed in objects with functions only, and linkers compare that on Arm.
    function = [f"define hidden void @{plan.inner('data')}() nounwind {{\n  ret void\n}}"] if plan.is_bare else []
    return "\n".join([f'target triple = "{plan.triple}"', *constants, *function, ""])


def _table(plan: LibraryPlan, name: str, arguments: Sequence[LibraryArgument]) -> list[Datum]:
    """Build the table of inputs or outputs, which ends with a record without a name, and the constants it points to."""
    constants, records = [], []
    for number, argument in enumerate(arguments):
        spec, inner = argument.spec, plan.inner(f"{name}_{number}")
        sizes = ", ".join(f"i64 {number_or(size, DIFFERS)}" for size in (*spec.shape, 0))
        constants += [_text(f"{inner}_name", spec.name), _text(f"{inner}_shape", shape_text(spec))]
        constants.append(Datum(f"{inner}_sizes", f"[{len(spec.shape) + 1} x i64]", f"[{sizes}]"))
        pointers = ", ".join(f"ptr @{inner}_{field}" for field in ("name", "shape", "sizes"))
        records.append(f"{_TENSOR} {{ {pointers}, i32 {TYPE_NUMBERS[spec.dtype]}, i32 {len(spec.shape)} }}")
    records.append(f"{_TENSOR} zeroinitializer")
    kind = f"[{len(records)} x {_TENSOR}]"
    return [*constants, Datum(plan.symbol(name), kind, f"[{', '.join(records)}]", exported=True)]


def _text(symbol: str, text: str) -> Datum:
    return _bytes(symbol, text.encode() + b"\0", 1)


def _bytes(symbol: str, data: bytes, align: int = 8) -> Datum:
    escaped = "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in data)
    return Datum(symbol, f"[{len(data)} x i8]", f'c"{escaped}"', align)
