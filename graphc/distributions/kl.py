"""Kullback-Leibler divergences of pairs of distributions in closed form, in a table that users can extend."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from graphc.base.errors import ArgumentError, ShapeError, UnsupportedError
from graphc.distributions.composed import Independent, TransformedDistribution
from graphc.distributions.discrete import Bernoulli, Binomial, Categorical, Geometric, OneHotCategorical, Poisson
from graphc.distributions.distribution import EULER, LOG_2_PI, Distribution, summed
from graphc.distributions.gamma_family import Beta, Dirichlet, Gamma
from graphc.distributions.location_scale import Cauchy, Exponential, Gumbel, HalfNormal, Laplace, Normal, Uniform
from graphc.distributions.multivariate_normal import MultivariateNormal, log_determinant, mahalanobis
from graphc.linalg.systems import solve_triangular
from graphc.ops.pointwise import elementwise as ew
from graphc.tensors import composite
from graphc.tensors.tensor import Tensor

__all__ = ["kl_divergence", "register_kl"]

Rule = Callable[[Any, Any], Tensor]
_RULES: dict[tuple[type, type], Rule] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Rule], Rule]:
    """Register the decorated function as the divergence of these classes and their subclasses."""
    for cls in (type_p, type_q):
        if not (isinstance(cls, type) and issubclass(cls, Distribution)):
            raise ArgumentError(f"register_kl takes two classes of distributions, got {cls!r}")

    def keep(rule: Rule) -> Rule:
        _RULES[type_p, type_q] = rule
        return rule

    return keep


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """Compute the mean of ``log p(x) - log q(x)`` over x of p, in nats, for each distribution of the batch.

    If several rules fit, the one for the nearest class of p wins, then of q. Raises UnsupportedError for pairs without
    a rule.

    Example:
        >>> from graphc.distributions import Normal, kl_divergence
        >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
        tensor(0.5000)
    """
    p_classes, q_classes = type(p).__mro__, type(q).__mro__
    fitting = [pair for pair in _RULES if pair[0] in p_classes and pair[1] in q_classes]
    if not fitting:
        raise UnsupportedError(
            f"kl_divergence: no rule for {type(p).__name__} and {type(q).__name__}",
            remedy="add a rule with register_kl, or average p.log_prob(x) - q.log_prob(x) over samples x of p",
        )
    return _RULES[min(fitting, key=lambda pair: (p_classes.index(pair[0]), q_classes.index(pair[1])))](p, q)


@register_kl(Normal, Normal)
def _normal_normal(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale).square()
    return (ratio + ((p.loc - q.loc) / q.scale).square() - 1 - ratio.log()) * 0.5


@register_kl(HalfNormal, HalfNormal)
def _half_normals(p: HalfNormal, q: HalfNormal) -> Tensor:
    ratio = (p.scale / q.scale).square()
    return (ratio - 1 - ratio.log()) * 0.5


@register_kl(Laplace, Laplace)
def _laplaces(p: Laplace, q: Laplace) -> Tensor:
    distance = (p.loc - q.loc).abs()
    ratio = p.scale / q.scale
    return distance / q.scale + ratio * (-distance / p.scale).exp() - ratio.log() - 1


@register_kl(Cauchy, Cauchy)
def _cauchys(p: Cauchy, q: Cauchy) -> Tensor:
    """Compute the formula of Chyzak and Nielsen.

    A closed-form formula for the Kullback-Leibler divergence between Cauchy distributions, 2019.
    """
    spread = (p.scale + q.scale).square() + (p.loc - q.loc).square()
    return spread.log() - (p.scale * q.scale * 4).log()


@register_kl(Gumbel, Gumbel)
def _gumbels(p: Gumbel, q: Gumbel) -> Tensor:
    ratio = p.scale / q.scale
    distance = (q.loc - p.loc) / q.scale
    return -ratio.log() + EULER * ratio - (1 + EULER) - distance + (distance + (ratio + 1).lgamma()).exp()


@register_kl(Uniform, Uniform)
def _uniforms(p: Uniform, q: Uniform) -> Tensor:
    outside = ew.logical_or(ew.gt(q.low, p.low), ew.lt(q.high, p.high))
    return ew.where(outside, math.inf, ((q.high - q.low) / (p.high - p.low)).log())


@register_kl(Uniform, Normal)
@register_kl(Exponential, Normal)
@register_kl(Gamma, Normal)
@register_kl(Laplace, Normal)
@register_kl(Gumbel, Normal)
def _to_normal(p: Distribution, q: Normal) -> Tensor:
    return _cross_normal(p, q) - p.entropy()


def _cross_normal(p: Distribution, q: Normal) -> Tensor:
    """Negate the mean over p of q's log density; p has a mean and a variance."""
    spread = (p.variance + (p.mean - q.loc).square()) / q.scale.square()
    return spread * 0.5 + q.scale.log() + 0.5 * LOG_2_PI


