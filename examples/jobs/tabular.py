"""Classify a table of numbers and a category: a net as the last step of a scikit-learn pipeline."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import graphc as gc
from graphc import nn
from graphc.data import DataLoader, TensorDataset
from graphc.nn import functional as F


class NetClassifier(ClassifierMixin, BaseEstimator):
    """Two linear layers with the interface of scikit-learn."""

    def __init__(self, hidden=32, epochs=20, lr=1e-2):
        self.hidden, self.epochs, self.lr = hidden, epochs, lr

    def fit(self, x, y):
        self.classes_, y = np.unique(y, return_inverse=True)
        gc.manual_seed(0)
        self.net_ = nn.Sequential(
            nn.Linear(x.shape[1], self.hidden), nn.ReLU(), nn.Linear(self.hidden, len(self.classes_))
        )
        loader = DataLoader(TensorDataset(x.astype(np.float32), y), 64, shuffle=True)
        optimizer = gc.optim.Adam(self.net_.parameters(), lr=self.lr)
        self.history_ = gc.fit(self.net_, loader, loss=F.cross_entropy, optimizer=optimizer, epochs=self.epochs)
        return self

    def predict(self, x):
        with gc.no_grad():
            return self.classes_[self.net_(gc.tensor(x.astype(np.float32))).argmax(1).numpy()]


random = np.random.default_rng(0)
ages, incomes = random.uniform(18, 80, 3000), random.lognormal(10, 0.5, 3000)
regions = random.choice(["north", "south", "east"], 3000)
scores = (ages - 49) / 18 + np.where(regions == "south", -1, 1) * (np.log(incomes) - 10) / 0.5
answers = np.where(scores + 0.3 * random.standard_normal(3000) > 0, "stays", "leaves")
table = np.array([ages, incomes, regions], object).T
x_train, x_test, y_train, y_test = train_test_split(table, answers, random_state=0)

columns = ColumnTransformer([("numbers", StandardScaler(), [0, 1]), ("regions", OneHotEncoder(), [2])])
classifier = NetClassifier()
pipeline = make_pipeline(columns, classifier)
pipeline.fit(x_train, y_train)
print(f"first epoch: {classifier.history_[0]['seconds']:.2f} s")
print(f"accuracy {pipeline.score(x_test, y_test):.3f}")
