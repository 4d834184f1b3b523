"""Build a simulator step as a C library, with a proof that a call allocates nothing, takes no lock and never waits.

The step is that of a quadrotor in a plane and its controller, as a loop for a thousand calls a second needs it:
Runge-Kutta 4 for the body, linear feedback that brings it to the origin. The library flies 1,000 steps, called by numpy
alone, and must take the path of eager mode. On the command line, the same proof is

    graphc compile examples/simulators/realtime.py:Quadrotor --input state:f32[6] --emit so,h --realtime -o quadrotor.so
"""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np

import graphc as gc
from graphc import nn

GRAVITY, MASS, INERTIA, ARM, DT = 9.81, 0.5, 0.004, 0.17, 0.005


class Quadrotor(nn.Module):
    """Next state of a quadrotor: position, height, pitch and their rates [6]."""

    def rate(self, t, state, left, right):
        pitch, speeds = state[2], state[3:]
        push = (left + right) / MASS
        turn = (right - left) * ARM / INERTIA
        return gc.cat([speeds, gc.stack([-push * pitch.sin(), push * pitch.cos() - GRAVITY, turn])])

    def forward(self, state):
        x, height, pitch, vx, vy, spin = state
        lift = MASS * (GRAVITY - 4 * height - 3 * vy) / 2
        wanted = (0.15 * x + 0.2 * vx).clamp(-0.5, 0.5)
        turn = INERTIA / ARM * (40 * (wanted - pitch) - 12 * spin) / 2
        left, right = (lift - turn).clamp(0, 6), (lift + turn).clamp(0, 6)
        return gc.integrate.odeint(self.rate, state, gc.tensor([0.0, DT]), left, right, method="rk4")[-1]


def load(path: Path):
    """Return the loader of the library, which imports numpy alone."""
    spec = spec_from_file_location("loader", path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Model()


def main() -> None:
    folder = Path("out")
    folder.mkdir(exist_ok=True)
    step, emit = Quadrotor().eval(), ("so", "h", "c", "py")
    library = gc.build_library(step, gc.zeros(6), path=folder / "quadrotor.so", emit=emit, realtime=True)
    report = library.realtime["run"]
    print(f"proven: at most {report.instructions} instructions, {report.stack_bytes} bytes of stack", end=", ")
    print(f"{len(report.unbounded)} loops without bound, functions outside: {', '.join(report.outside) or 'none'}")
    flown, state = load(folder / "quadrotor_loader.py"), np.array([2.0, -1.0, 0.0, 0.0, 0.0, 0.0], np.float32)
    expected, apart = gc.tensor(state), 0.0
    for _ in range(1000):
        state, expected = flown.run(state), step(expected)
        apart = max(apart, float(np.abs(state - expected.numpy()).max()))
    print(f"after {1000 * DT:.0f} s at ({state[0]:.3f}, {state[1]:.3f}), never more than {apart:.0e} from eager mode")


if __name__ == "__main__":
    main()
