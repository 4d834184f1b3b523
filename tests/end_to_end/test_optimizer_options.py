"""Options of optimizers that change during training, or by loading a state, beside PyTorch in all modes."""

from __future__ import annotations

import numpy as np
import pytest

import graphc

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore::graphc.errors.RecompileWarning")]

OTHER_VALUES = {
    **{"lr": 0.03, "weight_decay": 0.1, "eps": 1e-2, "betas": (0.8, 0.95), "maximize": True, "amsgrad": True},
    **{"decoupled_weight_decay": True, "momentum_decay": 0.1, "momentum": 0.7, "dampening": 0.4, "nesterov": True},
    **{"alpha": 0.8, "centered": True, "lr_decay": 0.1, "initial_accumulator_value": 0.5, "rho": 0.7, "lambd": 0.01},
    **{"t0": 2.0, "etas": (0.4, 1.3), "step_sizes": (1e-3, 0.3), "beta2_decay": -0.5, "d": 2.0, "ns_steps": 3},
    **{"ns_coefficients": (2.0, -1.5, 0.5), "adjust_lr_fn": "match_rms_adamw"},
}
"""A second value of each option of each optimizer; the first is the default."""
OPTIMIZERS = [
    n for n in graphc.optim.__all__ if isinstance(getattr(graphc.optim, n), type) and n not in ("Optimizer", "LBFGS")
]
TOLERANCE = {"NAdam": 1e-6, "ASGD": 1e-6, "Muon": 0.03}
"""PyTorch keeps some numbers of these in f32, whatever the parameters are, and the matrices of Muon in bf16."""


def other_value(name, option):
    return (1e-3, 1e-2) if (name, option) == ("Adafactor", "eps") else OTHER_VALUES[option]


def options_of(name):
    return list(getattr(graphc.optim, name)([graphc.nn.Parameter(graphc.ones(2, 2))]).defaults)


def normal(*shape):
    return np.random.default_rng(len(shape)).standard_normal(shape)


class Training:
    """Training of one matrix in either library, one step at a time."""

    def __init__(self, library, name, mode="eager", **options):
        self.library = library
        self.model = library.nn.Module()
        self.model.weight = library.nn.Parameter(library.from_numpy(normal(4, 3)))
        self.optional = getattr(graphc.optim, name).optional_entries
        self.optimizer = getattr(library.optim, name)(self.model.parameters(), **options)
        self.x = library.from_numpy(normal(5, 4))
        self.step = getattr(self, f"_{mode}")()

    def _eager(self):
        def train(x):
            self.optimizer.zero_grad()
            ((x @ self.model.weight - 1) ** 2).mean().backward()
            self.optimizer.step()

        return lambda: train(self.x)

    def _native(self):
        self.optimizer.native = True
        return self._eager()

    def _compiled(self):
        function = graphc.compile(self._eager())
        return lambda: function()

    def _compiled_step(self):
        self.model.forward = lambda x: x @ self.model.weight
        step = graphc.compile_step(self.model, lambda y, target: ((y - target) ** 2).mean(), self.optimizer)
        target = graphc.ones(5, 3, dtype=graphc.float64)
        return lambda: step(self.x, target)

    def set(self, option, value):
        """Change an option; PyTorch does not begin most entries of a state that it needs from now on."""
        group = self.optimizer.param_groups[0]
        group[option] = value
        if self.library is not graphc and not isinstance(self.optimizer, self.library.optim.SGD):
            for param, state in self.optimizer.state.items():
                for entry, needed_by in self.optional.items():
                    if needed_by and group[needed_by]:
                        state.setdefault(entry, self.library.zeros_like(param))

    def set_all(self, options, has_other_values):
        for option in options:
            default = self.optimizer.defaults[option]
            self.set(option, other_value(type(self.optimizer).__name__, option) if has_other_values else default)

    def compare(self, other, name):
        weights = [t.model.weight.detach().numpy() for t in (self, other)]
        np.testing.assert_allclose(*weights, rtol=TOLERANCE.get(name, 1e-9), atol=TOLERANCE.get(name, 1e-9))


MODES = ["eager", "native", "compiled", "compiled_step"]
ORDERS = [(name, "forward") for name in OPTIMIZERS] + [(n, "backward") for n in ("SGD", "Adam", "RMSprop")]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("name", "order"), ORDERS)
def test_every_option_changes_in_the_middle_of_training(torch, name, order, mode):
    options = options_of(name)[:: -1 if order == "backward" else 1]
    ours, theirs = Training(graphc, name, mode), Training(torch, name)
    defaults = dict(ours.optimizer.defaults)
    changes = [(o, other_value(name, o)) for o in options] + [(o, defaults[o]) for o in options]
    for option, value in [("lr", 0.02), *changes, *changes[: len(options)]]:
        for training in (ours, theirs):
            training.set(option, value)
            training.step()
        ours.compare(theirs, name)
    assert mode != "native" or len(ours.optimizer.updates) > 2


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_state_loads_into_an_optimizer_with_other_options(torch, name, mode):
    """The loaded options count, and a later change begins what the state lacks."""
    for saved, present in ((True, False), (False, True)):
        trainings = []
        for library in (graphc, torch):
            source, target = Training(library, name), Training(library, name, mode if library is graphc else "eager")
            for training, has_other_values in ((source, saved), (target, present)):
                training.step()
                training.set_all(options_of(name), has_other_values)
                training.step()
            target.optimizer.load_state_dict(source.optimizer.state_dict())
            trainings.append(target)
        ours, theirs = trainings
        for has_other_values in (saved, not saved, saved):
            for training in trainings:
                training.set_all(options_of(name), has_other_values)
                training.step()
            ours.compare(theirs, name)


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop"])
def test_pytorch_takes_the_state_of_changed_options(torch, name):
    ours, theirs = Training(graphc, name), Training(torch, name)
    for option in options_of(name):
        ours.set(option, other_value(name, option))
        ours.step()
    saved = ours.optimizer.state_dict()
    state = {n: {k: torch.from_numpy(v.numpy()) for k, v in entries.items()} for n, entries in saved["state"].items()}
    theirs.optimizer.load_state_dict({"state": state, "param_groups": saved["param_groups"]})
    theirs.model.weight.data = torch.from_numpy(ours.model.weight.detach().numpy())
    for training in (ours, theirs, ours, theirs):
        training.step()
    ours.compare(theirs, name)
