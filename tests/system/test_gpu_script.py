#!/usr/bin/env python3
"""script/gpu without a card: tools simulate a machine with a rented card, so that its steps, budgets, files and figures are tested before a user
pays for one. The tools print the same as the real ones."""

import importlib.machinery
import importlib.util
import json
import os
import stat
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from systemtest import BINARIES  # noqa: E402

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
SCRIPT = os.path.join(ROOT, "script", "gpu")

STEP = """{"event":"step","step":%d}"""
# The script of each tool; $B is the build folder.
TOOLS = {
    "nvidia-smi": """case "$*" in -L) echo "GPU 0: NVIDIA H200" ;; *) echo "NVIDIA H200, 580.1, 9.0, 143771 MiB, 1980 MHz, 700.00 W" ;; esac""",
    "nvcc": "echo nvcc: NVIDIA; echo Build cuda_13.0",
    "cmake": "exit 0",
    "ninja": "exit 0",
    "ctest": "case \"$*\" in *-N*) echo 'Total Tests: 2' ;; *) echo '100% tests passed, 0 tests failed out of 2' ;; esac",
    "compute-sanitizer": """echo "========= COMPUTE-SANITIZER"
        while [ "$1" != all ]; do tool=$2; [ "$1" = --tool ] && kind=$2; shift; done; shift; "$@"
        [ "$kind" = racecheck ] && echo "========= RACECHECK SUMMARY: 0 hazards displayed" || echo "========= ERROR SUMMARY: 0 errors" """,
    "ncu": "echo counters",
}
BUILT = {
    "dpnode-worker": """echo '{"backend":"cuda","line":"NVIDIA H200 computes (cuda)"}'""",
    "gpu_test_vectors": "echo '[  PASSED  ] 5 test(s).'",
    "bench_backend": """shape="gpt2-124m T1024 B32"; speed=650000
        case "$*" in *1558m*) shape="gpt2-1558m T1024 B16"; speed=60000 ;; esac
        echo "{\\"shape\\":\\"$shape\\",\\"tokens_per_s\\":$speed,\\"tflops\\":520,\\"share\\":0.52,\\"encode_ms\\":9,\\"stolen_ms\\":4,\\"first_step_s\\":2}"
        eval "$HANG" """,
    "dpnode": """out=; for word; do [ "$before" = --out ] && out=$word; before=$word; done; mkdir -p "$out"
        case "$*" in *--save-steps*) for i in $(seq 40); do echo '{"event":"step"}'; done; sleep 60 ;; esac
        echo same >"$out/step-60.ckpt"; echo '{"event":"step"}'""",
}


def script():
    loader = importlib.machinery.SourceFileLoader("gpu", SCRIPT)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("gpu", loader))
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


