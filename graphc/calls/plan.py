"""Cost of a program before any call: memory, code, prepacked weights, the estimated time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from graphc.base.records import dataclass
from graphc.files.manifest import PREPACKED
from graphc.runtime.call import Executable


@dataclass(frozen=True)
class Plan:
    """One program of a compiled function or model file; sizes are bytes."""

    name: str
    signature: tuple[str, ...]
    """Name, element type and shape of each input."""
    arena: int
    """Scratch memory of a call, of the larger of the forward and the backward program; with named dimensions at the
    requested sizes.
    """
    constants: int
    prepacked: int
    """Cached arrays packed from weights. Programs of one model share equal ones."""
    code: int
    nanoseconds: int
    """Rough estimate for a call on one core, including the backward pass; 0 when unknown. With named dimensions at the
    expected sizes.
    """
    chosen: int = 0
    """Kernels with several versions, of which a call selects one; 0 without named dimensions."""

    def __str__(self) -> str:
        chosen = f", {self.chosen} kernels in several versions" if self.chosen else ""
        about = f", about {self.nanoseconds / 1000:.1f} us" if self.nanoseconds else ""
        return (
            f"{self.name}({', '.join(self.signature)}): arena {self.arena}, constants {self.constants}, prepacked "
            f"{self.prepacked}, code {self.code} bytes{chosen}{about}"
        )


def plan_of(*programs: Executable, sizes: Mapping[str, int] = MappingProxyType({})) -> Plan:
    """Return the plan of a program and its backward program, for a call with these named sizes.

    Dimensions without a size have the expected one. Raise ArgumentError for an unknown name, and for a size out of its
    range.
    """
    first = programs[0]
    resolved = [p.sizes.of_dimensions({n: s for n, s in sizes.items() if p is first or _has(p, n)}) for p in programs]
    manifests = [program.manifest for program in programs]
    return Plan(
        first.manifest.name,
        tuple(map(str, first.inputs)),
        max(call.arena for call in resolved),
        sum(m.constants for m in manifests),
        sum(spec.nbytes for spec in first.bound if spec.path.startswith(PREPACKED)),
        sum(program.code_bytes for program in programs),
        sum(m.nanoseconds for m in manifests),
        sum(m.chosen for m in manifests),
    )


def summed(name: str, signature: tuple[str, ...], plans: Sequence[Plan]) -> Plan:
    """Return the plan of programs that run one after the other in each call."""
    fields = ("constants", "prepacked", "code", "nanoseconds", "chosen")
    arena = max([plan.arena for plan in plans], default=0)
    return Plan(name, signature, arena, *[sum(getattr(plan, field) for plan in plans) for field in fields])


def _has(program: Executable, name: str) -> bool:
    return any(d.name == name for d in program.manifest.dims)
