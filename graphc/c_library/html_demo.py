"""HTML page that calls a WebAssembly library: images are drawn by hand, other inputs are typed, outputs are bars."""

from __future__ import annotations

import html
import json
from string import Template
from typing import Any

from graphc.base.sizes.size import is_size
from graphc.c_library.c_header import signature
from graphc.c_library.js_loader import file_url, js_array, js_size
from graphc.c_library.plan import EntryPlan, LibraryArgument, LibraryPlan, shape_text

_SIDES = range(8, 257)
"""Heights and widths of inputs that are drawn."""

_PAGE = Template("""\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>$title</title>
<style>
  body { font: 16px/1.4 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
  main { display: flex; flex-wrap: wrap; gap: 2rem; margin: 1rem 0 2rem; }
  canvas { width: 280px; background: #000; cursor: crosshair; touch-action: none; image-rendering: pixelated; }
  canvas, textarea, button, input { display: block; margin: .3rem 0; font: inherit; }
  textarea { width: 18rem; height: 5rem; }
  td { padding: 0 .6rem 0 0; font-variant-numeric: tabular-nums; }
  td i { display: block; height: .8rem; background: #36c; }
  tr.most { font-weight: bold; }
  footer { color: #666; font-size: .85rem; }
</style>
<h1>$title</h1>
<p id="state" role="status">Loading ...</p>
$sections
<footer>Made by graphc $version. All computation is in this page.</footer>
<script type="module">
const ENTRIES = {
$entries
};
$script
</script>
</html>
""")
_SCRIPT = """\
const state = document.getElementById("state");
const loading = performance.now();
const model = await import(LOADER).then(({ load }) => load()).catch((error) => {
  state.textContent = `The model is not loaded: ${error}. A page that is opened as a file cannot load it.`;
  throw error;
});
const loaded = `loaded in ${(performance.now() - loading).toFixed(0)} ms`;

/** The numbers of an input, in a typed array of its class. */
function numbers(field, input, count) {
  const array = new input.type(count);
  if (field.tagName === "CANVAS") {
    const pixels = field.getContext("2d").getImageData(0, 0, field.width, field.height).data;
    const { black, white } = field.dataset;
    return array.map((_, i) => Number(black) + (pixels[4 * i] / 255) * (Number(white) - Number(black)));
  }
  const words = field.value.split(/[\\s,;]+/).filter(Boolean);
  const convert = input.type.name.startsWith("Big") ? BigInt : Number;
  return array.map((_, i) => convert(words[i] ?? 0));
}

function show(section, results) {
  const rows = [];
  for (const [name, values] of Object.entries(results)) {
    const shown = Array.from(values.subarray(0, 64), Number);
    const most = Math.max(...shown.map(Math.abs)), first = shown.indexOf(Math.max(...shown));
    shown.forEach((value, i) => {
      const row = document.createElement("tr");
      if (i === first && shown.length > 1) row.className = "most";
      const bar = document.createElement("i");
      bar.style.width = `${most > 0 ? (120 * Math.abs(value)) / most : 0}px`;
      const rounded = Math.abs(value) < 1e-4 * most ? "0" : value.toPrecision(4);
      const text = values.constructor.name.startsWith("Float") ? rounded : String(values[i]);
      for (const content of [`${name}[${i}]`, text, bar]) {
        row.insertCell().append(content);
      }
      rows.push(row);
    });
    if (values.length > shown.length) {
      const row = document.createElement("tr");
      row.insertCell().append(`${values.length - shown.length} more of ${name}`);
      rows.push(row);
    }
  }
  section.querySelector("tbody").replaceChildren(...rows);
}

function connect(name, section) {
  const fields = section.querySelectorAll("[data-input]");
  const run = () => {
    try {
      const dims = {};
      section.querySelectorAll("[data-dim]").forEach((field) => (dims[field.dataset.dim] = Number(field.value)));
      const inputs = { ...dims };
      ENTRIES[name].forEach((input, i) => {
        const count = input.shape(dims).reduce((a, b) => a * b, 1);
        inputs[input.name] = numbers(fields[i], input, count);
      });
      const start = performance.now();
      const results = model[name](inputs);
      const taken = performance.now() - start;
      show(section, results);
      const call = taken < 0.1 ? "less than 0.1" : taken.toFixed(1);
      state.textContent = `${loaded}, call: ${call} ms`;
    } catch (error) {
      state.textContent = String(error);
    }
  };
  // A call of an entry that writes states is not repeatable, so only its button makes one.
  const button = section.querySelector("button.run");
  const changed = button ? () => {} : run;
  button?.addEventListener("click", run);
  fields.forEach((field) => (field.tagName === "CANVAS" ? drawable(field, changed) : (field.oninput = changed)));
  section.querySelectorAll("[data-dim]").forEach((field) => (field.oninput = changed));
  section.querySelector("button.clear")?.addEventListener("click", () => {
    fields.forEach((field) => field.tagName === "CANVAS" && clear(field));
    changed();
  });
  changed();
}

function clear(canvas) {
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.fillStyle = "#000";
  context.fillRect(0, 0, canvas.width, canvas.height);
}

function drawable(canvas, changed) {
  clear(canvas);
  const context = canvas.getContext("2d");
  Object.assign(context, { strokeStyle: "#fff", lineCap: "round", lineJoin: "round", lineWidth: canvas.width / 12 });
  const position = (event) => [
    (event.offsetX * canvas.width) / canvas.clientWidth,
    (event.offsetY * canvas.height) / canvas.clientHeight,
  ];
  canvas.onpointerdown = (event) => {
    canvas.setPointerCapture(event.pointerId);
    context.beginPath();
    context.moveTo(...position(event));
  };
  canvas.onpointermove = (event) => {
    if (!event.buttons) return;
    context.lineTo(...position(event));
    context.stroke();
    changed();
  };
}

state.textContent = loaded;
for (const name of Object.keys(ENTRIES)) connect(name, document.getElementById(`entry-${name}`));
document.body.dataset.ready = "true";
"""


