#!/usr/bin/env python3
"""The installed dpnode is complete: cmake --install, with a prefix and with DESTDIR, installs programs that find each other and their plugin, with
documents and unit; it reports a folder that it cannot write. A plugin is also found in the build folder."""

import configparser
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from systemtest import BINARIES, TINY, SystemTest, tiny_text  # noqa: E402

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BESIDE = ("share/man/man1/dpnode.1", "share/man/man8/dpnoded.8", "share/man/man8/dpnode-worker.8", "share/bash-completion/completions/dpnode",
          "share/zsh/site-functions/_dpnode", "share/fish/vendor_completions.d/dpnode.fish",
          "share/doc/dpnode/README.md", "share/doc/dpnode/docs/PROTOCOL.md", "share/doc/dpnode/docs/examples/kjv.yaml",
          "share/doc/dpnode/LICENSE", "share/doc/dpnode/docs/web.png", "share/doc/dpnode/contrib/prometheus/alerts.yml")
# dpnode-web is built where libmicrohttpd is.
PROGRAMS = ["dpnode"] + ["dpnode-web"] * os.path.exists(os.path.join(BINARIES, "dpnode-web")) + ["dpnode-worker", "dpnoded"]


class Install(SystemTest):
    def setUp(self):
        super().setUp()
        if shutil.which("cmake") is None or not os.path.exists(os.path.join(BINARIES, "cmake_install.cmake")):
            self.skipTest("no cmake, or no tree of a build")
        with open(os.path.join(BINARIES, "cmake_install.cmake"), encoding="utf-8") as script:
            self.script = script.read()
            wanted = "plugins/libdpnode_cuda.so"
            if wanted in self.script and not os.path.exists(os.path.join(BINARIES, wanted)):
                self.skipTest("the build is not whole: no libdpnode_cuda.so")
        self.prefix = os.path.join(self.folder.path, "usr")

    def install(self, *words, **environment):
        return subprocess.run(["cmake", "--install", BINARIES, *words], capture_output=True, text=True, timeout=120,
                              env={**os.environ, **environment}, check=False)

    def run_installed(self, *words, status=0, **environment):
        """The last line of JSON of the installed dpnode, which must find everything relative to its own path."""
        done = subprocess.run([os.path.join(self.prefix, "bin", "dpnode"), *words, "--json"], capture_output=True, text=True,
                              timeout=120, check=False,
                              env={"PATH": "/usr/bin:/bin", "TMPDIR": self.folder.path, "HOME": self.folder.path,
                                   "DPNODE_DIR": os.path.join(self.folder.path, "d"), "DPNODE_LISTEN": "127.0.0.1:0",
                                   "DPNODE_SOCKET": os.path.join(self.folder.path, "s"), **environment})
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return json.loads(done.stdout.splitlines()[-1])

    def device(self, **environment):
        told = self.run_installed("doctor", **environment)
        return {finding["name"]: finding for finding in told["checks"]}["device"]

    def test_an_installed_swarm_trains(self):
        done = self.install("--prefix", self.prefix)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(os.listdir(os.path.join(self.prefix, "bin"))), PROGRAMS)
        for name in BESIDE:
            self.assertTrue(os.path.exists(os.path.join(self.prefix, name)), name)
        for folder in ("lib/systemd/system", "share/systemd/user"): # as in ~/.local: systemd-analyze --user unit-paths
            with open(os.path.join(self.prefix, folder, "dpnoded.service"), encoding="utf-8") as unit:
                self.assertRegex(unit.read(), rf"(?m)^ExecStart={self.prefix}/bin/dpnoded( |$)")
        text = tiny_text(os.path.join(self.folder.path, "text.txt"))
        last = self.run_installed("swarm", "-n", "2", "--rounds", "2", self.file("tiny.yaml", TINY), "--text", text)
        self.assertEqual(len(last["peers"]), 2, last)

    def test_no_unit_gives_up_on_a_fault_that_passes_or_on_a_store_that_is_rebuilt(self):
        self.assertEqual(self.install("--prefix", self.prefix).returncode, 0)
        for manager, place in (("system", "lib"), ("user", "share")):
            unit = configparser.ConfigParser(strict=False, interpolation=None)
            unit.optionxform = str
            path = os.path.join(self.prefix, f"{place}/systemd/{manager}/dpnoded.service")
            unit.read(path)
            self.assertEqual(unit["Unit"]["StartLimitIntervalSec"], "0")
            service = unit["Service"]
            self.assertEqual([service[key] for key in ("Restart", "RestartSec", "TimeoutStartSec")], ["on-failure", "5", "infinity"])
            # A directory in use: for the machine's unit that passes.
            self.assertEqual("73" in service["RestartPreventExitStatus"].split(), manager == "user")
            if shutil.which("systemd-analyze") is not None:
                done = subprocess.run(["systemd-analyze", f"--{manager}", "verify", "--man=no", path],
                                      env={**os.environ, "XDG_RUNTIME_DIR": self.folder.path}, capture_output=True, text=True, timeout=60,
                                      check=False)
                self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_plugin_is_found_installed_and_built(self):
        built = os.path.join(BINARIES, "plugins", "libdpnode_plain.so")
        if not os.path.exists(built):
            self.skipTest("no plugin is built")
        self.assertEqual(self.install("--prefix", self.prefix).returncode, 0)
        self.assertIn("'plain' is not installed", self.device(DPNODE_BACKEND="plain")["why"])
        place = os.path.join(self.prefix, "lib", "dpnode")
        os.makedirs(place, exist_ok=True)
        shutil.copy(built, place)
        self.assertIn("plain: ", self.device(DPNODE_BACKEND="plain")["what"])
        shutil.copy(built, os.path.join(place, "libdpnode_cuda.so")) # as where nvcc is
        self.assertIn("plain: ", self.device()["what"])
        self.prefix = os.path.join(self.folder.path, "tree") # as the build lies there
        os.makedirs(self.prefix)
        os.symlink(BINARIES, os.path.join(self.prefix, "bin"))
        self.assertIn("plain: ", self.device(DPNODE_BACKEND="plain")["what"])

    def test_destdir_goes_before_the_prefix_and_stands_in_no_file(self):
        package = os.path.join(self.folder.path, "package")
        done = self.install("--prefix", "/opt/dpnode", DESTDIR=package)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(os.listdir(package + "/opt/dpnode/bin")), PROGRAMS)
        with open(package + "/opt/dpnode/lib/systemd/system/dpnoded.service", encoding="utf-8") as unit:
            self.assertIn("ExecStart=/opt/dpnode/bin/dpnoded ", unit.read())
        for prefix, place in (("/opt/dpnode", "share"), ("/usr", "lib"), ("/usr/local", "lib")):
            self.assertEqual(self.install("--prefix", prefix, DESTDIR=package).returncode, 0)
            self.assertEqual([os.path.exists(f"{package}{prefix}/{name}/systemd/user/dpnoded.service") for name in ("lib", "share")],
                             [place == "lib", place == "share"], prefix)
        recipes = package + "/usr/share/doc/dpnode/contrib"
        with open(package + "/usr/share/doc/dpnode/docs/CLUSTERS.md", encoding="utf-8") as page:
            named = set(re.findall(r"\bcontrib/(?!dpnoded)([\w./-]+\w)", page.read()))
        self.assertIn("slurm/dpnode.sbatch", named)
        for name in named:
            self.assertTrue(os.path.exists(os.path.join(recipes, name)), name)
        self.assertTrue(os.access(recipes + "/kubernetes/invite", os.X_OK))

    def test_missing_builds_are_named_with_the_fix(self):
        tree = os.path.join(self.folder.path, "tree")
        os.makedirs(tree)
        with open(os.path.join(tree, "cmake_install.cmake"), "w", encoding="utf-8") as script:
            script.write(self.script.replace(os.path.join(os.path.realpath(BINARIES), "dpnode-worker"), "/nowhere/dpnode-worker"))
        done = subprocess.run(["cmake", "--install", tree, "--prefix", self.prefix], capture_output=True, text=True, timeout=120,
                              check=False)
        self.assertNotEqual(done.returncode, 0)
        said = " ".join(done.stderr.split())
        self.assertIn("/nowhere/dpnode-worker is not built. Fix: cmake --build", said)
        self.assertFalse(os.path.exists(self.prefix))

    def test_a_prefix_that_cannot_be_written_is_named_with_the_fix(self):
        self.file("file", "")
        done = self.install("--prefix", os.path.join(self.folder.path, "file"))
        self.assertNotEqual(done.returncode, 0)
        said = " ".join(done.stderr.split())
        self.assertIn(f"dpnode cannot be installed in {self.folder.path}/file: ", said)
        self.assertIn("Fix: install as root", said)
        self.assertNotIn("Installing", done.stdout)


