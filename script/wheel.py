#!/usr/bin/env python3
"""script/wheel.py PURE.whl FOLDER OUT: adds the programs of FOLDER to a wheel of the Python library, with the shared libraries that they need and
their licences. pip lays them in bin/ and lib/dpnode/ of its prefix, where the programs look by their RPATH.

The platform of the new wheel's name says which glibc it needs: the newest version of a symbol that a file in it asks for (PEP 600). Prints the path."""

import base64
import glob
import hashlib
import os
import platform
import re
import subprocess
import sys
import tempfile
import zipfile

PROGRAMS = ("dpnode", "dpnoded", "dpnode-worker")
RPATH = "$ORIGIN/../lib/dpnode"
# Parts of glibc and of the kernel: those of the machine are used.
SYSTEM = re.compile(r"^(ld-linux.*|linux-vdso|libc|libm|libdl|libpthread|librt|libresolv)\.so")


def output(*words):
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def libraries(program):
    """{name: path} of the shared libraries that a program needs, directly or not, without those of the system."""
    found = {}
    for name, path in re.findall(r"^\s*(\S+) => (\S+) \(", output("ldd", program), re.MULTILINE):
        if not SYSTEM.match(name):
            found[name] = path
    return found


def glibc_of(path):
    """The newest version of glibc's symbols that the file asks for."""
    versions = re.findall(r"\bGLIBC_(\d+)\.(\d+)", output("objdump", "-T", path))
    return max(((int(major), int(minor)) for major, minor in versions), default=(2, 0))


def licence_of(library):
    """The texts that Debian ships about the package of a library."""
    owner = output("dpkg", "-S", os.path.realpath(library).replace("/usr/lib", "*/lib", 1)).split(":")[0]
    return owner, f"/usr/share/doc/{owner}/copyright"


def stripped(path):
    """The bytes of an ELF file without what only a debugger reads."""
    with tempfile.NamedTemporaryFile() as out:
        subprocess.run(["strip", "--strip-unneeded", "-o", out.name, path], check=True)
        with open(out.name, "rb") as file: # strip has put another file in its place
            return file.read()


def row(name, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"


def make(pure, folder, out):
    programs = {name: os.path.join(folder, name) for name in PROGRAMS}
    shared = {}
    for path in programs.values():
        if RPATH not in output("readelf", "-d", path):
            sys.exit(f"wheel: {path} does not look for libraries in {RPATH}")
        shared.update(libraries(path))
    major, minor = max(glibc_of(path) for path in (*programs.values(), *shared.values()))
    tag = f"py3-none-manylinux_{major}_{minor}_{platform.machine()}"
    with zipfile.ZipFile(pure) as wheel:
        members = {name: wheel.read(name) for name in wheel.namelist()}
    info = next(name for name in members if name.endswith(".dist-info/WHEEL")).split("/")[0]
    data = info.replace(".dist-info", ".data")
    members = {name: content for name, content in members.items() if name != f"{info}/RECORD"}
    head = members[f"{info}/WHEEL"].decode()
    head = re.sub("^Root-Is-Purelib: true", "Root-Is-Purelib: false", head, flags=re.MULTILINE)
    members[f"{info}/WHEEL"] = re.sub("^Tag: .*", "Tag: " + tag, head, flags=re.MULTILINE).encode()
    for name, path in programs.items():
        members[f"{data}/scripts/{name}"] = stripped(path)
    for name, path in shared.items():
        members[f"{data}/data/lib/dpnode/{name}"] = stripped(path)
        owner, text = licence_of(path)
        with open(text, "rb") as file:
            members[f"{info}/licenses/{owner}"] = file.read()
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "LICENSE"), "rb") as file:
        members[f"{info}/licenses/LICENSE"] = file.read()
    record = "".join(row(name, content) for name, content in members.items()) + f"{info}/RECORD,,\n"
    members[f"{info}/RECORD"] = record.encode()
    path = os.path.join(out, f"{info.replace('.dist-info', '')}-{tag}.whl")
    for old in glob.glob(os.path.join(out, f"{info.split('-', maxsplit=1)[0]}-*-manylinux_*.whl")):
        os.unlink(old)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, content in members.items():
            entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100755 if "/scripts/" in name else 0o100644) << 16 # pip asks for the type, too
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, content)
    return path


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    print(make(*sys.argv[1:]))
