"""Several object files as one archive, and archives that are damaged."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from graphc.errors import ArtifactError
from graphc.files.object_archive import join_objects, split_objects

OBJECTS = [b"\x7fELF one", b"\x7fELF second", b"", b"\x7fELF odd"]


@pytest.mark.parametrize("count", [1, 2, 4])
def test_what_was_joined_is_split(count: int):
    assert split_objects(join_objects(OBJECTS[:count])) == OBJECTS[:count]


def test_one_object_stands_for_itself():
    assert join_objects(OBJECTS[:1]) == OBJECTS[0]


@pytest.mark.parametrize("cut", [9, 67, 70, 150])
def test_damaged_archives(cut: int):
    with pytest.raises(ArtifactError, match="damaged at byte"):
        split_objects(join_objects(OBJECTS)[:cut])


@pytest.mark.skipif(not shutil.which("ar"), reason="there is no ar")
def test_other_programs_read_it(tmp_path: Path):
    path = tmp_path / "code.a"
    path.write_bytes(join_objects(OBJECTS))
    listed = subprocess.run(["ar", "t", str(path)], capture_output=True, text=True, check=True)
    assert listed.stdout.split() == ["0.o", "1.o", "2.o", "3.o"]
