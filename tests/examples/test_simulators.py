"""examples/simulators: each program finds the known answer of its field."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.examples.run_example import run_example


def numbers(text: str) -> list[float]:
    return [float(x) for x in re.findall(r"(?<![\w-])-?\d+(?:\.\d+)?(?:e[+-]\d+)?", text)]


def lines_of(name: str, folder: Path) -> list[str]:
    return run_example(f"simulators/{name}.py", folder=folder).splitlines()


def test_planets_keep_their_energy_and_weigh_the_sun(tmp_path: Path):
    alone, ellipse, both, disturbed = lines_of("planets", tmp_path)
    assert max(numbers(alone)[0], numbers(both)[0]) < 1e-9
    axis, eccentricity, period, mass = numbers(ellipse)
    assert abs(axis - 5.2026) < 3e-4 and abs(eccentricity - 0.0484) < 1e-4
    assert abs(period - (5.2026**3 / (1 + 1 / 1047.35)) ** 0.5) < 1e-3 and abs(mass - 1 - 1 / 1047.35) < 2e-4
    assert 1e-3 < abs(numbers(disturbed)[0] - axis) < 1e-2


@pytest.mark.slow
def test_neurons_tell_their_conductances(tmp_path: Path):
    pulse, found = lines_of("neurons", tmp_path)
    peak, delay = numbers(pulse)
    assert 30 < peak < 50 and 0.3 < delay < 3
    sodium, potassium, leak = numbers(found)
    assert abs(sodium / 120 - 1) < 0.03 and abs(potassium / 36 - 1) < 0.03 and abs(leak / 0.3 - 1) < 0.1


@pytest.mark.slow
def test_the_pendulum_swings_up_and_agrees_with_the_riccati_equation(tmp_path: Path):
    up, near = lines_of("pendulum", tmp_path)
    seconds, torque, angle = numbers(up)
    assert seconds < 8 and torque <= 5 and abs(angle) < 1e-3
    first, second = numbers(near)
    assert first < -0.01 and abs(first - second) < 2e-4


def test_the_neural_ode_predicts_new_paths(tmp_path: Path):
    *losses, error = lines_of("neural_ode", tmp_path)
    assert numbers(losses[-1])[-1] < numbers(losses[0])[-1] / 20
    assert numbers(error)[-1] < 0.25


def test_the_posterior_is_the_published_one(tmp_path: Path):
    chains, infection, recovery, dispersion, others = lines_of("epidemic", tmp_path)
    accepted, spread = numbers(chains)
    assert accepted > 0.6 and spread < 1.02
    for line, mean, deviation in ((infection, 1.73, 0.05), (recovery, 0.54, 0.05), (dispersion, 0.14, 0.07)):
        assert abs(numbers(line)[0] - mean) < 0.02 and abs(numbers(line)[1] - deviation) < 0.02
    assert abs(numbers(others)[0] - 3.2) < 0.1


def test_the_inside_of_the_plate_is_found(tmp_path: Path):
    plate, conductivities, cells = lines_of("heat", tmp_path)
    cooled, exact = numbers(plate)
    assert abs(cooled / exact - 1) < 0.03
    _, inside, outside = numbers(conductivities)[:3]
    assert abs(inside - 0.3) < 0.03 and abs(outside - 1) < 0.03
    assert numbers(cells)[1] > 99


def test_the_policy_balances_every_pole(tmp_path: Path):
    before, *_, after = lines_of("cartpole", tmp_path)
    assert numbers(before)[0] < 60
    assert numbers(after)[0] == 500 and numbers(after)[2] == 100


def test_learned_forces_conserve_the_energy(tmp_path: Path):
    *training, last = lines_of("molecules", tmp_path)
    assert numbers(training[0])[-1] > 50 and numbers(training[-1])[-1] < 5
    programs, motion, drift = numbers(last)
    assert programs == 1 and motion > 1 and drift < motion / 200


def test_the_library_flies_as_eager_mode_does(tmp_path: Path):
    proof, flight = lines_of("realtime", tmp_path)
    assert "0 loops without bound, functions outside: none" in proof
    seconds, x, height, apart = numbers(flight)
    assert seconds == 5 and abs(x) < 0.02 and abs(height) < 0.02 and apart < 1e-5
