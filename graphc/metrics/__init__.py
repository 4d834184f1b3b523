"""Metrics of outputs against targets: sums that compiled code adds up batch by batch, over several processes too."""

from graphc.metrics.classification import F1, Accuracy, Confusion, Precision, Recall
from graphc.metrics.language import CrossEntropy, Perplexity
from graphc.metrics.metric import Mean, Metric
from graphc.metrics.ranking import AUROC
from graphc.metrics.regression import MAE, MSE, R2, RMSE

__all__ = [
    "AUROC",
    "F1",
    "MAE",
    "MSE",
    "R2",
    "RMSE",
    "Accuracy",
    "Confusion",
    "CrossEntropy",
    "Mean",
    "Metric",
    "Perplexity",
    "Precision",
    "Recall",
]
