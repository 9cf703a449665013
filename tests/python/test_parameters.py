#!/usr/bin/env python3
"""Which tensors of a PyTorch model travel, and the arithmetic on them."""

import struct

import kit
import dpnode

if kit.has("torch"):
    import torch
    from torch import nn
    from dpnode.parameters import Tensors, named_tensors


def floats(*numbers):
    return memoryview(bytearray(struct.pack(f"<{len(numbers)}f", *numbers))).cast("f")


class Names(kit.Test):
    def names(self, model, **options):
        return [row.name for row in Tensors(model, **options).rows]

    def test_frozen_parameters_stay_and_tied_ones_travel_once(self):
        model = nn.ModuleDict({"embed": nn.Embedding(5, 3), "body": nn.Linear(3, 3), "head": nn.Linear(3, 5, bias=False)})
        model["head"].weight = model["embed"].weight
        model["body"].weight.requires_grad_(False)
        self.assertEqual(self.names(model), ["body.bias", "embed.weight"])

    def test_adapters_travel_without_the_model_that_they_adapt(self):
        class Adapted(nn.Module):
            def __init__(self):
                super().__init__()
                self.base = nn.Linear(4, 4).requires_grad_(False)
                self.lora_A, self.lora_B = nn.Linear(4, 2, bias=False), nn.Linear(2, 4, bias=False)

        self.assertEqual(self.names(Adapted()), ["lora_A.weight", "lora_B.weight"])

    def test_names_are_those_of_the_model_before_it_was_compiled_or_wrapped(self):
        model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
        plain = self.names(model)
        self.assertEqual(self.names(nn.DataParallel(model)), plain)
        wrapped = nn.Module() # As torch.compile's module: the model is its child _orig_mod.
        wrapped._orig_mod = model
        self.assertEqual(self.names(wrapped), plain)
        if hasattr(torch, "compile"):
            model[1] = torch.compile(model[1])
            self.assertEqual(self.names(torch.compile(model)), plain)

    def test_buffers_travel_where_they_are_asked_for_and_running_statistics_never(self):
        model = nn.Sequential(nn.Linear(2, 2, bias=False), nn.BatchNorm1d(2))
        model.register_buffer("table", torch.ones(2), persistent=False)
        model.register_buffer("scale", torch.ones(2))
        model.register_buffer("count", torch.ones(2, dtype=torch.int64))
        self.assertEqual(self.names(model), ["0.weight", "1.bias", "1.weight"])
        self.assertEqual(self.names(model, buffers=True), ["0.weight", "1.bias", "1.weight", "scale"])

    def test_a_model_may_be_names_and_tensors(self):
        model = nn.Linear(2, 2)
        for given in (dict(model.named_parameters()), list(model.named_parameters()), model.named_parameters(), [model]):
            self.assertEqual(self.names(given), ["bias", "weight"])

    def test_what_cannot_travel_is_named(self):
        def model(tensor):
            return {"good": nn.Parameter(torch.zeros(2)), "odd.w": tensor}

        base = torch.zeros(6)
        cases = [(model(nn.Parameter(torch.zeros(2, dtype=torch.float64))), "float64"),
                 (model(nn.Parameter(torch.zeros(2, dtype=torch.complex64))), "complex64"),
                 (model(nn.Parameter(torch.zeros(3, device="meta"))), "no numbers"),
                 (model(nn.Parameter(torch.zeros(1).expand(3))), "one number in memory"),
                 (model(nn.Parameter(torch.zeros(0, 2))), "no elements"),
                 ({"one": nn.Parameter(base[:4]), "odd.w": nn.Parameter(base[2:])}, "share memory")]
        for tensors, words in cases:
            error = self.fails(dpnode.Mismatch, Tensors, tensors)
            self.assertIn("odd.w", str(error))
            self.assertIn(words, str(error))
            self.assertTrue(error.fix)
        self.assertIn("no shape", str(self.fails(dpnode.Mismatch, Tensors, nn.LazyLinear(3))))
        self.assertIn("without names", str(self.fails(dpnode.Mismatch, Tensors, nn.Linear(2, 2).parameters())))
        self.assertIn("names", str(self.fails(dpnode.Mismatch, Tensors, [nn.Linear(2, 2), nn.Linear(2, 2)])))
        self.assertIn("nothing to train", str(self.fails(dpnode.Mismatch, Tensors, nn.ReLU())))

    def test_wrappers_whose_parameters_have_no_shapes_are_refused(self):
        for name in ("FullyShardedDataParallel", "DeepSpeedEngine"):
            wrapper = type(name, (nn.Module,), {})()
            self.assertIn("fully_shard", self.fails(dpnode.Mismatch, named_tensors, wrapper).fix)


