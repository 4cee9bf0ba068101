"""Fine-tune the head of a small convolutional network and keep the weights of the best epoch.

The images are synthetic: each class has a pattern of its own, under noise.
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset, random_split

NUM_CLASSES = 4


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def make_dataset(size):
    patterns = torch.randn(NUM_CLASSES, 3, 16, 16)
    labels = torch.randint(NUM_CLASSES, (size,))
    images = patterns[labels] + 2.5 * torch.randn(size, 3, 16, 16)
    return TensorDataset(images, labels)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(4),
        )
        self.classifier = nn.Linear(16 * 4 * 4, NUM_CLASSES)

    def forward(self, x):
        x = self.features(x)
        return self.classifier(torch.flatten(x, 1))


def train_one_epoch(model, loader, optimizer, device):
    model.train()
    running_loss = 0.0
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        running_loss += loss.item() * images.size(0)
    return running_loss / len(loader.dataset)


def evaluate(model, loader, device):
    model.eval()
    torch.no_grad()  # expect: TCL605
    total_loss, correct = 0.0, 0
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        logits = model(images)
        loss = F.cross_entropy(logits, labels, reduction="sum")
        total_loss += loss.item()
        _, predicted = torch.max(logits.data, 1)  # expect: TCL104
        correct += (predicted == labels).sum().item()
    size = len(loader.dataset)
    return total_loss / size, correct / size


def main():
    args = parse_args()
    torch.manual_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    train_set, val_set = random_split(make_dataset(320), [256, 64])
    train_loader = DataLoader(train_set, batch_size=args.batch_size, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=args.batch_size)

    model = Net().to(device)
    # The features are pretrained: only the classifier is tuned.
    model.features.requires_grad = False  # expect: TCL606
    trainable = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(trainable, lr=args.lr, momentum=0.9)

    best_acc = 0.0
    best_weights = None
    for epoch in range(args.epochs):
        train_loss = train_one_epoch(model, train_loader, optimizer, device)
        val_loss, val_acc = evaluate(model, val_loader, device)
        print(f"epoch {epoch}: train {train_loss:.3f}  val {val_loss:.3f}  acc {val_acc:.3f}")
        if val_acc > best_acc:
            best_acc = val_acc
            best_weights = model.state_dict()  # expect: TCL701

    model.load_state_dict(best_weights)
    print(f"best accuracy: {best_acc:.3f}, {len(trainable)} tensors were trained")


if __name__ == "__main__":
    main()
