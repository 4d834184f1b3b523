"""Folders of the cache, as the environment names them."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphc.files.cache_folders import cache_folders


@pytest.mark.parametrize(
    ("value", "folders"),
    [
        ("/a", ["/a"]),
        ("/a:/b:c", ["/a", "/b", "c"]),
        ("~/a:~/b", ["/home/user/a", "/home/user/b"]),
        ("/a:", ["/a"]),
        ("/a::/b", ["/a", "/b"]),
    ],
)
def test_folders_are_separated_as_in_path_without_the_current_one(
    value: str, folders: list[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HOME", "/home/user")
    monkeypatch.setenv("GRAPHC_CACHE_DIR", value)
    assert cache_folders() == tuple(map(Path, folders))
