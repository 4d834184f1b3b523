"""Windows libraries: DLL and import library of the compiled entries of a model."""

from __future__ import annotations

from graphc.c_library.system import LINUX_PROOFS, Linking, System, executable_bytes
from graphc.codegen.link.archive import write_archive
from graphc.codegen.link.coff_reader import read_coff
from graphc.codegen.link.coff_relocatable import merge_coff
from graphc.codegen.link.fill import fill_section
from graphc.codegen.link.import_library import write_import_library
from graphc.codegen.link.pe_shared import link_dll


def _link(linking: Linking) -> dict[str, bytes]:
    objects, plan, kinds, dll = linking.objects, linking.plan, linking.kinds, linking.library
    contents = dict[str, bytes]()
    if "dll" in kinds:
        contents["dll"] = link_dll(objects, plan.exports, name=dll, supply=linking.supply)
    if "lib" in kinds:
        contents["lib"] = write_import_library(dll, plan.exports, plan.tables, read_coff(objects[0]).linkage.machine)
    if "o" in kinds or "a" in kinds:
        merged = merge_coff(objects, plan.exports, linking.supply)
        contents |= {"o": merged, "a": write_archive({f"{plan.name}.o": merged})}
    return contents


SYSTEM = System(
    title="Windows",
    fits=lambda target: target.is_windows,
    example="windows-avx2",
    kinds=("dll", "lib", "a", "o", "h", "c", "py"),
    library=".dll",
    link=_link,
    code_bytes=lambda code: executable_bytes(read_coff(code)),
    fill=fill_section,
    no_proof=LINUX_PROOFS,
)
