"""Special functions under the names of ``torch.special``, aliases of tensor methods among them."""

from graphc.base.lazy import collect
from graphc.tensors import functions as _functions
from graphc.tensors.special_functions import *

digamma = psi = _functions.digamma
erf, erfc, erfinv = _functions.erf, _functions.erfc, _functions.erfinv
exp2, expm1, log1p = _functions.exp2, _functions.expm1, _functions.log1p
expit = _functions.sigmoid
gammaln = _functions.lgamma
log_softmax, logsumexp, softmax = _functions.log_softmax, _functions.logsumexp, _functions.softmax
logit, round, sinc, xlogy = _functions.logit, _functions.round, _functions.sinc, _functions.xlogy
multigammaln = _functions.mvlgamma
modified_bessel_i0, modified_bessel_i1 = i0, i1

collect(__name__)
