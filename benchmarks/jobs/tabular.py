"""Classify a table of numbers and a category: a net as the last step of a scikit-learn pipeline."""

import time

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


class NetClassifier(ClassifierMixin, BaseEstimator):
    """Two linear layers with the interface of scikit-learn."""

    def __init__(self, hidden=32, epochs=20, lr=1e-2):
        self.hidden, self.epochs, self.lr = hidden, epochs, lr

    def fit(self, x, y):
        self.classes_, y = np.unique(y, return_inverse=True)
        torch.manual_seed(0)
        self.net_ = nn.Sequential(
            nn.Linear(x.shape[1], self.hidden), nn.ReLU(), nn.Linear(self.hidden, len(self.classes_))
        )
        data = TensorDataset(torch.tensor(x, dtype=torch.float32), torch.from_numpy(y))
        loader = DataLoader(data, 64, shuffle=True)
        optimizer = torch.optim.Adam(self.net_.parameters(), lr=self.lr)
        for epoch in range(self.epochs):
            start, total = time.perf_counter(), 0.0
            for inputs, targets in loader:
                optimizer.zero_grad()
                loss = F.cross_entropy(self.net_(inputs), targets)
                loss.backward()
                optimizer.step()
                total += loss.item()
            if epoch == 0:
                print(f"first epoch: {time.perf_counter() - start:.2f} s")
            print(f"epoch {epoch + 1}: loss {total / len(loader):.4f}")
        return self

    def predict(self, x):
        with torch.no_grad():
            return self.classes_[self.net_(torch.tensor(x, dtype=torch.float32)).argmax(1).numpy()]


random = np.random.default_rng(0)
ages, incomes = random.uniform(18, 80, 3000), random.lognormal(10, 0.5, 3000)
regions = random.choice(["north", "south", "east"], 3000)
scores = (ages - 49) / 18 + np.where(regions == "south", -1, 1) * (np.log(incomes) - 10) / 0.5
answers = np.where(scores + 0.3 * random.standard_normal(3000) > 0, "stays", "leaves")
table = np.array([ages, incomes, regions], object).T
x_train, x_test, y_train, y_test = train_test_split(table, answers, random_state=0)

columns = ColumnTransformer([("numbers", StandardScaler(), [0, 1]), ("regions", OneHotEncoder(), [2])])
pipeline = make_pipeline(columns, NetClassifier())
pipeline.fit(x_train, y_train)
print(f"accuracy {pipeline.score(x_test, y_test):.3f}")
