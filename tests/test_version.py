"""``graphc.version``: what is asked of a version."""

from __future__ import annotations

import graphc


def test_scripts_are_told_that_no_library_is_built_in():
    assert graphc.version.__version__ == graphc.__version__
    assert graphc.version.cuda is None and graphc.version.hip is None and not graphc.version.debug
