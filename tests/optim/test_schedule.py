"""The base of schedules: what it sets, from where it goes on, and what it keeps."""

from __future__ import annotations

import warnings

import pytest

import graphc
from graphc import nn
from graphc.errors import ArgumentError, AttributeValueError
from graphc.optim import SGD
from graphc.optim.schedule import LRScheduler


class Halves(LRScheduler):
    """Half the rate after every step; jumps by its closed form."""

    def get_lr(self) -> list[float]:
        return self._present() if self.last_epoch == 0 else self._scaled(0.5)

    def _get_closed_form_lr(self) -> list[float]:
        return [rate * 0.5**self.last_epoch for rate in self.base_lrs]


def optimizer() -> SGD:
    groups = [{"params": [nn.Parameter(graphc.ones(1))]}, {"params": [nn.Parameter(graphc.ones(1))], "lr": 2.0}]
    return SGD(groups, lr=1.0)


def test_every_group_follows():
    made = optimizer()
    schedule = Halves(made)
    assert schedule.base_lrs == [1.0, 2.0]
    for expected in ([1.0, 2.0], [0.5, 1.0], [0.25, 0.5]):
        assert schedule.get_last_lr() == [g["lr"] for g in made.param_groups] == expected
        made.step()
        schedule.step()
    assert [g["initial_lr"] for g in made.param_groups] == [1.0, 2.0]


def test_jumps():
    made = optimizer()
    schedule = Halves(made)
    made.step()
    schedule.step(4)
    assert schedule.last_epoch == 4
    assert schedule.get_last_lr() == [1 / 16, 1 / 8]


def test_goes_on_from_an_epoch():
    made = optimizer()
    with pytest.raises(AttributeValueError, match="group 0 has no initial_lr"):
        Halves(made, last_epoch=3)
    for group in made.param_groups:
        group["initial_lr"] = group["lr"]
    assert Halves(made, last_epoch=3).last_epoch == 4


def test_state():
    made = optimizer()
    schedule = Halves(made)
    made.step()
    schedule.step()
    state = schedule.state_dict()
    assert "optimizer" not in state
    again = Halves(optimizer())
    again.load_state_dict(state)
    assert (again.last_epoch, again.get_last_lr()) == (1, [0.5, 1.0])


def test_order_of_steps():
    schedule = Halves(optimizer())
    with pytest.warns(UserWarning, match="before the first optimizer.step"):
        schedule.step()
    made = optimizer()
    schedule = Halves(made)
    made.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schedule.step()


def test_what_is_no_optimizer_or_no_schedule():
    with pytest.raises(ArgumentError, match="int is not an Optimizer"):
        Halves(3)
    with pytest.raises(NotImplementedError, match="LRScheduler does not define get_lr"):
        LRScheduler(optimizer())


def test_a_schedule_says_where_it_is():
    optimizer = SGD(nn.Linear(2, 2).parameters(), lr=0.5)
    step = graphc.optim.lr_scheduler.StepLR(optimizer, 3)
    assert repr(step) == "StepLR(lr=[0.5], step_size=3, gamma=0.1, last_epoch=0)"
    assert repr(graphc.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1)) == "LambdaLR(lr=[0.5], last_epoch=0)"
