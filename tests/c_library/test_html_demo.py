"""The page of a WebAssembly library: its inputs, and what a browser shows."""

from __future__ import annotations

import functools
import http.server
import subprocess
import threading
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import graphc
from graphc import nn
from graphc.c_library.build import build_library
from tests.c_library.conftest import tool_or_skip

CHROMIUM = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--virtual-time-budget=10000", "--dump-dom"),
)


class Counter(nn.Module):
    """Adds all inputs up."""

    def __init__(self):
        super().__init__()
        self.register_buffer("total", graphc.zeros(2))

    def forward(self, x: Any) -> Any:
        self.total.add_(x)
        return self.total * 1.0


def page(model: Any, example: Any, folder: Path, **options: Any) -> str:
    library = build_library(model, example, path=folder / "net.wasm", target="wasm", **options)
    assert sorted(library.files) == ["d.ts", "html", "js", "wasm"]
    return library.files["html"].read_text()


class _Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def tags(text: str, *names: str) -> list[dict[str, str | None]]:
    parser = _Tags()
    parser.feed(text)
    return [attributes for tag, attributes in parser.found if tag in names]


def test_an_image_is_drawn_and_others_are_typed(tmp_path: Path):
    drawn = page(nn.Flatten(), graphc.zeros(1, 1, 28, 20), tmp_path)
    (canvas,) = tags(drawn, "canvas")
    assert (canvas["width"], canvas["height"]) == ("20", "28") and not tags(drawn, "textarea")
    for example in (graphc.zeros(1, 3, 28, 28), graphc.zeros(4), graphc.zeros(1, 28, 28, dtype="int32")):
        typed = page(lambda x: x + 1, example, tmp_path)
        assert len(tags(typed, "textarea")) == 1 and not tags(typed, "canvas")


def test_a_model_that_keeps_states_runs_at_a_click(tmp_path: Path):
    kept, other = page(Counter(), graphc.zeros(2), tmp_path), page(nn.ReLU(), graphc.zeros(2), tmp_path)
    assert [b["class"] for b in tags(kept, "button")] == ["run"] and not tags(other, "button")
    clicks = """<script type="module">
    while (!document.body.dataset.ready) await new Promise((wake) => setTimeout(wake, 10));
    const field = document.querySelector("textarea"), button = document.querySelector("button.run");
    field.value = "2 2";
    field.dispatchEvent(new Event("input"));
    button.click();
    button.click();
    </script>"""
    (tmp_path / "clicks.html").write_text(kept + clicks)
    page(Counter(), graphc.zeros(2), tmp_path)
    assert shown(tmp_path, "clicks.html").count("4.000") == 2


def test_names_of_a_model_stay_text(tmp_path: Path):
    name = 'n"</script><b>'
    text = page(nn.ReLU(), graphc.zeros(3, 2), tmp_path, dims=[(graphc.Dim(name, max=8),)])
    (field,) = tags(text, "input")
    assert field["data-dim"] == name and not tags(text, "b") and text.count("</script>") == 1


def test_a_page_says_that_its_model_is_absent(tmp_path: Path):
    page(nn.ReLU(), graphc.zeros(2), tmp_path)
    (tmp_path / "net.wasm").unlink()
    assert "The model is not loaded: Error" in shown(tmp_path, "net.html")


def test_dimensions_are_fields(tmp_path: Path):
    text = page(nn.ReLU(), graphc.zeros(3, 2), tmp_path, dims=[(graphc.Dim("batch", min=2, max=9),)])
    (field,) = tags(text, "input")
    assert field["data-dim"] == "batch" and field["value"] == "2"


def test_a_browser_shows_the_outputs(tmp_path: Path):
    page(lambda x: x * 2 + 3, graphc.zeros(2), tmp_path)
    body = shown(tmp_path, "net.html")
    assert 'data-ready="true"' in body and body.count("3.000") == 2 and "loaded in" in body


def test_integers_are_shown_in_full_and_long_outputs_are_cut(tmp_path: Path):
    page(lambda x: x + 1234567, graphc.zeros(70, dtype="int64"), tmp_path)
    body = shown(tmp_path, "net.html")
    assert body.count("<td>1234567</td>") == 64 and "6 more of output" in body


def shown(folder: Path, name: str) -> str:
    """Return the body of a page in a browser, up to its script; skip the test without a browser."""
    browser = tool_or_skip("chromium", "chromium-browser", "google-chrome")
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/{name}"
        command = [browser, *CHROMIUM, f"--user-data-dir={folder / 'profile'}", address]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        server.shutdown()
    return done.stdout.partition("<body")[2].partition("<script")[0]


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""
