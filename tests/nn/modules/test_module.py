"""The import paths that users know."""

from __future__ import annotations

import graphc.nn.modules as M
from graphc import nn
from graphc.nn import module_hooks
from graphc.nn.modules import module
from graphc.nn.modules.module import register_module_forward_hook
from graphc.nn.parallel import data_parallel
from graphc.nn.parameter import Parameter


def test_same_objects():
    assert module.Module is M.Module is nn.Module
    assert register_module_forward_hook is module_hooks.register_module_forward_hook
    assert M.Conv2d is nn.Conv2d and Parameter is nn.Parameter and data_parallel is nn.parallel.data_parallel
    for name in set(module.__all__) - {"Module"}:
        assert getattr(module, name) is getattr(module_hooks, name)
