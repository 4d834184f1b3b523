"""Journals of what is written to."""

import numpy as np

import graphc
from graphc.tensors.journal import Journal


def test_what_was_written_is_put_back_inside_and_restored_after_it():
    kept = graphc.tensor([1.0, 2.0])
    journal = Journal()
    with journal.opened():
        kept.add_(1.0)
        kept[0] = 7.0
    with journal.rewound():
        assert kept.tolist() == [1.0, 2.0]
        kept.fill_(0.0)
    assert kept.tolist() == [7.0, 3.0]


def test_a_view_is_written_through_to_its_memory():
    kept = graphc.zeros(2, 3)
    journal = Journal()
    with journal.opened():
        kept[1].fill_(4.0)
    with journal.rewound():
        assert not np.asarray(kept).any()
    assert kept[1].tolist() == [4.0] * 3


def test_memory_that_nobody_else_knows_is_forgotten():
    journal = Journal()
    with journal.opened():
        graphc.zeros(3).add_(1.0)
    assert not journal._entries


def test_writes_are_told_to_all_journals_that_are_open():
    kept, outer, inner = graphc.zeros(2), Journal(), Journal()
    with outer.opened(), inner.opened():
        kept.add_(1.0)
    assert inner.holds(kept._counter) and outer.holds(kept._counter)
    outer.forget(kept._data)
    assert not outer.holds(kept._counter)
