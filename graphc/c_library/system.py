"""Record of an operating system: the kinds of files of its libraries, their choices, and how code is linked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

import numpy as np

from graphc.base.errors import ArgumentError
from graphc.base.records import dataclass
from graphc.c_library.plan import BESIDE, INSIDE, LibraryPlan
from graphc.codegen.link.layout import SectionFlag
from graphc.codegen.link.reader import Object
from graphc.codegen.machine.target import Target
from graphc.compiler.linking import builtins_for

LINUX_PROOFS = (
    "realtime=True proves code for Linux only: prove a library of the Linux target with the same instructions"
)
"""Value of ``no_proof`` for a system whose machine code a library for Linux has too."""


@dataclass(frozen=True)
class Linking:
    """Object code of a library, to link to files."""

    objects: tuple[bytes, ...]
    plan: LibraryPlan
    weights: np.ndarray
    """Bytes of the weights, for a system whose linker places them."""
    target: Target
    library: str
    """File name of the shared library."""
    kinds: tuple[str, ...]
    """Kinds of all files to write."""

    @property
    def supply(self) -> Callable[[str], bytes | None]:
        """Return the function that returns object code of a function of graphc by its name."""
        return builtins_for(self.target, needs_libc=self.plan.threads)


@dataclass(frozen=True)
class System:
    """An operating system, or the lack of one."""

    title: str
    fits: Callable[[Target], bool]
    """Whether a target is of this system."""
    example: str
    """Name of a target of this system, for messages."""
    kinds: tuple[str, ...]
    """Kinds of its files."""
    library: str
    """Suffix of the file that loaders load."""
    link: Callable[[Linking], Mapping[str, bytes]]
    """Links object code to files by kind, at least those of the requested kinds that hold code."""
    code_bytes: Callable[[bytes], int]
    """Counts the bytes of machine code in an object file."""
    fill: Callable[[bytes, str, np.ndarray], bytes] | None = None
    """Writes data into the section of this name of an object file; None where the linker places the weights."""
    variants: Mapping[str, str] = field(default_factory=dict)
    """Kinds of files that hold the library for another target: the name of that target. They share the file of
    weights."""
    named_kinds: tuple[str, ...] = ()
    """Kinds whose files are called ``STEM.KIND.SUFFIX``, with the suffix of a library."""
    kinds_inside: tuple[str, ...] = ()
    """Kinds of files that need the weights inside the library."""
    no_beside: str = ""
    """Why weights cannot be in a file of their own; empty if they can."""
    no_proof: str = ""
    """Why ``realtime=True`` proves nothing; empty if it does."""

    def check(self, target: Target, weights: str, threads: bool, realtime: bool) -> None:
        """Raise ArgumentError where the system has no such option."""
        if weights not in (INSIDE, BESIDE):
            raise ArgumentError(f"weights must be {INSIDE!r} or {BESIDE!r}, got {weights!r}")
        if weights == BESIDE and self.no_beside:
            raise ArgumentError(self.no_beside, remedy=f"pass weights={INSIDE!r}")
        if realtime and self.no_proof:
            raise ArgumentError(self.no_proof, remedy="pass realtime=False")
        if threads and realtime:
            raise ArgumentError("threads wait for each other, which realtime=True forbids", remedy="pass threads=False")
        if threads and not target.has_pool:
            raise ArgumentError(f"there is no thread pool for {target.triple}", remedy="pass threads=False")

    def check_weights(self, kinds: Sequence[str], weights: str) -> None:
        """Raise ArgumentError for kinds of files that need the weights in another place."""
        variant = next((kind for kind in kinds if kind in self.variants), None)
        if variant and weights != BESIDE:
            raise ArgumentError(
                f"a file of kind {variant!r} shares the weights of other files",
                remedy=f"pass weights={BESIDE!r} (--weights-beside)",
            )
        kind = next((kind for kind in kinds if kind in self.kinds_inside), None)
        if kind and weights == BESIDE:
            raise ArgumentError(
                f"a file of kind {kind!r} for {self.title} has its weights inside the library",
                remedy=f"pass weights={INSIDE!r} (leave out --weights-beside)",
            )


def executable_bytes(content: Object) -> int:
    """Return the bytes of the executable sections of an object file."""
    return sum(s.nbytes for s in content.sections if s.flags & SectionFlag.EXECUTE)
