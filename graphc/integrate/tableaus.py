"""Tableaus of Runge-Kutta and Rosenbrock methods, with their error estimates and interpolants."""

from __future__ import annotations

from collections.abc import Sequence

from graphc.base.errors import ArgumentError
from graphc.base.records import dataclass

Row = tuple[float, ...]


@dataclass(frozen=True)
class Tableau:
    """Coefficients of a Runge-Kutta method whose first stage is explicit, or of a Rosenbrock method."""

    order: int
    c: Row
    """Time of each stage, in steps; those beyond the length of ``b`` belong to the interpolant only."""
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
    coarse: Row = ()
    """Weights of the stages in a second estimate, of lower order, by which the first one is scaled."""
    coupling: tuple[Row, ...] = ()
    """For each stage of a Rosenbrock method the weights of earlier stages beside the rate. A stage ``k`` solves
    ``(I / diagonal - h J) k = rate + sum(coupling * stages) + h * by_time * (rate's derivative by time)``."""
    by_time: Row = ()

    @property
    def ends_with_rate(self) -> bool:
        """Whether the last stage is the rate at the end of the step, which the next step begins with."""
        last = len(self.b) - 1
        explicit = self.c[last] == 1 and self.a[last] == self.b[:last]
        return not self.coupling and (self.diagonal > 0 or explicit)


def _rows(text: str) -> tuple[Row, ...]:
    """Return rows from their entries that are not 0, each as ``position:value``, with semicolons between rows."""
    entries = [dict(entry.split(":") for entry in row.split()) for row in text.split(";")]
    return tuple(tuple(float(row.get(str(i), 0)) for i in range(int(max(row, key=int)) + 1)) for row in entries)


def _nested(terms: Sequence[Row], factors: str) -> tuple[Row, ...]:
    """Expand ``f0 (terms[0] + f1 (terms[1] + ...))`` for each stage in powers of theta; a factor is theta (``t``) or
    ``1 - theta`` (``r``)."""
    rows = []
    for stage in zip(*terms, strict=True):
        powers = [0.0]
        for term, factor in zip(reversed(stage), reversed(factors), strict=True):
            powers[0] += term
            shifted = [0.0, *powers]
            powers = shifted if factor == "t" else [a - b for a, b in zip([*powers, 0.0], shifted, strict=True)]
        rows.append(tuple(powers[1:]))
    return tuple(rows)


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

