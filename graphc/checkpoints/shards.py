"""Weights in several files: an index that says which file holds which tensor, and folders that hold one model."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphc.base.errors import ArtifactError
from graphc.files.container import MAX_BYTES

INDEX = ".index.json"
MAX_INDEX_BYTES = 1 << 26
MAX_SHARDS = 1 << 12
_USUAL = ("model.safetensors", "pytorch_model.bin")
"""What libraries name the file of a whole model, in the order in which one is taken of a folder that has both."""
_INDEX_REMEDY = 'an index such as {"weight_map": {"conv.weight": "model-00001-of-00002.safetensors"}}'


def read_index(path: str | os.PathLike[str]) -> dict[Path, list[str]]:
    """The files that an index names, with the names of the tensors that each is to hold.

    All of them are regular files that lie, all links followed, in the folder of the index; in a snapshot of a cache of
    models from a hub (``snapshots/REVISION/``) also in the ``blobs`` beside it, to which all files there are links.
    Together they have at most MAX_BYTES. Raises ArtifactError; OSError.
    """
    place = os.fspath(path)
    weight_map = _weight_map(Path(path), place)
    folder = Path(path).parent
    shards: dict[str, list[str]] = {}
    for name, shard in weight_map.items():
        shards.setdefault(shard, []).append(name)
    if len(shards) > MAX_SHARDS:
        raise ArtifactError(f"{place}: it names {len(shards)} files, at most {MAX_SHARDS} are read")
    found = {_inside(folder, shard, place): names for shard, names in shards.items()}
    missing = [path.name for path in found if not path.exists()]
    if missing:
        raise ArtifactError(
            f"{place}: of {len(found)} files it names {len(missing)} are not there: {', '.join(missing[:8])}",
            remedy="copy or download them into the folder of the index",
        )
    infos = [os.stat(path) for path in found]
    if not all(stat.S_ISREG(info.st_mode) for info in infos) or sum(info.st_size for info in infos) > MAX_BYTES:
        raise ArtifactError(f"{place}: the files it names are not regular files of at most {MAX_BYTES} bytes together")
    return found


def _weight_map(path: Path, place: str) -> Mapping[str, str]:
    if path.stat().st_size > MAX_INDEX_BYTES:
        raise ArtifactError(f"{place}: an index has at most {MAX_INDEX_BYTES} bytes")
    try:
        index = json.loads(path.read_bytes(), object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"{place}: it is no JSON that can be read: {error}", remedy=_INDEX_REMEDY) from None
    weight_map = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(weight_map, dict) or not weight_map or not all(isinstance(v, str) for v in weight_map.values()):
        raise ArtifactError(f"{place}: it is JSON without a weight_map, so no index of weights", remedy=_INDEX_REMEDY)
    return weight_map


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = next(key for i, (key, _) in enumerate(pairs) if any(key == k for k, _ in pairs[:i]))
        raise ValueError(f"it names {twice!r} twice")
    return found


def _inside(folder: Path, name: str, place: str) -> Path:
    """A file that an index names."""
    path = folder / name
    home = folder.resolve()
    roots = [home, home.parents[1] / "blobs"] if home.parent.name == "snapshots" else [home]
    plain = name and "\0" not in name and ".." not in Path(name).parts and not Path(name).is_absolute()
    if not plain or not any(path.resolve().is_relative_to(root) for root in roots):
        raise ArtifactError(f"{place}: it names {name!r}, which lies outside of its folder")
    return path


def check_names(place: str, shard: Path, named: list[str], held: Mapping[str, Any], owners: dict[str, Path]) -> None:
    """Raises ArtifactError unless a shard holds the tensors that the index says it holds and no others; ``owners`` are
    the shards of all tensors so far."""
    twice = [name for name in held if name in owners]
    if twice:
        raise ArtifactError(f"{place}: {twice[0]!r} is in {owners[twice[0]].name} and in {shard.name}")
    absent = [name for name in named if name not in held]
    if absent:
        raise ArtifactError(f"{place}: {shard.name} lacks {_some(absent)}, which the index says it holds")
    more = sorted(set(held) - set(named))
    if more:
        raise ArtifactError(f"{place}: {shard.name} holds {_some(more)}, which the index does not name there")
    owners.update(dict.fromkeys(held, shard))


def _some(names: list[str]) -> str:
    return ", ".join(map(repr, names[:8])) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def file_of(folder: str | os.PathLike[str], readable: Any) -> Path:
    """The index or the one file of weights in a folder; ``readable(path)`` says of a file whether it is one.

    Of a folder with ``model.safetensors`` and ``pytorch_model.bin`` (or their indexes), which hold the same model, it
    is the first. Raises ArtifactError, listing what there is, where there are several other files or none.
    """
    place = Path(folder)
    for usual in _USUAL:
        for path in (place / f"{usual}{INDEX}", place / usual):
            if path.is_file():
                return path
    files = sorted(path for path in place.iterdir() if path.is_file())
    found = [path for path in files if path.name.endswith(INDEX)] or [path for path in files if readable(path)]
    if len(found) == 1:
        return found[0]
    what = f"{len(found)} files of weights: {', '.join(p.name for p in found[:8])}" if found else "no file of weights"
    raise ArtifactError(f"{place}: the folder has {what}", remedy="the path of a file or of an index of its shards")
