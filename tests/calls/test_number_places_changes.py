"""Numbers in attributes that compiled functions read: never a stale one, whatever else changes."""

from __future__ import annotations

import copy
import functools
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.compiler.native_call import not_native
from graphc.eager.dispatcher import references
from graphc.errors import HookError
from graphc.guards.facts import Account
from tests.calls.scaled import Options, Scaled, floats, same


def test_another_type_of_an_attribute_takes_another_program():
    options: Any = Options()
    x = gc.arange(4)
    fast = gc.compile(lambda x: x * options.shift)
    for value in (1, 2, 3, 2.0, 4.5, 5, True, 0.5, 7):
        options.shift = value
        same(fast(x), x * value)
    assert len(fast.variants) <= 5


def test_an_attribute_that_is_deleted_raises_as_in_eager_mode_and_may_come_back():
    model, x = Scaled(), floats(2, 3)
    fast = gc.compile(model)
    for value in (0.5, 1.5):
        model.scale = value
        fast(x)
    del model.scale
    for _ in range(2):
        with pytest.raises(AttributeError, match="scale"):
            fast(x)
    model.scale = 4.5
    same(fast(x), model(x), exact=False)
    assert len(fast.variants) == 2


def test_an_attribute_of_the_class_is_found_when_that_of_the_object_is_gone():
    class Net(nn.Module):
        scale = 3.0

        def forward(self, x: Any) -> Any:
            return x * self.scale

    model, x = Net(), floats(3)
    fast = gc.compile(model)
    for value in (0.5, 1.5, None, 2.5, None):
        if value is None:
            del model.scale
        else:
            model.scale = value
        same(fast(x), model(x))
    Net.scale = 5.0
    same(fast(x), model(x))


def test_an_attribute_that_becomes_an_array_or_a_tensor_is_read_again():
    model, x = Scaled(), floats(2, 3)
    fast = gc.compile(model)
    values: list[Any] = [0.5, 1.5, gc.tensor(2.0), 2.5, np.float32(1.5), 3.5]
    for value in values:
        model.scale = value
        same(fast(x), model(x), exact=False)


def test_code_that_assigns_an_attribute_reads_what_it_has_assigned():
    options, x = Options(shift=1), floats(3)

    def function(x: Any, reset: bool) -> Any:
        if reset:
            options.shift = 1
        return x * options.shift

    fast = gc.compile(function)
    for value in (1, 2, 3):
        options.shift = value
        same(fast(x, False), x * value)
    options.shift = 1
    same(fast(x, True), x)
    options.shift = 5
    same(fast(x, True), x)
    assert options.shift == 1


def test_setattr_in_code_is_seen():
    options, x = Options(shift=1), floats(3)

    def function(x: Any, name: str) -> Any:
        if name:
            setattr(options, name, 1)
        return x * options.shift

    fast = gc.compile(function)
    for value in (1, 2, 3):
        options.shift = value
        same(fast(x, ""), x * value)
    options.shift = 1
    same(fast(x, "shift"), x)
    options.shift = 5
    same(fast(x, "shift"), x)
    assert options.shift == 1


def test_an_attribute_that_a_library_assigns_is_what_it_was_assigned():
    options: Any = Options()
    x = floats(3)

    def function(x: Any, reset: bool) -> Any:
        if reset:
            functools.update_wrapper(options, 0.25, ("real",), ())  # type: ignore[type-var]
        return x * options.real

    fast = gc.compile(function)
    for value, reset in ((1.0, False), (2.0, False), (3.0, False), (4.0, True), (5.0, True), (6.0, False)):
        options.real = value
        same(fast(x, reset), x * (0.25 if reset else value))
        assert options.real == (0.25 if reset else value)


def test_a_number_that_a_hook_assigns_and_the_code_had_read_is_refused():
    model, x = Scaled(), floats(2, 3)

    def count(module: Any, args: Any) -> None:
        module.shift = module.shift + 1

    fast = gc.compile(model)
    for value in (1, 2, 3):
        model.shift = value
        fast(x)
    model.register_forward_pre_hook(count)
    with pytest.raises(HookError, match=r"attribute 'shift' of Scaled, 3 -> 4; the call used the old value"):
        fast(x)


def test_eager_hooks_see_plain_numbers():
    model, x = Scaled(), floats(2, 3)
    seen = []
    fast = gc.compile(model)
    for value in (0.5, 1.5, 2.5):
        model.scale = value
        fast(x)
    model.register_forward_hook(lambda m, args, out: seen.append(type(m.scale)))
    model(x)
    assert seen == [float] and type(model.scale) is float


def test_a_failed_trace_leaves_numbers_open():
    model, x = Scaled(), floats(2, 3)
    fast = gc.compile(model)
    for value in (0.5, 1.5):
        model.scale = value
        fast(x)
    with pytest.raises(gc.errors.GraphcError):
        fast(floats(2, 5))
    for value in (2.5, 3.5):
        model.scale = value
        same(fast(x), model(x), exact=False)
    assert len(fast.variants) == 2


