"""t-SNE in tensors: perplexity by bisection, early exaggeration, gains, and the same loss by autograd."""

import numpy as np
import torch


def Hbeta_torch(D, beta=1.0):
    P = torch.exp(-D.clone() * beta)
    sumP = torch.sum(P)
    H = torch.log(sumP) + beta * torch.sum(D * P) / sumP
    P = P / sumP
    return H, P


def x2p_torch(X, tol=1e-5, perplexity=10.0):
    """Performs a binary search to get P-values in such a way that each conditional Gaussian has the same perplexity."""
    (n, _d) = X.shape
    sum_X = torch.sum(X * X, 1)
    D = torch.add(torch.add(-2 * torch.mm(X, X.t()), sum_X).t(), sum_X)
    P = torch.zeros(n, n)
    beta = torch.ones(n, 1)
    logU = torch.log(torch.tensor([perplexity]))
    n_list = [i for i in range(n)]
    for i in range(n):
        betamin, betamax = None, None
        Di = D[i, n_list[0:i] + n_list[i + 1 : n]]
        (H, thisP) = Hbeta_torch(Di, beta[i])
        Hdiff = H - logU
        tries = 0
        while torch.abs(Hdiff) > tol and tries < 30:
            if Hdiff > 0:
                betamin = beta[i].clone()
                beta[i] = beta[i] * 2.0 if betamax is None else (beta[i] + betamax) / 2.0
            else:
                betamax = beta[i].clone()
                beta[i] = beta[i] / 2.0 if betamin is None else (beta[i] + betamin) / 2.0
            (H, thisP) = Hbeta_torch(Di, beta[i])
            Hdiff = H - logU
            tries += 1
        P[i, n_list[0:i] + n_list[i + 1 : n]] = thisP
    return P


def pca_torch(X, no_dims):
    X = X - torch.mean(X, 0)
    (_l, M) = torch.linalg.eigh(X.t() @ X)
    M = M.flip(1)[:, :no_dims]
    M = M * torch.sign(M[M.abs().argmax(0), torch.arange(no_dims)])
    return torch.mm(X, M)


def kl(P, Y):
    n = len(Y)
    num = 1.0 / (1.0 + torch.cdist(Y, Y).square())
    num = num.masked_fill(torch.eye(n, dtype=torch.bool), 0.0)
    Q = torch.max(num / torch.sum(num), torch.tensor([1e-12]))
    return torch.sum(P * torch.log(P / Q)), Q, num


def tsne(X, no_dims=2, initial_dims=6, perplexity=8.0, max_iter=40):
    X = pca_torch(X, initial_dims)
    (n, _d) = X.shape
    eta, min_gain = 10.0, 0.01
    Y = 1e-2 * X[:, :no_dims]
    dY, iY, gains = torch.zeros(n, no_dims), torch.zeros(n, no_dims), torch.ones(n, no_dims)
    P = x2p_torch(X, 1e-4, perplexity)
    P = P + P.t()
    P = P / torch.sum(P)
    P = P * 4.0  # early exaggeration
    P = torch.max(P, torch.tensor([1e-21]))
    history = []
    for it in range(max_iter):
        C, Q, num = kl(P, Y)
        PQ = P - Q
        for i in range(n):
            dY[i, :] = torch.sum((PQ[:, i] * num[:, i]).repeat(no_dims, 1).t() * (Y[i, :] - Y), 0)
        momentum = 0.5 if it < 20 else 0.8
        same = ((dY > 0.0) == (iY > 0.0)).double()
        gains = (gains + 0.2) * (1.0 - same) + (gains * 0.8) * same
        gains[gains < min_gain] = min_gain
        iY = momentum * iY - eta * (gains * dY)
        Y = Y + iY
        Y = Y - torch.mean(Y, 0)
        history.append(C.item())
        if (it + 1) % 10 == 0:
            print("Iteration %d: error is %f" % (it + 1, C))
        if it == 20:
            P = P / 4.0
    return Y, P, history


def main():
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    try:
        rng = np.random.default_rng(0)
        labels = np.repeat(np.arange(3), 12)
        X = torch.from_numpy(rng.normal(0, 3, (3, 8))[labels] + rng.normal(0, 1, (36, 8)))
        Y, P, history = tsne(X)
        Y = Y.detach().clone().requires_grad_(True)
        optimizer = torch.optim.SGD([Y], lr=5.0, momentum=0.5)
        for _ in range(10):
            optimizer.zero_grad()
            num = 1.0 / (1.0 + (Y[:, None] - Y[None]).square().sum(-1))
            num = num * (1 - torch.eye(len(Y)))
            Q = (num / num.sum()).clamp(min=1e-12)
            loss = torch.nn.functional.kl_div(Q.log(), P, reduction="sum")
            loss.backward()
            optimizer.step()
            history.append(loss.item())
        y = Y.detach()
        triu = torch.triu_indices(36, 36, offset=1)
        distances = torch.pdist(y)
        same = torch.from_numpy(labels[triu[0].numpy()] == labels[triu[1].numpy()])
        ratio = distances[same].median() / distances[~same].median()
        print(f"within clusters {ratio.item():.3f} of the distance between them")
        return [*history, ratio.item()]
    finally:
        torch.set_default_dtype(torch.float32)


if __name__ == "__main__":
    print(main())
