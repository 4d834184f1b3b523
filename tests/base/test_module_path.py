"""The path of the running module: nesting, sharing, modules that nobody registered, scopes of functions."""

from __future__ import annotations

import threading

import pytest

from graphc import nn
from graphc.base import module_path


class Fake:
    """A module with named children, without the machinery of nn.Module."""

    def __init__(self, **children: Fake):
        self.children = children
        self.listed = 0

    def named_modules(self):
        self.listed += 1
        open_ = [("", self)]
        while open_:
            prefix, module = open_.pop()
            yield prefix, module
            open_.extend((f"{prefix}.{k}" if prefix else k, v) for k, v in module.children.items())


class Other(Fake):
    pass


@pytest.fixture(autouse=True)
def nothing_left():
    yield
    assert module_path.scope() is None


def test_outside_of_any_call():
    assert module_path.current_path() == ""
    assert module_path.outermost() is None
    assert module_path.innermost() is None


def test_nested_path_is_found_lazily():
    leaf = Fake()
    block = Fake(leaf=leaf)
    root = Fake(block=block)
    module_path.enter(root)
    module_path.enter(block)
    module_path.enter(leaf)
    assert root.listed == 0
    assert module_path.current_path() == "block.leaf"
    assert module_path.outermost() is root
    assert module_path.innermost() is leaf
    module_path.leave()
    assert module_path.current_path() == "block"
    module_path.leave()
    assert module_path.current_path() == ""
    assert root.listed == 1
    module_path.leave()


def test_shared_module_keeps_its_first_name():
    shared = Fake()
    root = Fake(a=shared, b=shared)
    module_path.enter(root)
    module_path.enter(shared)
    assert module_path.current_path() in ("a", "b")
    first = module_path.current_path()
    module_path.leave()
    module_path.enter(shared)
    assert module_path.current_path() == first
    module_path.leave()
    module_path.leave()


def test_unregistered_module_is_named_after_caller_and_class():
    block, hidden = Fake(), Other()
    root = Fake(block=block)
    for module in (root, block, hidden):
        module_path.enter(module)
    assert module_path.current_path() == "block.Other"
    for _ in range(3):
        module_path.leave()


def test_scope_of_a_function_keeps_memory_over_several_calls():
    a, b = Fake(x=Fake()), Fake()
    with module_path.open_scope() as scope:
        scope.memory["count"] = 1
        module_path.enter(a)
        module_path.enter(a.children["x"])
        assert module_path.current_path() == "x"
        module_path.leave()
        module_path.leave()
        module_path.enter(b)
        assert module_path.scope() is scope
        assert scope.memory["count"] == 1
        assert module_path.current_path() == ""
        module_path.leave()


def test_scope_with_root_gives_paths_relative_to_it():
    leaf = Fake()
    root = Fake(leaf=leaf)
    with module_path.open_scope(root):
        module_path.enter(leaf)
        assert module_path.current_path() == "leaf"
        assert module_path.outermost() is root
        module_path.leave()


def test_each_outermost_call_has_its_own_memory():
    root = Fake()
    seen = []
    for _ in range(2):
        module_path.enter(root)
        seen.append(module_path.scope())
        module_path.leave()
    assert seen[0] is not seen[1]


def test_threads_do_not_see_each_other():
    module_path.enter(Fake())
    seen = []
    thread = threading.Thread(target=lambda: seen.append(module_path.scope()))
    thread.start()
    thread.join()
    module_path.leave()
    assert seen == [None]


def test_classes_of_submodules():
    model = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.ReLU()))
    assert module_path.class_names(model) == {"0": "Linear", "1": "Sequential", "1.0": "ReLU"}
    assert module_path.class_names(None) == module_path.class_names(len) == {}
