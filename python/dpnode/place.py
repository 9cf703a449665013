"""Where the node of this machine is, and how a script starts one."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from typing import List, Mapping, Optional

from .errors import Error, Offline, Timeout

SOCKET_NAME = "script.sock"
POLL_S = 0.05


def node_dir(given: Optional[str] = None, environment: Mapping[str, str] = os.environ) -> str:
    """The node's directory: the argument, else DPNODE_DIR, else the default of dpnode (cli/paths.c)."""
    chosen = given or environment.get("DPNODE_DIR")
    if chosen:
        return os.path.abspath(os.path.expanduser(chosen) if given else chosen)
    if os.geteuid() == 0:
        return "/var/lib/dpnode"
    state = environment.get("XDG_STATE_HOME", "")
    if state.startswith("/"):
        return os.path.join(state, "dpnode")
    return os.path.join(environment.get("HOME", ""), ".local/state/dpnode")


def daemon_runs(folder: str) -> bool:
    """Whether the pid in the lock file of the node's directory is a live process."""
    try:
        with open(os.path.join(folder, "lock"), encoding="ascii") as file:
            pid = int(file.read(32).split()[0])
        os.kill(pid, 0)
    except PermissionError:
        return True  # The signal was refused: somebody is there.
    except (OSError, ValueError, IndexError, OverflowError):
        return False
    return True


class Place:
    """A node's directory. The socket in it appears when the run is open, and goes with the daemon."""

    def __init__(self, folder: Optional[str] = None, environment: Optional[Mapping[str, str]] = None) -> None:
        self.environment = os.environ if environment is None else environment
        self.folder = node_dir(folder, self.environment)
        self.socket = os.path.join(self.folder, SOCKET_NAME)

    def has_socket(self) -> bool:
        return os.path.exists(self.socket)

    def prepare(self, timeout: float) -> None:
        """Returns when there is a socket; joins a run if there is a token and no socket.

        Raises Offline if nobody will make one, Timeout if nobody has within the timeout.
        """
        deadline = time.monotonic() + timeout
        if self.has_socket():
            return
        if self._join_command() is not None:
            self._join(timeout)
        elif not daemon_runs(self.folder):
            raise Offline("no node is running", f"there is no {self.socket}",
                          "dpnode join TOKEN; or DPNODE_TOKEN=TOKEN in the environment of the script; "
                          "or DPNODE_DIR=DIR if the node is in another directory")
        while not self.has_socket():
            if time.monotonic() >= deadline:
                raise Timeout(f"the node accepts no script after {timeout:g} s",
                              f"there is no {self.socket}; a node makes it when it has the run's model, and the run "
                              "has model.arch external", "dpnode why; a larger timeout=... if it is still fetching")
            time.sleep(POLL_S)

    def _join_command(self) -> Optional[List[str]]:
        """The token itself stays in the environment: arguments are visible to other users."""
        program = self.environment.get("DPNODE_PROGRAM") or "dpnode"
        if self.environment.get("DPNODE_TOKEN"):
            return [program, "join"]
        if self.environment.get("DPNODE_TOKEN_FILE"):
            return [program, "join", self.environment["DPNODE_TOKEN_FILE"]]
        return None

    def _join(self, timeout: float) -> None:
        command = self._join_command()
        assert command is not None
        if shutil.which(command[0], path=self.environment.get("PATH")) is None:
            raise Offline("no node is running, and none can be started", f"there is no program {command[0]}",
                          "install dpnode, or DPNODE_PROGRAM=/path/to/dpnode")
        with tempfile.TemporaryFile() as output:  # No pipe: a daemon that inherits one would keep it open.
            try:
                done = subprocess.run(command, env={**self.environment, "DPNODE_DIR": self.folder}, timeout=timeout,
                                      stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False)
            except subprocess.TimeoutExpired as error:
                raise Timeout(f"dpnode join has not ended after {timeout:g} s", "",
                              "run dpnode join yourself; or a larger timeout=...") from error
            except OSError as error:
                raise Error(f"{command[0]} could not be run", str(error), "DPNODE_PROGRAM=/path/to/dpnode") from error
            if done.returncode != 0:
                output.seek(0)
                raise Offline("this machine could not join the run", output.read(4096).decode(errors="replace").strip(),
                              "a new token: dpnode invite, on a machine of the run")
