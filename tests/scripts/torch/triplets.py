"""Metric learning: embeddings by triplets with the hardest examples of a batch, and a margin that is a module's."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parameter import Parameter
from torch.utils.data import BatchSampler, DataLoader, TensorDataset


class BalancedSampler(BatchSampler):
    """Batches of a few examples of each of a few classes."""

    def __init__(self, labels, n_classes, n_samples, rng):
        self.labels, self.n_classes, self.n_samples, self.rng = labels, n_classes, n_samples, rng

    def __iter__(self):
        for _ in range(len(self)):
            chosen = self.rng.choice(np.unique(self.labels), self.n_classes, replace=False)
            yield [
                int(i)
                for c in chosen
                for i in self.rng.choice(np.flatnonzero(self.labels == c), self.n_samples, replace=False)
            ]

    def __len__(self):
        return len(self.labels) // (self.n_classes * self.n_samples)


class EmbeddingNet(nn.Module):
    def __init__(self, rng):
        super().__init__()
        self.fc = nn.Sequential(nn.Linear(20, 32), nn.PReLU(), nn.Linear(32, 16), nn.PReLU(), nn.Linear(16, 8))
        self.scale = Parameter(torch.tensor(3.0))
        self._initialize_weights(rng)

    def _initialize_weights(self, rng):
        for m in self.modules():
            if isinstance(m, nn.Linear):
                m.weight.data.copy_(torch.from_numpy(rng.normal(0, 0.2, m.weight.size())))
                m.bias.data.zero_()

    def forward(self, x):
        return self.scale * F.normalize(self.fc(x), p=2, dim=1, eps=1e-8)


def pairwise_distances(embeddings, squared=False):
    dot_product = torch.matmul(embeddings, embeddings.t())
    square_norm = torch.diag(dot_product)
    distances = square_norm.unsqueeze(0) - 2.0 * dot_product + square_norm.unsqueeze(1)
    distances[distances < 0] = 0
    if not squared:
        mask = distances.eq(0).float()
        distances = distances + mask * 1e-16
        distances = (1.0 - mask) * torch.sqrt(distances)
    return distances


class BatchHardTripletLoss(nn.Module):
    def __init__(self, margin=1.0):
        super().__init__()
        self.margin = margin

    def forward(self, embeddings, labels):
        dist = pairwise_distances(embeddings)
        same = labels[:, None] == labels[None, :]
        other = ~torch.eye(len(labels), dtype=torch.bool, device=labels.device)
        positive = (dist * (same & other).float()).max(1, keepdim=True)[0]
        max_dist, _ = dist.max(1, keepdim=True)
        negative, _ = (dist + max_dist * same.float()).min(1, keepdim=True)
        return F.relu(positive - negative + self.margin).mean()

    def extra_repr(self):
        return f"margin={self.margin}"


@torch.no_grad()
def recall_at_1(model, data, labels):
    model.eval()
    embeddings = model(data)
    dist = torch.cdist(embeddings, embeddings, p=2.0)
    dist.fill_diagonal_(float("inf"))
    nearest = dist.argmin(dim=1)
    return (labels[nearest] == labels).float().mean().item()


def main():
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(8), 20)
    centers = rng.normal(0, 1, (8, 20))
    data = (centers[labels] + rng.normal(0, 1.0, (160, 20))).astype("float32")
    X, y = torch.FloatTensor(data), torch.LongTensor(labels)
    loader = DataLoader(TensorDataset(X, y), batch_sampler=BalancedSampler(labels, 4, 5, rng))
    model = EmbeddingNet(rng)
    criterion, plain = BatchHardTripletLoss(margin=0.5), nn.TripletMarginLoss(margin=0.5, p=2, swap=True)
    cosine = nn.CosineEmbeddingLoss(margin=0.2)
    print(model, criterion, plain)
    optimizer = torch.optim.Adagrad([{"params": model.fc.parameters()}, {"params": [model.scale], "lr": 1e-2}], lr=0.02)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "min", factor=0.5, patience=1)
    losses = []
    for epoch in range(5):
        model.train()
        running = 0.0
        for inputs, target in loader:
            optimizer.zero_grad(True)
            embeddings = model(inputs)
            groups = embeddings.view(4, 5, -1)
            anchor, positive, negative = groups[:, 0], groups[:, 1], groups.roll(1, 0)[:, 2]
            sign = torch.where(target == target.roll(1), 1, -1)
            loss = criterion(embeddings, target) + plain(anchor, positive, negative)
            loss = loss + 0.1 * cosine(embeddings, embeddings.roll(1, dims=0), sign)
            loss.backward()
            optimizer.step()
            running += loss.item()
            losses.append(loss.item())
        scheduler.step(running / len(loader))
        print(f"[{epoch}] loss: {running / len(loader):.3f} lr: {optimizer.param_groups[0]['lr']}")
        losses.append(recall_at_1(model, X, y))
    return losses


if __name__ == "__main__":
    print(main())
