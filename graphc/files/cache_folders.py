"""Folders of the cache: the one that graphc writes, and those that it only reads."""

from __future__ import annotations

import os
from pathlib import Path

from graphc.base import config


def cache_folders() -> tuple[Path, ...]:
    """Return the folder of the cache, and then the folders that are only read.

    An empty name after a separator is no folder: it would be the current one, whose files somebody else may choose.
    """
    first, *shared = config.read().cache_dir.split(os.pathsep)
    return tuple([Path(os.path.expanduser(folder)) for folder in (first, *filter(None, shared))])