# Hairer, Norsett and Wanner, Solving ordinary differential equations I, section II.5, and their program DOP853: order
# 8, estimates of order 5 and 3, and an interpolant of order 7 with three further stages.
_DOP853_C = (
    *(0.0, 0.05260015195876773, 0.0789002279381516, 0.1183503419072274, 0.2816496580927726, 1 / 3, 1 / 4, 4 / 13),
    *(127 / 195, 3 / 5, 6 / 7, 1.0, 1.0, 1 / 10, 1 / 5, 7 / 9),
)
_DOP853_A = _rows("""
0:0.05260015195876773;
0:0.0197250569845379 1:0.0591751709536137;
0:0.02958758547680685 2:0.08876275643042054;
0:0.2413651341592667 2:-0.8845494793282861 3:0.924834003261792;
0:0.037037037037037035 3:0.17082860872947386 4:0.12546768756682242;
0:0.037109375 3:0.17025221101954405 4:0.06021653898045596 5:-0.017578125;
0:0.03709200011850479 3:0.17038392571223998 4:0.10726203044637328 5:-0.015319437748624402 6:0.008273789163814023;
0:0.6241109587160757 3:-3.3608926294469414 4:-0.868219346841726 5:27.59209969944671 6:20.154067550477894
7:-43.48988418106996;
0:0.47766253643826434 3:-2.4881146199716677 4:-0.590290826836843 5:21.230051448181193 6:15.279233632882423
7:-33.28821096898486 8:-0.020331201708508627;
0:-0.9371424300859873 3:5.186372428844064 4:1.0914373489967295 5:-8.149787010746927 6:-18.52006565999696
7:22.739487099350505 8:2.4936055526796523 9:-3.0467644718982196;
0:2.273310147516538 3:-10.53449546673725 4:-2.0008720582248625 5:-17.9589318631188 6:27.94888452941996
7:-2.8589982771350235 8:-8.87285693353063 9:12.360567175794303 10:0.6433927460157636;
0:0.054293734116568765 5:4.450312892752409 6:1.8915178993145003 7:-5.801203960010585 8:0.3111643669578199
9:-0.1521609496625161 10:0.20136540080403034 11:0.04471061572777259;
0:0.056167502283047954 6:0.25350021021662483 7:-0.2462390374708025 8:-0.12419142326381637 9:0.15329179827876568
10:0.00820105229563469 11:0.007567897660545699 12:-0.008298;
0:0.03183464816350214 5:0.028300909672366776 6:0.053541988307438566 7:-0.05492374857139099 10:-0.00010834732869724932
11:0.0003825710908356584 12:-0.00034046500868740456 13:0.1413124436746325;
0:-0.42889630158379194 5:-4.697621415361164 6:7.683421196062599 7:4.06898981839711 8:0.3567271874552811
12:-0.0013990241651590145 13:2.9475147891527724 14:-9.15095847217987
""")
_DOP853_DENSE = _rows("""
0:-8.428938276109013 5:0.5667149535193777 6:-3.0689499459498917 7:2.38466765651207 8:2.117034582445028
9:-0.871391583777973 10:2.2404374302607883 11:0.6315787787694688 12:-0.08899033645133331 13:18.148505520854727
14:-9.194632392478356 15:-4.436036387594894;
0:10.427508642579134 5:242.28349177525817 6:165.20045171727028 7:-374.5467547226902 8:-22.113666853125306
9:7.733432668472264 10:-30.674084731089398 11:-9.332130526430229 12:15.697238121770845 13:-31.139403219565178
14:-9.35292435884448 15:35.81684148639408;
0:19.985053242002433 5:-387.0373087493518 6:-189.17813819516758 7:527.8081592054236 8:-11.57390253995963
9:6.8812326946963 10:-1.0006050966910838 11:0.7777137798053443 12:-2.778205752353508 13:-60.19669523126412
14:84.32040550667716 15:11.99229113618279;
0:-25.69393346270375 5:-154.18974869023643 6:-231.5293791760455 7:357.6391179106141 8:93.40532418362432
9:-37.45832313645163 10:104.0996495089623 11:29.8402934266605 12:-43.53345659001114 13:96.32455395918828
14:-39.17726167561544 15:-149.72683625798564
""")
_DOP853_ERRORS = _rows("""
0:0.01312004499419488 5:-1.2251564463762044 6:-0.4957589496572502 7:1.6643771824549864 8:-0.35032884874997366
9:0.3341791187130175 10:0.08192320648511571 11:-0.022355307863886294;
0:-0.18980075407240762 5:4.450312892752409 6:1.8915178993145003 7:-5.801203960010585 8:-0.4226823213237919
9:-0.1521609496625161 10:0.20136540080403034 11:0.02265179219836082
""")