@unittest.skipIf(shutil.which("cmake") is None, "no cmake")
class Nvcc(SystemTest):
    FIND = os.path.join(ROOT, "compute", "cuda", "find_nvcc.cmake")

    def play(self, folder, release):
        """An nvcc that tells this release."""
        path = self.file(f"{folder}/bin/nvcc", f'#!/bin/sh\necho "Cuda compilation tools, release {release}, V{release}.1"\n')
        os.chmod(path, 0o755)
        return path

    def test_an_nvcc_that_cannot_compile_the_kernels_is_passed_over(self):
        for folder in ("debian", "nvidia"):
            os.makedirs(os.path.join(self.folder.path, folder, "bin"))
        old, new = self.play("debian", "11.8"), self.play("nvidia", "12.0")
        done = subprocess.run(["cmake", "-P", self.FIND], capture_output=True, text=True, timeout=60, check=False,
                              env={**os.environ, "PATH": os.path.dirname(old) + ":" + os.environ["PATH"],
                                   "CUDA_PATH": os.path.join(self.folder.path, "nvidia")})
        self.assertIn(f"-- {old} is of CUDA 11.8, older than 12.0: not used\n", done.stdout)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotEqual(done.stdout.splitlines()[-1], f"-- {old}")
        if shutil.which("nvcc") is None:
            self.assertEqual(done.stdout.splitlines()[-1], f"-- {new}")

    def test_packages_and_builds_look_for_it_in_the_same_way(self):
        for name in ("script/package", "compute/cuda/nvcc.cmake"):
            with open(os.path.join(ROOT, name), encoding="utf-8") as file:
                self.assertIn("find_nvcc.cmake", file.read(), name)