def test_two_threads_get_results_of_one_value_each():
    options = Options()

    def function(x: Any) -> Any:
        return x * options.scale, x * 0 + options.scale, options.scale * x

    fast = gc.compile(function)
    x = gc.ones(3)
    values = [1.5, 2.5, 3.5, 4.5]
    for value in values[:2]:
        options.scale = value
        fast(x)
    faults: list[Any] = []

    def work(mine: list[float]) -> None:
        for i in range(300):
            options.scale = mine[i % 2]
            found = {v for t in fast(x) for v in t.tolist()}
            if len(found) != 1 or not found <= set(values):
                faults.append(found)

    threads = [threading.Thread(target=work, args=(part,)) for part in (values[:2], values[2:])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults and len(fast.variants) == 2


def test_a_copy_has_numbers_of_its_own():
    model, x = Scaled(), floats(2, 3)
    fast = gc.compile(model)
    for value in (0.5, 1.5):
        model.scale = value
        fast(x)
    other = copy.deepcopy(fast)
    model.scale = 9.0
    for value in (1.5, 2.5, 3.5):
        other._target.scale = value
        same(other(x), other._target(x), exact=False)
        same(fast(x), model(x), exact=False)
    assert len(other.variants) == 2 and len(fast.variants) == 2


def test_another_object_in_its_place_is_read_anew():
    model, x = nn.Module(), floats(3)
    model.options = Options()
    fast = gc.compile(lambda x: x * model.options.scale)
    for i in range(4):
        model.options.scale = 0.5 + i
        same(fast(x), x * (0.5 + i))
    for i in range(4):
        model.options = Options(scale=0.1 * i)
        same(fast(x), x * (0.1 * i))


def test_numbers_are_open_in_frozen_and_narrowed_programs():
    for precision, freeze in ((None, True), ("bf16", False)):
        model, x = Scaled(), floats(4, 3)
        fast = gc.compile(model, precision=precision, freeze=freeze)
        with gc.no_grad():
            for i in range(5):
                model.scale = 0.5 + i
                np.testing.assert_allclose(fast(x).numpy(), model(x).numpy(), rtol=0.05, atol=0.1)
        assert len(fast.variants) <= 2
        assert not fast.variants[0].numbers.is_empty


def test_a_file_holds_the_number_that_the_attribute_had(tmp_path: Path):
    model, x = Scaled(), floats(2, 3)
    fast = gc.compile(model)
    with gc.no_grad():
        for value in (0.5, 1.5, 2.5):
            model.scale = value
            fast(x)
        gc.export(model, x, path=tmp_path / "scaled.gcm")
        expected = model(x)
        model.scale = 100.0
        same(gc.load(tmp_path / "scaled.gcm")(x), expected, exact=False)


def test_a_program_without_open_numbers_keeps_its_native_call():
    model, x = Scaled().eval(), floats(2, 3)
    fast = gc.compile(model)
    with gc.no_grad():
        fast(x)
        same(fast(x), model(x), exact=False)
        assert fast._shortcut.call is not not_native
        model.scale = 1.5
        same(fast(x), model(x), exact=False)
        model.scale = 2.5
        same(fast(x), model(x), exact=False)


def test_a_call_with_another_number_looks_at_the_object_that_has_it_and_no_other(monkeypatch: pytest.MonkeyPatch):
    model, x = nn.Sequential(Scaled(), Scaled()), floats(2, 3)
    fast = gc.compile(model)
    looks = []
    look = Account._look
    monkeypatch.setattr(Account, "_look", lambda self: looks.append(self) or look(self))
    with gc.no_grad():
        for i in range(3):
            model[0].scale = 0.5 + i
            fast(x)
        looks.clear()
        for i in range(5):
            model[0].scale = -0.5 * i
            same(fast(x), model(x), exact=False)
        assert not looks
        model[0].shift, model[0].scale = 7, 3.5
        same(fast(x), model(x), exact=False)
        assert looks


def test_a_training_flag_that_is_a_number_is_read_again():
    dropout, x = nn.Dropout(0.5), gc.ones(64)
    fast = gc.compile(dropout)
    flags: tuple[Any, ...] = (True, 0, 1, 0, 1)
    for training in flags:
        dropout.training = training
        assert bool((fast(x) == 0).any()) is bool(training)


def test_calls_with_the_same_numbers_are_native_until_one_is_another():
    model, options, x = Scaled(), Options(), floats(2, 3)
    fast = gc.compile(lambda x: model(x) * options.scale)
    # NOTE: where eager mode makes a program meanwhile, words change that are watched, and one more call is not native.
    with gc.no_grad(), references():
        for i in range(3):
            model.scale, options.scale = 0.5 + i, 1.5 * i
            fast(x)
        for i in range(4):
            (vars(model) if i % 2 else vars(options))["scale"] = 10.0 + i
            for native in (False, False, True, True):
                assert (fast._shortcut.call(x._data) is not None) is native
                same(fast(x), model(x) * options.scale, exact=False)
        options.scale = 3
        same(fast(x), model(x) * 3, exact=False)
        del model.scale
        for _ in range(3):
            with pytest.raises(AttributeError):
                fast(x)
        model.scale = 2.5
        same(fast(x), model(x) * 3, exact=False)


def test_a_number_in_a_slot_is_read_by_each_call():
    class Slots:
        __slots__ = ("scale",)

    slots, x = Slots(), floats(3)
    slots.scale = 0.5
    fast = gc.compile(lambda x: x * slots.scale)
    for value in (0.5, 1.5, 1.5, 1.5, 1.5, 2.5, 2.5, 2.5, 3.5):
        slots.scale = value
        same(fast(x), x * value)
    assert len(fast.variants) == 2


def test_a_thread_that_keeps_calling_sees_each_number_as_soon_as_it_is_set():
    options, x = Options(), gc.ones(3)
    fast = gc.compile(lambda x: x * options.scale)
    for value in (1.0, 2.0, 3.0):
        options.scale = value
        fast(x)
    ends, others = threading.Event(), []

    def call() -> None:
        while not ends.is_set():
            others.append(fast(x).tolist()[0])

    threads = [threading.Thread(target=call) for _ in range(2)]
    for thread in threads:
        thread.start()
    wrong = []
    for i in range(2000):
        options.scale = float(i)
        for _ in range(1 + i % 4):
            if (found := fast(x).tolist()[0]) != float(i):
                wrong.append((i, found))
    ends.set()
    for thread in threads:
        thread.join()
    assert not wrong and len(fast.variants) == 2
