#!/usr/bin/env python3
"""Parts of the examples that no run needs: images that are read or drawn, adapters that are merged."""

import gzip
import os
import struct
import sys

import kit

sys.path.insert(0, os.path.join(kit.PACKAGE, "examples"))
if kit.has("torch"):
    import torch

    import digits
if kit.has("torch") and kit.has("transformers"):
    import lora


class Digits(kit.Test):
    def test_mnists_files_are_read_packed_or_not(self):
        images, labels = bytes(range(6)) * 4, bytes([7, 1])
        with open(os.path.join(self.dir, "train-images-idx3-ubyte"), "wb") as file:
            file.write(struct.pack(">IIII", 2051, 2, 3, 4) + images)
        with gzip.open(os.path.join(self.dir, "train-labels-idx1-ubyte.gz"), "wb") as file:
            file.write(struct.pack(">II", 2049, 2) + labels)
        dataset = digits.read_mnist(self.dir, "train")
        image, label = dataset[1]
        self.assertEqual((len(dataset), image.shape, label.item()), (2, (1, 3, 4), 1))
        self.assertTrue(torch.equal(image, torch.tensor(list(images[12:])).view(1, 3, 4) / 255))

    def test_an_item_is_the_same_wherever_it_is_drawn_and_another_one_is_not(self):
        (one, digit), (two, same), (other, _) = (digits.Drawn(9)[i] for i in (4, 4, 5))
        self.assertEqual((one.shape, digit), ((1, 28, 28), same))
        self.assertTrue(torch.equal(one, two) and not torch.equal(one, other))


class Lora(kit.Test):
    def setUp(self):
        super().setUp()
        if not kit.has("transformers"):
            self.skipTest("transformers is not installed")

    def test_a_merged_layer_computes_what_layer_and_adapter_did(self):
        for layer in (torch.nn.Linear(6, 4), lora.transformers.pytorch_utils.Conv1D(4, 6)):
            adapted = lora.Adapted(layer.requires_grad_(False), rank=2, scale=2.0)
            x = torch.randn(3, 6)
            self.assertTrue(torch.equal(adapted(x), layer(x)))  # It begins as the layer alone.
            with torch.no_grad():
                adapted.B.normal_()
                wanted = adapted(x)
                self.assertTrue(torch.allclose(adapted.merged()(x), wanted, atol=1e-5))


if __name__ == "__main__":
    kit.main(needs=["torch"])
