"""Nodes with addresses of their own behind one dpfault, so that any of them can be disconnected from any other."""

import os
import subprocess

from daemons import free_port


class Web:
    """folder.node(...) behind a proxy. Numbers count from 1, as in the name n1."""

    def __init__(self, folder, count, *arguments):
        self.proxy = subprocess.Popen([os.path.join(folder.binaries, "dpfault"), "--seed", "5"], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.nodes = []
        for i in range(1, count + 1):
            port = free_port()
            node = folder.node(f"n{i}", "--advertise", f"127.0.0.1:{port}", *arguments, host=f"127.0.0.{i + 1}")
            self.nodes.append(node)
            self.tell(f"forward n{i} 127.0.0.1:{port} {node.host}:{node.port}")

    def tell(self, *lines):
        self.proxy.stdin.write("".join(line + "\n" for line in lines) + "say done\n")
        self.proxy.stdin.flush()
        answer = self.proxy.stdout.readline()
        assert answer == "done\n", f"dpfault does not take {lines}"

    def cut(self, ones, others, both=True):
        """Blocks all bytes from ones to others, and with both also those back. Arguments are numbers of nodes."""
        for a in ones:
            for b in others:
                if both:
                    self.tell(f"cut n{b} from n{a}", f"cut n{a} from n{b}")
                else: # up is from who dialled
                    self.tell(f"cut n{b} from n{a} up", f"cut n{a} from n{b} down")

    def heal(self):
        self.tell("heal *")

    def end(self):
        self.proxy.stdin.close()
        self.proxy.wait(10)
        self.proxy.stdout.close()
