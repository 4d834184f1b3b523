"""Digests: equal to hashlib's for any number of bytes and kind of block; OpenSSL is imported for many bytes only."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest

from graphc.files import digests
from graphc.files.digests import SMALL, sha256
from tests.architecture.scan import ROOT


@pytest.mark.parametrize("nbytes", [0, 1, 63, 64, 65, 5000, SMALL, SMALL + 1])
@pytest.mark.parametrize("has_openssl", [False, True])
def test_digests_are_those_of_hashlib(nbytes: int, has_openssl: bool, monkeypatch: pytest.MonkeyPatch):
    if not has_openssl:
        monkeypatch.delitem(sys.modules, "hashlib")
    data = os.urandom(nbytes)
    expected = hashlib.sha256(data).digest()
    half = nbytes // 2
    assert sha256(data) == sha256(data[:half], data[half:]) == expected
    assert sha256(bytearray(data[:half]), memoryview(data)[half:], np.empty((0, 3))) == expected


def test_arrays_count_with_their_bytes():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert sha256(array) == digests.digest_of([array]) == hashlib.sha256(array.tobytes()).digest()


@pytest.mark.parametrize(("nbytes", "imported"), [(SMALL, False), (SMALL + 1, True)])
def test_openssl_is_imported_for_many_bytes(nbytes: int, imported: bool):
    program = (
        f"import sys; from graphc.files.digests import sha256;sha256(bytes({nbytes})); print('_hashlib' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(imported)
