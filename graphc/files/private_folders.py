"""Trust by location: files and folders that belong to this user, and that nobody else can write to."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

from graphc.base.errors import ArtifactError

_OTHERS_WRITE = 0o022


def check_owner(path: Path, is_kind: Callable[[int], bool], is_shared: bool = False) -> None:
    """Raise ArtifactError unless a path is of this kind, belongs to this user, and nobody else can write to it. A
    shared one may belong to root."""
    status = os.lstat(path)
    if not is_kind(status.st_mode):
        raise ArtifactError(f"{path} is a link or another kind of file")
    if status.st_uid != os.geteuid() and not (is_shared and status.st_uid == 0):
        raise ArtifactError(f"{path} belongs to another user")
    if status.st_mode & _OTHERS_WRITE:
        raise ArtifactError(f"{path} can be written by other users")


def check_parents(folder: Path) -> None:
    """Raise ArtifactError when others could replace a parent folder of ``folder``."""
    for parent in Path(os.path.realpath(folder)).parents:
        status = os.stat(parent)
        if status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
            raise ArtifactError(f"{parent}, which contains {folder}, can be written by all users and is not sticky")
        if status.st_uid not in (0, os.geteuid()):
            raise ArtifactError(f"{parent}, which contains {folder}, belongs to another user")
