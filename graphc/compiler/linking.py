"""Linking of compiled programs without a compiler: shared libraries, and single objects from several."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache

from graphc.base.errors import CompileError
from graphc.codegen.link.builtins import builtin_text
from graphc.codegen.link.coff_reader import is_coff
from graphc.codegen.link.elf32 import is_elf32
from graphc.codegen.link.macho.reader import is_macho
from graphc.codegen.link.memory_functions import MEMORY_FUNCTIONS
from graphc.codegen.link.relocatable import merge_objects
from graphc.codegen.link.shared import LIBC, link_shared
from graphc.codegen.link.wasm_format import MAGIC as WASM
from graphc.codegen.llvm.build import build_object
from graphc.codegen.machine.target import Target
from graphc.files.object_archive import split_objects


def builtins_for(target: Target, needs_libc: bool = True) -> Callable[[str], bytes | None]:
    """Return a supplier of object code for library functions that code for a target may call.

    The supplier returns None for names that graphc does not have, and for functions of memory if the library
    ``needs_libc`` anyway. It builds each function once, on demand.
    """

    def supply(name: str) -> bytes | None:
        text = function_text(name, target)
        if text is None and name in MEMORY_FUNCTIONS and not needs_libc:
            text = f'target triple = "{target.triple}"\n{MEMORY_FUNCTIONS[name]}'
        return None if text is None else _built(text, target)

    return supply


def function_text(name: str, target: Target) -> str | None:
    """Return the LLVM text of a library function that graphc has for a target; None for other names."""
    return builtin_text(name, target.triple) or target.system_function(name) or None


@cache
def _built(text: str, target: Target) -> bytes:
    return build_object(text, target)


def hide_names(code: bytes, exports: Mapping[str, str]) -> bytes:
    """Merge the output of ``build_object`` into one object file that exports only ``exports``, each under its new name.

    Programs whose functions have equal names can then be linked together. Raises CompileError for WebAssembly,
    Windows, macOS, and microcontrollers, whose objects are only linked to whole libraries.
    """
    objects = split_objects(code)
    if objects[0].startswith(WASM):
        raise CompileError(
            "WebAssembly code exists as a module of a library only",
            remedy="pass --emit wasm,js to graphc compile, or call gc.build_library(..., target='wasm')",
        )
    if is_coff(objects[0]):
        raise CompileError(
            "code for Windows exists in a library only",
            remedy="pass --emit dll,lib,h to graphc compile, or call gc.build_library(..., path='net.dll')",
        )
    if is_macho(objects[0]):
        raise CompileError(
            "code for macOS exists in a library only",
            remedy="pass --emit dylib,h to graphc compile, or call gc.build_library(..., path='net.dylib')",
        )
    if any(map(is_elf32, objects)):
        raise CompileError(
            "code for microcontrollers exists in a static library only",
            remedy="pass -o net.a to graphc compile, or call gc.build_library(..., path='net.a')",
        )
    return merge_objects(objects, exports)


def link_library(
    code: Sequence[bytes],
    exports: Collection[str],
    target: Target,
    *,
    data: Mapping[str, bytes] = {},
    soname: str = "",
    allowed: Collection[str] = LIBC,
) -> bytes:
    """Link objects of ``build_object`` and ``hide_names`` into a shared library that needs only libc; see
    ``link_shared``.
    """
    supply = builtins_for(target)
    return link_shared(_parts(code), exports, data=data, soname=soname, supply=supply, allowed=allowed)


def _parts(code: Sequence[bytes]) -> list[bytes]:
    return [piece for object_code in code for piece in split_objects(object_code)]
