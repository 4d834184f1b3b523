"""Facts of this machine and of LLVM that LLVM alone knows, and their record in the cache folder.

Importing LLVM takes 25 to 45 ms, which a process that compiles nothing need not spend. A record holds for one
processor (its features as the CPUID instruction tells them) and one installed LLVM. It is read from folders that only
this user can write to, and any doubt leads to LLVM itself.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from graphc.base import config
from graphc.base.errors import ArtifactError
from graphc.base.records import dataclass
from graphc.files.cache_folders import cache_folders
from graphc.files.container import read_sections, write_sections
from graphc.files.digests import sha256
from graphc.files.manifest import from_json, to_json
from graphc.files.private_folders import check_owner, check_parents
from graphc.runtime.code.processor_identity import processor_identity

SUFFIX = ".host"
"""Suffix of records."""
_FACTS = "facts"
_LLVM = "llvmlite.binding"
_FILES = ("__init__.py", "_version.py", os.path.join("binding", "libllvmlite.so"))
"""Files of llvmlite that change with its version and with that of LLVM."""
_MODE = 0o700


@dataclass(frozen=True)
class HostFacts:
    """Facts about this machine, and about itself, that LLVM reports."""

    triple: str
    cpu: str
    features: tuple[str, ...]
    """Features of the processor that are on, before GRAPHC_MAX_ISA hides some."""
    llvmlite: str
    """Version of llvmlite."""
    llvm: str
    """Version of LLVM."""


_known: list[HostFacts] = []


def host_facts() -> HostFacts:
    """Return the facts of this machine: those of the record in the cache, or those that LLVM tells.

    Store what LLVM tells in the cache, if it is on.
    """
    if not _known:
        folders = cache_folders() if config.read().cache else ()
        if not are_known(folders):
            _known[:] = [_ask()]
            if folders:
                _store(_known[0], folders[0])
    return _known[0]


def are_known(folders: Iterable[Path]) -> bool:
    """Return whether ``host_facts`` returns without importing LLVM: facts are known, or a record in one of these
    folders has them. The first folder must belong to this user; the others may belong to root."""
    for number, folder in enumerate(() if _known or is_llvm_loaded() else folders):
        facts = _read(folder, is_shared=number > 0)
        if facts is not None:
            _known[:] = [facts]
            break
    return bool(_known)


def is_llvm_loaded() -> bool:
    """Return whether this process has imported LLVM."""
    return _LLVM in sys.modules


def _ask() -> HostFacts:
    llvmlite, binding = import_module("llvmlite"), import_module(_LLVM)
    features = sorted(name for name, is_on in binding.get_host_cpu_features().items() if is_on)
    llvm = ".".join(map(str, binding.llvm_version_info))
    return HostFacts(
        binding.get_process_triple(), binding.get_host_cpu_name(), tuple(features), llvmlite.__version__, llvm
    )


def _read(folder: Path, is_shared: bool) -> HostFacts | None:
    """Return the facts of the record in a folder, or None where it has none that can be trusted."""
    path = folder / record_name()
    if not record_name() or not path.exists():
        return None
    with suppress(OSError, ArtifactError, KeyError):
        check_owner(folder, stat.S_ISDIR, is_shared)
        check_parents(folder)
        check_owner(path, stat.S_ISREG, is_shared)
        sections = read_sections(path)
        if sections["name"].tobytes() == path.name.encode():
            return from_json(HostFacts, sections[_FACTS].tobytes())
    return None


def _store(facts: HostFacts, folder: Path) -> None:
    """Write the record, unless it is there. The cache itself warns of a folder that cannot be used."""
    if not record_name() or _read(folder, is_shared=False) == facts:
        return
    with suppress(OSError, ArtifactError):
        folder.mkdir(mode=_MODE, parents=True, exist_ok=True)
        check_owner(folder, stat.S_ISDIR)
        check_parents(folder)
        path = folder / record_name()
        write_sections(path, {"name": [path.name.encode()], _FACTS: [to_json(facts)]}, durable=False)


@cache
def record_name() -> str:
    """Return the name of the record for this processor and the installed LLVM; empty where they cannot be identified
    without LLVM."""
    processor, package = processor_identity(), find_spec("llvmlite")
    if not processor or package is None or package.origin is None:
        return ""
    lines = []
    for name in _FILES:
        try:
            status = os.stat(os.path.join(os.path.dirname(package.origin), name))
        except OSError:
            return ""
        lines.append(f"{name} {status.st_size} {status.st_mtime_ns}\n")
    return sha256(processor, "".join(lines).encode()).hex() + SUFFIX
