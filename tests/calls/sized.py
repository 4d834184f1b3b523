"""Helpers for tests of functions with named dimensions."""

from __future__ import annotations

import numpy as np

import graphc as gc

BATCH, TIME = gc.Dim("batch", 1, 64), gc.Dim("time", 1, 100)


def ones(*shape):
    return gc.ones(*shape)


def same(a, b):
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-5, atol=1e-6)
