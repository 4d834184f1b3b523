"""Stored ``.pt2`` files for tests, and copies of them with other contents."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from graphc.interop.pt2.fields import Field

FILES = Path(__file__).parent / "files"
NAMES = sorted(path.stem for path in FILES.glob("*.pt2"))


def members(name: str) -> dict[str, bytes]:
    """The contents of a file by name inside of it."""
    with zipfile.ZipFile(FILES / f"{name}.pt2") as archive:
        return {n: archive.read(n) for n in archive.namelist()}


def packed(path: Path, contents: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> Path:
    """Writes a file of these contents."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    return path


def edited(path: Path, name: str, edit: Callable[[Any], Any], part: str = "models/model.json") -> Path:
    """Writes a copy of a file in which a description went through ``edit``."""
    contents = members(name)
    place = f"{name}/{part}"
    tree = json.loads(contents[place])
    edit(tree)
    contents[place] = json.dumps(tree).encode()
    return packed(path, contents)


def field(value: Any) -> Field:
    """A field of this value, which errors call ``it``."""
    return Field(value, "it")
