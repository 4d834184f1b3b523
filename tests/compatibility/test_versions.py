"""The run on every Python that is found, with stand-ins for Pythons."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STAND_IN = """#!/bin/sh
# A Python that makes environments whose programs write down how they are called.
[ "$1" != -c ] || exit 0
mkdir -p "$3/bin"
for program in pip python; do
  printf '#!/bin/sh\\necho "%s: $*" >>"%s"\\n%s\\n' $program "$LOG" "$RESULT" >"$3/bin/$program"
  chmod +x "$3/bin/$program"
done
"""


def run(folder: Path, versions: list[str], result: str = "exit 0") -> tuple[subprocess.CompletedProcess[str], str]:
    for version in versions:
        path = folder / f"python{version}"
        path.write_text(STAND_IN)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    log = folder / "log"
    log.touch()
    environment = {"PATH": f"{folder}:/usr/bin:/bin", "PYTHON": sys.executable, "LOG": str(log), "RESULT": result}
    environment["PYENV_ROOT"] = str(folder)
    command = [str(ROOT / ".ci" / "versions")]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    return done, log.read_text()


OTHERS = [
    v for v in ("3.11", "3.12", "3.13") if v != f"3.{sys.version_info[1]}" and not Path(f"/usr/bin/python{v}").exists()
]


@pytest.mark.skipif(len(OTHERS) < 2, reason="needs two versions that are not here")
def test_each_version_that_is_found_runs_the_subset(tmp_path: Path):
    done, log = run(tmp_path, OTHERS[-1:])
    assert done.returncode == 0, done.stderr
    assert f"python{OTHERS[0]}: not found\n" in done.stdout
    assert done.stdout.endswith(f"python{OTHERS[-1]}: passed\n")
    upgrade, install, tests = log.splitlines()
    assert upgrade.startswith("pip: install") and upgrade.endswith("--upgrade pip")
    assert install.startswith("pip: install") and install.endswith(". --group test")
    assert "-m pytest" in tests and "-m not slow" in tests
    named = [word for word in tests.split() if word.startswith("tests/")]
    assert "tests/compatibility/test_files.py" in named and all((ROOT / name).exists() for name in named)


@pytest.mark.skipif(not OTHERS, reason="needs a version that is not here")
def test_a_command_that_starts_nothing_is_none(tmp_path: Path):
    for version in OTHERS:
        path = tmp_path / f"python{version}"
        path.write_text("#!/bin/sh\nexit 127\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    done, log = run(tmp_path, [])
    assert (done.returncode, log) == (0, "")
    assert done.stdout == "".join(f"python{version}: not found\n" for version in OTHERS)


def test_a_failure_ends_it(tmp_path: Path):
    done, _ = run(tmp_path, OTHERS[:1], 'case "$*" in *pytest*) exit 1 ;; esac')
    assert done.returncode == 1
    assert done.stderr == f"python{OTHERS[0]}: failed\n"


def test_the_check_of_the_project_calls_it():
    assert ".ci/versions >" in (ROOT / ".ci" / "run").read_text()
