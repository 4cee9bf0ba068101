"""A Wasserstein GAN on points of a ring, with weight clipping and a moving average of the generator."""

import math

import torch
from torch import nn, optim

LATENT = 8
BATCH = 64
CLIP = 0.05
N_CRITIC = 3
STEPS = 20


class Generator(nn.Module):
    def __init__(self, latent_dim=LATENT, hidden=32):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(latent_dim, hidden),
            nn.ReLU(True),
            nn.Linear(hidden, hidden),
            nn.ReLU(True),
            nn.Linear(hidden, 2),
        )

    def forward(self, z):
        return self.net(z)


class Critic(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2, hidden),
            nn.LeakyReLU(0.2),
            nn.Linear(hidden, hidden),
            nn.LeakyReLU(0.2),
            nn.Linear(hidden, 1),
        )

    def forward(self, x):
        return self.net(x).mean()


def weights_init(m):
    if isinstance(m, nn.Linear):
        m.weight.data.normal_(0.0, 0.1)
        m.bias.data.fill_(0)


def real_batch(size):
    angle = 2 * math.pi * torch.rand(size)
    return torch.stack([angle.cos(), angle.sin()], dim=1)


def clip_weights(critic, limit):
    for p in critic.parameters():
        p.data.clamp_(-limit, limit)


def main():
    torch.manual_seed(0)
    netG, netD = Generator(), Critic()
    netG.apply(weights_init)
    netD.apply(weights_init)

    # The averaged generator starts from the same weights.
    ema = Generator()
    ema.load_state_dict(netG.state_dict())

    optimizerD = optim.RMSprop(netD.parameters(), lr=5e-4)
    optimizerG = optim.RMSprop(netG.parameters(), lr=5e-4)
    fixed_noise = torch.randn(BATCH, LATENT)

    for step in range(STEPS):
        for _ in range(N_CRITIC - 1):
            netD.zero_grad()
            noise = torch.randn(BATCH, LATENT)
            loss_d = netD(netG(noise).detach()) - netD(real_batch(BATCH))
            loss_d.backward()
            optimizerD.step()
            clip_weights(netD, CLIP)

        # The last critic update shares its fake batch with the generator.
        fake = netG(torch.randn(BATCH, LATENT))
        netD.zero_grad()
        loss_d = netD(fake.detach()) - netD(real_batch(BATCH))
        loss_d.backward()
        optimizerD.step()
        clip_weights(netD, CLIP)

        netG.zero_grad()
        loss_g = -netD(fake)
        loss_g.backward()
        optimizerG.step()

        with torch.no_grad():
            for p_ema, p in zip(ema.parameters(), netG.parameters()):
                p_ema.mul_(0.99).add_(p, alpha=0.01)

        if step % 5 == 0:
            with torch.no_grad():
                samples = netG(fixed_noise)
            radius = samples.norm(dim=1).mean().item()
            print(f"step {step}: critic {loss_d.item():.4f}  generator {loss_g.item():.4f}  radius {radius:.3f}")

    with torch.no_grad():
        distance = sum((a - b).abs().sum().item() for a, b in zip(ema.parameters(), netG.parameters()))
    print(f"distance of the average from the generator: {distance:.4f}")


if __name__ == "__main__":
    main()
