"""Steps of random programs with layers and losses: convolutions, pools, norms, attention, recurrence, products."""

from __future__ import annotations

from tools.nets.builder import Builder


def images(b: Builder, dims: int, least: int = 1) -> str:
    """Return a float variable of batch, channels and ``dims`` dimensions."""

    def made() -> str:
        sizes = tuple(b.pick((1, 2, 3, 4, 5, 7, 8, 9, 12)) for _ in range(dims))
        return b.input((b.whole(1, 3), b.pick((1, 2, 3, 4, 6, 8)), *(max(least, s) for s in sizes)))

    return b.known(lambda v: v.dim() == dims + 2 and v.is_floating_point() and v.numel() > 0 and b.is_tame(v), made)


def each(b: Builder, dims: int, low: int, high: int) -> tuple[int, ...]:
    """Return one number for each dimension."""
    return tuple(b.whole(low, high) for _ in range(dims))


def convolution(b: Builder) -> None:
    """Apply a convolution or its transpose, as a function or a layer."""
    dims = b.pick((1, 2, 2, 2, 3))
    x = images(b, dims)
    channels = b.shape_of(x)[1]
    groups = b.pick([g for g in (1, 1, 2, 3, 4, channels) if channels % g == 0])
    out = groups * b.whole(1, 4)
    window, stride = each(b, dims, 1, b.pick((1, 3, 4))), each(b, dims, 1, 3)
    padding, dilation = each(b, dims, 0, 2), each(b, dims, 1, b.pick((1, 2, 3)))
    if b.chance(0.4):
        name = b.pick(("Conv", "Conv", "ConvTranspose"))
        bias = f", bias={b.chance(0.7)}"
        edge = b.pick(("zeros", "reflect", "replicate", "circular"))
        mode = f", padding_mode='{edge}'" if name == "Conv" else ""
        arguments = f"{window}, {stride}, {padding}, groups={groups}, dilation={dilation}{bias}{mode}"
        layer = b.layer(f"nn.{name}{dims}d({channels}, {out}, {arguments})")
        b.let(f"{layer}({x})")
    elif b.chance(0.3):
        weight = b.input((channels, out // groups, *window), kind="")
        arguments = f"stride={stride}, padding={padding}, groups={groups}, dilation={dilation}"
        b.let(f"F.conv_transpose{dims}d({x}, {weight}, {arguments})")
    else:
        weight = b.input((out, channels // groups, *window), kind="")
        bias = b.pick(("None", b.input((out,))))
        pad = b.pick((padding, padding, "'same'", "'valid'"))
        stride = (1,) * dims if pad == "'same'" else stride
        b.let(f"F.conv{dims}d({x}, {weight}, {bias}, {stride}, {pad}, {dilation}, {groups})")


def pool(b: Builder) -> None:
    """Apply a pool of any kind."""
    dims = b.pick((1, 2, 2, 2, 3))
    x = images(b, dims)
    window = each(b, dims, 1, 4)
    stride, padding = each(b, dims, 1, 3), tuple(b.whole(0, w // 2) for w in window)
    ceil = b.chance(0.3)
    choice = b.whole(0, 5)
    if choice in (0, 1):
        # NOTE: the gradient of PyTorch's max_pool writes outside of its memory where a window reads nothing, as one of
        # two elements two apart can around an image of one.
        dilation = tuple(b.whole(1, min(2, size)) for size in b.shape_of(x)[-dims:])
        which = b.pick((", return_indices=True", "", ""))
        b.let(f"F.max_pool{dims}d({x}, {window}, {stride}, {padding}, {dilation}, {ceil}{which})")
    elif choice in (2, 3):
        b.let(f"F.avg_pool{dims}d({x}, {window}, {stride}, {padding}, {ceil}, {b.chance(0.5)})")
    elif choice == 4:
        b.let(f"F.adaptive_{b.pick(('avg', 'max'))}_pool{dims}d({x}, {each(b, dims, 1, 6)})")
    else:
        b.let(f"F.lp_pool{dims}d({x}.abs() + 0.5, {b.pick((1, 2, 3))}, {window[0]}, {stride[0]}, {ceil})")


def norm(b: Builder) -> None:
    """Apply a normalization, as a layer or a function."""
    dims = b.pick((0, 1, 2, 2, 3))
    x = images(b, dims)
    shape = b.shape_of(x)
    channels = shape[1]
    choice = b.whole(0, 6)
    if choice in (0, 1):
        arguments = b.pick(("", ", affine=False", ", momentum=None", ", track_running_stats=False"))
        b.let(f"{b.layer(f'nn.BatchNorm{max(1, dims)}d({channels}{arguments})')}({x})")
    elif choice == 2:
        groups = b.pick([g for g in range(1, channels + 1) if channels % g == 0])
        b.let(f"{b.layer(f'nn.GroupNorm({groups}, {channels})')}({x})")
    elif choice == 3:
        last = shape[-b.whole(1, 2) :]
        layer = b.layer(f"nn.{b.pick(('LayerNorm', 'LayerNorm', 'RMSNorm'))}({last})")
        b.let(f"{layer}({x})")
    elif choice == 4 and dims:
        b.let(f"{b.layer(f'nn.InstanceNorm{dims}d({channels}, affine={b.chance(0.5)})')}({x})")
    elif choice == 5:
        b.let(f"F.normalize({x}, p={b.pick((1, 2, 3.0))}, dim={b.axis(x)})")
    else:
        b.let(f"F.local_response_norm({x}, {b.whole(1, 4)})")


def activation(b: Builder) -> None:
    """Apply an activation function."""
    x = b.real()
    names = (
        "relu gelu silu elu selu celu mish softplus softsign hardswish hardsigmoid hardtanh leaky_relu relu6 logsigmoid"
    )
    names += " tanhshrink hardshrink softshrink sigmoid tanh"
    extra = (f"F.gelu({x}, approximate='tanh')", f"F.threshold({x}, 0.25, -1.0)", f"F.glu({x}, {b.whole(-2, 1)})")
    # NOTE: PyTorch multiplies the gradient of hardsigmoid by a sixth in f32, even for f64 tensors.
    exact = [n for n in names.split() if b.float == "f32" or n not in ("hardsigmoid", "hardswish")]
    b.let(b.pick(tuple(f"F.{n}({x})" for n in exact) + extra))


def attention(b: Builder) -> None:
    """Apply scaled dot products with masks, which may hide whole rows."""
    batch, heads, queries, keys, width = (
        b.whole(1, 2),
        b.whole(1, 3),
        b.whole(1, 9),
        b.whole(1, 9),
        b.pick((1, 2, 4, 5, 8)),
    )
    lead = b.pick(((batch, heads), (batch,), ()))
    q, k = b.input((*lead, queries, width)), b.input((*lead, keys, width))
    v = b.pick((k, b.input((*lead, keys, b.pick((width, 3))))))
    choice = b.whole(0, 5)
    if choice == 0:
        b.let(f"F.scaled_dot_product_attention({q}, {k}, {v}, is_causal={b.chance(0.5)})")
    elif choice in (1, 2):
        mask = b.input((*b.pick(((), lead)), queries, keys), "bool")
        if b.chance(0.5):
            mask = b.let(f"{mask} & {b.input((queries, 1), 'bool')}")
        b.let(f"F.scaled_dot_product_attention({q}, {k}, {v}, attn_mask={mask})")
    elif choice == 3:
        mask = b.input((queries, keys))
        b.let(f"F.scaled_dot_product_attention({q}, {k}, {v}, attn_mask={mask}, scale={b.pick((0.5, 1.0, None))})")
    elif choice == 4:
        scores = b.let(f"({q} @ {k}.mT).masked_fill({b.input((queries, keys), 'bool')}, {b.pick(('-inf', '-1e9'))})")
        b.let(f"F.softmax({scores}, -1) @ {v}")
    else:
        heads = b.pick((1, 2))
        layer = b.layer(f"nn.MultiheadAttention({2 * heads}, {heads}, batch_first=True)")
        x = b.input((batch, keys, 2 * heads))
        b.let(f"{layer}({x}, {x}, {x}, need_weights={b.chance(0.5)})[0]")


def recurrent(b: Builder) -> None:
    """Apply a recurrent layer, a cell in a loop, or a written-out recurrence."""
    width, hidden, steps, batch = b.whole(1, 5), b.whole(1, 6), b.whole(1, 6), b.whole(1, 3)
    kind = b.pick(("RNN", "LSTM", "GRU"))
    choice = b.whole(0, 3)
    if choice in (0, 1):
        first = b.chance(0.5)
        arguments = (
            f"num_layers={b.whole(1, 2)}, bidirectional={b.chance(0.3)}, batch_first={first}, bias={b.chance(0.8)}"
        )
        layer = b.layer(f"nn.{kind}({width}, {hidden}, {arguments})")
        x = b.input((batch, steps, width) if first else (steps, batch, width))
        result = b.let(f"{layer}({x})[0]")
        b.let(f"{result}.{b.pick(('sum(0)', 'flip(0)', 'tanh()', 'mean(1)'))}")
    elif choice == 2:
        layer = b.layer(f"nn.{kind}Cell({width}, {hidden})")
        h, x = b.input((batch, hidden)), b.input((steps, batch, width))
        for step in range(min(steps, 3)):
            state = f"({h}, {h})" if kind == "LSTM" else h
            h = b.let(f"{layer}({x}[{step}], {state}){'[0]' if kind == 'LSTM' else ''}")
    else:
        h, x, w = b.input((hidden,)), b.input((steps, hidden)), b.input((hidden, hidden))
        for step in range(steps):
            h = b.let(f"t.tanh({h} @ {w} + {x}[{step}])")


def product(b: Builder) -> None:
    """Multiply matrices and vectors of odd shapes."""
    m, k, n = b.extent(33), b.extent(33), b.extent(33)
    lead = b.pick(((), (), (2,), (3, 1), (1,), (2, 2)))
    x = b.known(lambda v: v.dim() >= 2 and v.shape[-1] == k and v.is_floating_point(), lambda: b.input((*lead, m, k)))
    choice = b.whole(0, 10)
    if choice in (0, 1):
        y = b.input((*b.pick((lead, (), (1,))), k, n))
        b.let(b.pick((f"{x} @ {y}", f"t.matmul({x}, {y})", f"{x} @ {b.input((k,))}", f"{b.input((m,))} @ {x}")))
    elif choice == 2:
        b.let(f"F.linear({x}, {b.input((n, k))}, {b.pick(('None', b.input((n,))))})")
    elif choice == 3:
        b.let(f"{b.layer(f'nn.Linear({k}, {n}, bias={b.chance(0.7)})')}({x})")
    elif choice == 4:
        b.let(f"t.bmm({b.input((2, m, k))}, {b.input((2, k, n))})")
    elif choice == 5:
        scales = b.pick(("", ", beta=0.5, alpha=2", ", beta=0"))
        b.let(f"t.addmm({b.input(b.pick(((n,), (m, n), (1, n))))}, {b.input((m, k))}, {b.input((k, n))}{scales})")
    elif choice == 6:
        i, j, n = b.whole(1, 5), b.whole(1, 5), b.whole(1, 5)
        rule, shapes = b.pick(
            (
                ("ij,jk->ik", ((i, j), (j, n))),
                ("ij,jk->ki", ((i, j), (j, n))),
                ("ijk,ik->j", ((i, j, n), (i, n))),
                ("ij,ij->", ((i, j), (i, j))),
                ("ii->i", ((i, i),)),
                ("ijk->ki", ((i, j, n),)),
                ("i,j,k->kji", ((i,), (j,), (n,))),
                ("bij,bjk->bik", ((2, i, j), (2, j, n))),
                ("...ij,...kj->...ik", ((3, i, j), (1, n, j))),
                ("ij,kj,ki->k", ((i, j), (n, j), (n, i))),
            )
        )
        b.let(f"t.einsum('{rule}', {', '.join(b.input(s) for s in shapes)})")
    elif choice == 7:
        b.let(f"t.tensordot({b.input((m, k, 2))}, {b.input((k, 2, n))}, dims={b.pick((2, '([1, 2], [0, 1])'))})")
    elif choice == 8:
        b.let(b.pick((f"t.outer({b.real(1)}, {b.real(1)})", f"t.kron({b.real(2)}, {b.input((2, 3))})")))
    elif choice == 9:
        b.let(f"t.cdist({b.input((m, k))}, {b.input((n, k))}, p={b.pick((1.0, 2.0, 3.0))})")
    else:
        b.let(f"{b.layer(f'nn.Bilinear({k}, {n}, 3)')}({b.input((m, k))}, {b.input((m, n))})")


def loss(b: Builder) -> None:
    """Compute a loss, or the softmax before one."""
    rows, classes = b.whole(1, 7), b.pick((1, 2, 3, 5, 9, 17))
    shape = b.pick(((rows, classes), (rows, classes, 3)))
    x = b.input(shape)
    reduction = b.pick(("mean", "sum", "none"))
    how = f", reduction='{reduction}'"
    target = b.input((rows, *shape[2:]), "i64", f"below {classes}", "dense")
    choice = b.whole(0, 8)
    if choice == 0:
        more = b.pick(
            (
                "",
                ", label_smoothing=0.1",
                f", ignore_index={b.whole(0, classes - 1)}",
                f", weight={b.input((classes,), '', 'positive')}",
            )
        )
        b.let(f"F.cross_entropy({x}, {target}{more}{how})")
    elif choice == 1:
        b.let(f"F.cross_entropy({x}, F.softmax({b.input(shape)}, 1){how})")
    elif choice == 2:
        b.let(f"F.nll_loss(F.log_softmax({x}, 1), {target}{how})")
    elif choice == 3:
        name = b.pick(("binary_cross_entropy_with_logits", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"))
        b.let(f"F.{name}({x}, {b.input(shape, '', 'unit')}{how})")
    elif choice == 4:
        b.let(f"F.binary_cross_entropy(t.sigmoid({x}), {b.input(shape, '', 'unit')}{how})")
    elif choice == 5:
        b.let(f"F.kl_div(F.log_softmax({x}, 1), F.softmax({b.input(shape)}, 1){how}, log_target=False)")
    elif choice == 6:
        name = b.pick(("softmax", "log_softmax", "softmin"))
        b.let(f"F.{name}({b.real(least=1)}, dim={b.whole(-1, 0)})")
    elif choice == 7:
        y, z = b.input(shape), b.input(shape)
        b.let(
            b.pick(
                (
                    f"F.triplet_margin_loss({x}, {y}, {z}{how})",
                    f"F.cosine_similarity({x}, {y}, dim=1)",
                    f"F.pairwise_distance({x}, {y})",
                )
            )
        )
    else:
        y = b.input(shape, "", "positive")
        b.let(
            b.pick(
                (
                    f"F.gaussian_nll_loss({x}, {b.input(shape)}, {y}{how})",
                    f"F.poisson_nll_loss({x}, {y}{how})",
                    f"F.soft_margin_loss({x}, {y}.sign(){how})",
                )
            )
        )


def stack(b: Builder) -> None:
    """Apply some layers one after the other."""
    if b.chance(0.5):
        x = images(b, 2, 3)
        channels = b.shape_of(x)[1]
        for _ in range(b.whole(1, 3)):
            out = b.pick((2, 4, 8))
            x = b.let(f"{b.layer(f'nn.Conv2d({channels}, {out}, {b.pick((1, 3))}, padding=1)')}({x})")
            more = (
                f"F.relu({x})",
                f"{b.layer(f'nn.BatchNorm2d({out})')}({x})",
                f"F.avg_pool2d({x}, 3, 2, 1)",
                f"F.max_pool2d({x}, 2)",
            )
            x, channels = b.let(b.pick(more)), out
        b.let(f"{x}.{b.pick(('flatten(1)', 'mean((2, 3))', 'amax((2, 3))'))}")
        return
    width = b.extent(33)
    x = b.input((b.whole(1, 9), width))
    for _ in range(b.whole(1, 4)):
        out = b.pick((1, 3, 8, width))
        y = b.let(f"{b.layer(f'nn.Linear({width}, {out})')}({x})")
        y = b.let(f"F.{b.pick(('relu', 'gelu', 'tanh', 'silu'))}({y})")
        x = b.let(f"{x} + {y}") if out == width else y
        width = out


def repeated(b: Builder) -> None:
    """Pass one tensor, or apply one layer, twice."""
    x = b.real(2)
    rows, width = b.shape_of(x)
    choice = b.whole(0, 3)
    if choice == 0:
        y = b.let(f"{x}.clone()")
        b.do(f"{y}.{b.pick(('add_', 'mul_', 'copy_', 'sub_'))}({y})")
    elif choice == 1:
        layer = b.layer(f"nn.Linear({width}, {width})")
        b.let(f"{layer}(F.relu({layer}({x})))")
    elif choice == 2 and rows < 7 and width < 7:
        b.let(f"F.conv2d({x}[None, None], {x}[None, None])")
    else:
        b.let(b.pick(TWICE).replace("X", x))


TWICE = (
    "X * X",
    "X - X",
    "X / (X + 5)",
    "t.maximum(X, X)",
    "t.atan2(X, X)",
    "t.hypot(X, X)",
    "t.lerp(X, X, X)",
    "t.where(X > 0, X, X * 2)",
    "t.cat([X, X, X], 0)",
    "t.cat([X, X], -1)",
    "X @ X.T",
    "X.T @ X",
    "F.linear(X, X)",
    "t.einsum('ij,ij->i', X, X)",
    "F.mse_loss(X, X * 0.5) + t.addcmul(X, X, X).sum()",
    "F.scaled_dot_product_attention(X[None], X[None], X[None])",
)
"""Expressions of one matrix X."""
