#!/usr/bin/env python3
"""What a node tells of its run of a built-in model, and the windows of its text."""

import json
import os
import pickle
import socket
import struct
import subprocess
import sys
import threading

import kit
import dpnode
from dpnode.windows import Part, Windows

if kit.has("torch"):
    import torch


def memfd(data):
    fd = os.memfd_create("test")
    os.write(fd, data)  # Its offset is at the end, as that of a file that others have read.
    return fd


def shard(tokens, training, token_bytes=2, offset=32):
    """Its file, and the numbers that the node tells of it."""
    data = bytes(offset) + struct.pack(f"<{len(tokens)}{'H' if token_bytes == 2 else 'I'}", *tokens)
    return data, {"offset": offset, "token_bytes": token_bytes, "tokens": len(tokens), "training": training}


class Teller:
    """A node that answers READ alone, from files; each connection anew. refuse: the first so many are refused as another's."""

    def __init__(self, folder, files, refuse=0, code=1):
        self.files, self.refuse, self.code = files, refuse, code
        self.asked = []
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(os.path.join(folder, "script.sock"))
        self.listener.listen(4)
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection:
                self.talk(connection)

    def talk(self, connection):
        while True:
            packet = connection.recv(65536)
            if not packet:
                return
            if self.refuse > 0:
                self.refuse -= 1
                connection.send(struct.pack("<II", 3, self.code) + b"process 7 trains with this node already")
                return
            kind, file = struct.unpack("<II", packet)
            assert kind == 9, packet
            self.asked.append(file)
            data = self.files.get(file, b"")
            answer = struct.pack("<IIQ", 10, file, len(data))
            if not data:
                connection.send(answer)
                continue
            fd = memfd(data)
            socket.send_fds(connection, [answer], [fd])
            os.close(fd)

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()


