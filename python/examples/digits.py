#!/usr/bin/env python3
"""A convolutional network that reads digits, trained by the members of a run.

    DPNODE_FIRST_WEIGHTS=digits.safetensors python3 digits.py   # once: the first weights
    dpnode run create digits.yaml --from digits.safetensors     # data: {samples: 20000}, or 60000 with --data
    python3 digits.py                                           # on each machine of the run

The images are drawn: 28 x 28 points with a digit of varying place, size, slant and ink, and noise. --data FOLDER takes
MNIST's files (train-images-idx3-ubyte, train-labels-idx1-ubyte and t10k-..., packed with gzip or not) in their place.
"""

import argparse
import gzip
import os

import torch
from torch import nn
from torch.nn import functional as F

import dpnode

# Ten digits of 5 x 7 points, row by row.
GLYPHS = ("0e11131519110e 040c040404040e 0e11010204081f 1f02040201110e 02060a121f0202 1f101e0101110e 0608101e11110e "
          "1f010204080808 0e11110e11110e 0e11110f01020c").split()


def glyphs():
    """[10][1][7][5], 1 where there is ink."""
    rows = torch.tensor([list(bytes.fromhex(glyph)) for glyph in GLYPHS])
    return (rows[:, None, :, None] >> torch.arange(4, -1, -1) & 1).float()


class Drawn(torch.utils.data.Dataset):
    """Images of which item i is the same on every machine, as its number is the seed."""

    def __init__(self, length, first=0):
        self.length, self.first, self.ink = length, first, glyphs()

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        draw = torch.Generator().manual_seed(self.first + index)
        digit = int(torch.randint(10, (1,), generator=draw))
        size, slant, left, down, ink = (torch.rand(5, generator=draw) * 2 - 1).tolist()
        place = torch.tensor([[[2.2 + 0.5 * size, 0.6 * slant, 0.6 * left], [0, 1.6 + 0.3 * size, 0.3 * down]]])
        image = F.grid_sample(self.ink[digit:digit + 1], F.affine_grid(place, (1, 1, 28, 28), align_corners=False),
                              align_corners=False)[0]
        return (0.7 + 0.3 * ink) * image + 0.2 * torch.randn(1, 28, 28, generator=draw), digit


def read_idx(path):
    """The numbers of a file of MNIST: u32 2048 + dimensions, u32 extents, bytes; numbers are big-endian."""
    with (open(path, "rb") if os.path.exists(path) else gzip.open(path + ".gz", "rb")) as file:
        content = file.read()
    dims = content[3]
    shape = [int.from_bytes(content[4 * i + 4:4 * i + 8], "big") for i in range(dims)]
    return torch.frombuffer(bytearray(content[4 + 4 * dims:]), dtype=torch.uint8).view(shape)


def read_mnist(folder, part):
    images = read_idx(os.path.join(folder, f"{part}-images-idx3-ubyte"))
    labels = read_idx(os.path.join(folder, f"{part}-labels-idx1-ubyte"))
    return torch.utils.data.TensorDataset(images[:, None].float() / 255, labels.long())


def network():
    return nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Flatten(), nn.Linear(32 * 7 * 7, 64), nn.ReLU(), nn.Linear(64, 10))


@torch.no_grad()
def accuracy(model, dataset, device):
    right = sum((model(images.to(device)).argmax(1) == digits.to(device)).sum().item()
                for images, digits in torch.utils.data.DataLoader(dataset, batch_size=256))
    return right / len(dataset)


def main():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--data", metavar="FOLDER", help="MNIST's files; else digits are drawn")
    words.add_argument("--epochs", type=int, default=20)
    words.add_argument("--batches", type=int, default=100, help="of an epoch")
    words.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    words.add_argument("--offline", action="store_true", help="without a node")
    given = words.parse_args()

    train = read_mnist(given.data, "train") if given.data else Drawn(20_000)
    test = read_mnist(given.data, "t10k") if given.data else Drawn(1_000, first=1 << 40)
    model = network().to(given.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    with dpnode.DiLoCo(model, optimizer, offline=given.offline) as run:
        loader = run.shard(train, batch_size=64, batches=given.batches, shuffle=True)
        for epoch in range(given.epochs):
            for images, digits in loader:
                loss = F.cross_entropy(model(images.to(given.device)), digits.to(given.device))
                loss.backward()
                run.loss(loss)
                optimizer.step()
                optimizer.zero_grad()
            right = accuracy(model, test, given.device)
            print(f"epoch {epoch}, round {run.round}: loss {loss.item():.3f}, {right:.1%} right", flush=True)
            if run.should_stop:
                break


if __name__ == "__main__":
    main()
