"""Settings: every one names costs that exist, and their text is read as it was written."""

from __future__ import annotations

from fractions import Fraction

import pytest

from graphc.codegen.machine.costs import DEFAULT
from graphc.codegen.machine.settings import SETTINGS, Setting, parse_changes, print_changes, with_changes
from graphc.codegen.machine.target import named_targets


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda s: s.name)
def test_a_setting_changes_costs_of_their_type(setting: Setting):
    changed = with_changes(DEFAULT, setting.changes)
    assert parse_changes(print_changes(setting.changes), DEFAULT) == setting.changes
    for name, value in setting.changes.items():
        group, field = name.split(".")
        assert getattr(getattr(changed, group), field) == value
        assert type(getattr(getattr(DEFAULT, group), field)) is type(value)
    assert any(with_changes(t.costs, setting.changes) != t.costs for t in named_targets().values())


def test_settings_that_may_lower_another_program_are_marked():
    for setting in SETTINGS:
        assert setting.lowers == any(name.startswith(("rewrites.", "fusion.")) for name in setting.changes)


def test_text_of_changes():
    changes = {"memory.tile_step": 0.5, "contraction.panel_l1": Fraction(1, 3)}
    assert print_changes(changes) == "contraction.panel_l1=1/3 memory.tile_step=0.5"
    assert parse_changes("", DEFAULT) == {} and with_changes(DEFAULT, {}) == DEFAULT


@pytest.mark.parametrize("name", ["lanes.gone", "gone.long_copies", "strict_order", "lanes", "lanes.copies"])
def test_an_unknown_cost_is_an_error(name: str):
    with pytest.raises(KeyError):
        with_changes(DEFAULT, {name: 1})
    with pytest.raises(KeyError):
        parse_changes(f"{name}=1", DEFAULT)
