"""Training loops, each written once for any framework with PyTorch's functions.

A loop takes the framework (``torch`` or ``graphc``) and a wrapper for its models: the identity, or the framework's
``compile``. ``micro_step`` is a step in the user's code, with gradients, clipping and updates; ``rest`` is the work
outside of steps, such as schedules.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.models.standard import module

Wrap = Callable[[Any], Any]
Batch = tuple[np.ndarray, ...]
BATCHES = 4
"""Batches that a loop repeats."""


class Loop(ABC):
    """Base of all loops."""

    micro_batches = 1
    """Calls of ``micro_step`` for one update; the last of several gets ``update`` = True."""

    def __init__(self, framework: Any, wrap: Wrap):
        self.framework = framework
        self.wrap = wrap
        self.modules: list[Any] = []
        """Modules whose weights are compared."""

    def add(self, module: Any) -> Any:
        """Register a module; return the callable that replaces it."""
        self.modules.append(module)
        return self.wrap(module)

    @abstractmethod
    def micro_step(self, *args: Any, **kwargs: Any) -> Any:
        """Train on the arrays of a batch, or one of its micro-batches; return the loss."""

    def rest(self) -> None:
        """Do the work after a step; the default is nothing."""
        return

    @classmethod
    @abstractmethod
    def batch(cls, random: np.random.Generator) -> Batch:
        """Return the arrays that one call of ``micro_step`` takes."""

    def batches(self) -> list[Batch]:
        """Return the batches that are repeated, the same ones each time."""
        random = np.random.default_rng(0)
        return [self.batch(random) for _ in range(BATCHES * self.micro_batches)]


# ---- GPT


def causal_block(nn: Any, width: int, heads: int) -> Any:
    """Return a block with causal attention and a perceptron of four times the width, norms before both."""
    F = nn.functional

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).split(width, dim=2)
        q, k, v = (z.view(b, t, heads, width // heads).transpose(1, 2) for z in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))

    parts = {"norm1": nn.LayerNorm(width), "norm2": nn.LayerNorm(width), "qkv": nn.Linear(width, 3 * width)}
    parts |= {"proj": nn.Linear(width, width), "up": nn.Linear(width, 4 * width), "down": nn.Linear(4 * width, width)}
    return module(nn, "Block", forward, **parts)


def build_gpt(framework: Any, layers: int, width: int, heads: int, block: int, vocabulary: int) -> Any:
    """Return a language model of blocks with causal attention, whose output shares the table of its embedding."""
    nn = framework.nn

    def forward(self, x, y):
        h = self.blocks(self.tokens(x) + self.places(framework.arange(x.shape[1])))
        logits = self.head(self.norm(h))
        return logits, nn.functional.cross_entropy(logits.view(-1, logits.shape[-1]), y.view(-1))

    parts = {"tokens": nn.Embedding(vocabulary, width), "places": nn.Embedding(block, width)}
    parts["blocks"] = nn.Sequential(*[causal_block(nn, width, heads) for _ in range(layers)])
    head = nn.Linear(width, vocabulary, bias=False)
    gpt = module(nn, "Gpt", forward, **parts, norm=nn.LayerNorm(width), head=head)
    gpt.head.weight = gpt.tokens.weight
    for name, p in gpt.named_parameters():
        if p.dim() == 2:
            scale = 0.02 / math.sqrt(2 * layers) if name.endswith(("proj.weight", "down.weight")) else 0.02
            nn.init.normal_(p, mean=0.0, std=scale)
    return gpt


class NanoGpt(Loop):
    """Six layers of 384: AdamW with two groups, gradients of four micro-batches, their norm limited, cosine schedule,
    moving average of the weights."""

    micro_batches = 4
    layers, width, heads, block, vocabulary, rows = 6, 384, 6, 256, 65, 4

    def __init__(self, framework: Any, wrap: Wrap):
        super().__init__(framework, wrap)
        optim, nn = framework.optim, framework.nn
        model = build_gpt(framework, self.layers, self.width, self.heads, self.block, self.vocabulary)
        self.model = model
        self.net = self.add(model)
        swa = optim.swa_utils
        self.average = swa.AveragedModel(model, multi_avg_fn=swa.get_ema_multi_avg_fn(0.999))
        self.modules.append(self.average.module)
        parameters = list(model.parameters())
        groups = [
            {"params": [p for p in parameters if p.dim() >= 2], "weight_decay": 0.1},
            {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
        ]
        self.optimizer = optim.AdamW(groups, lr=6e-4, betas=(0.9, 0.95))
        self.schedule = optim.lr_scheduler.CosineAnnealingLR(self.optimizer, T_max=1000)
        self.clip = nn.utils.clip_grad_norm_
        self.optimizer.zero_grad()

    def micro_step(self, x: Any, y: Any, update: bool) -> Any:
        _, loss = self.net(x, y)
        (loss / self.micro_batches).backward()
        if update:
            self.clip(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.optimizer.zero_grad()
            self.average.update_parameters(self.model)
        return loss

    def rest(self) -> None:
        self.schedule.step()

    @classmethod
    def batch(cls, random: np.random.Generator) -> Batch:
        text = random.integers(0, cls.vocabulary, (cls.rows, cls.block + 1))
        return text[:, :-1].copy(), text[:, 1:].copy()


# ---- DCGAN


class Dcgan(Loop):
    """Images of 32 x 32 from 64 numbers, and who tells them from others: two models, two optimizers."""

    images, noise, width = 32, 64, 32

    def __init__(self, framework: Any, wrap: Wrap):
        super().__init__(framework, wrap)
        nn, optim, w = framework.nn, framework.optim, self.width
        conv, turned = partial(nn.Conv2d, bias=False), partial(nn.ConvTranspose2d, bias=False)
        layers = [turned(self.noise, 4 * w, 4, 1, 0), nn.BatchNorm2d(4 * w), nn.ReLU()]
        for filters in (2 * w, w):
            layers += [turned(2 * filters, filters, 4, 2, 1), nn.BatchNorm2d(filters), nn.ReLU()]
        maker = nn.Sequential(*layers, turned(w, 3, 4, 2, 1), nn.Tanh())
        layers = [conv(3, w, 4, 2, 1), nn.LeakyReLU(0.2)]
        for filters in (2 * w, 4 * w):
            layers += [conv(filters // 2, filters, 4, 2, 1), nn.BatchNorm2d(filters), nn.LeakyReLU(0.2)]
        critic = nn.Sequential(*layers, conv(4 * w, 1, 4, 1, 0), nn.Flatten(0))
        self.maker, self.critic = self.add(maker), self.add(critic)
        self.first = optim.Adam(maker.parameters(), lr=2e-4, betas=(0.5, 0.999))
        self.second = optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.999))
        self.loss = nn.functional.binary_cross_entropy_with_logits

    def micro_step(self, real: Any, noise: Any) -> Any:
        ones, zeros = self.framework.ones(self.images), self.framework.zeros(self.images)
        self.second.zero_grad()
        fake = self.maker(noise)
        critic_loss = self.loss(self.critic(real), ones) + self.loss(self.critic(fake.detach()), zeros)
        critic_loss.backward()
        self.second.step()
        self.first.zero_grad()
        maker_loss = self.loss(self.critic(fake), ones)
        maker_loss.backward()
        self.first.step()
        return critic_loss + maker_loss

    @classmethod
    def batch(cls, random: np.random.Generator) -> Batch:
        return (
            random.standard_normal((cls.images, 3, 32, 32)).astype(np.float32),
            random.standard_normal((cls.images, cls.noise, 1, 1)).astype(np.float32),
        )


# ---- actor and critic


class ActorCritic(Loop):
    """An update of PPO: ratios to old probabilities within limits, value loss, entropy, norm of the gradients."""

    rows, inputs, actions, width = 256, 8, 4, 64

    def __init__(self, framework: Any, wrap: Wrap):
        super().__init__(framework, wrap)
        nn = framework.nn

        def build(outputs: int) -> Any:
            layers = [nn.Linear(self.inputs, self.width), nn.Tanh(), nn.Linear(self.width, self.width), nn.Tanh()]
            return nn.Sequential(*layers, nn.Linear(self.width, outputs))

        actor, critic = build(self.actions), build(1)
        self.actor, self.critic = self.add(actor), self.add(critic)
        self.parameters = [*actor.parameters(), *critic.parameters()]
        self.optimizer = framework.optim.Adam(self.parameters, lr=3e-4)

    def micro_step(self, state: Any, action: Any, before: Any, advantage: Any, returned: Any) -> Any:
        F = self.framework.nn.functional
        self.optimizer.zero_grad()
        logs = F.log_softmax(self.actor(state), dim=-1)
        ratio = (logs.gather(1, action.unsqueeze(1)).squeeze(1) - before).exp()
        gain = self.framework.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()
        entropy = -(logs.exp() * logs).sum(-1).mean()
        value = F.mse_loss(self.critic(state).squeeze(1), returned)
        loss = 0.5 * value - gain - 0.01 * entropy
        loss.backward()
        self.framework.nn.utils.clip_grad_norm_(self.parameters, 0.5)
        self.optimizer.step()
        return loss

    @classmethod
    def batch(cls, random: np.random.Generator) -> Batch:
        state, *others = (
            random.standard_normal(s).astype(np.float32) for s in ((cls.rows, cls.inputs), *[cls.rows] * 2)
        )
        before = np.full(cls.rows, -math.log(cls.actions), np.float32)
        return state, random.integers(0, cls.actions, cls.rows), before, *others


# ---- a differential equation


class Pinn(Loop):
    """A network that solves Burgers' equation: the loss holds second derivatives of its output by its input."""

    rows, edge, width, depth = 1024, 128, 32, 4

    def __init__(self, framework: Any, wrap: Wrap):
        super().__init__(framework, wrap)
        nn = framework.nn
        layers = [nn.Linear(2, self.width), nn.Tanh()]
        for _ in range(self.depth - 1):
            layers += [nn.Linear(self.width, self.width), nn.Tanh()]
        net = nn.Sequential(*layers, nn.Linear(self.width, 1))
        self.net = self.add(net)
        self.optimizer = framework.optim.Adam(net.parameters(), lr=1e-3)

    def micro_step(self, x: Any, t: Any, edge: Any, values: Any) -> Any:
        framework = self.framework
        self.optimizer.zero_grad()
        x, t = x.detach().requires_grad_(), t.detach().requires_grad_()
        u = self.net(framework.cat([x, t], dim=1))
        by_x, by_t = framework.autograd.grad(u.sum(), [x, t], create_graph=True)
        (by_xx,) = framework.autograd.grad(by_x.sum(), [x], create_graph=True)
        rest = by_t + u * by_x - (0.01 / math.pi) * by_xx
        loss = (rest**2).mean() + ((self.net(edge) - values) ** 2).mean()
        loss.backward()
        self.optimizer.step()
        return loss

    @classmethod
    def batch(cls, random: np.random.Generator) -> Batch:
        shapes = ((cls.rows, 1), (cls.rows, 1), (cls.edge, 2))
        x, t, edge = (random.uniform(-1, 1, s).astype(np.float32) for s in shapes)
        return x, t, edge, -np.sin(math.pi * edge[:, :1])


