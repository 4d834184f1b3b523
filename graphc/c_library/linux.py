"""Linux libraries: shared library, object file, archive, and FMI unit."""

from __future__ import annotations

from graphc.c_library.fmu import FMI_EXPORTS, emit_fmu, fmu_archive, fmu_plan
from graphc.c_library.system import Linking, System, executable_bytes
from graphc.codegen.link.archive import write_archive
from graphc.codegen.link.fill import fill_section
from graphc.codegen.link.reader import read_object
from graphc.codegen.link.relocatable import merge_objects
from graphc.codegen.link.shared import link_shared
from graphc.codegen.llvm.build import build_object

_THREADS = ("libpthread.so.0", "libc.so.6")
"""Libraries with the functions of a thread pool. They are one from glibc 2.34 on, and musl takes either name for its
own."""


def _link(linking: Linking) -> dict[str, bytes]:
    plan, supply, kinds = linking.plan, linking.supply, linking.kinds
    contents = dict[str, bytes]()
    if "so" in kinds:
        name = linking.library
        contents["so"] = link_shared(linking.objects, plan.exports, soname=name, needed=_THREADS, supply=supply)
    if {"o", "a", "rs", "go"} & {*kinds}:
        merged = merge_objects(linking.objects, {name: name for name in plan.exports}, supply=supply)
        contents |= {"o": merged, "a": write_archive({f"{plan.name}.o": merged})}
    if "fmu" in kinds:
        fmu = fmu_plan(plan)
        functions = build_object(emit_fmu(fmu), linking.target)
        exports, needed = (*plan.exports, *FMI_EXPORTS), _THREADS if plan.threads else _THREADS[1:]
        objects = [*linking.objects, functions]
        unit = link_shared(objects, exports, soname=f"{plan.name}.so", needed=needed, supply=supply)
        contents["fmu"] = fmu_archive(fmu, unit)
    return contents


SYSTEM = System(
    title="Linux",
    fits=lambda target: "linux" in target.triple,
    example="avx2",
    kinds=("so", "a", "o", "h", "c", "py", "hpp", "rs", "go", "fmu"),
    library=".so",
    link=_link,
    code_bytes=lambda code: executable_bytes(read_object(code)),
    fill=fill_section,
)
