#!/usr/bin/env python3
"""The socket: ends of a connection at every moment, and paths of any length."""

import os
import socket
import struct
import threading

import kit
import dpnode
from dpnode.link import Link, Lost

REFUSED = struct.pack("<II", 3, 6) + "out of order \u00e9".encode()


class LinkTest(kit.Test):
    def link(self, serve, path=None):
        """A link to a listener whose one connection `serve` handles, and the thread of that."""
        path = path or os.path.join(self.dir, "script.sock")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(listener.close)
        folder = os.open(os.path.dirname(path), os.O_RDONLY)
        listener.bind(f"/proc/self/fd/{folder}/{os.path.basename(path)}")
        os.close(folder)
        listener.listen(1)

        def run():
            connection, _ = listener.accept()
            with connection:
                serve(connection)

        thread = threading.Thread(target=run)
        thread.start()
        link = Link(path, 5)
        self.addCleanup(link.close)
        return link, thread

    def test_a_refusal_is_read_although_it_came_before_the_question(self):
        link, thread = self.link(lambda connection: connection.send(REFUSED))
        thread.join()
        self.assertEqual(self.fails(dpnode.Refused, link.look).what, "out of order \u00e9")
        self.assertFalse(link.is_open)

    def test_a_refusal_is_read_although_the_question_was_not(self):
        asked = threading.Event()

        def serve(connection):
            asked.wait(5)
            connection.send(REFUSED)

        link, thread = self.link(serve)
        receive = dpnode.packets.receive

        def receive_late(*arguments):
            asked.set()
            thread.join() # It has closed with the question unread.
            return receive(*arguments)

        dpnode.packets.receive = receive_late
        self.addCleanup(setattr, dpnode.packets, "receive", receive)
        self.assertEqual(self.fails(dpnode.Refused, link.look).code, 6)

    def test_an_end_without_a_word_is_told_as_one(self):
        link, thread = self.link(lambda connection: connection.recv(100))
        self.assertRaises(Lost, link.look)
        thread.join()
        self.assertFalse(link.is_open)
        self.assertRaises(Lost, link.look)

    def test_a_refusal_that_is_no_text_is_told_too(self):
        link, thread = self.link(lambda connection: connection.send(struct.pack("<II", 3, 99) + b"\xff\xfe"))
        thread.join()
        error = self.fails(dpnode.Refused, link.look)
        self.assertEqual((error.code, error.fix), (99, "dpnode why"))

    def test_a_directory_with_a_long_name_is_reached(self):
        folder = os.path.join(self.dir, "x" * 200)
        os.mkdir(folder)
        link, thread = self.link(lambda connection: connection.send(struct.pack("<IIQQ", 5, 0, 7, 8)),
                                 os.path.join(folder, "script.sock"))
        self.assertEqual(link.look(), (0, 7, 8))
        thread.join()


if __name__ == "__main__":
    kit.main()