class About(kit.Test):
    def teller(self, files, **more):
        teller = Teller(self.dir, files, **more)
        self.addCleanup(teller.close)
        return teller

    def files(self, **changed):
        one, two = shard(range(50), 50), shard(range(100, 140), 30)
        numbers = {"context": 8, "samples": 6 + 3, "vocab": 300, "batch": 2, "shards": [one[1], two[1]], **changed}
        return {0: json.dumps(numbers).encode(), 1: b'{"model_type": "gpt2", "n_layer": 1}', 2: b"{}", 3: one[0], 4: two[0]}

    def test_a_run_is_told_with_its_model_numbers_and_text(self):
        self.teller(self.files())
        about = dpnode.about(self.dir)
        self.assertEqual(about.config, {"model_type": "gpt2", "n_layer": 1})
        self.assertEqual((about.numbers["vocab"], about.numbers["batch"], "shards" in about.numbers), (300, 2, False))
        self.assertEqual((about.tokenizer, len(about.text), len(about.held_out)), (b"{}", 9, 1))
        x, y = about.text[6]  # the first of the second shard
        self.assertEqual((x.tolist(), y.tolist()), (list(range(100, 108)), list(range(101, 109))))
        self.assertEqual(about.text[5][1].tolist(), list(range(41, 49)))
        self.assertEqual(about.held_out[0][0].tolist(), list(range(130, 138)))
        for index in (9, -1):
            with self.assertRaises(IndexError):
                about.text[index]

    def test_other_ranks_that_ask_are_waited_for(self):
        teller = self.teller(self.files(), refuse=3)
        self.assertEqual(len(dpnode.about(self.dir).text), 9)
        self.assertEqual(teller.refuse, 0)

    def test_a_node_that_has_another_script_says_so(self):
        self.teller(self.files(), refuse=1000)
        with self.assertRaisesRegex(dpnode.Refused, "process 7 trains with this node already"):
            dpnode.about(self.dir, timeout=0.5)

    def test_a_run_of_any_model_has_nothing_to_tell(self):
        self.teller({})
        with self.assertRaisesRegex(dpnode.Mismatch, "not built in"):
            dpnode.about(self.dir)

    def test_numbers_that_do_not_fit_the_text_are_refused(self):
        bad = [{"samples": 8}, {"shards": [{"offset": 32, "token_bytes": 2, "tokens": 51, "training": 50}]},
               {"shards": [{"offset": 32, "token_bytes": 3, "tokens": 5, "training": 5}]},
               {"shards": [{"offset": 32, "token_bytes": 2, "tokens": 5, "training": 6}]}]
        for changed in bad:
            teller = Teller(self.dir, self.files(**changed))
            with self.assertRaises(dpnode.ProtocolError):
                dpnode.about(self.dir)
            teller.close()
            os.unlink(os.path.join(self.dir, "script.sock"))

    def test_tokens_of_two_and_four_bytes_have_no_sign(self):
        for token_bytes, tokens in ((2, [65535, 0, 32768, 7]), (4, [4294967295, 65536, 0, 9])):
            data, numbers = shard(tokens, 4, token_bytes, offset=1024)
            part = Part(memfd(data), numbers["offset"], token_bytes, 4, 4)
            x, y = Windows([part], 3, held_out=False)[0]
            self.assertEqual((x.tolist(), y.tolist()), (tokens[:3], tokens[1:]))

    def test_targets_without_a_loss_are_left_out_of_the_loss(self):
        tokens, lossy = list(range(29)), {3, 4, 7, 8, 15, 16, 17, 28}
        data, _ = shard(tokens, 12)
        begins, losses = bytearray(4), bytearray(4)
        for i in lossy:
            losses[i // 8] |= 1 << i % 8
        part = Part(memfd(data + bytes(begins) + bytes(losses)), 32, 2, 29, 12, 32 + 58 + 4)
        windows, held = (Windows([part], 4, held_out=held_out) for held_out in (False, True))
        self.assertEqual([y.tolist() for _, y in windows], [[-100, -100, 3, 4], [-100, -100, 7, 8]])
        self.assertEqual((len(held), held[0][0].tolist(), held[0][1].tolist()), (4, [12, 13, 14, 15], [-100, -100, 15, 16]))
        again = pickle.loads(pickle.dumps(windows))
        self.assertEqual(again[1][1].tolist(), [-100, -100, 7, 8])
        with self.assertRaises(dpnode.ProtocolError):
            Part(memfd(data + bytes(7)), 32, 2, 29, 12, 32 + 58 + 4)

    def test_workers_of_a_loader_read_the_text_themselves(self):
        data, _ = shard(range(400), 400)
        windows = Windows([Part(memfd(data), 32, 2, 400, 400)], 3, held_out=False)
        again = pickle.loads(pickle.dumps(windows))
        self.assertEqual(again[7][0].tolist(), windows[7][0].tolist())
        for method in ("fork", "spawn"):
            loader = torch.utils.data.DataLoader(windows, batch_size=4, num_workers=1, multiprocessing_context=method)
            self.assertEqual([x[0, 0].item() for x, _ in loader][:3], [0, 12, 24])

    def test_a_model_of_transformers_is_built_from_it(self):
        if not kit.has("transformers"):
            self.skipTest("transformers is not installed")
        import dpnode.hf

        config = {"model_type": "gpt2", "n_layer": 1, "n_embd": 8, "n_head": 2, "n_positions": 8, "vocab_size": 20,
                  "bos_token_id": None, "eos_token_id": None}
        made = dpnode.About(config, {}, b"", Windows([], 8, False), Windows([], 8, True))
        model = dpnode.hf.model(made)
        self.assertEqual(type(model).__name__, "GPT2LMHeadModel")
        self.assertNotIn("lm_head.weight", dict(model.named_parameters()))
        with self.assertRaisesRegex(dpnode.Mismatch, "no model of this run"):
            dpnode.hf.model(dpnode.About(None, {}, b"", Windows([], 8, False), Windows([], 8, True)))

    def test_asking_imports_no_torch(self):
        self.teller(self.files())
        code = "import sys, dpnode; dpnode.about(sys.argv[1]); sys.exit('torch' in sys.modules)"
        done = subprocess.run([sys.executable, "-c", code, self.dir], env={**os.environ, "PYTHONPATH": kit.PACKAGE}, check=False)
        self.assertEqual(done.returncode, 0)


if __name__ == "__main__":
    kit.main(needs=("torch",))
