"""A graph network by scattering: convolution and attention over edges, sums per graph, two communities told apart."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def scatter_sum(src, index, dim_size):
    out = torch.zeros(dim_size, *src.shape[1:], dtype=src.dtype, device=src.device)
    return out.index_add_(0, index, src)


def scatter_softmax(src, index, dim_size):
    expanded = index.view(-1, 1).expand_as(src)
    maximum = torch.full((dim_size, src.size(1)), float("-inf")).scatter_reduce(0, expanded, src, reduce="amax")
    out = (src - maximum.index_select(0, index)).exp()
    total = torch.zeros(dim_size, src.size(1)).scatter_add_(0, expanded, out)
    return out / (total.gather(0, expanded) + 1e-16)


class GCNConv(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.lin = nn.Linear(in_channels, out_channels, bias=False)
        self.bias = nn.Parameter(torch.zeros(out_channels))

    def forward(self, x, edge_index):
        loop = torch.arange(x.size(0), device=x.device).unsqueeze(0).repeat(2, 1)
        row, col = torch.cat([edge_index, loop], dim=1)
        deg = torch.bincount(col, minlength=x.size(0)).to(x.dtype)
        deg_inv_sqrt = deg.pow(-0.5)
        deg_inv_sqrt[deg_inv_sqrt == float("inf")] = 0
        norm = deg_inv_sqrt[row] * deg_inv_sqrt[col]
        x = self.lin(x)
        return scatter_sum(norm.view(-1, 1) * x[row], col, x.size(0)) + self.bias


class GATConv(nn.Module):
    def __init__(self, in_channels, out_channels, heads=2, negative_slope=0.2):
        super().__init__()
        self.heads, self.out_channels, self.negative_slope = heads, out_channels, negative_slope
        self.lin = nn.Linear(in_channels, heads * out_channels, bias=False)
        self.att_src = nn.Parameter(torch.Tensor(1, heads, out_channels))
        self.att_dst = nn.Parameter(torch.Tensor(1, heads, out_channels))

    def forward(self, x, edge_index):
        row, col = edge_index[0], edge_index[1]
        h = self.lin(x).view(-1, self.heads, self.out_channels)
        alpha = (h * self.att_src).sum(-1)[row] + (h * self.att_dst).sum(-1)[col]
        alpha = scatter_softmax(F.leaky_relu(alpha, self.negative_slope), col, x.size(0))
        return scatter_sum(h[row] * alpha.unsqueeze(-1), col, x.size(0)).flatten(1)


class Net(nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.conv1, self.conv2 = GCNConv(features, 16), GATConv(16, 8)
        self.norm = nn.LayerNorm(16)
        self.node, self.graph = nn.Linear(16, classes), nn.Linear(32, 2)

    def forward(self, x, edge_index, batch):
        x = F.elu(self.norm(self.conv1(x, edge_index)))
        x = F.elu(self.conv2(x, edge_index))
        n_graphs = int(batch.max()) + 1
        count = torch.zeros(n_graphs).scatter_add(0, batch, torch.ones(len(batch)))
        mean = scatter_sum(x, batch, n_graphs) / count.clamp(min=1)[:, None]
        top = torch.zeros(n_graphs, 16).index_reduce(0, batch, x, "amax", include_self=False)
        return self.node(x).log_softmax(dim=-1), self.graph(torch.cat([mean, top], 1))


def make_graphs(rng, n_graphs=6, n=16):
    xs, edges, labels, graph_labels, batch = [], [], [], [], []
    for g in range(n_graphs):
        label = rng.permutation(np.arange(n) % 2)
        mixing = (0.05, 0.3)[g % 2]
        p = np.where(label[:, None] == label[None], 0.5, mixing)
        adjacency = np.triu(rng.random((n, n)) < p, 1)
        adjacency = adjacency | adjacency.T
        edges.append(np.stack(adjacency.nonzero()) + g * n)
        xs.append(rng.normal(0, 1, (n, 5)) + 0.5 * label[:, None])
        labels.append(label)
        graph_labels.append(g % 2)
        batch += [g] * n
    x = torch.tensor(np.concatenate(xs), dtype=torch.float)
    edge_index = torch.tensor(np.concatenate(edges, 1), dtype=torch.long).contiguous()
    labels, graph_labels = torch.tensor(np.concatenate(labels)), torch.tensor(graph_labels)
    return x, edge_index, labels, graph_labels, torch.tensor(batch)


def main():
    torch.manual_seed(12345)
    rng = np.random.default_rng(12345)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    x, edge_index, y, graph_y, batch = (t.to(device) for t in make_graphs(rng))
    train_mask = torch.zeros(len(y), dtype=torch.bool)
    train_mask[torch.from_numpy(rng.permutation(len(y))[:40])] = True
    model = Net(5, 2).to(device)
    for name, p in model.named_parameters():
        if "norm" not in name and p.dim() > 1:
            p.data = torch.from_numpy(rng.normal(0, 0.3, tuple(p.shape))).to(p)
        elif "norm" not in name:
            p.data.fill_(0)
    print(model)
    print(
        "nodes", x.size(0), "edges", edge_index.shape[1], "isolated", (torch.bincount(edge_index[0]) == 0).any().item()
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    losses = []
    for epoch in range(1, 31):
        model.train()
        optimizer.zero_grad()
        out, graph_out = model(x, edge_index, batch)
        loss = F.nll_loss(out[train_mask], y[train_mask]) + F.cross_entropy(graph_out, graph_y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if epoch % 10 == 0:
            model.eval()
            pred = model(x, edge_index, batch)[0].argmax(dim=1)
            acc = int((pred[~train_mask] == y[~train_mask]).sum()) / int((~train_mask).sum())
            print(f"Epoch: {epoch:03d}, Loss: {loss:.4f}, Test: {acc:.4f}")
            losses.append(acc)
    return losses


if __name__ == "__main__":
    print(main())
