"""Files and folders that only this user can write to."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from graphc.errors import ArtifactError
from graphc.files.private_folders import check_owner, check_parents


def test_an_own_file_is_taken_until_others_can_write_to_it(tmp_path: Path):
    path = tmp_path / "file"
    path.write_bytes(b"")
    path.chmod(0o644)
    check_owner(path, stat.S_ISREG)
    for mode in (0o664, 0o646):
        path.chmod(mode)
        with pytest.raises(ArtifactError, match="can be written by other users"):
            check_owner(path, stat.S_ISREG)


def test_links_and_other_kinds_are_refused(tmp_path: Path):
    (tmp_path / "link").symlink_to(tmp_path)
    check_owner(tmp_path, stat.S_ISDIR)
    for path, is_kind in ((tmp_path / "link", stat.S_ISDIR), (tmp_path, stat.S_ISREG)):
        with pytest.raises(ArtifactError, match="another kind"):
            check_owner(path, is_kind)


def test_files_of_root_are_taken_in_shared_folders_only(monkeypatch: pytest.MonkeyPatch):
    root = Path("/")
    monkeypatch.setattr(os, "geteuid", lambda: os.lstat(root).st_uid + 1)
    check_owner(root, stat.S_ISDIR, is_shared=True)
    with pytest.raises(ArtifactError, match="belongs to another user"):
        check_owner(root, stat.S_ISDIR)


def test_parents_that_all_may_write_to_must_be_sticky(tmp_path: Path):
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    check_parents(folder)
    folder.parent.chmod(0o777)
    with pytest.raises(ArtifactError, match="is not sticky"):
        check_parents(folder)
    folder.parent.chmod(0o1777)
    check_parents(folder)
