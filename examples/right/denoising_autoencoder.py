"""A denoising autoencoder on synthetic signals, with early stopping in a class of its own."""

import torch
from torch import nn
from torch.utils.data import DataLoader

LENGTH = 32


def make_signals(count):
    """Sums of two waves with random phases, one row a signal."""
    time = torch.linspace(0, 6.28, LENGTH)
    phase = 6.28 * torch.rand(count, 2, 1)
    frequency = torch.tensor([1.0, 3.0]).view(1, 2, 1)
    return torch.sin(frequency * time + phase).sum(dim=1)


class AutoEncoder(nn.Module):
    def __init__(self, code_size=6):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(LENGTH, 24), nn.ReLU(), nn.Linear(24, code_size))
        self.decoder = nn.Sequential(nn.Linear(code_size, 24), nn.ReLU(), nn.Linear(24, LENGTH))

    def forward(self, x):
        return self.decoder(self.encoder(x))


class EarlyStopping:
    """Keeps the state of the best model; `stop` says that it has not improved for `patience` epochs."""

    def __init__(self, patience=3):
        self.patience = patience
        self.best_loss = float("inf")
        self.best_state = None
        self.waited = 0

    def update(self, loss, model):
        if loss < self.best_loss:
            self.best_loss = loss
            self.best_state = {k: v.detach().clone() for k, v in model.state_dict().items()}
            self.waited = 0
        else:
            self.waited += 1

    @property
    def stop(self):
        return self.waited >= self.patience

    def restore(self, model):
        model.load_state_dict(self.best_state)


def train_epoch(model, loader, optimizer, noise=0.4):
    model.train()
    total, cleanest = 0.0, float("inf")
    for clean in loader:
        noisy = clean.view(-1, LENGTH) + noise * torch.randn_like(clean)
        loss = nn.functional.mse_loss(model(noisy), clean)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        cleanest = min(cleanest, (noisy - clean).abs().mean().item())
    print(f"  mean noise of the cleanest batch: {cleanest:.3f}")
    return total / len(loader)


@torch.no_grad()
def validate(model, signals, noise=0.4):
    model.eval()
    restored = model(signals + noise * torch.randn_like(signals))
    return nn.functional.mse_loss(restored, signals).item()


def worst_signals(model, signals, count=3):
    """The signals that are restored worst, and the gradient of their errors with respect to the input."""
    inputs = signals.clone().requires_grad_()
    errors = (model(inputs) - signals).pow(2).mean(dim=1)
    order = errors.argsort(descending=True)
    worst = errors[order[:count]].detach()
    return worst, order[:count]


def main():
    torch.manual_seed(0)
    train_signals, val_signals = make_signals(256), make_signals(64)
    loader = DataLoader(train_signals, batch_size=32, shuffle=True)
    model = AutoEncoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-2)
    stopping = EarlyStopping()
    for epoch in range(6):
        loss = train_epoch(model, loader, optimizer)
        val_loss = validate(model, val_signals)
        print(f"epoch {epoch}: train {loss:.4f}  val {val_loss:.4f}")
        stopping.update(val_loss, model)
        if stopping.stop:
            break
    stopping.restore(model)
    print(f"best validation loss: {stopping.best_loss:.4f}")
    errors, rows = worst_signals(model, val_signals)
    print("worst signals:", rows.tolist(), "errors:", [round(v, 3) for v in errors.tolist()])


if __name__ == "__main__":
    main()
