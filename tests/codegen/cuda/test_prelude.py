"""The device functions before every text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import graphc.codegen.cuda
from graphc.base.errors import ArtifactError
from graphc.codegen.cuda.nvrtc import compile_cubin
from graphc.codegen.cuda.prelude import PRELUDE
from graphc.runtime.devices.emulated import EmulatedDevice


def test_it_is_a_text_without_kernels_for_both_compilers():
    assert compile_cubin(PRELUDE).kernels == {}
    with pytest.raises(ArtifactError, match="no kernel"):
        EmulatedDevice().load(PRELUDE).function("k")


def test_what_is_written_for_gpus_only_has_a_meaning_in_emulated_kernels():
    gpu, rest = PRELUDE.split("#else", 1)
    names = set(re.findall(r"#define (\w+)", gpu))
    shim = (Path(graphc.codegen.cuda.__file__).parent / "shim" / "gc_emulate.h").read_text("utf-8")
    meant = set(re.findall(r"#define (\w+)", shim)) | set(re.findall(r"#define (\w+)", rest))
    assert names - meant == set()
    assert "#include" not in PRELUDE
