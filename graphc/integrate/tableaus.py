"""Butcher tableaus of Runge-Kutta methods, with their error estimates and interpolants."""

from __future__ import annotations

from graphc.base.errors import ArgumentError
from graphc.base.records import dataclass

Row = tuple[float, ...]


@dataclass(frozen=True)
class Tableau:
    """Coefficients of a Runge-Kutta method whose first stage is explicit."""

    order: int
    c: Row
    """Time of each stage, in steps."""
    a: tuple[Row, ...]
    """Weights of the stages before each stage; with ``diagonal``, an implicit stage weighs itself by that number."""
    b: Row
    """Weights of the stages in the step."""
    error: Row = ()
    """Weights of the stages in the error estimate: ``b`` minus those of the embedded method. Empty: fixed steps."""
    dense: tuple[Row, ...] = ()
    """For each stage the coefficients of theta, theta^2, ... in its weight at ``t + theta h``. Empty: the cubic Hermite
    polynomial."""
    diagonal: float = 0.0

    @property
    def ends_with_rate(self) -> bool:
        """Whether the last stage is the rate at the end of the step, which the next step begins with."""
        return self.diagonal > 0 or (self.c[-1] == 1 and self.a[-1] == self.b[: len(self.a[-1])])


def _quartic(scale: float, first: float, second: float) -> Row:
    """Expand ``scale theta^2 (theta^2 - first theta + second)``."""
    return 0.0, scale * second, -scale * first, scale


def _roots(scale: float, first: float, second: float) -> Row:
    """Expand ``scale theta^2 (theta - first) (theta - second)``."""
    return _quartic(scale, first + second, first * second)


_EULER = Tableau(1, (0.0,), ((),), (1.0,))
_MIDPOINT = Tableau(2, (0.0, 0.5), ((), (0.5,)), (0.0, 1.0))
_HEUN = Tableau(2, (0.0, 1.0), ((), (1.0,)), (0.5, 0.5), (-0.5, 0.5))
_RK4 = Tableau(4, (0.0, 0.5, 0.5, 1.0), ((), (0.5,), (0.0, 0.5), (0.0, 0.0, 1.0)), (1 / 6, 1 / 3, 1 / 3, 1 / 6))

# Bogacki and Shampine, A 3(2) pair of Runge-Kutta formulas, 1989.
_BOSH3 = Tableau(
    3,
    (0.0, 1 / 2, 3 / 4, 1.0),
    ((), (1 / 2,), (0.0, 3 / 4), (2 / 9, 1 / 3, 4 / 9)),
    (2 / 9, 1 / 3, 4 / 9, 0.0),
    (-5 / 72, 1 / 12, 1 / 9, -1 / 8),
)

