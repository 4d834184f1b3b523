"""Checkpoints that several processes write together, and that any number of processes reads: a folder with a manifest.

Each tensor lies in the file of one process: one that all have in that of any of them, one that some have in that of
one of those. The manifest is written last, in one instant in which the checkpoint becomes the new one.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from graphc.base.dtypes import BY_NAME, layout_of
from graphc.base.errors import ArtifactError, DistributedError, GraphcError, StateDictError
from graphc.checkpoints.outlines import children, merged, place, pruned, tensors_of
from graphc.checkpoints.safetensors_file import array_of
from graphc.checkpoints.tree import outline, rebuilt
from graphc.distributed.group import Group, group
from graphc.files.archive import Archive
from graphc.files.container import replacing
from graphc.files.numpy_file import parse_npy, write_npz
from graphc.tape.grad_mode import no_grad
from graphc.tensors.tensor import Tensor

MANIFEST = "manifest.json"
FORMAT = "graphc sharded checkpoint"
VERSION = 1
_LONGEST_MANIFEST = 1 << 28
_DATA = re.compile(r"[0-9a-f]{16}-\d+\.npz")
_REST = re.compile(r"\.[0-9a-f]{16}-\d+\.npz\..*\.(tmp|linked)")


class _Entry(NamedTuple):
    """What a checkpoint says of a tensor."""

    dtype: str
    shape: tuple[int, ...]
    digest: str
    """SHA-256 of the elements."""

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return BY_NAME[self.dtype].itemsize * int(np.prod(self.shape, dtype=np.int64))


class _Manifest(NamedTuple):
    """What the manifest of a checkpoint says."""

    files: dict[str, int]
    """Sizes in bytes by name."""
    tensors: dict[str, tuple[str, _Entry]]
    """By name: the file that has it, and what it is."""
    outline: Any
    """What is nested around the tensors."""
    digest: str
    """SHA-256 of the manifest itself, which has those of all tensors."""


def save(state_dict: Mapping[Any, Any], checkpoint_id: str | os.PathLike[str]) -> None:
    """Writes a checkpoint to the folder ``checkpoint_id``, which all processes see; all of them call it.

    ``state_dict`` nests dictionaries, lists, tuples, numbers, texts, bools and None around tensors, and objects with a
    ``state_dict`` (modules, optimizers, compiled steps). What several processes have must be the same on them, and is
    written once; entries of dictionaries that only some have, as the state in a ZeroRedundancyOptimizer, are all in the
    checkpoint. A process that is killed, and an error in any of them, leave the checkpoint that was there before as it
    was. Raises DistributedError on all processes where something differs, or one of them fails; ArgumentError for what
    cannot be stored; OSError.
    """
    known, folder = group(), Path(checkpoint_id)
    content = _Content()
    tables = _together(known, lambda: content.take(state_dict))
    tree = merged([(rank, table[1]) for rank, table in enumerate(tables)])
    tensors = _merged_entries([table[0] for table in tables])
    owners = _shared_out(tensors, [table[0] for table in tables])
    token = tables[0][2]
    names = [f"{token}-{rank}.npz" for rank in range(known.size)]
    mine = {name: content.arrays[name] for name, owner in owners.items() if owner == known.rank}
    _together(known, lambda: _prepare(folder) if known.rank == 0 else None)
    sizes = _together(known, lambda: _write(folder / names[known.rank], mine))
    files = {names[rank]: size for rank, size in enumerate(sizes) if size}
    entries = {name: (names[rank], tensors[name]) for name, rank in owners.items()}
    _together(known, lambda: _finish(folder, files, entries, tree) if known.rank == 0 else None)


def load(state_dict: Any, checkpoint_id: str | os.PathLike[str]) -> Any:
    """Reads a checkpoint that any number of processes has written with ``save``; all processes call it.

    Without ``state_dict`` (None) it returns all that was saved, with modules and optimizers as their dictionaries. Else
    it fills what that holds, and returns it: tensors are written in place, objects with a ``load_state_dict`` get what
    theirs had returned, of which a ZeroRedundancyOptimizer reads its share only, and other entries of dictionaries are
    replaced. What it does not hold is not read. Every byte that is read is checked. Raises ArtifactError where there is
    no checkpoint, or it is damaged or of another version, StateDictError where it lacks an entry or has another shape:
    then nothing has changed on any process; DistributedError where another process fails, or sees another checkpoint.
    """
    known = group()
    loading = _Loading(Path(checkpoint_id), state_dict)
    digests = _together(known, loading.read)
    if any(digest != digests[0] for digest in digests):
        raise DistributedError(
            f"{os.fspath(checkpoint_id)}: the processes see different checkpoints there",
            remedy="a folder that all of them share, or copies of one checkpoint",
        )
    return loading.fill()


def _together(known: Group, work: Callable[[], Any]) -> list[Any]:
    """What ``work`` returns in each process. Where it fails in one it raises in all: its error there, and a
    DistributedError that tells of it in the others."""
    result, error = None, None
    try:
        result = work()
    except (GraphcError, OSError) as found:
        error = found
    results = known.gather_objects((result, error and f"{type(error).__name__}: {error}"))
    if error is not None:
        raise error
    for rank, (_, text) in enumerate(results):
        if text is not None:
            raise DistributedError(f"rank {rank} has failed: {text}")
    return [found for found, _ in results]


# ---- writing


class _Content:
    """What this process has for a checkpoint."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        """Its tensors by name."""

    def take(self, state_dict: Any) -> tuple[dict[str, _Entry], Any, str]:
        """What there is of tensors, what is nested around them, and a name that no other checkpoint has."""
        tensors, part = outline(_plain(state_dict))
        self.arrays = {name: array_of(name, value) for name, value in tensors.items()}
        return {name: _entry(array) for name, array in self.arrays.items()}, part, secrets.token_hex(8)


def _plain(value: Any) -> Any:
    """A tree with the dictionaries of objects in their places: of those that processes share what this one has."""
    for method in ("sharded_state_dict", "state_dict"):
        if hasattr(value, method):
            return _plain(getattr(value, method)())
    return {key: _plain(child) for key, child in value.items()} if isinstance(value, Mapping) else value


def _entry(array: np.ndarray) -> _Entry:
    elements = array.reshape(-1).view(np.uint8).data
    return _Entry(layout_of(array.dtype).name, array.shape, hashlib.sha256(elements).hexdigest())


def _merged_entries(tables: list[dict[str, _Entry]]) -> dict[str, _Entry]:
    """What there is of tensors in all processes; raises DistributedError where two have different ones."""
    found: dict[str, tuple[int, _Entry]] = {}
    for rank, table in enumerate(tables):
        for name, entry in table.items():
            first, known = found.setdefault(name, (rank, entry))
            if entry != known:
                what = [f"{e.dtype}{list(e.shape)}" for e in (known, entry)]
                raise DistributedError(
                    f"the tensor {name!r} is not the same on rank {first} and rank {rank}: "
                    + (" and ".join(what) if what[0] != what[1] else f"their elements differ ({what[0]})"),
                    remedy="for buffers the DistributedDataParallel itself, not its module; or "
                    "graphc.distributed.broadcast(tensor); or an entry of its own for each rank: "
                    "{f'rank {graphc.distributed.rank()}': tensor}",
                )
    return {name: entry for name, (_, entry) in found.items()}


def _shared_out(tensors: Mapping[str, _Entry], tables: list[dict[str, _Entry]]) -> dict[str, int]:
    """By name of a tensor: the rank that writes it, one that has it; the largest first, to who has least so far."""
    loads = [0] * len(tables)
    owners: dict[str, int] = {}
    for name in sorted(tensors, key=lambda n: -tensors[n].nbytes):
        rank = min((r for r, table in enumerate(tables) if name in table), key=loads.__getitem__)
        owners[name] = rank
        loads[rank] += tensors[name].nbytes
    return owners


def _prepare(folder: Path) -> None:
    """Makes the folder, and removes what a checkpoint that was not finished has left there."""
    folder.mkdir(parents=True, exist_ok=True)
    found = _read_manifest(folder) if (folder / MANIFEST).exists() else None
    _sweep(folder, found.files if found else {})


def _sweep(folder: Path, files: Mapping[str, int]) -> None:
    for name in os.listdir(folder):
        if name not in files and (_DATA.fullmatch(name) or _REST.fullmatch(name)):
            with suppress(OSError):
                (folder / name).unlink()


def _write(path: Path, arrays: Mapping[str, np.ndarray]) -> int:
    """Writes the tensors of this process; returns how many bytes the file has, 0 where there is nothing to write."""
    if not arrays:
        return 0
    write_npz(path, {name: _storable(array) for name, array in arrays.items()})
    return path.stat().st_size


def _storable(array: np.ndarray) -> np.ndarray:
    """Elements for which numpy has no type (bf16) as their bits."""
    return array.view(np.dtype(f"<u{array.itemsize}")) if array.dtype.kind == "V" else array


def _finish(folder: Path, files: dict[str, int], tensors: dict[str, tuple[str, _Entry]], tree: Any) -> None:
    """Makes the files of all processes the checkpoint, and removes those of the one before."""
    for name, size in files.items():
        path = folder / name
        if not path.exists() or path.stat().st_size != size:
            raise ArtifactError(f"{path}: another process has written it, and it is not there", remedy=_SHARED)
    content: dict[str, Any] = {"format": FORMAT, "version": VERSION, "files": files, "outline": tree}
    content["tensors"] = {name: {"file": file, **entry._asdict()} for name, (file, entry) in tensors.items()}
    content["sha256"] = _digest(content)
    with replacing(folder / MANIFEST) as file:
        file.write(json.dumps(content).encode())
    _sweep(folder, files)


_SHARED = "a folder that all processes share"


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


# ---- reading


def _read_manifest(folder: Path) -> _Manifest:
    """The manifest of the checkpoint in a folder. Raises ArtifactError."""
    path = folder / MANIFEST
    if not path.is_file():
        begun = folder.is_dir() and any(map(_DATA.fullmatch, os.listdir(folder)))
        raise ArtifactError(
            f"{folder}: there is no checkpoint" + (": one was begun and not finished" if begun else ""),
            remedy="the folder that was given to graphc.distributed.checkpoint.save",
        )
    if path.stat().st_size > _LONGEST_MANIFEST:
        raise ArtifactError(f"{path}: a manifest has at most {_LONGEST_MANIFEST} bytes")
    try:
        content = json.loads(path.read_bytes())
        if content["format"] != FORMAT:
            raise ValueError(f"its format is {content['format']!r}")
        version = content["version"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ArtifactError(f"{path}: it is no manifest of a checkpoint: {type(error).__name__}: {error}") from None
    if version != VERSION:
        raise ArtifactError(
            f"{path}: the checkpoint has version {version}, known is {VERSION}", remedy="a newer graphc"
        )
    return _parsed(content, path)


def _parsed(content: dict[str, Any], path: Path) -> _Manifest:
    digest = content.pop("sha256", None)
    if digest != _digest(content):
        raise ArtifactError(f"{path}: the manifest is damaged: its digest does not fit")
    try:
        files = {str(name): int(size) for name, size in content["files"].items()}
        tensors = {
            name: (item["file"], _Entry(item["dtype"], tuple(item["shape"]), item["digest"]))
            for name, item in content["tensors"].items()
        }
        if not all(map(_DATA.fullmatch, files)) or not all(file in files for file, _ in tensors.values()):
            raise ValueError("it names other files than those of a checkpoint")
        return _Manifest(files, tensors, content["outline"], digest)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ArtifactError(f"{path}: the manifest is damaged: {type(error).__name__}: {error}") from None


class _Loading:
    """One call of ``load``."""

    def __init__(self, folder: Path, target: Any):
        self._folder, self._target = folder, target
        self._tensors: dict[str, Tensor] = {}
        self._parts: list[tuple[Callable[[Any], Any], Any]] = []
        """Who takes which part of the tree, as an outline."""
        self._result = target

    def read(self) -> str:
        """Reads all that is needed, and changes nothing; returns what stands for the checkpoint."""
        manifest = _read_manifest(self._folder)
        if self._target is None:
            self._parts = [(self._keep, manifest.outline)]
        else:
            self._match(self._target, manifest.outline, (), self._keep)
            self._check_shapes(manifest)
        names = [name for _, part in self._parts for name in tensors_of(part)]
        self._tensors = _read_tensors(self._folder, manifest, names)
        return manifest.digest

    def fill(self) -> Any:
        """Gives each what was read for it; returns the whole."""
        with no_grad():
            for take, part in self._parts:
                take(rebuilt(part, self._tensors))
        return self._result

    def _keep(self, value: Any) -> None:
        self._result = value

    def _match(self, target: Any, part: Any, path: tuple[Any, ...], replace: Callable[[Any], Any]) -> None:
        """Notes who takes ``part``; ``replace`` takes it where the target itself cannot."""
        if hasattr(target, "load_state_dict"):
            wanted = getattr(target, "needs_entry", None)
            self._parts.append((target.load_state_dict, pruned(part, wanted) if wanted else part))
        elif isinstance(target, Tensor):
            self._parts.append((target.copy_, part))
        elif isinstance(target, dict):
            known = children(part)
            missing = [key for key in target if key not in known]
            if missing:
                raise StateDictError(
                    f"{self._folder}: {place(path)} lacks {', '.join(map(repr, missing[:8]))}",
                    remedy=f"it has {', '.join(map(repr, [*known][:8]))}",
                )
            for key, child in [*target.items()]:
                self._match(child, known[key], (*path, key), _Replacing(target, key))
        else:
            self._parts.append((replace, part))

    def _check_shapes(self, manifest: _Manifest) -> None:
        for take, part in self._parts:
            target = getattr(take, "__self__", None)
            if not isinstance(target, Tensor):
                continue
            name = part.get("tensor")
            shape = manifest.tensors[name][1].shape if name in manifest.tensors else None
            if shape != tuple(target.shape):
                found = "no tensor" if shape is None else f"one of shape {list(shape)}"
                raise StateDictError(
                    f"{self._folder}: for a tensor of shape {list(target.shape)} the checkpoint has {found}"
                    + (f" ({name})" if name else "")
                )


class _Replacing:
    """Assigns an entry of a dictionary."""

    def __init__(self, target: dict[Any, Any], key: Any):
        self._target, self._key = target, key

    def __call__(self, value: Any) -> None:
        self._target[self._key] = value


def _read_tensors(folder: Path, manifest: _Manifest, names: list[str]) -> dict[str, Tensor]:
    by_file: dict[str, list[str]] = {}
    for name in names:
        if name not in manifest.tensors:
            raise ArtifactError(f"{folder / MANIFEST}: the manifest names no file for {name!r}")
        by_file.setdefault(manifest.tensors[name][0], []).append(name)
    found: dict[str, Tensor] = {}
    for file, held in by_file.items():
        path, size = folder / file, manifest.files[file]
        if not path.is_file():
            raise ArtifactError(f"{path}: the file is missing, which the checkpoint consists of with others")
        if path.stat().st_size != size:
            raise ArtifactError(f"{path}: it has {path.stat().st_size} bytes, and the checkpoint needs {size}")
        with Archive(path) as archive:
            found.update((name, _tensor(archive, name, manifest.tensors[name][1])) for name in held)
    return found


def _tensor(archive: Archive, name: str, entry: _Entry) -> Tensor:
    member = f"{name}.npy"
    if member not in archive.names:
        raise archive.error(f"it lacks {name!r}, which the manifest says it has")
    array = parse_npy(archive.read(member), f"{archive.path}: {name!r}")
    dtype = BY_NAME[entry.dtype].numpy
    array = array.view(dtype) if dtype.kind == "V" and array.dtype.itemsize == dtype.itemsize else array
    if array.dtype != dtype or array.shape != entry.shape or _entry(array) != entry:
        raise archive.error(f"{name!r} is not what the manifest says: the file is damaged, or another one")
    return Tensor._wrap(array)