class Card(SystemTest):
    """debian/dpnode-cuda.postinst with a played systemd."""

    def restarts(self, before):
        """What the installation asks for, over that version."""
        place = self.folder.path
        os.makedirs(os.path.join(place, "tools"), exist_ok=True)
        os.chmod(self.file("tools/deb-systemd-invoke", f'#!/bin/sh\necho "$*" >>{place}/asked\nexit 1\n'), 0o755)
        self.file("asked", "")
        with open(os.path.join(ROOT, "debian", "dpnode-cuda.postinst"), encoding="utf-8") as file:
            script = file.read().replace("/run/systemd/system", place)
        subprocess.run(["sh", "-c", script, "postinst", "configure", before], check=True, timeout=20,
                       env={**os.environ, "PATH": f"{place}/tools:{os.environ['PATH']}"})
        with open(os.path.join(place, "asked"), encoding="utf-8") as file:
            return file.read()

    def test_a_plugin_that_is_new_restarts_a_daemon_that_runs(self):
        self.assertEqual(self.restarts(""), "try-restart dpnoded.service\n")
        self.assertEqual(self.restarts("0.1.0"), "") # dpnode's own upgrade restarts it


class Release(unittest.TestCase):
    def test_every_file_that_names_the_version_names_the_same(self):
        with open(os.path.join(ROOT, "base", "version.h"), encoding="utf-8") as file:
            version = re.search(r'DP_VERSION_TEXT "([^"]+)"', file.read()).group(1)
        named = {"python/pyproject.toml": f'version = "{version}"', "python/dpnode/__init__.py": f'__version__ = "{version}"',
                 "debian/changelog": f"dpnode ({version}) "}
        named.update((os.path.relpath(page, ROOT), f'"dpnode {version}"') for page in glob.glob(os.path.join(ROOT, "docs", "man", "*.[18]")))
        self.assertEqual(len(named), 3 + len(os.listdir(os.path.join(ROOT, "docs", "man"))))
        for name, words in named.items():
            with open(os.path.join(ROOT, name), encoding="utf-8") as file:
                self.assertIn(words, file.read(), name)

    def test_the_image_needs_the_packages_that_a_build_needs(self):
        """docker/Dockerfile builds for any architecture of Debian: it names none. It has the libraries of debian/control."""
        with open(os.path.join(ROOT, "docker", "Dockerfile"), encoding="utf-8") as file:
            image = re.sub(r"^#.*\n", "", file.read(), flags=re.MULTILINE)
        with open(os.path.join(ROOT, "debian", "control"), encoding="utf-8") as file:
            control = file.read()
        self.assertIsNone(re.search(r"amd64|x86|arm64|aarch64", image))
        needed = set(re.findall(r"\blib[a-z0-9]+-dev\b", control))
        self.assertLessEqual(needed, set(re.findall(r"\blib[a-z0-9]+-dev\b", image)))