# ---- a tagger of words


def build_tagger(nn: Any, words: int, width: int, tags: int, both_ways: bool) -> Any:
    """Return an embedding, an LSTM, and a linear layer that gives each word a tag."""

    def forward(self, x):
        return self.out(self.lstm(self.table(x))[0])

    table, lstm = nn.Embedding(words, width), nn.LSTM(width, width, batch_first=True, bidirectional=both_ways)
    return module(nn, "Tagger", forward, table=table, lstm=lstm, out=nn.Linear((1 + both_ways) * width, tags))


class Tagger(Loop):
    """Words, an LSTM in both directions, a class for each word; momentum, values of gradients limited."""

    rows, steps, words, width, tags = 32, 40, 2000, 64, 17

    def __init__(self, framework: Any, wrap: Wrap):
        super().__init__(framework, wrap)
        self.model = build_tagger(framework.nn, self.words, self.width, self.tags, both_ways=True)
        self.net = self.add(self.model)
        self.optimizer = framework.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)

    def micro_step(self, x: Any, y: Any) -> Any:
        F = self.framework.nn.functional
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.net(x).reshape(-1, self.tags), y.reshape(-1), ignore_index=0)
        loss.backward()
        self.framework.nn.utils.clip_grad_value_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return loss

    @classmethod
    def batch(cls, random: np.random.Generator) -> Batch:
        size = (cls.rows, cls.steps)
        return random.integers(0, cls.words, size), random.integers(0, cls.tags, size)


