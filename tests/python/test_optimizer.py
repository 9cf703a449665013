#!/usr/bin/env python3
"""The optimizer in hivemind's shape."""

import copy
import math
import warnings

import kit
import dpnode

if kit.has("torch"):
    import torch
    from torch import nn


class Scaler:
    """The stages of PyTorch's GradScaler, which knows an optimizer by its id. Before PyTorch 2.3 that is for cards only."""

    def __init__(self):
        self.unscaled = []

    def scale(self, loss):
        return loss * 1024

    def unscale_(self, optimizer):
        assert id(optimizer) not in self.unscaled
        self.unscaled.append(id(optimizer))
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                parameter.grad.div_(1024)

    def step(self, optimizer, *args, **kwargs):
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            return optimizer.step(*args, **kwargs, grad_scaler=self)
        if id(optimizer) not in self.unscaled:
            self.unscale_(optimizer)
        gradients = [parameter.grad for group in optimizer.param_groups for parameter in group["params"]]
        if all(bool(torch.isfinite(gradient).all()) for gradient in gradients):
            return optimizer.step(*args, **kwargs)
        return None

    def update(self):
        self.unscaled.clear()


def scalers():
    real = getattr(getattr(torch, "amp", None), "GradScaler", None)
    return [Scaler()] + ([real("cpu")] if real is not None else [])


class OptimizerTest(kit.Test):
    def setUp(self):
        super().setUp()
        self.model = nn.Linear(1, 1)

    def optimizer(self, **options):
        defaults = {"optimizer": lambda params: torch.optim.SGD(params, lr=0.5), "params": self.model.named_parameters(),
                    "dir": self.dir, "timeout": 5, "batch_size_per_step": 4}
        optimizer = dpnode.Optimizer(**{**defaults, **options})
        self.addCleanup(optimizer.shutdown)
        return optimizer

    def test_a_loop_of_hivemind_trains_the_run(self):
        worker = self.worker(weights=[1, 2])
        worker.now(3, 100)
        optimizer = self.optimizer()
        self.assertEqual((self.model.bias.item(), optimizer.local_epoch), (1, 3))
        for _ in range(3):
            optimizer.zero_grad()
            self.model(torch.zeros(1, 1)).sum().backward()
            worker.due("copy")
            optimizer.step()
        self.assertEqual((worker.weights, worker.seen[-1][:3]), ([-0.5, 2], ("copy", 3, 12)))
        worker.due("add", [0.25, 0])
        optimizer.load_state_from_peers()
        self.assertEqual(self.model.bias.item(), -0.25)
        worker.over()
        optimizer.load_state_from_peers()
        self.assertEqual((optimizer.is_alive(), optimizer.should_stop), (False, True))

    def test_a_function_makes_the_optimizer_of_the_runs_weights(self):
        self.worker(weights=[1, 2])
        seen = []

        def made(params):
            seen.extend(parameter.item() for parameter in params)
            return torch.optim.SGD(params, lr=0.5)

        self.optimizer(optimizer=made)
        self.assertEqual(sorted(seen), [1, 2])

    def test_a_step_may_have_its_own_batch_size_and_a_closure(self):
        worker = self.worker()
        optimizer = self.optimizer(optimizer=torch.optim.SGD(self.model.parameters(), lr=0.5), params=self.model)

        def closure():
            optimizer.zero_grad()
            loss = self.model(torch.zeros(1, 1)).sum() + 3
            loss.backward()
            return loss

        bias = self.model.bias.item()
        loss = optimizer.step(closure, batch_size=7)
        self.assertEqual((loss.item(), self.model.bias.item()), (bias + 3, bias - 0.5))
        self.assertEqual(worker.header(), (1, 7, bias + 3))

    def test_a_step_that_the_scaler_skips_is_not_counted(self):
        worker = self.worker()
        for scaler in scalers():
            optimizer = self.optimizer()
            for factor in (math.inf, 1.0):
                optimizer.zero_grad()
                scaler.scale(factor * self.model(torch.ones(1, 1)).sum()).backward()
                optimizer.step(grad_scaler=scaler)
                scaler.update()
                self.assertEqual(worker.header()[0], factor == 1)
            optimizer.shutdown()

    def test_gradients_that_are_unscaled_before_a_step_are_unscaled_once(self):
        self.worker()
        for scaler in scalers():
            for is_argument in (True, False):
                optimizer = self.optimizer()
                plain = copy.deepcopy(self.model)
                plain(torch.ones(1, 1)).sum().backward()
                torch.nn.utils.clip_grad_norm_(plain.parameters(), 0.125)
                torch.optim.SGD(plain.parameters(), lr=0.5).step()
                optimizer.inner._step_supports_amp_scaling = not is_argument  # as one with fused=True
                scaler.scale(self.model(torch.ones(1, 1)).sum()).backward()
                scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), 0.125)
                if is_argument:
                    optimizer.step(grad_scaler=scaler)
                else:
                    scaler.step(optimizer)
                scaler.update()
                torch.testing.assert_close(self.model.weight, plain.weight)
                optimizer.zero_grad()
                optimizer.shutdown()

    def test_its_scheduler_counts_rounds_also_for_one_who_comes_late(self):
        worker = self.worker()
        worker.now(4, 0)
        optimizer = self.optimizer(scheduler=lambda inner: torch.optim.lr_scheduler.LambdaLR(inner, lambda n: 0.5 ** n))
        self.assertEqual(optimizer.param_groups[0]["lr"], 0.5 * 0.5 ** 4)
        for _ in range(3):
            optimizer.step()
        worker.now(6, 0)
        optimizer.step()
        self.assertEqual(optimizer.param_groups[0]["lr"], 0.5 * 0.5 ** 6)

    def test_it_is_an_optimizer_to_schedulers_hooks_and_checkpoints(self):
        self.worker()
        optimizer = self.optimizer(optimizer=lambda params: torch.optim.SGD(params, lr=0.5, momentum=0.9))
        self.assertIsInstance(optimizer, torch.optim.Optimizer)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.1)
            self.model(torch.ones(1, 1)).sum().backward()
            optimizer.step()
            schedule.step()
        self.assertAlmostEqual(optimizer.inner.param_groups[0]["lr"], 0.05)
        saved = optimizer.state_dict()
        self.assertEqual(len(saved["state"]), 2)
        optimizer.load_state_dict(saved)
        self.assertEqual(len(optimizer.state), 2)
        if hasattr(torch.optim.Optimizer, "register_step_post_hook"):
            calls = []
            optimizer.register_step_post_hook(lambda *_: calls.append(1))
            optimizer.step()
            self.assertEqual(calls, [1])
        self.assertIn("round=0", repr(optimizer))

    def test_what_cannot_be_used_is_refused(self):
        self.worker()
        self.assertIn("without names", str(self.fails(dpnode.Mismatch, self.optimizer, params=self.model.parameters())))
        self.fails(dpnode.Mismatch, self.optimizer, optimizer=3)
        self.fails(dpnode.Mismatch, self.optimizer().add_param_group, {})
        self.assertRaises(TypeError, self.optimizer, dht=None)


if __name__ == "__main__":
    kit.main(needs=["torch"])
