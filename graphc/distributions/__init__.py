"""Probability distributions with gradients, in eager mode and in compiled code."""

from graphc.base.lazy import collect
from graphc.distributions.composed import *
from graphc.distributions.constraint_transforms import *
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
