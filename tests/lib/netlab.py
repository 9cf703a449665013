"""Hosts in network namespaces for a test: netlab.sh from Python. Needs root, /dev/net/tun and a compiler."""

import os
import subprocess

NETLAB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "netlab.sh")


class Lab:
    def __init__(self, name):
        self.name = f"{name}{os.getpid()}"

    def tell(self, *words):
        return subprocess.run([NETLAB, *words], env={**os.environ, "NETLAB": self.name}, check=True, capture_output=True,
                              text=True).stdout.strip()

    def namespace(self, host):
        return f"netlab-{self.name}-{host}"


def can_run():
    if os.geteuid() != 0 or not os.path.exists("/dev/net/tun"):
        return False
    lab = Lab("try")
    try:
        lab.tell("up", "2")
    except (subprocess.CalledProcessError, OSError):
        return False
    finally:
        subprocess.run([NETLAB, "down"], env={**os.environ, "NETLAB": lab.name}, check=False, capture_output=True)
    return True