class GpuScript(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="dpnode-gpu-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.build = os.path.join(self.folder, "build")
        self.out = os.path.join(self.folder, "out")
        os.makedirs(os.path.join(self.build, "plugins"))
        for name, text in TOOLS.items():
            self.tool(os.path.join("bin", name), text)
        for name, text in BUILT.items():
            self.tool(os.path.join("build", name), text)
        self.tool("build/bench_kernels", f"cat {self.kernels()}")

    def tool(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n{text}\n")
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)

    def kernels(self):
        """The output of bench_kernels for kernels that reach the goals."""
        path = os.path.join(self.folder, "kernels")
        listed = ["layer norm", "layer norm back", "gelu", "swiglu back", "rope", "q k norm, rope", "adamw", "encode sparse", "encode int8"]
        with open(path, "w", encoding="utf-8") as file:
            file.write(json.dumps({"kernel": "copy", "device": "NVIDIA H200", "gb_per_s": 4300.0}) + "\n")
            for name in listed:
                file.write(json.dumps({"kernel": name, "us": 10.0, "share": 0.9, "tflops": 0.0, "path": ""}) + "\n")
            for name, tflops in script().ATTENTION.items():
                file.write(json.dumps({"kernel": name, "us": 10.0, "share": 0.5, "tflops": tflops + 1.0, "path": "wgmma"}) + "\n")
            file.write(json.dumps({"kernel": "determinism", "embed_us": 50.0, "attention_us": 100.0, "tokens": 65536}) + "\n")
        return path

    def gpu(self, *words, status=0, **more):
        environment = {**os.environ, "OUT": self.out, "PATH": os.path.join(self.folder, "bin") + ":" + os.environ["PATH"], **more}
        done = subprocess.run([SCRIPT, "--build", self.build, *words], env=environment, text=True, capture_output=True, timeout=120, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def told(self):
        with open(os.path.join(self.out, "gpu.json"), encoding="utf-8") as file:
            return json.load(file)

    def steps(self):
        return {row["step"]: row for row in self.told()["steps"]}

    def test_budgets_of_a_part_leave_room_in_a_call(self):
        gpu = script()
        for part, steps in gpu.PARTS.items():
            self.assertLessEqual(gpu.LOOK_S + gpu.BUILD_S + sum(steps.values()), gpu.CALL_S, part)
        self.assertLessEqual(gpu.CALL_S, 600 - 30)

    def test_the_figures_of_the_first_part_are_held_against_the_goals(self):
        torch = '{"shape": "gpt2-124m T1024 B32", "tokens_per_s": 550000}'
        self.gpu("--only", "self-test,kernels,124M,1558M")
        found = self.told()["facts"]
        self.assertEqual((found["name"], found["compute_cap"]), ("NVIDIA H200", "9.0"))
        wanted = {g["goal"]: g for g in found["goals"]}
        for name in ("124M", "1558M", "encoding 1558M", "layer norm back", "swiglu back", "q k norm, rope", "adamw", "encode sparse",
                     "attention 64", "attention 128 back", "equal bits cost"):
            self.assertTrue(wanted[name]["reached"], wanted[name])
        for name in ("124M beside torch.compile", "cold start of 124M"):
            self.assertIsNone(wanted[name]["reached"])
        self.assertLess(len(os.listdir(self.out)), 8, "few files come back")
        other = os.path.join(self.folder, "other.json")
        with open(other, "w", encoding="utf-8") as file:
            json.dump({"facts": {"torch": [json.loads(torch)], "cold": [{"new_wall_s": 12.0}]}}, file)
        table = self.gpu("--goals", os.path.join(self.out, "gpu.json"), other).stdout
        self.assertIn("| 124M beside torch.compile | at least 1.1 times | 1.18182 | reached |", table)
        self.assertIn("| cold start of 124M | at most 10 s | 12 | MISSED |", table)

    def test_the_second_part_compares_bytes_and_kills(self):
        self.gpu("--part", "2", "--only", "ctest -L gpu,three runs,kill and resume,cards")
        steps = self.steps()
        self.assertIn("100% tests passed", steps["ctest -L gpu"]["what"])
        self.assertIn("three checkpoints", steps["three runs"]["what"])
        self.assertIn("killed after 20 steps, ends with the same hash", steps["kill and resume"]["what"])
        self.assertEqual(steps["cards"]["state"], "skipped")
        self.tool("bin/ctest", TOOLS["ctest"] + "; echo '1 - gpu/test_vectors (Skipped)'")
        self.gpu("--only", "ctest -L gpu", status=1)
        self.assertIn("they see no card", self.steps()["ctest -L gpu"]["what"])
        self.tool("build/dpnode", BUILT["dpnode"].replace("echo same", "case $* in *--resume*) echo other ;; *) echo same ;; esac"))
        self.gpu("--only", "three runs,kill and resume", status=1)
        self.assertIn("other bytes", self.steps()["kill and resume"]["what"])

    def test_three_runs_that_differ_fail_and_the_rest_goes_on(self):
        self.tool("build/dpnode", BUILT["dpnode"].replace("echo same", "echo $$"))
        self.gpu("--only", "three runs,memcheck", status=1)
        self.assertIn("3 results", self.steps()["three runs"]["what"])
        self.assertEqual(self.steps()["memcheck"]["state"], "ok")

    def test_the_tools_of_the_third_part_watch_tests_and_self_test(self):
        self.gpu("--part", "3")
        steps = self.steps()
        self.assertIn("2 programs: ERROR SUMMARY: 0 errors", steps["memcheck"]["what"])
        self.assertIn("2 programs: RACECHECK SUMMARY: 0 hazards", steps["racecheck"]["what"])
        with open(os.path.join(self.out, "ncu.log"), encoding="utf-8") as log:
            self.assertIn("counters", log.read())
        self.tool("build/dpnode-worker", """echo '{"backend":"cpu","line":"no card; the CPU computes instead"}'""")
        self.gpu("--only", "memcheck", status=1)
        self.assertIn("the CPU computes instead", self.steps()["memcheck"]["what"])

    def test_a_step_past_the_deadline_is_cut_and_its_figures_stay(self):
        self.gpu("--only", "124M,three runs", "--minutes", "0.2", status=1, HANG="sleep 100")
        steps = self.steps()
        self.assertEqual(steps["124M"]["what"], "its time is over")
        self.assertEqual(self.told()["facts"]["bench"][0]["tokens_per_s"], 650000)
        self.assertEqual((steps["three runs"]["state"], steps["three runs"]["what"]), ("skipped", "no time left"))

    def test_missing_tools_are_named_before_anything_is_built(self):
        self.tool("bin/pkg-config", """case "$*" in *libqrencode*) exit 1 ;; esac""")
        said = self.gpu(status=69).stderr
        self.assertIn("libqrencode missing; script/bootstrap", said)
        self.tool("bin/nvidia-smi", "echo no devices; exit 6")
        self.assertIn("no device", self.gpu(status=77).stderr)
        self.assertIn("no step 'x'", self.gpu("--only", "x", status=1).stderr)
        self.assertIn("no packages in", self.gpu("--packages", self.out, status=69).stderr)


if __name__ == "__main__":
    systemtest.main()
