"""``graphc.backends``: switches that scripts set, and libraries that are not there."""

from __future__ import annotations

import importlib

import pytest

import graphc
import graphc.backends.cudnn as cudnn  # pyright: ignore[reportMissingImports]
from graphc.errors import MemberError


def test_switches_of_scripts_are_taken():
    graphc.backends.cudnn.benchmark = True
    graphc.backends.cudnn.deterministic = True
    graphc.backends.cuda.matmul.allow_tf32 = True
    assert cudnn.benchmark and cudnn.deterministic and graphc.backends.cuda.matmul.allow_tf32
    with cudnn.flags(enabled=False, benchmark=False):
        assert not cudnn.enabled
    assert cudnn.enabled
    cudnn.benchmark = cudnn.deterministic = graphc.backends.cuda.matmul.allow_tf32 = False
    with pytest.raises(MemberError, match="no switch 'benchmrk'"):
        cudnn.benchmrk = True


def test_libraries_are_not_there():
    for name in ("cudnn", "mps", "mkl", "mkldnn", "openmp"):
        assert importlib.import_module(f"graphc.backends.{name}").is_available() is False
    assert cudnn.version() is None and not graphc.backends.mps.is_built()
    assert graphc.backends.cuda.is_built() is graphc.cuda.is_available()


def test_ways_to_compute_attention():
    cuda = graphc.backends.cuda
    assert cuda.flash_sdp_enabled() and cuda.math_sdp_enabled()
    cuda.enable_flash_sdp(False)
    assert not cuda.flash_sdp_enabled() and cuda.mem_efficient_sdp_enabled()
    cuda.enable_flash_sdp(True)
