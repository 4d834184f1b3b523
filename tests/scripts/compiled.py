"""Lines that create a script's models, and the lines after them that compile them."""

from __future__ import annotations

LINES: dict[str, tuple[str, str]] = {
    "actor_critic": ("    model = Policy()", "model.compile()"),
    "dcgan": ("    netG, netD = Generator().to(device), Discriminator().to(device)", "netG.compile(), netD.compile()"),
    "diffusion": ("    model, diffusion = Denoiser().to(device), Diffusion().to(device)", "model.compile()"),
    "distillation": (
        "    teacher, student = MLP([12, 48, 48, 4], 1).to(device), MLP([12, 12, 4], 2).to(device)",
        "teacher.compile(), student.compile()",
    ),
    "dqn": ("    policy_net, target_net = DQN(2, 4).to(device), DQN(2, 4).to(device)", "policy_net.compile()"),
    "gaussian_process": (
        "            gp = ExactGP(X, y, kernel)",
        "gp.neg_log_likelihood = torch.compile(gp.neg_log_likelihood)",
    ),
    # The number of graphs is a value of a tensor: what stands around it stays eager.
    "graph_net": ("    model = Net(5, 2).to(device)", "model.conv2.compile()"),
    "kv_cache": ("    model = Transformer(12)", "model.compile()"),
    "lora": ("    model = Net()", "model.compile()"),
    # Lengths of sentences are values of a tensor: packing, and the LSTM over what is packed, stay eager.
    "lstm_tagger": ("    model = LSTMTagger(len(dataset.word_to_ix), len(TAGS))", "model.hidden2tag.compile()"),
    "nano_gpt": ("    model = GPT(config, rng).to(device)", "model = torch.compile(model)"),
    "neural_ode": ("    func = ODEFunc(rng).to(device)", "func.compile()"),
    "pinn": ("    model = PINN([2, 20, 20, 20, 1], rng).to(device)", "model.compile()"),
    "pruning": ("    model = LeNet().to(device=device)", "model.compile()"),
    "real_nvp": ("    flow = RealNVP()", "flow.log_prob = torch.compile(flow.log_prob)"),
    "resnet_digits": ("    model = ResNet().to(device)", "model.compile()"),
    "seq2seq": ("    decoder = AttnDecoderRNN(32, VOCAB).to(device)", "encoder.compile(), decoder.compile()"),
    "simclr": ("    model = Encoder().to(device)", "model.compile()"),
    # The model makes leaves of its arguments: its layers are compiled.
    "siren": ("    img_siren = Siren(2, 32, 2, 1, rng)", "img_siren.net.compile()"),
    "spectrograms": ("    model = Classifier(3).to(device)", "model.compile()"),
    "triplets": ("    model = EmbeddingNet(rng)", "model.compile()"),
    "tsne": (
        '    """Performs a binary search to get P-values in such a way that each conditional Gaussian has the same '
        'perplexity."""',
        "global kl; kl = torch.compile(kl)",
    ),
    "unet": ("    model = UNet(n_channels=1, n_classes=1)", "model.compile()"),
    # The noise is NumPy's and drawn anew by each call: what stands before and behind it is compiled.
    "vae": (
        "    model = VAE(rng).to(device)",
        "model.encode, model.decode = torch.compile(model.encode), torch.compile(model.decode)",
    ),
    "wavelets": ("    model = Denoiser(Wavelet(db2 + rng.normal(0, 0.1, 4)))", "model.compile()"),
}
"""By script: a line of it, and what is written behind it, on a line of its own with the same indentation."""


def with_compiled(name: str, source: str) -> str:
    """Return a script with the lines that compile its models."""
    line, added = LINES[name]
    before, after = source.split(f"\n{line}\n")
    indent = line[: len(line) - len(line.lstrip())]
    return f"{before}\n{line}\n{indent}{added}\n{after}"
