// Draws the lines of a monitor's page, smoothed, on a linear or log scale, of one run or of two; hovering reads values.

const WIDTH = 420, HEIGHT = 180, LEFT = 58, RIGHT = 10, TOP = 10, BOTTOM = 22;
const at = id => document.getElementById(id);
const read = text => JSON.parse(text);
const runs = [...read(at("data").textContent)];  // [{ title, scalars: { name: [[step, value or null], ...] } }, ...]
const state = { smooth: 0, log: false };
const number = value => value === null ? "no number" : String(Number(value.toPrecision(5)));

// The state is kept in the address, so that it outlives reloads of the page.
for (const part of location.hash.slice(1).split("&")) {
  const [name, value] = part.split("=");
  if (name === "smooth") state.smooth = Math.min(0.99, Math.max(0, Number(value) || 0));
  if (name === "log") state.log = value === "1";
}

// Exponential moving average, corrected for its start; values that are no numbers are left out.
function smoothed(points, factor) {
  let sum = 0, weight = 0;
  return points.map(([step, value]) => {
    if (value === null) return [step, null];
    sum = factor * sum + (1 - factor) * value; weight = factor * weight + 1 - factor;
    return [step, sum / weight];
  });
}
// Round numbers between two limits; of steps whole ones.
function ticks(low, high, whole) {
  if (high - low <= 1e-9 * Math.max(Math.abs(low), Math.abs(high))) return [low];
  const rough = (high - low) / 5, unit = 10 ** Math.floor(Math.log10(rough));
  let size = unit * [1, 2, 5, 10].find(m => unit * m >= rough * (1 - 1e-9));
  if (whole) size = Math.max(1, Math.round(size));
  const found = [];
  for (let i = Math.ceil(low / size - 1e-9); i <= Math.floor(high / size + 1e-9); i++) found.push(i * size);
  return found;
}
function logTicks(low, high) {
  const found = [];
  for (let e = Math.ceil(Math.log10(low) - 1e-9); e <= Math.floor(Math.log10(high) + 1e-9); e++) found.push(10 ** e);
  const most = Math.ceil(found.length / 5);
  return found.length > 1 ? found.filter((_, i) => i % most === 0) : ticks(low, high);
}

function axesOf(lines, log) {
  const steps = lines.flatMap(line => line.map(([step]) => step));
  const values = lines.flatMap(line => line.map(([, value]) => value)).filter(v => v !== null);
  const [first, last] = [Math.min(...steps), Math.max(...steps)];
  const [low, high] = values.length ? [Math.min(...values), Math.max(...values)] : [0, 1];
  const share = (value, a, b) => b > a ? (value - a) / (b - a) : 0.5, of = log ? Math.log10 : v => v;
  return {
    x: step => LEFT + (WIDTH - LEFT - RIGHT) * share(step, first, last),
    y: value => HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share(of(value), of(low), of(high)),
    steps: ticks(first, last, true), values: log ? logTicks(low, high) : ticks(low, high),
  };
}
function drawAxes(axes) {
  const f = n => n.toFixed(1);
  return axes.values.map(v => `<path class="grid" d="M${LEFT} ${f(axes.y(v))}H${WIDTH - RIGHT}"/><text x="${LEFT - 6}" y="${f(axes.y(v) + 3.5)}" text-anchor="end">${number(v)}</text>`).join("") +
    axes.steps.map(s => `<text x="${f(axes.x(s))}" y="${HEIGHT - 6}" text-anchor="middle">${s}</text>`).join("");
}
// A line is interrupted where there is no number; a single number is a point.
function drawLine(points, axes, cls) {
  const pieces = [[]];
  for (const [step, value] of points) if (value === null) pieces.push([]); else pieces[pieces.length - 1].push(`${axes.x(step).toFixed(1)} ${axes.y(value).toFixed(1)}`);
  return pieces.filter(p => p.length).map(p => p.length > 1 ? `<path class="line ${cls}" d="M${p.join("L")}"/>`
    : `<circle class="${cls}" r="2.5" cx="${p[0].split(" ")[0]}" cy="${p[0].split(" ")[1]}"/>`).join("");
}

function drawChart(chart) {
  const lines = runs.map((run, i) => ({ run: i, title: run.title, raw: run.scalars[chart.dataset.name] || [] })).filter(line => line.raw.length);
  // A log scale needs positive numbers: charts with others stay linear.
  const log = state.log && lines.every(line => line.raw.every(([, value]) => value === null || value > 0));
  for (const line of lines) line.shown = state.smooth ? smoothed(line.raw, state.smooth) : line.raw;
  const axes = axesOf(lines.flatMap(line => [line.raw, line.shown]), log);
  const drawn = lines.map(({ run, raw, shown }) => (state.smooth ? drawLine(raw, axes, `run-${run} faint`) : "") + drawLine(shown, axes, `run-${run}`));
  chart.innerHTML = `<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img">${drawAxes(axes)}${drawn.join("")}<g class="hover"></g></svg>`;
  chart.firstChild.setAttribute("aria-label", chart.dataset.name);
  chart.lines = lines; chart.axes = axes;
  note(chart, null);
}
// Writes the values at a step, or the last ones, beside the name of a chart.
function note(chart, x) {
  const { lines, axes } = chart, texts = [], marks = [];
  for (const { run, title, raw, shown } of lines) {
    const near = x === null ? raw.length - 1 : raw.reduce((best, [step], i) => Math.abs(axes.x(step) - x) < Math.abs(axes.x(raw[best][0]) - x) ? i : best, 0);
    const [step, value] = raw[near], own = shown[near][1];
    texts.push(`${lines.length > 1 ? `${title}: ` : ""}${number(value)} at step ${step}`);
    if (x !== null && own !== null) marks.push(`<path class="grid" d="M${axes.x(step)} ${TOP}V${HEIGHT - BOTTOM}"/><circle class="run-${run}" r="3" cx="${axes.x(step)}" cy="${axes.y(own)}"/>`);
  }
  chart.parentNode.querySelector("span").textContent = texts.join(" · ");
  chart.querySelector(".hover").innerHTML = marks.join("");
}

function draw() {
  at("smooth").value = state.smooth; at("smooth-value").textContent = state.smooth; at("log").checked = state.log;
  at("runs").replaceChildren(...(runs.length > 1 ? runs : []).map((run, i) => Object.assign(document.createElement("i"), { className: `run-${i}`, textContent: run.title })));
  for (const chart of document.querySelectorAll(".chart")) drawChart(chart);
}
function change(part) {
  Object.assign(state, part);
  history.replaceState(null, "", `#smooth=${state.smooth}&log=${state.log ? 1 : 0}`);
  draw();
}
at("smooth").addEventListener("input", event => change({ smooth: Number(event.target.value) }));
at("log").addEventListener("change", event => change({ log: event.target.checked }));
at("beside").addEventListener("change", async event => {
  const page = new DOMParser().parseFromString(await event.target.files[0].text(), "text/html"), other = page.getElementById("data");
  if (other) { runs.splice(1, runs.length, read(other.textContent)[0]); draw(); }
});
for (const chart of document.querySelectorAll(".chart")) {
  chart.addEventListener("pointermove", event => {
    const box = chart.getBoundingClientRect();
    note(chart, (event.clientX - box.left) * WIDTH / box.width);
  });
  chart.addEventListener("pointerleave", () => note(chart, null));
}
draw();
