"""A bidirectional LSTM tags words of sentences of many lengths: padding, packing, a vocabulary, accuracy."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset

WORDS = {
    "DET": ["the", "a", "every", "this"],
    "NN": ["dog", "cat", "book", "apple", "house", "light"],
    "V": ["reads", "eats", "sees", "light"],
    "ADJ": ["red", "small", "light", "old"],
}
TAGS = {"<pad>": 0, "DET": 1, "NN": 2, "V": 3, "ADJ": 4}


class Sentences(Dataset):
    def __init__(self, n, rng):
        self.pairs = []
        for _ in range(n):
            phrase = lambda: ["DET"] + ["ADJ"] * int(rng.integers(0, 3)) + ["NN"]
            tags = phrase() + ["V"] + (phrase() if rng.random() < 0.7 else [])
            self.pairs.append(([str(rng.choice(WORDS[t])) for t in tags], tags))
        vocabulary = sorted({w for words, _ in self.pairs for w in words})
        self.word_to_ix = {"<pad>": 0, **{w: i + 1 for i, w in enumerate(vocabulary)}}

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, i):
        words, tags = self.pairs[i]
        return torch.tensor([self.word_to_ix[w] for w in words]), torch.tensor([TAGS[t] for t in tags])


def collate(batch):
    batch.sort(key=lambda pair: len(pair[0]), reverse=True)
    words, tags = zip(*batch)
    lengths = torch.tensor([len(w) for w in words], dtype=torch.int64)
    words = pad_sequence(words, batch_first=True, padding_value=0)
    return words, pad_sequence(tags, batch_first=True, padding_value=0), lengths


class LSTMTagger(nn.Module):
    def __init__(self, vocab_size, tagset_size, embedding_dim=16, hidden_dim=16):
        super().__init__()
        self.word_embeddings = nn.Embedding(vocab_size, embedding_dim, padding_idx=0)
        self.lstm = nn.LSTM(embedding_dim, hidden_dim, num_layers=2, batch_first=True, bidirectional=True)
        self.hidden2tag = nn.Linear(2 * hidden_dim, tagset_size)

    def forward(self, sentence, lengths):
        embeds = self.word_embeddings(sentence)
        packed = pack_padded_sequence(embeds, lengths.cpu(), batch_first=True)
        assert isinstance(packed, PackedSequence)
        packed_out, (h_n, _c_n) = self.lstm(packed)
        out, _ = pad_packed_sequence(packed_out, batch_first=True)
        tag_space = self.hidden2tag(out)
        return F.log_softmax(tag_space, dim=2), h_n


def reset(model, rng):
    for name, param in model.named_parameters():
        if "bias" in name:
            nn.init.constant_(param, 0.0)
            if "lstm" in name:
                n = param.size(0)
                param.data[n // 4 : n // 2].fill_(1.0)  # forget gates
        else:
            param.data.copy_(torch.as_tensor(rng.normal(0, 0.25, param.shape)))
    with torch.no_grad():
        model.word_embeddings.weight[model.word_embeddings.padding_idx].fill_(0)


def main():
    torch.manual_seed(1)
    rng = np.random.default_rng(1)
    dataset = Sentences(80, rng)
    loader = DataLoader(dataset, batch_size=16, shuffle=False, collate_fn=collate)
    model = LSTMTagger(len(dataset.word_to_ix), len(TAGS))
    reset(model, rng)
    print(model)
    loss_function = nn.NLLLoss(ignore_index=0)
    optimizer = optim.SGD(model.parameters(), lr=0.5, momentum=0.9, nesterov=True)
    scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.7)
    losses = []
    for epoch in range(5):
        correct, total = 0, 0
        for words, tags, lengths in loader:
            model.zero_grad()
            scores, hidden = model(words, lengths)
            loss = loss_function(scores.transpose(1, 2), tags) + 1e-3 * hidden.square().mean()
            loss.backward()
            torch.nn.utils.clip_grad_value_(model.parameters(), 0.5)
            optimizer.step()
            mask = tags != 0
            correct += (scores.argmax(-1)[mask] == tags[mask]).sum().item()
            total += mask.sum().item()
            losses.append(loss.item())
        scheduler.step()
        print(f"epoch {epoch}: loss {loss.item():.4f} accuracy {correct / total:.3f} lr {scheduler.get_last_lr()}")
        losses.append(correct / total)
    with torch.no_grad():
        row = model.word_embeddings.weight[0]
        assert torch.all(row == 0), row
    return losses


if __name__ == "__main__":
    print(main())
