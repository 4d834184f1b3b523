"""macOS libraries: shared library, object file and archive of the compiled entries of a model."""

from __future__ import annotations

from graphc.c_library.system import LINUX_PROOFS, Linking, System, executable_bytes
from graphc.codegen.link.archive import write_darwin_archive
from graphc.codegen.link.fill import fill_section
from graphc.codegen.link.macho.reader import read_macho
from graphc.codegen.link.macho.relocatable import merge_macho
from graphc.codegen.link.macho.shared import link_dylib

_MAPPING = ("hpp", "rs", "go")
"""Kinds whose code maps the file of weights by functions of the library, which one for macOS has not."""


def _link(linking: Linking) -> dict[str, bytes]:
    objects, plan, kinds, supply = linking.objects, linking.plan, linking.kinds, linking.supply
    contents = dict[str, bytes]()
    if "dylib" in kinds:
        contents["dylib"] = link_dylib(objects, plan.exports, name=linking.library, supply=supply)
    if {"o", "a", "rs", "go"} & {*kinds}:
        merged = merge_macho(objects, {name: name for name in plan.exports}, supply)
        contents |= {"o": merged, "a": write_darwin_archive({f"{plan.name}.o": merged})}
    return contents


SYSTEM = System(
    title="macOS",
    fits=lambda target: target.is_macos,
    example="macos-neon",
    kinds=("dylib", "a", "o", "h", "c", "py", "hpp", "rs", "go"),
    library=".dylib",
    link=_link,
    code_bytes=lambda code: executable_bytes(read_macho(code)),
    fill=fill_section,
    kinds_inside=_MAPPING,
    no_proof=LINUX_PROOFS,
)