@register_kl(Exponential, Exponential)
def _exponentials(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(Exponential, Gamma)
def _exponential_gamma(p: Exponential, q: Gamma) -> Tensor:
    ratio = q.rate / p.rate
    c = q.concentration
    return -c * ratio.log() + ratio + c.lgamma() + EULER * (c - 1) - 1


@register_kl(Gamma, Exponential)
def _gamma_exponential(p: Gamma, q: Exponential) -> Tensor:
    return -p.entropy() - q.rate.log() + q.rate * p.mean


@register_kl(Gamma, Gamma)
def _gammas(p: Gamma, q: Gamma) -> Tensor:
    a, b = p.concentration, q.concentration
    scale = b * (p.rate / q.rate).log() + (q.rate / p.rate - 1) * a
    return scale + b.lgamma() - a.lgamma() + (a - b) * a.digamma()


@register_kl(Beta, Beta)
def _betas(p: Beta, q: Beta) -> Tensor:
    a, b, c, d = p.concentration1, p.concentration0, q.concentration1, q.concentration0
    inner = (a - c) * a.digamma() + (b - d) * b.digamma() - (a + b - c - d) * (a + b).digamma()
    return q._log_norm() - p._log_norm() + inner


@register_kl(Dirichlet, Dirichlet)
def _dirichlets(p: Dirichlet, q: Dirichlet) -> Tensor:
    a, b = p.concentration, q.concentration
    mean_log = a.digamma() - a.sum(-1, keepdim=True).digamma()
    return q._log_norm() - p._log_norm() + ((a - b) * mean_log).sum(-1)


def _odds_divergence(p: Any, q: Any) -> Tensor:
    """Compute the divergence of one trial from log-odds, so that probabilities 0 and 1 do not give NaN."""
    hit = p.probs * (composite.softplus(-q.logits) - composite.softplus(-p.logits))
    miss = (1 - p.probs) * (composite.softplus(q.logits) - composite.softplus(p.logits))
    return _unless_impossible(hit, p.probs, q.probs) + _unless_impossible(miss, 1 - p.probs, 1 - q.probs)


def _unless_impossible(terms: Tensor, p: Tensor, q: Tensor) -> Tensor:
    """Return the terms, but infinity where only q is 0, and 0 where p is 0."""
    return ew.where(ew.eq(p, 0), 0.0, ew.where(ew.eq(q, 0), math.inf, terms))


@register_kl(Bernoulli, Bernoulli)
def _bernoullis(p: Bernoulli, q: Bernoulli) -> Tensor:
    return _odds_divergence(p, q)


@register_kl(Binomial, Binomial)
def _binomials(p: Binomial, q: Binomial) -> Tensor:
    equal_counts = p.total_count * _odds_divergence(p, q)
    # With fewer trials of p there is no closed form; with more, q cannot produce all values of p.
    not_larger = ew.where(ew.lt(p.total_count, q.total_count), math.nan, equal_counts)
    return ew.where(ew.gt(p.total_count, q.total_count), math.inf, not_larger)


@register_kl(Geometric, Geometric)
def _geometrics(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Poisson, Poisson)
def _poissons(p: Poisson, q: Poisson) -> Tensor:
    return p.rate.xlogy(p.rate) - p.rate.xlogy(q.rate) - (p.rate - q.rate)


@register_kl(Categorical, Categorical)
def _categoricals(p: Categorical, q: Categorical) -> Tensor:
    terms = p.probs * (p.logits - q.logits)
    return _unless_impossible(terms, p.probs, q.probs).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hots(p: OneHotCategorical, q: OneHotCategorical) -> Tensor:
    return _categoricals(p._categorical, q._categorical)


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normals(p: MultivariateNormal, q: MultivariateNormal) -> Tensor:
    p_lower, lower = p.scale_tril, q.scale_tril
    spread = solve_triangular(lower, p_lower, upper=False).square().sum((-2, -1))
    distance = mahalanobis(lower, q.loc - p.loc)
    return log_determinant(lower) - log_determinant(p_lower) + (spread + distance - p.event_shape[0]) * 0.5


@register_kl(Independent, Independent)
def _independents(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise ShapeError("kl_divergence: the distributions have different numbers of reinterpreted dimensions")
    return summed(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    if p.transforms != q.transforms:
        raise UnsupportedError("kl_divergence: the distributions have different transforms")
    if p.event_shape != q.event_shape:
        raise ShapeError("kl_divergence: the distributions have different event shapes")
    extra = len(p.event_shape) - len(p.base_dist.event_shape)
    return summed(kl_divergence(p.base_dist, q.base_dist), extra)
