"""Sharded weights: an index that maps tensors to files, and folders with the files of one model."""

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
"""Usual names of a single file of weights, in order of preference if a folder has both."""
_INDEX_REMEDY = 'pass an index such as {"weight_map": {"conv.weight": "model-00001-of-00002.safetensors"}}'


def read_index(path: str | os.PathLike[str]) -> dict[Path, list[str]]:
    """Return the files of an index, with the names of the tensors in each.

    All of them must be regular files inside the folder of the index after following links. In a snapshot of a hub's
    model cache (``snapshots/REVISION/``), whose files are links, the folder ``blobs`` next to it is allowed too.
    Together they have at most MAX_BYTES. Raises ArtifactError; OSError.
    """
    source = os.fspath(path)
    weight_map = _weight_map(Path(path), source)
    folder = Path(path).parent
    shards: dict[str, list[str]] = {}
    for name, shard in weight_map.items():
        shards.setdefault(shard, []).append(name)
    if len(shards) > MAX_SHARDS:
        raise ArtifactError(f"{source}: it names {len(shards)} files, at most {MAX_SHARDS} are read")
    files = {_inside(folder, shard, source): names for shard, names in shards.items()}
    missing = [path.name for path in files if not path.exists()]
    if missing:
        raise ArtifactError(
            f"{source}: {len(missing)} of the {len(files)} files that it names are missing: {', '.join(missing[:8])}",
            remedy="copy or download them into the folder of the index",
        )
    infos = [os.stat(path) for path in files]
    if not all(stat.S_ISREG(info.st_mode) for info in infos) or sum(info.st_size for info in infos) > MAX_BYTES:
        raise ArtifactError(f"{source}: the files it names are not regular files of at most {MAX_BYTES} bytes together")
    return files


def _weight_map(path: Path, source: str) -> Mapping[str, str]:
    if path.stat().st_size > MAX_INDEX_BYTES:
        raise ArtifactError(f"{source}: an index has at most {MAX_INDEX_BYTES} bytes")
    try:
        index = json.loads(path.read_bytes(), object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"{source}: not readable JSON: {error}", remedy=_INDEX_REMEDY) from None
    weight_map = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(weight_map, dict) or not weight_map or not all(isinstance(v, str) for v in weight_map.values()):
        raise ArtifactError(f"{source}: it has no weight_map, so it is not an index of weights", remedy=_INDEX_REMEDY)
    return weight_map


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) != len(pairs):
        repeated = next(key for i, (key, _) in enumerate(pairs) if any(key == k for k, _ in pairs[:i]))
        raise ValueError(f"it names {repeated!r} twice")
    return entries


def _inside(folder: Path, name: str, source: str) -> Path:
    """Return the path of a file of an index; raises ArtifactError if it is outside of the allowed folders."""
    path = folder / name
    home = folder.resolve()
    roots = [home, home.parents[1] / "blobs"] if home.parent.name == "snapshots" else [home]
    plain = name and "\0" not in name and ".." not in Path(name).parts and not Path(name).is_absolute()
    if not plain or not any(path.resolve().is_relative_to(root) for root in roots):
        raise ArtifactError(f"{source}: it names {name!r}, which is outside of its folder")
    return path


def check_names(
    source: str, shard: Path, named: list[str], tensors: Mapping[str, Any], owners: dict[str, Path]
) -> None:
    """Raise ArtifactError unless a shard has exactly the tensors that its index lists.

    ``owners`` maps the tensors so far to their shards, and gets the new ones.
    """
    repeated = [name for name in tensors if name in owners]
    if repeated:
        raise ArtifactError(f"{source}: {repeated[0]!r} is in {owners[repeated[0]].name} and in {shard.name}")
    lacking = [name for name in named if name not in tensors]
    if lacking:
        raise ArtifactError(f"{source}: {shard.name} lacks {_some(lacking)}, which the index says it holds")
    extra = sorted(set(tensors) - set(named))
    if extra:
        raise ArtifactError(f"{source}: {shard.name} holds {_some(extra)}, which the index does not name there")
    owners.update(dict.fromkeys(tensors, shard))


def _some(names: list[str]) -> str:
    return ", ".join(map(repr, names[:8])) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def file_of(folder: str | os.PathLike[str], readable: Any) -> Path:
    """Return the index or the only file of weights in a folder; ``readable(path)`` tells whether a file has weights.

    ``model.safetensors`` is preferred to ``pytorch_model.bin`` (or their indexes), which hold the same model. Raises
    ArtifactError with a list if there are several other files or none.
    """
    root = Path(folder)
    for usual in _USUAL:
        for path in (root / f"{usual}{INDEX}", root / usual):
            if path.is_file():
                return path
    files = sorted(path for path in root.iterdir() if path.is_file())
    candidates = [path for path in files if path.name.endswith(INDEX)] or [path for path in files if readable(path)]
    if len(candidates) == 1:
        return candidates[0]
    what = (
        f"{len(candidates)} files of weights: {', '.join(p.name for p in candidates[:8])}"
        if candidates
        else "no file of weights"
    )
    raise ArtifactError(f"{root}: the folder has {what}", remedy="pass the path of a file or of an index of its shards")
