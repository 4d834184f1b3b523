"""Object code of compiled programs to files that need no compiler: shared libraries, and one object of several."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache

from graphc.codegen.link.builtins import builtin_text
from graphc.codegen.link.relocatable import merge_objects
from graphc.codegen.link.shared import LIBC, link_shared
from graphc.codegen.llvm.build import build_object
from graphc.codegen.machine.target import Target
from graphc.files.object_archive import split_objects


def builtins_for(target: Target) -> Callable[[str], bytes | None]:
    """What gives the object code of a function that code for a target may call, or None where graphc has none of that
    name; built when it is asked for, once."""

    def supply(name: str) -> bytes | None:
        text = builtin_text(name, target.triple)
        return None if text is None else _built(text, target)

    return supply


@cache
def _built(text: str, target: Target) -> bytes:
    return build_object(text, target)


def hide_names(code: bytes, exports: Mapping[str, str]) -> bytes:
    """One file of object code of what ``build_object`` has made, in which only ``exports`` are seen, each under the
    name given: programs whose functions have equal names can then be linked together."""
    return merge_objects(split_objects(code), exports)


def link_objects(code: Sequence[bytes], exports: Mapping[str, str], target: Target, data: Mapping[str, bytes]) -> bytes:
    """One file of object code, for linkers of others, of what ``build_object`` and ``hide_names`` have made, with the
    functions that it calls and blocks of data: see ``merge_objects``."""
    return merge_objects(_parts(code), exports, data=data, supply=builtins_for(target))


def link_library(
    code: Sequence[bytes],
    exports: Collection[str],
    target: Target,
    *,
    data: Mapping[str, bytes] = {},
    soname: str = "",
    allowed: Collection[str] = LIBC,
) -> bytes:
    """A shared library, which needs libc only, of what ``build_object`` and ``hide_names`` have made: see
    ``link_shared``."""
    supply = builtins_for(target)
    return link_shared(_parts(code), exports, data=data, soname=soname, supply=supply, allowed=allowed)


def _parts(code: Sequence[bytes]) -> list[bytes]:
    return [part for whole in code for part in split_objects(whole)]
