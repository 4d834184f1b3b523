"""Locations: the frame they name, how they print, and paths relative to the working directory."""

from __future__ import annotations

import inspect
import os
import threading
from pathlib import Path

import pytest

from graphc.base import location
from graphc.base.location import UNKNOWN, Location, capture, line_of_thread, portable_path, raised_at, user_frame


def line() -> int:
    frame = inspect.currentframe()
    assert frame is not None and frame.f_back is not None
    return frame.f_back.f_lineno


def test_capture_names_the_caller():
    here = capture("net.fc1"), line()
    assert here[0].module == "net.fc1"
    assert Path(here[0].file).resolve() == Path(__file__).resolve()
    assert here[0].line == here[1]
    assert here[0].describe().endswith('here = capture("net.fc1"), line()')


def test_frames_inside_the_package_are_skipped():
    name = os.path.join(os.path.dirname(location.__file__), "inside.py")
    space: dict = {"user_frame": user_frame}
    exec(compile("def ask():\n    return user_frame()\n", name, "exec"), space)
    result = space["ask"]()
    assert result is not None
    assert result.f_code.co_filename == __file__


def test_code_of_the_package_alone_has_no_user(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(location, "_PACKAGE", "")
    monkeypatch.setattr(location, "_of_package", location._OfPackage())
    assert user_frame() is None
    assert capture("net") == Location("net")


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (UNKNOWN, ""),
        (Location("fc1"), "fc1"),
        (Location("", "no_such_net.py", 3), "no_such_net.py:3"),
        (Location("fc1", "no_such_net.py", 3), "fc1 no_such_net.py:3"),
    ],
)
def test_text(place: Location, text: str):
    assert str(place) == text
    assert place.describe() == text.replace(" ", ", ")


def test_describe_quotes_the_source(tmp_path: Path):
    file = tmp_path / "no_such_net.py"
    file.write_text("a = 1\n    b = a  \n")
    assert Location("fc1", str(file), 2).describe() == f"fc1, {file}:2: b = a"
    assert Location("fc1", str(file), 9).describe() == f"fc1, {file}:9"


def test_paths_are_relative_below_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(location, "_relative", {})
    monkeypatch.chdir(tmp_path)
    space: dict = {"capture": capture}
    for file, shown in (
        (tmp_path / "sub" / "no_such_net.py", os.path.join("sub", "no_such_net.py")),
        (tmp_path.parent / "b.py", None),
    ):
        exec(compile("found = capture()", str(file), "exec"), space)
        assert space["found"].file == (shown or str(file))


def test_an_error_was_raised_where_the_user_called(tmp_path: Path):
    name = os.path.join(os.path.dirname(location.__file__), "inside.py")
    space: dict = {}
    exec(compile("def fail():\n    raise ValueError\n", name, "exec"), space)
    try:
        expected = line() + 1
        space["fail"]()
    except ValueError as error:
        result = raised_at(error, "net.fc1")
    assert (result.module, result.line) == ("net.fc1", expected)
    assert Path(result.file).resolve() == Path(__file__).resolve()


def test_an_error_that_passed_no_line_of_the_user_names_the_line_that_runs():
    result = raised_at(ValueError()), line()
    assert result[0].line == result[1]


def test_a_portable_path_is_that_of_the_import_wherever_the_package_lies(tmp_path, monkeypatch):
    package = tmp_path / "deep" / "package"
    package.mkdir(parents=True)
    monkeypatch.setattr("sys.path", [str(tmp_path), str(tmp_path / "deep")])
    monkeypatch.chdir(tmp_path)
    assert portable_path(str(package / "net.py")) == portable_path("deep/package/net.py") == "package/net.py"
    assert portable_path("/elsewhere/net.py") == "net.py" and portable_path("") == ""
    here = Location("fc", str(package / "net.py"), 3)
    assert here.portable == Location("fc", "package/net.py", 3) and UNKNOWN.portable == UNKNOWN


def test_the_line_of_a_thread_is_one_of_the_user_even_where_it_waits_in_the_library():
    begun, let = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        let.wait()

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait()
    expected = work.__code__.co_firstlineno + 2
    while (result := line_of_thread(thread.ident or 0)).line != expected:  # It is on its way there.
        assert Path(result.file).resolve() == Path(__file__).resolve()
    let.set()
    thread.join()
    assert line_of_thread(thread.ident or 0) == UNKNOWN
