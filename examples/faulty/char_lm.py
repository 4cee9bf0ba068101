"""A character-level language model, trained with truncated backpropagation through time."""

import torch
import torch.nn as nn
import torch.nn.functional as F

TEXT = "the quick brown fox jumps over the lazy dog and then it does so again, because it can. " * 12
BPTT = 20
BATCH = 4


class Corpus:
    def __init__(self, text, batch_size):
        self.chars = sorted(set(text))
        index = {c: i for i, c in enumerate(self.chars)}
        ids = torch.tensor([index[c] for c in text])
        length = ids.size(0) // batch_size
        # One column a stream: (length, batch).
        self.data = ids[: length * batch_size].view(batch_size, length).t().contiguous()

    def batches(self, bptt):
        for i in range(0, self.data.size(0) - 1 - bptt, bptt):
            yield self.data[i : i + bptt], self.data[i + 1 : i + 1 + bptt]


class CharLM(nn.Module):
    def __init__(self, vocab_size, hidden_size=32, num_layers=2):
        super().__init__()
        self.hidden_size = hidden_size
        self.embedding = nn.Embedding(vocab_size, hidden_size)
        self.cells = nn.ModuleList([nn.GRUCell(hidden_size, hidden_size)] * num_layers)  # expect: TCL706
        self.dropout = nn.Dropout(0.1)
        self.decoder = nn.Linear(hidden_size, vocab_size)

    def init_hidden(self, batch_size):
        return [torch.zeros(batch_size, self.hidden_size) for _ in self.cells]

    def forward(self, inputs, hidden):
        outputs = []
        for x in self.embedding(inputs):
            new_hidden = []
            for cell, h in zip(self.cells, hidden):
                x = cell(x, h)
                new_hidden.append(x)
            hidden = new_hidden
            outputs.append(self.dropout(x))
        return self.decoder(torch.stack(outputs)), hidden


def train_epoch(model, corpus, optimizer):
    model.train()
    hidden = model.init_hidden(BATCH)
    total_loss, n = 0.0, 0
    for inputs, targets in corpus.batches(BPTT):
        hidden = [h.detach() for h in hidden]
        optimizer.zero_grad()
        logits, hidden = model(inputs, hidden)
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        total_loss += loss.data  # expect: TCL104
        n += 1
    return float(total_loss) / n


def saliency(model, corpus):
    """How much each position of the first batch contributes to the loss."""
    inputs, targets = next(corpus.batches(BPTT))
    model.zero_grad()
    embedded = model.embedding(inputs)
    hidden = model.init_hidden(BATCH)
    loss = 0
    for x, target in zip(embedded, targets):
        h = model.cells[0](x, hidden[0])
        hidden[0] = h
        loss = loss + F.cross_entropy(model.decoder(h), target)
    loss.backward()
    return embedded.grad  # expect: TCL308


@torch.no_grad()
def sample(model, corpus, length=40, temperature=0.8):
    model.eval()
    token = torch.zeros(1, 1, dtype=torch.long)
    hidden = model.init_hidden(1)
    out = []
    for _ in range(length):
        logits, hidden = model(token, hidden)
        logits = logits[-1, 0]
        logits.div(temperature)  # expect: TCL602
        token = torch.multinomial(F.softmax(logits, dim=-1), 1).view(1, 1)
        out.append(corpus.chars[token.item()])
    return "".join(out)


def main():
    torch.manual_seed(1)
    corpus = Corpus(TEXT, BATCH)
    model = CharLM(len(corpus.chars))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(3):
        loss = train_epoch(model, corpus, optimizer)
        print(f"epoch {epoch}: loss {loss:.3f}, {sum(p.numel() for p in model.parameters())} parameters")
    gradient = saliency(model, corpus)
    print("saliency:", "none" if gradient is None else [round(v, 4) for v in gradient.norm(dim=-1).mean(1).tolist()])
    print("sample:", sample(model, corpus))


if __name__ == "__main__":
    main()
