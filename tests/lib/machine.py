"""A machine with a fresh Debian 12 of its own: a folder with its files, in which systemd runs as process 1 of namespaces. Needs root, mmdebstrap
and, for what was not fetched before, Debian's registry."""

import ctypes
import os
import shutil
import signal
import subprocess
import time

from daemons import children_of, wait_for

CLONE_NEWNET = 0x40000000
PACKAGES = "systemd-sysv,adduser,dbus,dbus-user-session,libpam-systemd"
FETCH_S = 900 # of the image, and of packages
BOOT_S = 120
# The files that a container's manager makes before process 1. The only devices are those of each container.
BOOT = """set -e
mount --make-rprivate /
mount --bind "$1" "$1"
cd "$1"
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs tmpfs run
mount -t tmpfs tmpfs tmp
mount -t tmpfs -o mode=755 tmpfs dev
for device in null zero full random urandom tty; do
  : >dev/$device
  mount --bind /dev/$device dev/$device
done
mkdir dev/shm dev/pts run/lock
mount -t tmpfs tmpfs dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
exec env -i container=dpnode-test PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot . "$2" >/dev/null 2>&1 </dev/null
"""


def own_network():
    """From here on this process, and what it starts, has a network with nothing but its loopback."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "no network namespace")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def reason_for_none():
    """Why no machine can be made here, or None."""
    missing = [tool for tool in ("mmdebstrap", "unshare", "nsenter", "dpkg-deb", "ip") if shutil.which(tool) is None]
    if os.geteuid() != 0:
        return "only root can make a machine"
    if missing:
        return "not installed: " + " ".join(missing)
    probe = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--net", "--cgroup", "true"], capture_output=True, check=False)
    return None if probe.returncode == 0 else "namespaces are not allowed here"


class Machine:
    def __init__(self, folder, cache):
        """folder: of its files, on a disk. cache: where the image and fetched packages are kept."""
        self.root = os.path.join(folder, "root")
        self.cache = cache
        self.process = None
        self.init = None

    def unpack(self):
        """Fresh files. RuntimeError if the image is neither there nor to be had."""
        image = os.path.join(self.cache, "debian12.tar")
        archives = os.path.join(self.cache, "archives")
        os.makedirs(archives, exist_ok=True)
        if not os.path.exists(image):
            made = subprocess.run(["mmdebstrap", "--quiet", "--variant=minbase", "--skip=cleanup/apt", "--include=" + PACKAGES, "bookworm",
                                   image + ".new.tar"], capture_output=True, text=True, timeout=FETCH_S, check=False)
            if made.returncode != 0:
                raise RuntimeError("no image of Debian 12: " + made.stderr[-300:])
            os.rename(image + ".new.tar", image)
        os.makedirs(self.root)
        subprocess.run(["tar", "-C", self.root, "-xf", image], check=True)
        for name in os.listdir(archives):
            shutil.copy(os.path.join(archives, name), self.path("var/cache/apt/archives"))
        with open(self.path("etc/apt/apt.conf.d/test"), "w", encoding="ascii") as file:
            file.write('Binary::apt::APT::Keep-Downloaded-Packages "true";\n')
        for name in ("resolv.conf", "hosts"): # those of a machine that has a network, while there is one
            shutil.copy("/etc/" + name, self.path("etc"))

    def path(self, name):
        return os.path.join(self.root, name)

    def fetch(self, *packages):
        """Downloads what apt needs for these; RuntimeError. Files are given by their paths on the machine."""
        done = subprocess.run(["chroot", self.root, "apt-get", "-qq", "-y", "--download-only", "install", *packages], capture_output=True,
                              text=True, timeout=FETCH_S, check=False, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"})
        if done.returncode != 0:
            raise RuntimeError("packages cannot be fetched: " + done.stderr[-300:])
        for name in os.listdir(self.path("var/cache/apt/archives")):
            if name.endswith(".deb"):
                shutil.copy(os.path.join(self.path("var/cache/apt/archives"), name), os.path.join(self.cache, "archives"))

    def boot(self, systemd=True):
        """Process 1 is systemd, or a program that does nothing, as in many containers."""
        init = "/sbin/init"
        if not systemd:
            init = "/root/init"
            with open(self.path("root/init"), "w", encoding="ascii") as file:
                file.write("#!/bin/sh\nwhile :; do sleep 1; done\n")
            os.chmod(self.path("root/init"), 0o755)
        self.process = subprocess.Popen(["unshare", "--mount", "--pid", "--fork", "--kill-child", "--uts", "--ipc", "--cgroup",
                                         "sh", "-c", BOOT, "boot", self.root, init])
        self.init = wait_for(lambda: (children_of(self.process.pid) or [0])[0], BOOT_S, "process 1")
        if systemd:
            wait_for(lambda: self.run("systemctl", "is-system-running").stdout.strip() in ("running", "degraded"), BOOT_S,
                     "systemd is up")
        else:
            wait_for(lambda: os.readlink(f"/proc/{self.init}/root") == self.root, BOOT_S, "the machine's root")

    def run(self, *words, user=None, stdin=None, timeout=180, **environment):
        """A command on the machine, as root or as a user of it."""
        as_user = ["runuser", "-u", user, "--"] if user else []
        return subprocess.run(["nsenter", "--target", str(self.init), "--mount", "--pid", "--uts", "--ipc", "--root", "--wd", *as_user, *words],
                              input=stdin, capture_output=True, text=True, timeout=timeout, check=False,
                              env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive",
                                   "HOME": "/root", **environment})

    def must(self, *words, **more):
        """The standard output of a command that must not fail."""
        done = self.run(*words, **more)
        if done.returncode != 0:
            raise AssertionError(f"{' '.join(words)}: status {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout

    def timed(self, *words, **more):
        began = time.monotonic()
        self.must(*words, **more)
        return time.monotonic() - began

    def end(self):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL) # --kill-child: process 1 goes with it, and all others with that
            self.process.wait()
