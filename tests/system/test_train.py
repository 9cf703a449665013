#!/usr/bin/env python3
"""dpnode train as real processes: killed at random steps, stopped, with a damaged folder; it ends with the same bytes."""

import array
import fcntl
import glob
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from systemtest import BINARIES, SystemTest  # noqa: E402

STEPS = 40
TRIES_MAX = 20
MANIFEST = """name: small
model: {layers: 2, width: 64, heads: 2, context: 64, vocab: 400}
train: {batch: 6, lr: 3e-3, warmup_tokens: 1920, total_tokens: 15360, precision: bf16, weights: bf16_sr}
"""
TEXT = "".join(random.Random(1).choices(["light ", "and ", "darkness ", "over the ", "deep, ", "waters\n"], k=20000))


class Train(SystemTest):
    def setUp(self):
        super().setUp()
        self.manifest = self.file("run.yaml", MANIFEST)
        self.text = self.file("book.txt", TEXT)
        self.env = {**os.environ, "DPNODE_SOCKET": "/nonexistent/s", "LC_ALL": "C"}

    def out(self, name):
        return os.path.join(self.folder.path, name)

    def start(self, *words):
        command = [os.path.join(BINARIES, "dpnode"), "train", *words, "--json"]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.env,
                                start_new_session=True)

    def end(self, process):
        """Its lines as objects, and its exit status."""
        out, err = process.stdout.read(), process.stderr.read()  # Python may have buffered lines, which communicate would lose.
        self.assertEqual(err, "")
        status = process.wait(timeout=60)
        process.stdout.close()
        process.stderr.close()
        return [json.loads(line) for line in out.splitlines()], status

    def kill(self, process, out):
        """SIGKILL to the command line and its worker; returns when both are gone."""
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
        with open(os.path.join(out, "lock"), encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)

    def until(self, process, steps):
        """Reads events until so many steps were reported. False: it ended before."""
        for line in process.stdout:
            event = json.loads(line)
            steps -= event.get("event") == "step"
            if steps <= 0:
                return True
        return False

    def begin(self, out, *words):
        return self.start(self.manifest, "--text", self.text, "--out", out, "--rows", "4", *words)

    def last(self, out):
        """The bytes of the newest checkpoint: weights, moments, and everything else that steps depend on."""
        with open(sorted(glob.glob(os.path.join(out, "step-*.ckpt")))[-1], "rb") as file:
            return file.read()

    def whole(self):
        events, status = self.end(self.begin(self.out("whole"), "--threads", "1"))
        self.assertEqual((status, events[-1]["step"], events[-1]["stopped"]), (0, STEPS, False), events[-1])
        return self.last(self.out("whole"))

    def test_killed_at_any_step_it_ends_with_the_same_bytes(self):
        whole = self.whole()
        seed = random.randrange(1 << 32)
        draw = random.Random(seed)
        kills = 0
        # If this process is delayed, a training of 40 steps may end before it is killed: then the test starts another one.
        for attempt in range(TRIES_MAX):
            out = self.out(f"killed{attempt}")
            process = self.begin(out, "--save-steps", "3")
            for life in range(9):
                # After 1 to 5 reported steps: between two checkpoints, at one, and while one is written.
                if not self.until(process, draw.randint(1, 5)) or process.poll() is not None:
                    break
                self.kill(process, out)
                kills += 1
                process = self.start("--resume", "--out", out, "--save-steps", "3", "--threads", str(1 + life % 3))
            _, status = self.end(process)
            self.assertEqual(status, 0, f"seed {seed}")
            self.assertEqual(self.last(out), whole, f"seed {seed}")
            if kills >= 4:
                return
        self.fail(f"seed {seed}: killed {kills} times in {TRIES_MAX} trainings")

    def test_two_processes_that_are_killed_end_with_the_same_bytes(self):
        out = self.out("team")
        events, status = self.end(self.begin(out, "--processes", "2", "--threads", "2"))
        self.assertEqual((status, events[-1]["step"]), (0, STEPS), events[-1])
        killed = self.out("killed")
        process = self.begin(killed, "--save-steps", "3", "--processes", "2", "--threads", "1")
        self.assertTrue(self.until(process, 4))
        self.kill(process, killed)
        process = self.start("--resume", "--out", killed, "--processes", "2")
        _, status = self.end(process)
        self.assertEqual(status, 0)
        self.assertEqual(self.last(killed), self.last(out))

    def test_an_interrupt_saves_and_tells_how_to_go_on(self):
        out = self.out("stopped")
        process = self.begin(out, "--steps", "100000", "--patience", "5")
        self.assertTrue(self.until(process, 7))
        process.send_signal(signal.SIGINT)  # Only to the command line; a terminal sends it to both.
        events, status = self.end(process)
        self.assertEqual((status, events[-1]["event"], events[-1]["stopped"]), (130, "end", True))
        stopped = events[-1]["step"]
        self.assertGreaterEqual(stopped, 7)
        process = self.start("--resume", "--out", out)  # As the sentence has it.
        self.assertTrue(self.until(process, 1))
        process.send_signal(signal.SIGINT)
        events, status = self.end(process)
        self.assertEqual((status, events[-1]["target"]), (130, 100000))
        with open(os.path.join(out, "options.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["patience"], 5)
        stopped = events[-1]["step"]
        steps = str(stopped + 5)
        events, status = self.end(self.start("--resume", "--out", out, "--steps", steps))
        start = next(event for event in events if event["event"] == "start")
        self.assertEqual((status, start["step"], start["target"]), (0, stopped, stopped + 5))
        self.end(self.begin(self.out("other"), "--steps", steps))
        self.assertEqual(self.last(out), self.last(self.out("other")))

    def test_lines_plan_and_model_are_there(self):
        events, _ = self.end(self.begin(self.out("told"), "--steps", "5"))
        self.assertEqual([event["event"] for event in events],
                         ["plan", "data", "saved", "start"] + ["step"] * 5 + ["validation", "saved", "end"])
        plan = events[0]["plan"]
        self.assertTrue(plan["fits"] and plan["rows"] == 4 and plan["anchors"] == 0)
        losses = [event["loss"] for event in events if event["event"] == "step"]
        self.assertLess(losses[-1], losses[0])
        self.assertEqual(sorted(os.listdir(os.path.join(self.out("told"), "model"))),
                         ["config.json", "generation_config.json", "model.safetensors", "tokenizer.json"])
        done = subprocess.run([os.path.join(BINARIES, "dpnode"), "eval", self.out("told"), "--json"], env=self.env,
                              capture_output=True, check=True, timeout=60)
        score = json.loads(done.stdout)
        self.assertEqual(score["step"], 5)
        self.assertLess(abs(score["loss"] - losses[-1]), 0.5)

    def test_a_plan_is_made_of_a_text_from_a_pipe(self):
        self.end(self.begin(self.out("piped"), "--steps", "1"))
        with open(os.path.join(self.out("piped"), "manifest.bin"), "rb") as file:
            manifest = file.read()
        done = subprocess.run([os.path.join(BINARIES, "dpnode-worker"), "--plan", "-"], input=manifest, capture_output=True,
                              check=True, timeout=60)
        self.assertTrue(json.loads(done.stdout)["fits"])

    def weights(self, folder):
        with open(os.path.join(folder, "model.safetensors"), "rb") as file:
            size = int.from_bytes(file.read(8), "little")
            file.seek(size, 1)
            data = file.read()
        return array.array("f", data)

    def test_it_begins_from_weights_that_another_run_made(self):
        self.end(self.begin(self.out("first"), "--steps", "20"))
        made = os.path.join(self.out("first"), "model")
        still = self.file("still.yaml", MANIFEST.replace("3e-3", "1e-9").replace("weights: bf16_sr", "weights: fp32"))
        out = self.out("second")
        begin = (still, "--text", self.text, "--out", out, "--rows", "4")
        events, status = self.end(self.start(*begin, "--from", made, "--steps", "1"))
        self.assertEqual(status, 0, events[-1])
        self.assertEqual([event for event in events if event["event"] == "note"], [])
        start = next(event for event in events if event["event"] == "start")
        self.assertTrue(0 < start["passes"] < 1, start)
        events, status = self.end(self.start("--resume", "--out", out, "--steps", "3"))
        self.assertEqual((status, events[-1]["step"]), (0, 3))
        old, new = self.weights(made), self.weights(os.path.join(out, "model"))
        self.assertLess(max(abs(a - b) for a, b in zip(old, new)), 1e-5)
        config = os.path.join(made, "config.json")
        with open(config, encoding="utf-8") as file:
            text = file.read()
        with open(config, "w", encoding="utf-8") as file:
            file.write(text.replace('"n_layer": 2', '"n_layer": 3'))
        self.check_error(self.start(still, "--text", self.text, "--out", self.out("third"), "--from", made), "E0513", 65,
                         "write model")

    def test_an_export_keeps_the_context_of_the_weights_that_it_began_with(self):
        llama = MANIFEST.replace("model: {", "model: {arch: llama, ")
        self.end(self.start(self.file("long.yaml", llama), "--text", self.text, "--out", self.out("long"), "--steps", "1"))
        made = self.out("long")
        for context in ("16", "80"):
            short = self.file("short.yaml", llama.replace("context: 64", "context: " + context))
            out = self.out(context)
            events, status = self.end(self.start(short, "--from", os.path.join(made, "model"), "--text", self.text, "--out", out,
                                                 "--steps", "1"))
            self.assertEqual((status, events[-1]["event"]), (0, "end"), events[-1])
            exported = self.out("exported" + context)
            subprocess.run([os.path.join(BINARIES, "dpnode"), "ckpt", "export", exported, "--from", out, "--json"],
                           stdout=subprocess.PIPE, env=self.env, timeout=60, check=True)
            for folder in (os.path.join(out, "model"), exported):
                with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
                    self.assertEqual(json.load(file)["max_position_embeddings"], max(64, int(context)))
            made = out

    def test_weights_and_a_text_are_enough(self):
        self.end(self.begin(self.out("first"), "--steps", "2"))
        made = os.path.join(self.out("first"), "model")
        events, status = self.end(self.start("--from", made, "--text", self.text, "--out", self.out("second"), "--steps", "2"))
        self.assertEqual((status, events[-1]["model"]), (0, True), events[-1])
        notes = [event["why"] for event in events if event["event"] == "note"]
        self.assertIn("1e-5 to 2e-4", " ".join(notes))
        with open(os.path.join(made, "config.json"), encoding="utf-8") as one, \
                open(os.path.join(self.out("second"), "model", "config.json"), encoding="utf-8") as other:
            self.assertEqual(one.read(), other.read())
        brief = self.file("brief.yaml", "name: brief\ntrain: {batch: 3, lr: 1e-9}\n") # says nothing of the model
        events, status = self.end(self.start(brief, "--from", made, "--text", self.text, "--out", self.out("third"), "--steps", "1"))
        self.assertEqual(status, 0, events[-1])
        self.check_error(self.start("--from", made, "--out", self.out("fourth")), "E0308", 64, "")
        self.check_error(self.start("--from", self.out("none"), "--text", self.text, "--out", self.out("fifth")), "E0502", 66, "none")

    def test_a_model_of_chats_ends_its_turns_after_the_export(self):
        self.end(self.begin(self.out("first"), "--steps", "1"))
        made = os.path.join(self.out("first"), "model")
        path = os.path.join(made, "tokenizer.json")
        with open(path, encoding="utf-8") as file:
            tokenizer = json.load(file)
        first = len(tokenizer["model"]["vocab"])
        self.assertLess(first, 398)
        for number, content in enumerate(("<|endoftext|>", "<|im_start|>", "<|im_end|>")):
            tokenizer["added_tokens"].append({"id": first + number, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
                                              "normalized": False, "special": True})
        with open(path, "w", encoding="utf-8") as file:
            json.dump(tokenizer, file)
        golden = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "templates", "chatml.jinja")
        shutil.copy(golden, os.path.join(made, "chat_template.jinja"))
        self.file("first/model/generation_config.json", json.dumps({"eos_token_id": [7, first], "temperature": 0.7}))
        turns = [{"role": "user", "content": "light and"}, {"role": "assistant", "content": "darkness"}]
        chats = self.file("chats.jsonl", 40 * (json.dumps({"messages": turns}) + "\n"))
        out = self.out("second")
        events, status = self.end(self.start("--from", made, "--text", chats, "--out", out, "--steps", "1"))
        self.assertEqual((status, events[-1]["event"]), (0, "end"), events[-1])
        subprocess.run([os.path.join(BINARIES, "dpnode"), "ckpt", "export", self.out("third"), "--from", out, "--json"],
                       stdout=subprocess.PIPE, env=self.env, timeout=60, check=True)
        for folder in (os.path.join(out, "model"), self.out("third")):
            with open(os.path.join(folder, "generation_config.json"), encoding="utf-8") as file:
                self.assertEqual(json.load(file), {"eos_token_id": [7, first, first + 2], "temperature": 0.7})

    def test_its_newest_checkpoint_is_exported_for_other_programs(self):
        made = self.out("run")
        self.end(self.begin(made, "--steps", "3"))
        for words, names in ((("--gguf", "q8_0"), ["model.gguf"]), (("--llmc", "f32"), ["model.bin"]),
                             ((), ["config.json", "generation_config.json", "model.safetensors", "tokenizer.json"])):
            to = self.out("to" + "".join(words))
            done = subprocess.run([os.path.join(BINARIES, "dpnode"), "ckpt", "export", to, "--from", made, *words, "--json"],
                                  stdout=subprocess.PIPE, env=self.env, timeout=60, check=True)
            told = json.loads(done.stdout)
            self.assertEqual((told["step"], sorted(told["files"])), (3, names))
            self.assertEqual(sorted(os.listdir(to)), names)
        with open(os.path.join(made, "model", "model.safetensors"), "rb") as one, open(os.path.join(to, "model.safetensors"), "rb") as other:
            self.assertEqual(one.read(), other.read())
        done = subprocess.run([os.path.join(BINARIES, "dpnode"), "ckpt", "export", self.out("no"), "--from", self.out(""), "--json"],
                              stdout=subprocess.PIPE, env=self.env, timeout=60, check=False)
        self.assertEqual((done.returncode, json.loads(done.stdout)["error"]["code"]), (66, "E0502"))

    def test_figures_text_and_the_best_checkpoint_are_there(self):
        made, metrics, events = self.out("run"), self.out("m.jsonl"), self.out("tb/run")
        words = ("--val-steps", "4", "--metrics", metrics, "--tensorboard", events)
        _, status = self.end(self.begin(made, "--steps", "8", *words))
        self.assertEqual(status, 0)
        _, status = self.end(self.start("--resume", "--out", made, "--steps", "12", *words))
        self.assertEqual(status, 0)
        with open(metrics, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        self.assertEqual([line["step"] for line in lines if line["event"] == "step"], list(range(1, 13)))
        losses = {line["step"]: line["loss"] for line in lines if line["event"] == "validation"}
        self.assertEqual(sorted(losses), [4, 8, 12])
        self.assertEqual(len(glob.glob(os.path.join(events, "events.out.tfevents.*"))), 2)  # A file for each process.
        with open(os.path.join(made, "best.json"), encoding="utf-8") as file:
            best = json.load(file)
        self.assertEqual(best["step"], min(losses, key=losses.get))
        self.assertTrue(glob.glob(os.path.join(made, f"best-{best['step']:012}.ckpt")))
        ask = [os.path.join(BINARIES, "dpnode"), "sample", made, "-p", "light", "-n", "150", "--seed", "5", "--json"]
        texts = [json.loads(subprocess.run([*ask, *more], stdout=subprocess.PIPE, env=self.env, timeout=60, check=True).stdout)
                 for more in ((), ("--threads", "1"), ("--best",), ("--temperature", "0.2", "--top-p", "0.5"))]
        self.assertEqual([text["step"] for text in texts], [12, 12, best["step"], 12])
        self.assertEqual(texts[0]["text"], texts[1]["text"])
        self.assertNotEqual(texts[0]["text"], texts[3]["text"])
        self.assertTrue(texts[0]["text"].startswith("light"))
        for words, code in (((self.out("none"),), 66), ((made, "--temperature", "-1"), 64), ((made, "--top-k", "0"), 64),
                            ((made, "--top-p", "2"), 64)):
            done = subprocess.run([os.path.join(BINARIES, "dpnode"), "sample", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  env=self.env, timeout=60, check=False)
            self.assertEqual(done.returncode, code, done.stderr)

    def test_a_full_disk_of_figures_is_told_once_and_training_goes_on(self):
        events, status = self.end(self.begin(self.out("run"), "--steps", "5", "--metrics", "/dev/full"))
        notes = [event["why"] for event in events if event["event"] == "note"]
        self.assertEqual((status, len(notes), events[-1]["step"]), (0, 1, 5))
        self.assertIn("/dev/full is not written", notes[0])

    def test_a_backend_that_is_named_computes_or_nobody_does(self):
        self.check_error(self.begin(self.out("plugin"), "--steps", "2", "--backend", "nowhere"), "E0514", 78,
                         "'nowhere' is not installed")
        events, status = self.end(self.begin(self.out("auto"), "--steps", "2", "--backend", "auto"))
        self.assertEqual(status, 0, events)
        plain = os.path.join(BINARIES, "plugins", "libdpnode_plain.so")
        if os.path.exists(plain):
            events, status = self.end(self.begin(self.out("plain"), "--steps", "2", "--backend", plain))
            notes = [event["why"] for event in events if event["event"] == "note"]
            self.assertEqual((status, len(notes)), (0, 1), events)
            self.assertIn("(plain)", notes[0])

    def test_a_device_that_fails_on_the_way_is_named_and_nan_is_no_zero(self):
        faulty = os.path.join(BINARIES, "plugins", "libdpnode_faulty.so")
        if not os.path.exists(faulty):
            self.skipTest("no plugins here")
        self.env["DP_FAULT"] = "late-gone"
        self.check_error(self.begin(self.out("gone"), "--steps", "9", "--backend", faulty), "E0514", 78,
                         "the device failed: the card has fallen off the bus; --resume")
        self.env["DP_FAULT"] = "late-nan"
        done = subprocess.run([os.path.join(BINARIES, "dpnode"), "train", self.manifest, "--text", self.text, "--out",
                               self.out("nan"), "--steps", "9", "--backend", faulty], env=self.env, capture_output=True,
                              text=True, timeout=200, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("loss nan", done.stdout)
        self.assertIn("(dropped: not finite)", done.stdout)
        self.assertNotIn("loss 0.0000", done.stdout)

    def check_error(self, process, code, status, words):
        events, ended = self.end(process)
        error = events[-1]["error"]
        self.assertEqual((ended, error["code"]), (status, code), error)
        self.assertIn(words, error["why"])

    def test_mistakes_are_told(self):
        out = self.out("wrong")
        self.check_error(self.start("--resume", "--out", out), "E0502", 66, "wrong")
        self.end(self.begin(out, "--steps", "2"))
        self.check_error(self.begin(out), "E0511", 73, "--resume")
        other = self.file("other.yaml", MANIFEST.replace("3e-3", "4e-3"))
        self.check_error(self.start(other, "--text", self.text, "--out", out, "--resume"), "E0513", 65, "train.lr")
        large = self.file("large.yaml", "name: large\nmodel: {preset: gpt2-1.5b, context: 1024}\ntrain: {batch: 4096}\n")
        self.check_error(self.start(large, "--text", self.text, "--out", self.out("large"), "--rows", "4096"), "E0510",
                         69, "would fit")
        self.check_error(self.start(), "E0001", 64, "")
        foreign = os.path.join(out, "model")
        self.file("wrong/model/config.json", '{"model_type": "mamba"}')
        self.check_error(self.begin(self.out("foreign"), "--from", foreign), "E0513", 65, "model_type is mamba")
        os.remove(os.path.join(foreign, "config.json"))
        os.mkfifo(os.path.join(foreign, "config.json"))
        self.check_error(self.begin(self.out("pipe"), "--from", foreign), "E0503", 74, "is a pipe")


if __name__ == "__main__":
    systemtest.main()
