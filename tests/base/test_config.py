"""Options: defaults, typed values, refusal of wrong values, and the generated page."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from graphc.base import config
from graphc.errors import ArgumentError
from tests.architecture.scan import ROOT


def test_defaults_come_from_an_empty_environment():
    expected = dict(verify="stage", dump="", print_after=(), threads=0, spin_us=1000, logs="", debug=False)
    expected |= dict(cache=True, cache_dir="~/.cache/graphc", cache_size=1 << 30)
    assert expected.items() <= vars(config.read({})).items()


def test_values_are_typed():
    options = config.read(
        {
            "GRAPHC_VERIFY": "pass",
            "GRAPHC_DUMP": "out",
            "GRAPHC_PRINT_AFTER": "cse, dce,",
            "GRAPHC_THREADS": "3",
            "GRAPHC_SPIN_US": "0",
            "GRAPHC_LOGS": "info",
            "GRAPHC_DEBUG": "1",
            "GRAPHC_CACHE": "off",
            "GRAPHC_CACHE_SIZE": "1.5M",
        }
    )
    expected = dict(
        verify="pass", dump="out", print_after=("cse", "dce"), threads=3, spin_us=0, logs="info", debug=True
    )
    expected |= dict(cache=False, cache_size=3 << 19)
    assert expected.items() <= vars(options).items()


@pytest.mark.parametrize(
    "variable",
    ["GRAPHC_VERIFY", "GRAPHC_THREADS", "GRAPHC_SPIN_US", "GRAPHC_LOGS", "GRAPHC_DISTRIBUTED_CHECK"],
)
def test_a_wrong_value_names_the_variable_and_what_it_takes(variable: str):
    message = rf"{variable}='sometimes' is no value of this option\n  try    set it to one of `"
    with pytest.raises(ArgumentError, match=message):
        config.read({variable: "sometimes"})


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "soon", ""])
def test_a_timeout_is_a_number_of_seconds_above_zero(text: str):
    assert config.read({"GRAPHC_DISTRIBUTED_TIMEOUT": "0.5"}).distributed_timeout == 0.5
    with pytest.raises(ArgumentError, match="GRAPHC_DISTRIBUTED_TIMEOUT"):
        config.read({"GRAPHC_DISTRIBUTED_TIMEOUT": text})


def test_read_takes_the_environment_as_it_is_now(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GRAPHC_VERIFY", "off")
    assert config.read().verify == "off"
    monkeypatch.delenv("GRAPHC_VERIFY")
    assert config.read().verify == "stage"


def test_every_option_is_documented():
    page = (ROOT / "docs" / "options.md").read_text(encoding="utf-8")
    assert page == config.document(), "run: python -m tools.pages.options --write"
    for option in config.OPTIONS:
        assert f"`{option.variable}`" in page


def test_every_option_is_used_somewhere():
    """An option that nothing reads does nothing: each field of Options is read outside of config.py."""
    texts = [p.read_text() for p in (ROOT / "graphc").rglob("*.py") if p.name != "config.py"]
    unused = [o.field for o in config.OPTIONS if o.field != "logs" and not any(f".{o.field}" in t for t in texts)]
    assert not unused


@pytest.mark.parametrize(("level", "expected"), [("", ""), ("info", "graphc.x: told\n")])
def test_logs_go_to_stderr_when_asked_for(level: str, expected: str):
    program = "from graphc.base import config; log = config.logger('x'); log.info('told'); log.debug('not told')"
    environment = {**os.environ, "GRAPHC_LOGS": level}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("", expected)
