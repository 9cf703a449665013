#!/usr/bin/env python3
"""A script of several processes of PyTorch as one member: DistributedDataParallel over gloo."""

import os
import subprocess
import sys
import textwrap
import unittest.mock

import kit
import dpnode
from distributed_kit import DistributedTest, Numbers
from rank_kit import raised

if kit.has("torch"):
    import torch
    from torch import nn
    from dpnode import meeting


def weights(model):
    return [number for _, tensor in sorted(model.named_parameters()) for number in tensor.detach().flatten().tolist()]


class Ddp(DistributedTest):
    def test_the_loop_of_the_guide_is_one_member_of_many_ranks(self):
        worker = self.worker(weights=[i / 10 for i in range(10)], tokens_total=1000)

        def body(rank):
            model = nn.parallel.DistributedDataParallel(self.network(rank))
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
            seen = []
            with self.run_of(model, optimizer) as run:
                yield weights(model.module)
                for batch in run.shard(Numbers(), batch_size=4):
                    seen.append(batch.flatten().tolist())
                    loss = (model(batch / 100) ** 2).mean()
                    loss.backward()
                    run.loss(loss)
                    optimizer.step()
                    optimizer.zero_grad()
                    yield seen, weights(model.module), run.round, run.tokens, run.should_stop
                    if run.should_stop:
                        break
            yield "left"

        group = self.ranks(body)
        for values in group.turn():
            self.assertEqual(values, weights_of(worker))
        group.turn()
        worker.due("copy")
        group.turn()
        zero, one = group.turn()
        self.assertEqual(sorted(sum(zero[0] + one[0], [])), sorted((7 * i) % 100 for i in range(24)))
        self.assertEqual(zero[1:], one[1:])
        copy = worker.seen[-1]
        self.assertEqual(copy[:3], ("copy", 3, 24))
        for one, other in zip(worker.weights, zero[1]):
            self.assertAlmostEqual(one, other, places=6)
        # A round moves both by the same, and the end of what was planned stops both after the same step.
        worker.due("add", [1.0] * 10)
        worker.now(3, 1000)
        group.turn()
        zero, one = group.turn()
        self.assertEqual(zero[1:], one[1:])
        self.assertEqual(zero[2:], (3, 1000, True))
        self.assertGreater(zero[1][0], 0.5)
        self.assertEqual(group.turn(), ["left"] * 2)
        self.assertEqual(worker.seen[-1][:3], ("copy", 5, 40)) # The last steps were handed in.
        self.assertEqual(worker.connections, 1)

    def test_gradient_accumulation_counts_the_samples_of_all_ranks(self):
        worker = self.worker()

        def body(rank):
            model = nn.parallel.DistributedDataParallel(self.network(rank))
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
            with self.run_of(model, optimizer) as run:
                batches = iter(run.shard(Numbers(), batch_size=2))
                for step in range(3):
                    yield step
                    with model.no_sync():
                        model(next(batches)).mean().backward()
                        run.loss(1.0)
                    model(next(batches)).mean().backward()
                    run.loss(3.0 + 4 * rank)
                    optimizer.step()
            yield "left"

        group = self.ranks(body)
        group.turn()
        group.turn()
        worker.due("copy")
        group.turn()
        group.turn()
        self.assertIn(("copy", 3, 3 * 2 * 2 * 2, 3 * (2.0 + 4.0) / 2), worker.seen)

    def test_workers_of_the_loaders_and_a_compiled_model_work_in_every_rank(self):
        worker = self.worker()

        def body(rank):
            model = nn.parallel.DistributedDataParallel(self.network(rank))
            wrapped = torch.compile(model) if hasattr(torch, "compile") else model # Not called, so nothing is compiled.
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
            seen = []
            with self.run_of(wrapped, optimizer) as run:
                for batch in run.shard(Numbers(), batch_size=3, num_workers=2, multiprocessing_context="fork", batches=4):
                    seen += batch.flatten().tolist()
                    model(batch).mean().backward()
                    optimizer.step()
            yield seen, [row.name for row in run._tensors.rows]

        zero, one = self.ranks(body).turn()
        self.assertEqual(sorted(zero[0] + one[0]), sorted((7 * i) % 100 for i in range(24)))
        self.assertEqual(zero[1], ["0.bias", "0.weight", "2.bias", "2.weight"])
        self.assertEqual(worker.seen[-1][:3], ("copy", 4, 24))

    def test_a_copy_of_ranks_that_drift_apart_is_refused(self):
        worker = self.worker(weights=[i / 10 for i in range(10)])

        def body(rank):
            model = self.network(rank) # Nothing averages gradients.
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
            with self.run_of(model, optimizer, samples_per_step=1):
                yield None

                def steps():
                    for _ in range(2):
                        model(torch.full((1, 1), 1.0 + rank)).mean().backward()
                        optimizer.step()

                yield raised(steps)

        group = self.ranks(body)
        group.turn()
        worker.due("copy")
        for error in group.turn():
            self.assertIn("the replicas of 0.bias differ: ranks 0 and 1", error.text)
            self.assertIn("DistributedDataParallel", error.fix)
        self.assertNotIn("copy", [one[0] for one in worker.seen])

    def test_a_member_in_hiveminds_shape_may_have_several_ranks(self):
        worker = self.worker()

        def body(rank):
            model = nn.parallel.DistributedDataParallel(self.network(rank))
            optimizer = dpnode.Optimizer(optimizer=lambda params: torch.optim.SGD(params, lr=0.01), params=model,
                                         batch_size_per_step=5, dir=self.dir, timeout=20)
            for _ in range(4):
                model(torch.full((5, 1), 1.0 + rank)).mean().backward()
                optimizer.step()
                optimizer.zero_grad()
                yield optimizer.local_epoch
            optimizer.shutdown()
            yield weights(model.module)

        group = self.ranks(body)
        group.turn()
        worker.due("copy")
        worker.now(5, 10)
        group.turn()
        self.assertEqual(group.turn(), [5, 5])
        self.assertEqual(worker.seen[-1][:3], ("copy", 3, 30))
        group.turn()
        zero, one = group.turn()
        self.assertEqual(zero, one)

    def test_processes_may_be_members_of_their_own(self):
        folders = [os.path.join(self.dir, name) for name in "ab"]
        workers = []
        for folder in folders:
            os.mkdir(folder)
            workers.append(kit.PlayedWorker(folder))
            self.addCleanup(workers[-1].close)

        def body(rank):
            model = self.network(rank)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
            with self.run_of(model, optimizer, samples_per_step=3, dir=folders[rank], alone=True):
                for _ in range(1 + rank):
                    optimizer.step()
            yield raised(self.run_of(nn.parallel.DistributedDataParallel(self.network(rank)), alone=True).__enter__)

        for error in self.ranks(body).turn():
            self.assertIn("alone=True", error.text)
        self.assertEqual([worker.seen[-1][:3] for worker in workers], [("copy", 1, 3), ("copy", 2, 6)])

    def test_ranks_on_several_machines_are_refused_in_every_rank(self):
        self.worker()

        def body(rank):
            if rank == 1: # The answer of a socket on another machine.
                meeting.Spoke = unittest.mock.Mock(side_effect=ConnectionRefusedError)
            yield raised(self.run_of(self.network(rank), samples_per_step=1).__enter__)

        for error in self.ranks(body, n=3).turn():
            self.assertIn("rank 1 is not on the machine of rank 0", error.text)
            self.assertIn("each is a member", error.fix)

    def test_an_exception_in_one_rank_ends_the_others_with_an_error(self):
        worker = self.worker()

        def body(rank):
            model = nn.parallel.DistributedDataParallel(self.network(rank))
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
            with self.run_of(model, optimizer, samples_per_step=1):
                for step in range(20):
                    if rank == 1 and step == 3:
                        yield "raises"
                        raise ValueError("of the script")
                    model(torch.ones(1, 1)).mean().backward()
                    optimizer.step()
            yield "not reached"

        group = self.ranks(body)
        group.go()
        self.assertEqual(group.value(1), "raises")
        group.go(1)
        self.assertEqual((group.value(1).kind, group.value(0).kind), ("ValueError", "RuntimeError"))
        self.assertEqual(worker.header()[0], 3)


class Torchrun(DistributedTest):
    def test_a_script_under_torchrun_is_one_member(self):
        worker = self.worker()
        script = os.path.join(self.dir, "train.py")
        with open(script, "w", encoding="utf-8") as file:
            file.write(textwrap.dedent("""
                import sys, torch, dpnode
                torch.set_num_threads(1)
                torch.distributed.init_process_group("gloo")
                model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
                optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
                data = torch.arange(100.0).view(100, 1)
                with dpnode.DiLoCo(model, optimizer, dir=sys.argv[1]) as run:
                    for batch in run.shard(data, batch_size=4, batches=6):
                        model(batch).mean().backward()
                        optimizer.step()
                        optimizer.zero_grad()
                torch.distributed.destroy_process_group()
            """))
        environment = {**os.environ, "PYTHONPATH": kit.PACKAGE, "OMP_NUM_THREADS": "1"}
        done = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", script,
                               self.dir], env=environment, check=False, capture_output=True, text=True, timeout=200)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        self.assertEqual((worker.seen[-1][:3], worker.connections), (("copy", 6, 48), 1))


def weights_of(worker):
    """As 32-bit numbers."""
    return torch.tensor(worker.weights).tolist()


if __name__ == "__main__":
    kit.main(needs=["torch"])
