"""What a program takes, known without a call: memory, code, prepacked weights, the estimated time."""

from __future__ import annotations

from dataclasses import dataclass

from graphc.files.manifest import PREPACKED, BufferSpec
from graphc.runtime.call import Executable


@dataclass(frozen=True)
class Plan:
    """One program of a compiled function or model file; sizes are bytes."""

    name: str
    signature: tuple[str, ...]
    """Name, element type and shape of each input."""
    arena: int
    """Scratch memory of a call, of the larger one of the forward and the backward program."""
    constants: int
    prepacked: int
    """What is made of weights and kept; programs of one model share what is equal."""
    code: int
    nanoseconds: int
    """Expected time of a call on one core, roughly, the backward pass included; 0 when unknown."""

    def __str__(self) -> str:
        return (
            f"{self.name}({', '.join(self.signature)}): arena {self.arena}, constants {self.constants}, prepacked "
            f"{self.prepacked}, code {self.code} bytes, about {self.nanoseconds / 1000:.1f} us"
        )


def plan_of(*programs: Executable) -> Plan:
    """The plan of a program, and of the backward program that belongs to it."""
    first = programs[0]
    manifests = [program.manifest for program in programs]
    return Plan(
        first.manifest.name,
        tuple(map(_title, first.inputs)),
        max(m.arena for m in manifests),
        sum(m.constants for m in manifests),
        sum(spec.nbytes for spec in first.bound if spec.path.startswith(PREPACKED)),
        sum(program.code_bytes for program in programs),
        sum(m.nanoseconds for m in manifests),
    )


def _title(spec: BufferSpec) -> str:
    return f"{spec.name}: {spec.dtype}[{','.join(map(str, spec.shape))}]"