@unittest.skipIf(shutil.which("git") is None, "no git")
class Packages(SystemTest):
    """script/package in a repository of its own, with played compilers and packagers."""
    FILES = (".gitignore", "script/package", "debian/changelog", "python/pyproject.toml", "compute/cuda/find_nvcc.cmake")

    def setUp(self):
        super().setUp()
        tools = os.path.join(self.folder.path, "tools")
        os.mkdir(tools)
        for name in ("cmake", "ninja", "objdump", "strip", "dpkg-buildpackage", "dh", "dh_python3", "lintian", "python3"):
            os.chmod(self.file("tools/" + name, "#!/bin/sh\n"), 0o755)
        self.environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "GIT_CONFIG_GLOBAL": "/dev/null"}
        self.tree = os.path.join(self.folder.path, "tree")
        for name in self.FILES:
            os.makedirs(os.path.join(self.tree, os.path.dirname(name)), exist_ok=True)
            shutil.copy(os.path.join(ROOT, name), os.path.join(self.tree, name))
        self.git("init", "-q")

    def git(self, *words, **environment):
        return subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b.example", *words], cwd=self.tree, check=True, timeout=60,
                              env={**self.environment, **environment}, capture_output=True, text=True).stdout.strip()

    def commit(self, date):
        """Its hash."""
        self.git("add", ".")
        self.git("commit", "-q", "--allow-empty", "-m", "a", GIT_COMMITTER_DATE=date)
        return self.git("rev-parse", "--short=8", "HEAD")

    def version(self, kind, place, pattern):
        """The version that this kind of package gets."""
        subprocess.run([os.path.join(self.tree, "script", "package"), kind], env=self.environment, capture_output=True, timeout=60, check=False)
        with open(os.path.join(self.tree, "build", "package", place), encoding="utf-8") as file:
            return re.search(pattern, file.read(), re.MULTILINE).group(1)

    def versions(self):
        deb = self.version("deb", "dpnode/debian/changelog", r"^dpnode \((.*)\)")
        self.assertEqual(self.version("wheel", "python/pyproject.toml", r'^version = "(.*)"'), deb)
        return deb

    def test_a_wheel_needs_the_pip_of_an_environment_alone(self):
        """As with Debian's python3-venv: python3 has no module pip."""
        os.chmod(self.file("tools/python3", """#!/bin/sh
case "$*" in
"-m venv --clear "*) mkdir -p "$4/bin"; printf '#!/bin/sh\\nmkdir "$5"; : >"$5/a.whl"\\n' >"$4/bin/pip"; chmod 755 "$4/bin/pip" ;;
"script/wheel.py "*/pure/a.whl*) echo made ;;
*) echo "No module named pip" >&2; exit 1 ;;
esac
"""), 0o755)
        self.commit("2026-11-30T00:00:00+0000")
        done = subprocess.run([os.path.join(self.tree, "script", "package"), "wheel"], env=self.environment, capture_output=True, text=True,
                              timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, "made\n"), done.stderr)

    def test_a_later_commit_makes_a_later_version_and_a_tag_the_version_of_the_tree(self):
        with open(os.path.join(ROOT, "debian", "changelog"), encoding="utf-8") as file:
            plain = re.match(r"dpnode \((.*)\)", file.read()).group(1)
        first = self.commit("2026-11-30T23:59:59+0100")
        self.assertEqual(self.versions(), f"{plain}+git20261130225959.{first}")
        second = self.commit("2026-11-30T23:00:00+0000")
        self.assertEqual(self.versions(), f"{plain}+git20261130230000.{second}")
        self.assertEqual(self.versions(), f"{plain}+git20261130230000.{second}") # the same commit again
        self.git("tag", "v" + plain)
        self.assertEqual(self.versions(), plain)


