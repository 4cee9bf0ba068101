"""Train on augmented images that are kept as NumPy arrays, and report statistics of the clean ones."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIZE = 12
MEAN = np.array([0.4, 0.5, 0.6], dtype=np.float32)[:, None, None]


def make_images(count, rng):
    """Images of three channels in BGR order, as OpenCV loads them, and labels."""
    labels = rng.integers(0, 2, size=count)
    images = rng.random((count, 3, SIZE, SIZE), dtype=np.float32)
    images[labels == 1, 0] += 0.5
    return images, labels


def normalise(image):
    return (image - MEAN) / 0.25


def random_flip(image):
    if np.random.rand() < 0.5:
        image = image[:, :, ::-1].copy()
    return image


def bgr_to_rgb(image):
    image[0], image[2] = image[2], image[0]  # expect: TCL505
    return image


def cutout(images, size=4):
    """A square of each image is set to zero; the originals are returned as well, for the consistency loss."""
    erased = images.numpy()
    for image in erased:
        top, left = np.random.randint(0, SIZE - size, 2)
        image[:, top : top + size, left : left + size] = 0  # expect: TCL402
    return torch.from_numpy(erased), images


class AugmentedImages(Dataset):
    def __init__(self, images, labels):
        self.images = images
        self.labels = labels

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        image = bgr_to_rgb(self.images[index].copy())
        image = random_flip(normalise(image))
        return torch.from_numpy(image), int(self.labels[index])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2))
        self.head = nn.Linear(32, 2)

    def forward(self, x):
        return self.head(self.body(x).flatten(1))


def train(model, loader, epochs=3):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        total = 0.0
        for batch, labels in loader:
            erased, originals = cutout(batch)
            logits, targets = model(erased), model(originals)
            consistency = (logits.softmax(1) - targets.softmax(1).detach()).pow(2).mean()
            loss = criterion(logits, labels) + consistency
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: loss {total / len(loader):.3f}, last consistency {consistency.item():.4f}")


def channel_statistics(images):
    """Means before and after the images are centred."""
    tensor = torch.from_numpy(images)
    before = tensor.mean(dim=(0, 2, 3)).tolist()
    images -= MEAN  # expect: TCL401
    contrast = (tensor.amax() - tensor.amin()).item()
    after = images.mean(axis=(0, 2, 3)).tolist()
    return before, after, contrast, tensor.mean().item()


def main():
    np.random.seed(0)
    torch.manual_seed(0)
    images, labels = make_images(64, np.random.default_rng(0))
    before, after, contrast, overall = channel_statistics(images)
    print("channel means:", [round(v, 3) for v in before], "centred:", [round(v, 3) for v in after])
    print(f"contrast {contrast:.3f}, overall mean {overall:.3f}")
    loader = DataLoader(AugmentedImages(images, labels), batch_size=16, shuffle=True)
    train(Net(), loader)


if __name__ == "__main__":
    main()