def html_demo(plan: LibraryPlan, loader: str) -> str:
    """Return the page's text; ``loader`` is the name of the loader's file in the same folder."""
    entries = [f"  {json.dumps(e.name)}: [{', '.join(map(_input, e.inputs))}]," for e in plan.entries]
    return _PAGE.substitute(
        title=html.escape(plan.name),
        version=plan.version,
        sections="\n".join(map(_section, plan.entries)),
        entries=_in_script("\n".join(entries)),
        script=_SCRIPT.replace("LOADER", _in_script(json.dumps(file_url(loader)))),
    )


def _in_script(text: str) -> str:
    """Escape ``<`` in strings of JavaScript: HTML reads ``</script>`` and ``<!--`` within them."""
    return text.replace("<", "\\u003c")


def _input(argument: LibraryArgument) -> str:
    spec, shape = argument.spec, ", ".join(map(js_size, argument.spec.shape))
    return f"{{ name: {json.dumps(spec.name)}, type: {js_array(spec.dtype)}, shape: (d) => [{shape}] }}"


def _section(entry: EntryPlan) -> str:
    writes = entry.writes
    fields = [
        f'<label>{name} <input type="number" data-dim="{name}" value="{low}"></label>'
        for name, low in ((html.escape(d.name), d.low) for d in entry.dims)
    ]
    fields += map(_field, entry.inputs)
    drawn = any(_sides(a) for a in entry.inputs)
    buttons = ['<button class="clear">Clear</button>'] if drawn else []
    buttons += ['<button class="run">Run</button>'] if writes else []
    return "\n".join(
        [
            f'<section id="entry-{html.escape(entry.name)}">',
            f"<p><code>{html.escape(signature(entry))}</code></p>",
            f"<main><div>{''.join([*fields, *buttons])}</div><table><tbody></tbody></table></main>",
            "</section>",
        ]
    )


def _field(argument: LibraryArgument) -> str:
    name = html.escape(argument.spec.name)
    sides = _sides(argument)
    if sides is not None:
        size = f'width="{sides[1]}" height="{sides[0]}"'
        canvas = f'<canvas data-input {size} data-black="0" data-white="1" role="img" aria-label="{name}"></canvas>'
        return f"<div>{name}{canvas}</div>"
    text = html.escape(f"{argument.spec.dtype}[{shape_text(argument.spec)}]")
    return f"<label>{name}: {text}<textarea data-input>0</textarea></label>"


def _sides(argument: LibraryArgument) -> tuple[Any, Any] | None:
    """Return height and width of an input that is one grey image, or None."""
    shape = argument.spec.shape
    if argument.spec.dtype != "f32" or any(map(is_size, shape)) or len(shape) < 2:
        return None
    *others, height, width = shape
    is_image = all(n == 1 for n in others) and height in _SIDES and width in _SIDES
    return (height, width) if is_image else None