# Dormand and Prince, A family of embedded Runge-Kutta formulae, 1980. Interpolant of order 4: Hairer, Norsett and
# Wanner, Solving ordinary differential equations I, section II.6; expanded in powers of theta.
_DOPRI5 = Tableau(
    5,
    (0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0),
    (
        (),
        (1 / 5,),
        (3 / 40, 9 / 40),
        (44 / 45, -56 / 15, 32 / 9),
        (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
        (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
        (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
    ),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0.0),
    (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40),
    (
        (1.0, -8048581381 / 2820520608, 8663915743 / 2820520608, -12715105075 / 11282082432),
        (),
        (0.0, 131558114200 / 32700410799, -68118460800 / 10900136933, 87487479700 / 32700410799),
        (0.0, -1754552775 / 470086768, 14199869525 / 1410260304, -10690763975 / 1880347072),
        (0.0, 127303824393 / 49829197408, -318862633887 / 49829197408, 701980252875 / 199316789632),
        (0.0, -282668133 / 205662961, 2019193451 / 616988883, -1453857185 / 822651844),
        (0.0, 40617522 / 29380423, -110615467 / 29380423, 69997945 / 29380423),
    ),
)

# Tsitouras, Runge-Kutta pairs of order 5(4) satisfying only the first column simplifying assumption, 2011.
_TSIT5 = Tableau(
    5,
    (0.0, 0.161, 0.327, 0.9, 0.9800255409045097, 1.0, 1.0),
    (
        (),
        (0.161,),
        (-0.008480655492356989, 0.335480655492357),
        (2.8971530571054935, -6.359448489975075, 4.3622954328695815),
        (5.325864828439257, -11.748883564062828, 7.4955393428898365, -0.09249506636175525),
        (5.86145544294642, -12.92096931784711, 8.159367898576159, -0.071584973281401, -0.028269050394068383),
        (0.09646076681806523, 0.01, 0.4798896504144996, 1.379008574103742, -3.290069515436081, 2.324710524099774),
    ),
    (0.09646076681806523, 0.01, 0.4798896504144996, 1.379008574103742, -3.290069515436081, 2.324710524099774, 0.0),
    (
        *(0.001780011052226, 0.000816434459657, -0.007880878010262, 0.144711007173263, -0.582357165452555),
        *(0.458082105929187, -1 / 66),
    ),
    (
        (1.0, -2.763706197274826, 2.9132554618219126, -1.0530884977290216),
        _quartic(0.1017, 2.1966568338249754, 1.2949852507374631),
        _quartic(2.490627285651252793, 2.38535645472061657, 1.57803468208092486),
        _roots(-16.54810288924490272, 1.21712927295533244, 0.61620406037800089),
        _roots(47.37952196281928122, 1.203071208372362603, 0.658047292653547382),
        _roots(-34.87065786149660974, 1.2, 2 / 3),
        _roots(2.5, 1.0, 0.6),
    ),
)

_IMPLICIT_EULER = Tableau(1, (0.0, 1.0), ((), (0.0,)), (0.0, 1.0), diagonal=1.0)
_TRAPEZOID = Tableau(2, (0.0, 1.0), ((), (0.5,)), (0.5, 0.5), diagonal=0.5)


def _kvaerno3() -> Tableau:
    """Return the L-stable method of Kvaerno, Singly diagonally implicit Runge-Kutta methods with an explicit first
    stage, 2004, of order 3(2). The third stage is the embedded method; ``g`` solves ``6 g^3 - 18 g^2 + 9 g = 1``."""
    g = 0.4358665215084590
    third = ((-4 * g * g + 6 * g - 1) / (4 * g), (1 - 2 * g) / (4 * g))
    last = ((6 * g - 1) / (12 * g), -1 / ((24 * g - 12) * g), (-6 * g * g + 6 * g - 1) / (6 * g - 3))
    b = (*last, g)
    error = tuple(x - y for x, y in zip(b, (*third, g, 0.0), strict=True))
    return Tableau(3, (0.0, 2 * g, 1.0, 1.0), ((), (g,), third, last), b, error, diagonal=g)


# Kennedy and Carpenter, Additive Runge-Kutta schemes for convection-diffusion-reaction equations, 2003:
# ARK4(3)6L[2]SA-ESDIRK, L-stable.
_KENCARP4 = Tableau(
    4,
    (0.0, 1 / 2, 83 / 250, 31 / 50, 17 / 20, 1.0),
    (
        (),
        (1 / 4,),
        (8611 / 62500, -1743 / 31250),
        (5012029 / 34652500, -654441 / 2922500, 174375 / 388108),
        (15267082809 / 155376265600, -71443401 / 120774400, 730878875 / 902184768, 2285395 / 8070912),
        (82889 / 524892, 0.0, 15625 / 83664, 69875 / 102672, -2260 / 8211),
    ),
    (82889 / 524892, 0.0, 15625 / 83664, 69875 / 102672, -2260 / 8211, 1 / 4),
    (
        82889 / 524892 - 4586570599 / 29645900160,
        0.0,
        15625 / 83664 - 178811875 / 945068544,
        69875 / 102672 - 814220225 / 1159782912,
        -2260 / 8211 + 3700637 / 11593932,
        1 / 4 - 61727 / 225920,
    ),
    diagonal=1 / 4,
)

TABLEAUS: dict[str, Tableau] = {
    "euler": _EULER,
    "midpoint": _MIDPOINT,
    "heun": _HEUN,
    "rk4": _RK4,
    "bosh3": _BOSH3,
    "dopri5": _DOPRI5,
    "tsit5": _TSIT5,
    "implicit_euler": _IMPLICIT_EULER,
    "trapezoid": _TRAPEZOID,
    "kvaerno3": _kvaerno3(),
    "kencarp4": _KENCARP4,
}
"""Methods of ``odeint`` by name."""


def tableau_of(method: str) -> Tableau:
    """Return the tableau of a method; raise ArgumentError for another name."""
    if method not in TABLEAUS:
        raise ArgumentError(f"odeint: there is no method {method!r}", remedy=f"pass one of {', '.join(TABLEAUS)}")
    return TABLEAUS[method]
