"""Projected gradient descent (Madry et al.) and FGSM against a small classifier of synthetic images."""

import torch
import torch.nn as nn
import torch.nn.functional as F

EPSILON = 0.3
ALPHA = 0.1
STEPS = 5


class SmallNet(nn.Module):
    def __init__(self, num_classes=3):
        super().__init__()
        self.conv = nn.Conv2d(1, 6, 3, padding=1)
        self.fc = nn.Linear(6 * 8 * 8, num_classes)

    def forward(self, x):
        x = F.relu(self.conv(x))
        return self.fc(x.flatten(1))


def make_data(size, num_classes=3):
    prototypes = torch.rand(num_classes, 1, 8, 8)
    labels = torch.randint(num_classes, (size,))
    images = (prototypes[labels] + 0.3 * torch.randn(size, 1, 8, 8)).clamp(0, 1)
    return images, labels


def train(model, images, labels, epochs=30):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(epochs):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()


def accuracy(model, images, labels):
    with torch.no_grad():
        return (model(images).argmax(1) == labels).float().mean().item()


def fgsm(model, images, labels, eps=EPSILON):
    x = images.clone().requires_grad_(True)
    loss = F.cross_entropy(model(x), labels)
    loss.backward()
    adv = x.detach() + eps * x.grad.sign()
    return torch.clamp(adv, 0, 1)


def pgd_linf(model, images, labels, eps=EPSILON, alpha=ALPHA, steps=STEPS):
    """The perturbation that raises the loss most within the `eps` ball, from a random start."""
    delta = torch.empty_like(images).uniform_(-eps, eps)
    delta.requires_grad_(True)
    for _ in range(steps):
        loss = F.cross_entropy(model(images + delta), labels)
        loss.backward()
        with torch.no_grad():
            delta.add_(alpha * delta.grad.sign()).clamp_(-eps, eps)
        delta.grad.zero_()
    return (images + delta.detach()).clamp(0, 1)


def pgd_l2(model, images, labels, eps=2.0, alpha=50.0, steps=STEPS, penalty=0.05):
    """As `pgd_linf`, with a penalty on the norm of the perturbation."""
    delta = torch.zeros_like(images, requires_grad=True)
    for _ in range(steps):
        loss = F.cross_entropy(model(images + delta), labels, reduction="sum")
        loss = loss - penalty * delta.pow(2).sum()
        loss.backward()
        with torch.no_grad():
            delta += alpha * delta.grad
            norm = delta.flatten(1).norm(dim=1).clamp(min=eps).view(-1, 1, 1, 1)
            delta.mul_(eps / norm)
        delta.grad.zero_()
    return (images + delta.detach()).clamp(0, 1)


def main():
    torch.manual_seed(0)
    images, labels = make_data(96)
    model = SmallNet()
    train(model, images, labels)
    model.eval()

    print(f"clean: {accuracy(model, images, labels):.3f}")
    print(f"fgsm: {accuracy(model, fgsm(model, images, labels), labels):.3f}")
    print(f"pgd linf: {accuracy(model, pgd_linf(model, images, labels), labels):.3f}")
    adversarial = pgd_l2(model, images, labels)
    size = (adversarial - images).flatten(1).norm(dim=1).mean().item()
    print(f"pgd l2: {accuracy(model, adversarial, labels):.3f}, mean norm {size:.3f}")

    baseline = images.clone()
    baseline += EPSILON * torch.randn_like(images).sign()
    print(f"noise: {accuracy(model, baseline.clamp(0, 1), labels):.3f}")
    difference = (baseline - images).abs().max().item()
    print(f"largest change by the noise: {difference:.3f}")


if __name__ == "__main__":
    main()
