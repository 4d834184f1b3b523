"""Static libraries for microcontrollers: object files in an archive, which the linker of the user's board links."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from graphc.c_library.system import Linking, System
from graphc.codegen.link.archive import write_archive
from graphc.codegen.link.elf32 import read_contents
from graphc.codegen.link.fill import fill_section
from graphc.compiler.linking import builtins_for


def _link(linking: Linking) -> dict[str, bytes]:
    """Return the archive of the object files and of the functions supplied for them.

    Other undefined functions are copies of memory and, on Arm, those of the compiler's runtime library: arithmetic in
    f64, quotients in 64 bits.
    """
    members = {f"{linking.plan.name}_{number}.o": code for number, code in enumerate(linking.objects)}
    # NOTE: the functions of memory that graphc has take sizes of 64 bits; callers here pass 32.
    functions = supplied(linking.objects, builtins_for(linking.target))
    return {"a": write_archive(members | {f"{symbol}.o": code for symbol, code in functions.items()})}


def supplied(objects: Sequence[bytes], supply: Callable[[str], bytes | None]) -> dict[str, bytes]:
    """Return the object code of the functions that ``supply`` has for object files, and for each other, by name."""
    functions, pending = dict[str, bytes](), list(objects)
    requested = set[str]()
    while pending:
        names = [name for code in pending for name in read_contents(code).undefined if name not in requested]
        requested.update(names)
        pending = []
        for name in dict.fromkeys(names):
            code = supply(name)
            if code is not None:
                functions[name] = code
                pending.append(code)
    return functions


SYSTEM = System(
    title="microcontrollers",
    fits=lambda target: target.is_bare,
    example="cortex-m4",
    kinds=("a", "h"),
    library=".a",
    link=_link,
    code_bytes=lambda code: read_contents(code).code_bytes,
    fill=fill_section,
    no_beside="a microcontroller has no files to map weights from",
)
