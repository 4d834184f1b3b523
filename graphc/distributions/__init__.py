"""Probability distributions with gradients, in eager mode and in compiled code."""

from graphc.base.lazy import collect, known_as
from graphc.distributions.composed import *
from graphc.distributions.discrete import *
from graphc.distributions.distribution import *
from graphc.distributions.gamma_family import *
from graphc.distributions.kl import *
from graphc.distributions.location_scale import *
from graphc.distributions.multivariate_normal import *
from graphc.distributions.powers import *
from graphc.distributions.transforms import *

from . import constraints, transforms

collect(__name__, "constraints", "transforms")
known_as(f"{__name__}.constraint_transforms", f"{__name__}.transforms")  # a file of graphc 0.2.0, which pickles name
