"""A control socket that answers what a test tells it to, in place of dpnoded: for names that no daemon lets through, and for many members without
many processes. Standard library only, so the few types of msgpack that it needs are written here (the protocol: daemon/control/control_msg.h)."""

import os
import socket
import struct
import threading


def packed(value):
    """Of None, bools, whole numbers up to 2^64, floats, text, lists and dicts."""
    if value is None:
        return b"\xc0"
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, int):
        return b"\xcf" + struct.pack(">Q", value)
    if isinstance(value, float):
        return b"\xcb" + struct.pack(">d", value)
    if isinstance(value, str):
        text = value.encode("utf-8", "surrogateescape")
        return b"\xdb" + struct.pack(">I", len(text)) + text
    if isinstance(value, list):
        return b"\xdd" + struct.pack(">I", len(value)) + b"".join(map(packed, value))
    return b"\xdf" + struct.pack(">I", len(value)) + b"".join(packed(k) + packed(v) for k, v in value.items())


class Reader:
    """Values of a request: small maps of text and numbers."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, size):
        self.at += size
        return self.data[self.at - size:self.at]

    def value(self):
        first = self.take(1)[0]
        if first < 0x80:
            return first
        if first < 0x90 or first in (0xde, 0xdf):
            count = first & 0x0f if first < 0x90 else int.from_bytes(self.take(2 if first == 0xde else 4), "big")
            return {self.value(): self.value() for _ in range(count)}
        if first < 0xa0:
            return [self.value() for _ in range(first & 0x0f)]
        if first < 0xc0 or first in (0xd9, 0xda):
            return self.take(first & 0x1f if first < 0xc0 else int.from_bytes(self.take(1 if first == 0xd9 else 2), "big")).decode()
        if 0xcc <= first <= 0xcf:
            return int.from_bytes(self.take(1 << (first - 0xcc)), "big")
        return {0xc0: None, 0xc2: False, 0xc3: True}[first]


class PlayedDaemon:
    """Answers from a table: method to result, or to (notices, result), or to a function of the parameters that gives one of these."""

    def __init__(self, path, answers):
        self.path, self.answers = path, answers
        self.asked = []  # (method, parameters)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(16)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                line, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(line,), daemon=True).start()

    def _serve(self, line):
        with line:
            while True:
                try:
                    head = line.recv(4, socket.MSG_WAITALL)
                    if len(head) < 4:
                        return
                    kind, number, method, parameters = Reader(line.recv(struct.unpack("<I", head)[0], socket.MSG_WAITALL)).value()
                    line.sendall(self._answer(number, method, parameters))
                except OSError:
                    return

    def _answer(self, number, method, parameters):
        self.asked.append((method, parameters))
        answer = self.answers.get(method)
        answer = answer(parameters) if callable(answer) else answer
        if answer is None:
            error = {"code": "E0102", "what": "unknown method", "why": method, "fix": "", "exit": 76}
            return self._frame([1, number, error, None])
        notices, result = answer if isinstance(answer, tuple) else ([], answer)
        return b"".join(self._frame([2, number, notice]) for notice in notices) + self._frame([1, number, None, result])

    @staticmethod
    def _frame(value):
        body = packed(value)
        return struct.pack("<I", len(body)) + body

    def close(self):
        self.listener.close()
        os.unlink(self.path)


def run_of(members, rounds=0, events=0, name="node{}"):
    """Answers of a daemon in a run of so many members, with so many rounds and events. name: of a member, by its number."""
    ids = [f"{i:064x}" for i in range(members)]
    peers = [{"id": ids[i], "short": f"s{i:011d}", "name": name.format(i), "state": "alive", "self": i == 0, "linked": i > 0, "roster": True,
              "voter": i < 3, "rtt_ms": 20.0 + i, "round": rounds, "included": rounds, "step_ms": 400.0 + i,
              "addresses": [f"192.0.2.{i % 250}:7717"]} for i in range(members)]
    listed = range(min(members, 32))
    told = [{"round": {"round": r, "slot": r, "kind": "sync", "time_ms": 1_795_900_000_000 + 4000 * r, "duration_ms": 4000, "listed": len(listed),
                       "active": members, "tokens": 1024 * 8 * len(listed), "loss": 3.0 + 4.0 / r, "bytes": 32_000 * len(listed),
                       "counted": True, "left_out": [],
                       "peers": [{"id": ids[i], "short": f"s{i:011d}", "name": name.format(i), "tokens": 8192, "steps": 8,
                                  "weight_share": 1 / len(listed), "age": 0} for i in listed]}} for r in range(1, rounds + 1)]
    lines = [{"event": {"id": i, "time_ms": 1_795_900_000_000 + 100 * i, "name": "round.applied", "round": i, "text": f"round {i} applied"}}
             for i in range(1, events + 1)]
    status = {"state": "training", "pid": 1, "version": "0", "dir": "/", "uptime_s": 9, "name": name.format(0), "id": ids[0], "rss_bytes": 1,
              "log_dropped": 0,
              "run": {"name": "played", "id": "01" * 32, "round": rounds, "slot": rounds, "applied": rounds, "tokens": 8192 * rounds,
                      "members": members, "alive": members, "voters": 3, "is_voter": True, "quorum": True, "exchanges": 0, "counted": rounds,
                      "round_ms": 4000, "sample_tokens": 1, "trains": True, "trainer": "up", "tokens_per_s": 2000.0, "loss": 3.1,
                      "compute_utilisation": 0.9, "bytes_sent": 1 << 30, "bytes_received": 1 << 30, "device": "cpu",
                      "trainer_ms": {"trained": 100_000, "computed": 90_000, "data": 0, "publish": 3000, "apply": 3000, "state": 100, "tell": 5}}}

    def last(items):
        return lambda parameters: (items[-min(parameters.get("last", 20), len(items)):] if items else [], {"count": 0})

    return {"status": status, "peers": {"peers": peers, "more": 0}, "rounds": last(told), "events": last(lines),
            "why": {"answer": "training", "causes": []}}
