#!/usr/bin/env python3
"""Models of fully_shard (FSDP2) as one member: each rank has a piece of every parameter, and copies that. Over gloo."""

import os
import sys

import kit
import dpnode
from distributed_kit import DistributedTest, Numbers
from rank_kit import raised

if kit.has("torch"):
    import torch
    from torch import nn
try:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Partial, Shard, distribute_tensor
    from torch.distributed.fsdp import fully_shard
except ImportError: # PyTorch before 2.6; Tensors of 2.4 are the same, in other modules.
    fully_shard = None


def network():
    return nn.Sequential(nn.Linear(1, 3), nn.Tanh(), nn.Linear(3, 1))


ELEMENTS = 3 + 3 + 3 + 1


def sharded(mesh, **options):
    model = network()
    fully_shard(model[0], mesh=mesh, **options)
    return fully_shard(model, mesh=mesh, **options)


def wholes(model):
    """All weights, in the order of the run: every rank must ask."""
    model.reshard()
    return [number for _, tensor in sorted(model.named_parameters()) for number in tensor.full_tensor().flatten().tolist()]


def alone(weights, steps, ranks):
    """What one process makes of the samples of all ranks."""
    model = network()
    with torch.no_grad():
        at = 0
        for _, tensor in sorted(model.named_parameters()):
            tensor.copy_(torch.tensor(weights[at:at + tensor.numel()]).view(tensor.shape))
            at += tensor.numel()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for step in range(steps):
        batch = torch.tensor([[(7 * i) % 100 / 100] for i in range(4 * ranks * step, 4 * ranks * (step + 1))])
        (model(batch) ** 2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return [number for _, tensor in sorted(model.named_parameters()) for number in tensor.detach().flatten().tolist()]


class ShardedTest(DistributedTest):
    WEIGHTS = [(i + 1) / 10 for i in range(ELEMENTS)]

    def close(self, one, other, places=5):
        self.assertIsInstance(one, list, one)
        self.assertEqual(len(one), len(other))
        for a, b in zip(one, other):
            self.assertAlmostEqual(a, b, places=places)

    def loop(self, ranks, shape=None, **options):
        """Ranks that train, and tell their whole weights after each step."""
        def body(rank):
            mesh = init_device_mesh("cpu", shape, mesh_dim_names=("copies", "pieces")) if shape else init_device_mesh("cpu", (ranks,))
            model = sharded(mesh, **{name: option() for name, option in options.items()})
            optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
            with self.run_of(model, optimizer) as run:
                yield wholes(model)
                for batch in run.shard(Numbers(), batch_size=4, batches=5):
                    (model(batch / 100) ** 2).mean().backward()
                    optimizer.step()
                    optimizer.zero_grad()
                    yield wholes(model)
            yield "left"

        return self.ranks(body, n=ranks)


class Loops(ShardedTest):
    def trains(self, ranks, **options):
        worker = self.worker(weights=self.WEIGHTS)
        group = self.loop(ranks, **options)
        for seen in group.turn():
            self.close(seen, self.WEIGHTS)
        group.turn()
        worker.due("copy")
        group.turn()
        seen = group.turn()
        self.assertEqual(worker.seen[-1][:3], ("copy", 3, 12 * ranks))
        for weights in seen:
            self.close(weights, worker.weights, places=7)
        self.close(worker.weights, alone(self.WEIGHTS, 3, ranks))
        moves = [float(i) for i in range(ELEMENTS)]
        worker.due("add", moves)
        before = group.turn()[0]
        after = group.turn()[0] # A step of AdamW moves by 0.01 at most.
        for move, old, new in zip(moves, before, after):
            self.assertLess(abs(new - old - move), 0.05)
        self.assertEqual(group.turn(), ["left"] * ranks)
        self.close(worker.weights, after, places=7) # The end hands in all pieces.

    def test_two_ranks_with_uneven_pieces_train_as_one_process_would(self):
        self.trains(2)

    def test_of_four_ranks_some_have_nothing_of_a_tensor(self):
        self.trains(4)

    def test_pieces_of_columns_are_copied_too(self):
        """Shard(1) needs an even extent."""
        worker = self.worker(weights=[float(i) for i in range(24)])

        def body(rank):
            model = nn.Linear(4, 6, bias=False)
            fully_shard(model, mesh=init_device_mesh("cpu", (2,)), shard_placement_fn=lambda _: Shard(1))
            optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
            with self.run_of(model, optimizer, samples_per_step=1):
                yield model.weight.to_local().tolist()
                for _ in range(2):
                    model(torch.ones(1, 4)).sum().backward()
                    optimizer.step()
                    optimizer.zero_grad()
            yield None

        group = self.ranks(body)
        for rank, seen in enumerate(group.turn()):
            self.assertEqual(seen, [[4.0 * row + column for column in (2 * rank, 2 * rank + 1)] for row in range(6)])
        group.turn()
        self.assertEqual(worker.weights, [float(i) - 2 for i in range(24)])

    def test_replicated_and_sharded_ranks_are_one_member(self):
        self.trains(4, shape=(2, 2))

    def test_a_replica_of_a_piece_that_differs_is_told(self):
        worker = self.worker(weights=self.WEIGHTS)

        def body(rank):
            model = sharded(init_device_mesh("cpu", (2, 2), mesh_dim_names=("copies", "pieces")))
            with self.run_of(model, samples_per_step=1) as run:
                if rank == 3:
                    model[0].bias.to_local().data += 1
                yield None
                run.step(1)
                yield raised(run.step, 1)

        group = self.ranks(body, n=4)
        group.turn()
        worker.due("copy")
        for error in group.turn():
            self.assertIn("the replicas of 0.bias differ: ranks 1 and 3", error.text)

    def test_sixteen_bits_keep_what_rounding_takes_in_each_piece(self):
        worker = self.worker(weights=[1.0] * 4)

        def body(rank):
            model = fully_shard(nn.Linear(1, 2).bfloat16(), mesh=init_device_mesh("cpu", (2,)))
            with self.run_of(model, samples_per_step=1) as run:
                for _ in range(130):
                    yield None
                    run.look()
            yield model.bias.full_tensor().tolist()

        group = self.ranks(body)
        for _ in range(128):
            group.turn()
            worker.due("add", [2.0 ** -14] * 4)
        for _ in range(2):
            group.turn()
        self.assertEqual(group.turn(), [[1 + 2.0 ** -7] * 2] * 2)

    def test_a_look_after_an_evaluation_finds_the_pieces(self):
        """fully_shard leaves the outer module with whole parameters until the next step."""
        worker = self.worker(weights=self.WEIGHTS)

        def body(rank):
            model = sharded(init_device_mesh("cpu", (2,)))
            with self.run_of(model, samples_per_step=1) as run:
                for _ in range(2):
                    with torch.no_grad():
                        model(torch.ones(1, 1))
                    yield [type(tensor).__name__ == "DTensor" or hasattr(tensor, "placements") for tensor in model.parameters()]
                    run.look()
            yield wholes(model)

        group = self.ranks(body) # The first look has nothing due.
        self.assertIn(False, group.turn()[0])
        worker.due("add", [1.0] * ELEMENTS)
        group.turn()
        for seen in group.turn():
            self.close(seen, [weight + 1 for weight in self.WEIGHTS])

    def test_weights_that_are_not_finite_are_named_by_the_rank_that_has_them(self):
        worker = self.worker(weights=self.WEIGHTS)

        def body(rank):
            model = sharded(init_device_mesh("cpu", (2,)))
            with self.run_of(model, samples_per_step=1) as run:
                if rank == 1:
                    model[0].bias.to_local().data.fill_(float("nan"))
                yield None
                yield raised(run.look)

        group = self.ranks(body)
        group.turn()
        worker.refusal = (7, "a weight is NaN")
        for error in group.turn():
            self.assertIn("not finite in 0.bias", error.text)


class Placements(ShardedTest):
    def test_any_block_of_any_dimension_is_right(self):
        """As names and tensors, without fully_shard: DTensor itself cuts unevenly in every dimension."""
        worker = self.worker(weights=[float(i) for i in range(2 * 5 * 3 + 7)])

        def body(rank):
            mesh = init_device_mesh("cpu", (3,))
            tensors = {"t": nn.Parameter(distribute_tensor(torch.zeros(2, 5, 3), mesh, [Shard(1)])),
                       "v": nn.Parameter(distribute_tensor(torch.zeros(7), mesh, [Shard(-1)]))}
            with self.run_of(tensors, samples_per_step=1) as run:
                seen = [tensor.full_tensor().flatten().tolist() for tensor in tensors.values()]
                with torch.no_grad():
                    for tensor in tensors.values():
                        tensor.mul_(2.0)
                run.step(1)
            yield seen

        for seen in self.ranks(body, n=3).turn():
            self.assertEqual(seen, [[float(i) for i in range(30)], [float(i) for i in range(30, 37)]])
        self.assertEqual(worker.weights, [2.0 * i for i in range(37)])

    def test_what_is_not_built_is_refused_by_name(self):
        self.worker()

        def body(rank):
            mesh, two = init_device_mesh("cpu", (2,)), init_device_mesh("cpu", (2, 1))
            parallel = nn.Linear(2, 2)
            parallel.weight = nn.Parameter(distribute_tensor(parallel.weight.data, mesh, [Shard(0)]))
            errors = [raised(self.run_of, parallel),
                      raised(self.run_of, {"w": nn.Parameter(distribute_tensor(torch.zeros(4), two, [Shard(0), Shard(0)]))}),
                      raised(self.run_of, {"w": nn.Parameter(DTensor.from_local(torch.zeros(4), mesh, [Partial()]))}),
                      raised(self.run_of, {"w": nn.Parameter(DTensor.from_local(torch.zeros(1 + 2 * rank), mesh, [Shard(0)],
                                                                                shape=(4,), stride=(1,)))}),
                      raised(dpnode.save_model, sharded(mesh), os.path.join(self.dir, "file"))]
            single = sharded(mesh)
            errors.append(raised(lambda: self.run_of(single, alone=True)))
            yield errors

        for errors in self.ranks(body).turn():
            words = ("tensor parallelism", "which is not built", "which is not built", "by its placements", "before fully_shard",
                     "alone=True")
            for error, word in zip(errors, words):
                self.assertEqual(error.kind, "Mismatch")
                self.assertIn(word, error.text)

    def test_a_file_is_read_into_the_pieces(self):
        path = os.path.join(self.dir, "model.safetensors")
        plain = network()
        dpnode.save_model(plain, path)

        def body(rank):
            model = sharded(init_device_mesh("cpu", (2,)))
            dpnode.load_model(model, path)
            yield wholes(model)

        for seen in self.ranks(body).turn():
            self.assertEqual(seen, [number for _, tensor in sorted(plain.named_parameters())
                                    for number in tensor.detach().flatten().tolist()])


if __name__ == "__main__":
    if kit.has("torch") and fully_shard is None:
        print("skipped: this PyTorch has no fully_shard")
        sys.exit(77)
    kit.main(needs=["torch"])
