#!/usr/bin/env python3
"""Models to and from safetensors files."""

import json
import os
import struct

import kit
import dpnode

if kit.has("torch"):
    import torch
    from torch import nn


def model_of():
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2), nn.Linear(2, 1).to(torch.bfloat16))
    model[0].bias.requires_grad_(False)
    model.register_buffer("scale", torch.rand(2))
    return model


class Files(kit.Test):
    def setUp(self):
        super().setUp()
        self.path = os.path.join(self.dir, "model.safetensors")

    def test_a_saved_model_has_exactly_what_travels(self):
        dpnode.save_model(model_of(), self.path)
        with open(self.path, "rb") as file:
            header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        header.pop("__metadata__")
        self.assertEqual({name: about["dtype"] for name, about in header.items()},
                         {"0.weight": "F32", "1.weight": "F32", "1.bias": "F32", "2.weight": "BF16", "2.bias": "BF16"})

    def test_a_loaded_model_is_the_saved_one(self):
        model, other = model_of(), model_of()
        dpnode.save_model(model, self.path, buffers=True)
        dpnode.load_model(other, self.dir, buffers=True) # A folder, as of dpnode ckpt export.
        for (name, one), two in zip(model.named_parameters(), other.parameters()):
            self.assertEqual(torch.equal(one, two), one.requires_grad, name)
        self.assertTrue(torch.equal(model.scale, other.scale))

    def test_number_types_are_converted(self):
        model = nn.Linear(2, 2)
        dpnode.save_model(model, self.path)
        half = nn.Linear(2, 2).half()
        dpnode.load_model(half, self.path)
        self.assertTrue(torch.equal(half.weight, model.weight.half()))

    def test_a_file_of_another_model_changes_nothing_and_is_named(self):
        dpnode.save_model(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)), self.path)
        other = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 3))
        before = other[0].weight.clone()
        self.assertIn("1.weight", str(self.fails(dpnode.Mismatch, dpnode.load_model, other, self.path)))
        self.assertTrue(torch.equal(before, other[0].weight))
        self.assertIn("no tensor 2.weight", str(self.fails(dpnode.Mismatch, dpnode.load_model,
                                                           nn.Sequential(nn.ReLU(), nn.ReLU(), nn.Linear(2, 2)), self.path)))

    def test_tensors_of_any_strides_are_written_row_by_row(self):
        weight = nn.Parameter(torch.arange(6.0).view(2, 3).t())
        dpnode.save_model({"w": weight}, self.path)
        other = nn.Parameter(torch.zeros(3, 2))
        dpnode.load_model({"w": other}, self.path)
        self.assertTrue(torch.equal(weight, other))

    def test_the_reference_reader_agrees(self):
        try:
            from safetensors.torch import load_file
        except ImportError:
            self.skipTest("safetensors is not installed")
        model = model_of()
        dpnode.save_model(model, self.path)
        loaded = load_file(self.path)
        self.assertEqual(set(loaded), {name for name, one in model.named_parameters() if one.requires_grad})
        self.assertTrue(all(torch.equal(loaded[name], one) for name, one in model.named_parameters() if name in loaded))


if __name__ == "__main__":
    kit.main(needs=["torch"])
