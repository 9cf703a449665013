#!/usr/bin/env python3
"""Safetensors files: what is written is read back, and damaged ones are refused."""

import errno
import json
import os
import random
import struct
import unittest.mock

import kit
import dpnode
from dpnode.safetensors import Reader, Writer
from dpnode.table import BF16, F16, F32, Row

ROWS = [Row("Half", F16, (3,)), Row("b", F32, (2, 2)), Row("brain", BF16, ()), Row("a", F32, (1,))]


class Safetensors(kit.Test):
    def path(self, content=None):
        path = os.path.join(self.dir, "model.safetensors")
        if content is not None:
            with open(path, "wb") as file:
                file.write(content)
        return path

    def written(self):
        with Writer(self.path(), ROWS) as writer:
            for row in ROWS:
                room = writer.bytes(row.name)
                room[:] = (row.name.encode() * 20)[:len(room)]
        with open(self.path(), "rb") as file:
            return file.read()

    def test_what_is_written_is_read_back(self):
        data = self.written()
        header = json.loads(data[8:8 + struct.unpack_from("<Q", data)[0]])
        self.assertEqual(list(header), ["__metadata__", "a", "b", "Half", "brain"]) # large numbers first: aligned
        reader = Reader(self.path())
        self.assertEqual(set(reader.entries), {"a", "b", "brain", "Half"})
        self.assertEqual((reader.entries["b"].dtype, reader.entries["b"].shape), ("F32", (2, 2)))
        self.assertEqual(bytes(reader.bytes("Half")), b"HalfHa")
        self.assertTrue(all(entry.begin % 2 == 0 for entry in reader.entries.values()))
        self.assertEqual(reader.entries["a"].begin % 8, 0)

    def test_a_failure_leaves_the_file_of_before_and_nothing_else(self):
        before = self.written()
        with self.assertRaises(KeyError):
            with Writer(self.path(), ROWS[:1]) as writer:
                writer.bytes("no such tensor")
        with open(self.path(), "rb") as file:
            self.assertEqual(file.read(), before)
        self.assertEqual(os.listdir(self.dir), ["model.safetensors"])

    def test_a_place_where_no_file_can_be_is_refused_and_nothing_is_left(self):
        os.mkdir(self.path())
        for path in (self.path(), self.path() + "/absent/model.safetensors", self.path() + "/"):
            error = self.fails(dpnode.Mismatch, Writer, path, ROWS)
            self.assertTrue(error.why and error.fix)
        os.rmdir(self.path())
        with self.assertRaises(dpnode.Mismatch):
            with Writer(self.path(), ROWS):
                os.mkdir(self.path())
        self.assertEqual(os.listdir(self.dir), ["model.safetensors"])

    def test_a_full_disk_is_told_before_a_value_is_written(self):
        full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        with unittest.mock.patch("os.posix_fallocate", side_effect=full):
            error = self.fails(dpnode.Error, Writer, self.path(), ROWS)
        self.assertIn("No space left", error.why)
        self.assertIn("bytes free", error.fix)
        self.assertEqual(os.listdir(self.dir), [])

    def test_a_file_has_its_blocks_when_it_is_made(self):
        with Writer(self.path(), [Row("a", F32, (1 << 18,))]):
            name, = os.listdir(self.dir)
            self.assertGreaterEqual(os.stat(os.path.join(self.dir, name)).st_blocks * 512, 1 << 20)
        with unittest.mock.patch("os.posix_fallocate", side_effect=OSError(errno.EOPNOTSUPP, "")):
            self.written() # A file system that reserves nothing.

    def test_damaged_files_are_refused_with_a_sentence(self):
        good = self.written()
        size = struct.unpack_from("<Q", good)[0]
        text = good[8:8 + size].decode()
        cases = [b"", b"abc", good[:-1], good[:20], struct.pack("<Q", 1 << 63) + good[8:], b"\xff" * 8 + good]
        for old, new in (('"F32"', '"F99"'), ("[2,2]", "[2,3]"), ("[2,2]", "[2.5,2]"), ("[2,2]", "null"),
                         ("[0,4]", "[4,0]"), ("[0,4]", "[-4,0]"), ("[0,4]", "[0]"), ("[0,4]", "[0,1e3]"),
                         ("data_offsets", "data_offset"), (text, "[]"), (text, "{"), (text, "[" * 100000)):
            self.assertIn(old, text)
            changed = text.replace(old, new, 1).encode()
            cases.append(struct.pack("<Q", len(changed)) + changed + good[8 + size:])
        for content in cases:
            error = self.fails(dpnode.Mismatch, Reader, self.path(content))
            self.assertTrue(error.why and error.fix)
        self.fails(dpnode.Mismatch, Reader, self.path() + ".none")

    def test_no_change_of_a_file_leads_beyond_it(self):
        good = self.written()
        chance = random.Random(5)
        for _ in range(300):
            data = bytearray(good)
            for _ in range(chance.randint(1, 4)):
                data[chance.randrange(len(data) if chance.random() < 0.3 else 300)] = chance.choice(b'0123456789[]{},:"aF\xff\x00')
            try:
                reader = Reader(self.path(bytes(data)))
            except dpnode.Mismatch:
                continue
            for name, entry in reader.entries.items():
                self.assertEqual(len(reader.bytes(name)), entry.end - entry.begin)


if __name__ == "__main__":
    kit.main()
