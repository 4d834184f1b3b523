"""macOS libraries: shared library, object file and archive of the compiled entries of a model."""

from __future__ import annotations

from graphc.base.errors import ArgumentError
from graphc.c_library.plan import INSIDE
from graphc.c_library.system import Linking, System
from graphc.codegen.link.archive import write_darwin_archive
from graphc.codegen.link.fill import fill_section
from graphc.codegen.link.layout import SectionFlag
from graphc.codegen.link.macho.reader import read_macho
from graphc.codegen.link.macho.relocatable import merge_macho
from graphc.codegen.link.macho.shared import link_dylib

_MAPPING = ("hpp", "rs", "go")
"""Kinds whose code maps the file of weights by functions of the library, which one for macOS has not."""


def _link(linking: Linking) -> dict[str, bytes]:
    objects, plan, kinds, supply = linking.objects, linking.plan, linking.kinds, linking.supply
    mapping = next((kind for kind in kinds if kind in _MAPPING), "")
    if plan.is_beside and mapping:
        raise ArgumentError(
            f"a file of kind {mapping!r} for macOS has its weights inside the library",
            remedy=f"pass weights={INSIDE!r}",
        )
    contents = dict[str, bytes]()
    if "dylib" in kinds:
        contents["dylib"] = link_dylib(objects, plan.exports, name=linking.library, supply=supply)
    if {"o", "a", "rs", "go"} & {*kinds}:
        merged = merge_macho(objects, {name: name for name in plan.exports}, supply)
        contents |= {"o": merged, "a": write_darwin_archive({f"{plan.name}.o": merged})}
    return contents


def _code_bytes(code: bytes) -> int:
    return sum(s.nbytes for s in read_macho(code).sections if s.flags & SectionFlag.EXECUTE)


SYSTEM = System(
    title="macOS",
    fits=lambda target: target.is_macos,
    example="macos-neon",
    kinds=("dylib", "a", "o", "h", "c", "py", "hpp", "rs", "go"),
    library=".dylib",
    link=_link,
    code_bytes=_code_bytes,
    fill=fill_section,
    no_proof="realtime=True proves code for Linux only: prove a library of the Linux target with the same instructions",
)