# ---- a variational autoencoder


class Vae(Loop):
    """784 numbers, 400, 20 and back; the noise is given, so that frameworks have the same."""

    rows, inputs, width, code = 128, 784, 400, 20

    def __init__(self, framework: Any, wrap: Wrap):
        super().__init__(framework, wrap)
        nn, inputs, width, code = framework.nn, self.inputs, self.width, self.code
        F = nn.functional

        def forward(self, x, noise):
            h = F.relu(self.first(x))
            mean, log = self.mean(h), self.log(h)
            z = mean + noise * (0.5 * log).exp()
            return self.last(F.relu(self.second(z))), mean, log

        parts = {"first": nn.Linear(inputs, width), "mean": nn.Linear(width, code), "log": nn.Linear(width, code)}
        parts |= {"second": nn.Linear(code, width), "last": nn.Linear(width, inputs)}
        model = module(nn, "Net", forward, **parts)
        self.net = self.add(model)
        self.optimizer = framework.optim.Adam(model.parameters(), lr=1e-3)

    def micro_step(self, x: Any, noise: Any) -> Any:
        F = self.framework.nn.functional
        self.optimizer.zero_grad()
        again, mean, log = self.net(x, noise)
        loss = F.binary_cross_entropy_with_logits(again, x, reduction="sum")
        loss = (loss - 0.5 * (1 + log - mean**2 - log.exp()).sum()) / self.rows
        loss.backward()
        self.optimizer.step()
        return loss

    @classmethod
    def batch(cls, random: np.random.Generator) -> Batch:
        return (
            random.random((cls.rows, cls.inputs)).astype(np.float32),
            random.standard_normal((cls.rows, cls.code)).astype(np.float32),
        )


LOOPS: dict[str, type[Loop]] = {
    "nanogpt": NanoGpt,
    "dcgan": Dcgan,
    "actor-critic": ActorCritic,
    "pinn": Pinn,
    "lstm-tagger": Tagger,
    "vae": Vae,
}