class Arithmetic(kit.Test):
    def test_the_vector_has_the_tensors_in_the_order_of_their_names(self):
        model = {"b": nn.Parameter(torch.zeros(2, 2)), "a": nn.Parameter(torch.zeros(()))}
        tensors = Tensors(model)
        tensors.assign(floats(1, 2, 3, 4, 5))
        self.assertEqual((model["a"].item(), model["b"].tolist()), (1, [[2, 3], [4, 5]]))
        tensors.add(floats(10, 0, 0, 0, 0.5))
        room = floats(0, 0, 0, 0, 0)
        tensors.copy(room)
        self.assertEqual(room.tolist(), [11, 2, 3, 4, 5.5])

    def test_tensors_of_any_strides_travel_row_by_row(self):
        weight = nn.Parameter(torch.zeros(2, 3, 2, 2).contiguous(memory_format=torch.channels_last))
        transposed = nn.Parameter(torch.zeros(3, 2).t())
        tensors = Tensors({"conv": weight, "t": transposed})
        numbers = [float(i) for i in range(30)]
        tensors.assign(floats(*numbers))
        tensors.add(floats(*numbers))
        room = floats(*[0.0] * 30)
        tensors.copy(room)
        self.assertEqual(room.tolist(), [2 * number for number in numbers])
        self.assertEqual(weight[1, 2, 0, 1].item(), 2 * 21)
        self.assertFalse(weight.is_contiguous())

    def test_sixteen_bits_keep_what_rounding_takes(self):
        """A thousand additions of a thousandth of the step between two numbers are one step, not none."""
        for dtype in (torch.bfloat16, torch.float16):
            weight = nn.Parameter(torch.ones(2, dtype=dtype))
            tensors = Tensors({"w": weight})
            step = 2.0 ** -7 if dtype == torch.bfloat16 else 2.0 ** -10
            tensors.assign(floats(1, 1))
            for _ in range(1024):
                tensors.add(floats(step / 1024, 0))
            self.assertEqual(weight.tolist(), [1 + step, 1])
            self.assertEqual(weight.dtype, dtype)

    def test_a_copy_of_sixteen_bits_gives_back_exactly_what_was_assigned(self):
        """Rounding is no work: without this every round would publish that of the round before."""
        weight = nn.Parameter(torch.zeros(3, dtype=torch.bfloat16))
        tensors = Tensors({"w": weight})
        given = floats(0.1, -3.14159, 1e-20)
        tensors.assign(given)
        room = floats(0, 0, 0)
        tensors.copy(room)
        self.assertEqual(room.tolist(), given.tolist())
        self.assertNotEqual(weight.tolist(), given.tolist())
        with torch.no_grad():
            weight[0] += 1 # A step of the optimizer.
        before = weight.detach().float()
        tensors.copy(room)
        self.assertAlmostEqual(room[0], before[0].item() + (given[0] - torch.tensor(given[0]).bfloat16().item()), places=6)

    def test_weights_that_are_not_finite_are_found(self):
        model = nn.Linear(2, 2)
        tensors = Tensors(model)
        self.assertEqual(tensors.not_finite(), [])
        with torch.no_grad():
            model.bias[1] = float("nan")
        self.assertEqual(tensors.not_finite(), ["bias"])

    def test_an_addition_between_forward_and_backward_is_no_error(self):
        model = nn.Linear(2, 1)
        tensors = Tensors(model)
        loss = (model(torch.ones(1, 2)) ** 2).sum()
        tensors.add(floats(0, 1, 1))
        loss.backward()


class Changes(kit.Test):
    def test_a_parameter_that_was_replaced_is_named(self):
        model = nn.Sequential(nn.Linear(2, 2))
        tensors = Tensors(model)
        model[0].weight = nn.Parameter(torch.zeros(2, 2))
        self.assertIn("0.weight was replaced", str(self.fails(dpnode.Mismatch, tensors.add, floats(*[0] * 6))))
        model[0] = nn.ReLU()
        self.assertIn("gone", str(self.fails(dpnode.Mismatch, tensors.add, floats(*[0] * 6))))

    def test_a_parameter_of_another_shape_is_named(self):
        model = nn.Linear(2, 2)
        tensors = Tensors(model)
        model.weight.data = torch.zeros(3, 3)
        self.assertIn("weight was changed", str(self.fails(dpnode.Mismatch, tensors.add, floats(*[0] * 6))))

    def test_a_parameter_that_became_trainable_is_named(self):
        model = nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1).requires_grad_(False))
        tensors = Tensors(model)
        model[1].requires_grad_(True)
        self.assertIn("1.weight became trainable", str(self.fails(dpnode.Mismatch, tensors.add, floats(0, 0))))

    def test_a_part_may_be_frozen_for_a_while(self):
        model = nn.Linear(1, 1)
        tensors = Tensors(model)
        model.requires_grad_(False)
        tensors.add(floats(1, 1))

    def test_a_model_may_be_converted_and_compiled_meanwhile(self):
        model = nn.Linear(2, 2)
        tensors = Tensors(model)
        model.to(torch.bfloat16)
        if hasattr(torch, "compile"):
            torch.compile(model)
        tensors.assign(floats(*[1 / 3] * 6))
        self.assertEqual(model.bias.dtype, torch.bfloat16)
        room = floats(*[0] * 6)
        tensors.copy(room)
        self.assertAlmostEqual(room[0], 1 / 3, places=7)


if __name__ == "__main__":
    kit.main(needs=["torch"])
