"""graphc completion: scripts for shells, and what bash makes of its own."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from graphc.cli.commands import completion
from graphc.cli.main import COMMANDS
from tests.cli.conftest import Graphc


def completed(script: str, *words: str) -> list[str]:
    """Return bash's proposals for the last word."""
    program = f"{script}\nCOMP_WORDS=({' '.join(map(repr, words))}); COMP_CWORD={len(words) - 1}; _graphc\n"
    program += 'echo "${COMPREPLY[@]}"'
    return subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes_commands_options_and_their_values(graphc: Graphc):
    script = graphc("completion", "bash").out
    assert completed(script, "graphc", "comp") == ["compile", "completion"]
    assert completed(script, "graphc", "run", "--inp") == ["--input"]
    assert completed(script, "graphc", "compile", "--precision", "bf") == ["bf16", "bf16_dot"]
    assert completed(script, "graphc", "completion", "f") == ["fish"]
    assert completed(script, "graphc", "bench", "no_such_word") == []


@pytest.mark.parametrize("shell", completion.SCRIPTS)
def test_every_command_and_option_is_in_the_script(graphc: Graphc, shell: str):
    done = graphc("completion", shell)
    assert done.code == 0 and not done.err
    for name, command in json.loads(completion.TABLE.read_text()).items():
        assert name in done.out
        assert all(o.lstrip("-") in done.out for argument in command["arguments"] for o in argument["names"])


def test_all_commands_are_in_the_table():
    assert list(json.loads(completion.TABLE.read_text())) == list(COMMANDS)


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_shells_read_their_scripts(graphc: Graphc, shell: str):
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell}")
    script = graphc("completion", shell).out
    assert subprocess.run([shell, "-n"], input=script, text=True, check=False).returncode == 0


def test_a_shell_that_is_not_known(graphc: Graphc):
    assert graphc("completion", "csh").code == 2