def _dop853() -> Tableau:
    """Return the tableau; its interpolant begins as the cubic Hermite polynomial and adds four terms."""
    b = _DOP853_A[11]
    wide = b + 4 * (0.0,)
    first, last = (1.0, *15 * (0.0,)), (*12 * (0.0,), 1.0, *3 * (0.0,))
    rise = tuple(f - x for f, x in zip(first, wide, strict=True))
    bend = tuple(2 * x - f - g for x, f, g in zip(wide, first, last, strict=True))
    return Tableau(
        8,
        _DOP853_C,
        ((), *_DOP853_A),
        (*b, 0.0),
        _DOP853_ERRORS[0],
        _nested((wide, rise, bend, *_DOP853_DENSE), "trtrtrt"),
        coarse=_DOP853_ERRORS[1],
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

# Kvaerno, Singly diagonally implicit Runge-Kutta methods with an explicit first stage, 2004: order 5(4), L-stable. The
# sixth stage is the embedded method.
_KVAERNO5_SIXTH = (0.13855640231268224, 0.0, -0.04245337201752043, 0.02446657898003141, 0.61943039072480676)
_KVAERNO5_LAST = (
    *(0.13659751177640291, 0.0, -0.05496908796538376, -0.04118626728321046),
    *(0.62993304899016403, 0.06962479448202728),
)
_KVAERNO5 = Tableau(
    5,
    (0.0, 0.52, 1.230333209967908, 0.8957659843500759, 0.43639360985864756, 1.0, 1.0),
    (
        (),
        (0.26,),
        (0.13, 0.84033320996790809),
        (0.22371961478320505, 0.47675532319799699, -0.06470895363112615),
        (0.16648564323248321, 0.10450018841591720, 0.03631482272098715, -0.13090704451073998),
        _KVAERNO5_SIXTH,
        _KVAERNO5_LAST,
    ),
    (*_KVAERNO5_LAST, 0.26),
    tuple(x - y for x, y in zip((*_KVAERNO5_LAST, 0.26), (*_KVAERNO5_SIXTH, 0.26, 0.0), strict=True)),
    diagonal=0.26,
)


# Steinebach, Construction of Rosenbrock-Wanner method Rodas5P and numerical benchmarks within the Julia Differential
# Equations package, 2023: order 5(4), stiffly accurate, L-stable, with an interpolant of order 4. The last stage is the
# error.
_RODAS5P_LAST = (
    *(-7.502846399306121, 2.561846144803919, -11.627539656261098),
    *(-0.18268767659942256, 0.030198172008377946),
)
_RODAS5P = Tableau(
    5,
    (0.0, 0.6358126895828704, 0.4095798393397535, 0.9769306725060716, 0.4288403609558664, 1.0, 1.0, 1.0),
    (
        (),
        (3.0,),
        (2.849394379747939, 0.45842242204463923),
        (-6.954028509809101, 2.489845061869568, -10.358996098473584),
        (2.8029986275628964, 0.5072464736228206, -0.3988312541770524, -0.04721187230404641),
        _RODAS5P_LAST,
        (*_RODAS5P_LAST, 1.0),
        (*_RODAS5P_LAST, 1.0, 1.0),
    ),
    (*_RODAS5P_LAST, 1.0, 1.0, 1.0),
    (*7 * (0.0,), 1.0),
    _nested(
        (
            (*_RODAS5P_LAST, 1.0, 1.0, 1.0),
            (
                *(25.948786856663858, -2.5579724845846235, 10.433815404888879, -2.3679251022685204),
                *(0.524948541321073, 1.1241088310450404, 0.4272876194431874, -0.17202221070155493),
            ),
            (
                *(-9.91568850695171, -0.9689944594115154, 3.0438037242978453, -24.495224566215796),
                *(20.176138334709044, 15.98066361424651, -6.789040303419874, -6.710236069923372),
            ),
            (
                *(11.419903575922262, 2.8879645146136994, 72.92137995996029, 80.12511834622643),
                *(-52.072871366152654, -59.78993625266729, -0.15582684282751913, 4.883087185713722),
            ),
        ),
        "trtt",
    ),
    diagonal=0.21193756319429014,
    coupling=(
        (),
        (-14.155112264123755,),
        (-17.97296035885952, -2.859693295451294),
        (147.12150275711716, -1.41221402718213, 71.68940251302358),
        (165.43517024871676, -0.4592823456491126, 42.90938336958603, -5.961986721573306),
        (24.854864614690072, -3.0009227002832186, 47.4931110020768, 5.5814197821558125, -0.6610691825249471),
        (
            *(30.91273214028599, -3.1208243349937974, 77.79954646070892, 34.28646028294783),
            *(-19.097331116725623, -28.087943162872662),
        ),
        (
            *(37.80277123390563, -3.2571969029072276, 112.26918849496327, 66.9347231244047),
            *(-40.06618937091002, -54.66780262877968, -9.48861652309627),
        ),
    ),
    by_time=(
        *(0.21193756319429014, -0.42387512638858027, -0.3384627126235924, 1.8046452872882734, 2.325825639765069),
        *(0.0, 0.0, 0.0),
    ),
)

TABLEAUS: dict[str, Tableau] = {
    "euler": _EULER,
    "midpoint": _MIDPOINT,
    "heun": _HEUN,
    "rk4": _RK4,
    "bosh3": _BOSH3,
    "dopri5": _DOPRI5,
    "tsit5": _TSIT5,
    "dop853": _dop853(),
    "implicit_euler": _IMPLICIT_EULER,
    "trapezoid": _TRAPEZOID,
    "kvaerno3": _kvaerno3(),
    "kencarp4": _KENCARP4,
    "kvaerno5": _KVAERNO5,
    "rodas5p": _RODAS5P,
}
"""Methods of ``odeint`` by name."""


def tableau_of(method: str) -> Tableau:
    """Return the tableau of a method; raise ArgumentError for another name."""
    if method not in TABLEAUS:
        raise ArgumentError(f"odeint: there is no method {method!r}", remedy=f"pass one of {', '.join(TABLEAUS)}")
    return TABLEAUS[method]