class Upgrade(SystemTest):
    """apt's plan for the commands of docs/OPERATIONS.md, on a machine with dpnode and dpnode-cuda."""

    def stub(self, name, version):
        """The control fields of a package without files, with its dependency on another one of ours, and the package."""
        with open(os.path.join(ROOT, "debian", "control"), encoding="utf-8") as file:
            depends = re.search(rf"^Package: {name}\n(?:.+\n)*?Depends: (.*)", file.read(), re.MULTILINE).group(1)
        ours = [word.replace("${binary:Version}", version) for word in depends.split(", ") if word.startswith("dpnode")]
        text = f"Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: a <a@b.example>\nDescription: a\n" + \
            "".join(f"Depends: {word}\n" for word in ours)
        os.makedirs(os.path.join(self.folder.path, name, "DEBIAN"), exist_ok=True)
        self.file(name + "/DEBIAN/control", text)
        subprocess.run(["dpkg-deb", "-b", name, f"{name}_{version}_all.deb"], cwd=self.folder.path, check=True, capture_output=True, timeout=60)
        return text + "Status: install ok installed\n\n"

    def plan(self, words):
        """What apt would do by the words, as a shell in the folder of the packages sees them."""
        options = [f"-o{key}={self.folder.path}/{place}" for key, place in
                   (("Dir::State", "state"), ("Dir::State::status", "status"), ("Dir::Cache", "cache"), ("Dir::Etc", "etc"))]
        done = subprocess.run(["sh", "-c", f'apt-get -s "$@" install {words}', "sh", *options], cwd=self.folder.path,
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return sorted(line[:line.index("[") - 1] for line in done.stdout.splitlines() if line.startswith(("Inst ", "Remv ")))

    @unittest.skipIf(shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None, "no apt-get or no dpkg-deb")
    def test_the_documented_upgrade_keeps_the_plugin(self):
        names = ("dpnode", "dpnode-cuda")
        self.file("status", "".join([self.stub(name, "1") for name in names]))
        for name in names:
            os.remove(os.path.join(self.folder.path, f"{name}_1_all.deb"))
            self.stub(name, "2")
        with open(os.path.join(ROOT, "docs", "OPERATIONS.md"), encoding="utf-8") as file:
            commands = re.findall(r"^sudo apt install ([^#\n]*)", file.read(), re.MULTILINE)
        self.assertEqual([self.plan(words) for words in commands],
                         [["Inst dpnode", "Remv dpnode-cuda"], ["Inst dpnode", "Inst dpnode-cuda"]])


class Image(SystemTest):
    @unittest.skipIf(shutil.which("dpkg-query") is None, "no dpkg-query")
    def test_the_image_can_configure_the_build_with_the_programs_of_its_packages(self):
        with open(os.path.join(ROOT, "docker", "Dockerfile"), encoding="utf-8") as file:
            packages = re.search(r"apt-get install -y --no-install-recommends ([^&]*)", file.read()).group(1).replace("\\", "").split()
        # gcc and pkg-config depend on binutils and pkgconf.
        listed = subprocess.run(["dpkg-query", "-L", "binutils", "pkgconf", *packages], capture_output=True, text=True, timeout=60, check=False)
        if listed.returncode != 0:
            self.skipTest(listed.stderr)
        tools = os.path.join(self.folder.path, "tools")
        os.mkdir(tools)
        for path in set(re.findall(r"^/usr/bin/.+", listed.stdout, re.MULTILINE)):
            os.symlink(path, os.path.join(tools, os.path.basename(path)))
        hidden = ";".join([*os.environ["PATH"].split(":"), "/usr/bin", "/bin", "/usr/local/bin"])
        done = subprocess.run([os.path.join(tools, "cmake"), "-G", "Ninja", "-S", ROOT, "-B", self.folder.path + "/build",
                               "-DCMAKE_BUILD_TYPE=Release", "-DDPNODE_CUDA=OFF", "-DCMAKE_IGNORE_PATH=" + hidden],
                              env={"PATH": tools, "HOME": self.folder.path}, capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    systemtest.main()
