"""Sequence to sequence with attention: a GRU reads digits, another writes them backwards; teacher forcing."""

import math
import random
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim
from torch.utils.data import DataLoader, SequentialSampler, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SOS_token, EOS_token, VOCAB, MAX_LENGTH = 0, 1, 12, 6


class EncoderRNN(nn.Module):
    def __init__(self, input_size, hidden_size, dropout_p=0.0):
        super().__init__()
        self.hidden_size = hidden_size
        self.embedding = nn.Embedding(input_size, hidden_size)
        self.gru = nn.GRU(hidden_size, hidden_size, batch_first=True)
        self.dropout = nn.Dropout(dropout_p)

    def forward(self, input):
        output, hidden = self.gru(self.dropout(self.embedding(input)))
        return output, hidden


class BahdanauAttention(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.Wa = nn.Linear(hidden_size, hidden_size)
        self.Ua = nn.Linear(hidden_size, hidden_size)
        self.Va = nn.Linear(hidden_size, 1)

    def forward(self, query, keys):
        scores = self.Va(torch.tanh(self.Wa(query) + self.Ua(keys)))
        scores = scores.squeeze(2).unsqueeze(1)
        weights = F.softmax(scores, dim=-1)
        context = torch.bmm(weights, keys)
        return context, weights


class AttnDecoderRNN(nn.Module):
    def __init__(self, hidden_size, output_size, dropout_p=0.0):
        super().__init__()
        self.embedding = nn.Embedding(output_size, hidden_size)
        self.attention = BahdanauAttention(hidden_size)
        self.gru = nn.GRU(2 * hidden_size, hidden_size, batch_first=True)
        self.out = nn.Linear(hidden_size, output_size)
        self.dropout = nn.Dropout(dropout_p)

    def forward(self, encoder_outputs, encoder_hidden, target_tensor=None):
        batch_size = encoder_outputs.size(0)
        decoder_input = torch.empty(batch_size, 1, dtype=torch.long, device=device).fill_(SOS_token)
        decoder_hidden = encoder_hidden
        decoder_outputs, attentions = [], []
        for i in range(MAX_LENGTH + 1):
            output, decoder_hidden, weights = self.forward_step(decoder_input, decoder_hidden, encoder_outputs)
            decoder_outputs.append(output)
            attentions.append(weights)
            if target_tensor is not None:
                decoder_input = target_tensor[:, i].unsqueeze(1)
            else:
                _, topi = output.topk(1)
                decoder_input = topi.squeeze(-1).detach()
        decoder_outputs = F.log_softmax(torch.cat(decoder_outputs, dim=1), dim=-1)
        return decoder_outputs, decoder_hidden, torch.cat(attentions, dim=1)

    def forward_step(self, input, hidden, encoder_outputs):
        embedded = self.dropout(self.embedding(input))
        query = hidden.permute(1, 0, 2)
        context, attn_weights = self.attention(query, encoder_outputs)
        output, hidden = self.gru(torch.cat((embedded, context), dim=2), hidden)
        return self.out(output), hidden, attn_weights


def train_epoch(dataloader, encoder, decoder, optimizers, criterion):
    history = []
    for input_tensor, target_tensor in dataloader:
        for optimizer in optimizers:
            optimizer.zero_grad()
        encoder_outputs, encoder_hidden = encoder(input_tensor)
        decoder_outputs, _, _ = decoder(encoder_outputs, encoder_hidden, target_tensor)
        loss = criterion(decoder_outputs.view(-1, decoder_outputs.size(-1)), target_tensor.view(-1))
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        history.append(loss.item())
    return history


def as_minutes(s):
    m = math.floor(s / 60)
    return "%dm %ds" % (m, s - m * 60)


def main():
    random.seed(7)
    torch.manual_seed(7)
    rng = np.random.default_rng(7)
    words = rng.integers(2, VOCAB, (96, MAX_LENGTH))
    targets = np.concatenate([words[:, ::-1], np.full((96, 1), EOS_token)], axis=1)
    data = TensorDataset(torch.LongTensor(words).to(device), torch.LongTensor(targets.copy()).to(device))
    dataloader = DataLoader(data, sampler=SequentialSampler(data), batch_size=32)
    encoder = EncoderRNN(VOCAB, 32).to(device)
    decoder = AttnDecoderRNN(32, VOCAB).to(device)
    for module in (encoder, decoder):
        for _name, p in module.named_parameters():
            p.data = torch.from_numpy(rng.uniform(-0.2, 0.2, p.shape).astype(np.float32)).to(device)
    optimizers = [optim.Adam(m.parameters(), lr=5e-3) for m in (encoder, decoder)]
    criterion = nn.NLLLoss()
    start, losses = time.time(), []
    for epoch in range(1, 9):
        losses += train_epoch(dataloader, encoder, decoder, optimizers, criterion)
        if epoch % 4 == 0:
            print("(%d %d%%) %.4f" % (epoch, epoch / 8 * 100, losses[-1]))
    as_minutes(time.time() - start)
    encoder.eval()
    decoder.eval()
    with torch.no_grad():
        outputs, hidden = encoder(data[0][0].unsqueeze(0))
        decoded, _, attention = decoder(outputs, hidden)
        _, topi = decoded.topk(1)
        ids = topi.squeeze().tolist()
    print("read", data[0][0].tolist(), "wrote", ids)
    losses += attention[0, 0].cpu().numpy().tolist()
    return losses


if __name__ == "__main__":
    print(main())
