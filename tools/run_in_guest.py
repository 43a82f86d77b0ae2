#!/usr/bin/python3
"""run_in_guest.py [--file PATH]... [--python] [--memory MiB] [--timeout S] -- COMMAND...

Boots a virtual machine whose kernel has version 2 cgroups alone, with the files named (and every library they need)
in its memory, and runs COMMAND there as root with /bin/sh. Its output is ours, its exit code is ours.

The kernel is Debian's cloud kernel, unpacked into the cache and not installed; the machine is QEMU's emulation, because
neither nested virtualization nor user-mode-linux can be had everywhere (see docs/decisions/0006-version-2-guest.md).
Exit code 77: no guest can be booted here; the reason is printed.
"""
import argparse
import gzip
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys

CACHE = pathlib.Path(os.environ.get("PLIMSOLL_CACHE", pathlib.Path.home() / ".cache/plimsoll")) / "guest"
BUSYBOX_COMMANDS = ("sh mount umount ls cat echo uname mkdir rmdir poweroff sleep nproc kill ps dd env true false test "
                    "grep head tail rm cp mv chmod chown ln touch wc seq sed awk yes id setsid nice timeout tr").split()
BEGIN = "guest: begins"
DONE = "guest: exit code "
INIT = """#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev
mkdir -p /dev/shm /dev/pts /tmp
mount -t tmpfs tmpfs /tmp; mount -t tmpfs tmpfs /dev/shm; mount -t devpts devpts /dev/pts
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t securityfs securityfs /sys/kernel/security 2>/dev/null
echo 1 > /proc/sys/kernel/printk
echo; echo "{begin}"
/bin/sh /command
echo "{done}$?"
poweroff -f
"""


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def debian_package(name):
    """The folder into which the package was unpacked."""
    folder = CACHE / name
    if not folder.exists():
        downloads = CACHE / "downloads"
        downloads.mkdir(parents=True, exist_ok=True)
        got = subprocess.run(["apt-get", "download", name], cwd=downloads, capture_output=True, text=True)
        if got.returncode != 0:
            skip(f"cannot download Debian's {name}: {got.stderr.strip().splitlines()[-1:]}")
        package, = downloads.glob(f"{name}_*.deb")
        unpacked = CACHE / f"{name}.new"
        shutil.rmtree(unpacked, ignore_errors=True)
        subprocess.run(["dpkg-deb", "-x", package, unpacked], check=True)
        unpacked.rename(folder)
        shutil.rmtree(downloads)
    return folder


def kernel():
    depends = subprocess.run(["apt-cache", "depends", "linux-image-cloud-amd64"], capture_output=True, text=True).stdout
    match = re.search(r"Depends: (linux-image-\S+)", depends)
    if not match:
        skip("apt does not know linux-image-cloud-amd64")
    image, = (debian_package(match[1]) / "boot").glob("vmlinuz-*")
    return image


def libraries(program):
    """What the dynamic linker loads for it; nothing for scripts and static programs."""
    listing = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    return re.findall(r"(/\S+) \(0x", listing)


class Archive:
    """An initramfs in the format `newc`: a list of files for the kernel's own unpacker."""

    def __init__(self):
        self.parts = []
        self.seen = set()

    def entry(self, name, mode, data=b""):
        if name in self.seen:
            return
        self.seen.add(name)
        encoded = name.encode() + b"\0"
        fields = (len(self.seen), mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(encoded), 0)
        header = b"070701" + b"".join(b"%08X" % field for field in fields)
        self.parts += [pad(header + encoded), pad(data)]

    def folders(self, name):
        for parent in reversed(pathlib.PurePosixPath(name).parents[:-1]):
            self.entry(str(parent), stat.S_IFDIR | 0o755)

    def file(self, name, data, mode=0o755):
        self.folders(name)
        self.entry(name, stat.S_IFREG | mode, data)

    def link(self, name, target):
        self.folders(name)
        self.entry(name, stat.S_IFLNK | 0o777, target.encode())

    def host_file(self, path):
        """A file of this machine, under its own name, with its libraries."""
        path = os.path.abspath(path)
        self.file(path.lstrip("/"), pathlib.Path(path).read_bytes(), stat.S_IMODE(os.stat(path).st_mode))
        for library in libraries(path):
            self.file(library.lstrip("/"), pathlib.Path(library).read_bytes())

    def host_folder(self, path, wanted):
        for file in sorted(pathlib.Path(path).rglob("*")):
            if file.is_file() and wanted(file):
                self.host_file(file)

    def write(self, path):
        self.entry("TRAILER!!!", 0)
        with gzip.open(path, "wb", compresslevel=1) as out:
            for part in self.parts:
                out.write(part)


def pad(data):
    return data + b"\0" * (-len(data) % 4)


def build(arguments):
    archive = Archive()
    busybox = debian_package("busybox-static") / "bin/busybox"
    archive.file("bin/busybox", busybox.read_bytes())
    for command in BUSYBOX_COMMANDS:
        archive.link(f"bin/{command}", "busybox")
    for folder in ("proc", "sys", "dev", "tmp", "root", "var/tmp", "usr/bin"):
        archive.folders(f"{folder}/x")
    archive.file("init", INIT.replace("{begin}", BEGIN).replace("{done}", DONE).encode())
    archive.file("command", (" ".join(arguments.command) + "\n").encode())
    archive.file("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n", 0o644)
    archive.file("etc/group", b"root:x:0:\nnogroup:x:65534:\n", 0o644)
    archive.file("etc/shadow", b"root:*:19000:0:99999:7:::\n", 0o600)
    if arguments.python:
        archive.host_file(os.path.realpath("/usr/bin/python3"))
        archive.link("usr/bin/python3", os.path.basename(os.path.realpath("/usr/bin/python3")))
        archive.host_folder("/usr/lib/python3.11", lambda f: f.suffix in (".py", ".so") and "/test/" not in str(f))
    for path in arguments.file:
        if os.path.isdir(path):
            archive.host_folder(path, lambda f: f.suffix != ".pyc")
        else:
            archive.host_file(path)
    image = CACHE / f"initramfs-{os.getpid()}.gz"
    archive.write(image)
    return image


def run(image, arguments):
    machine = ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2",
               "-m", str(arguments.memory), "-nographic", "-no-reboot", "-nic", "none", "-kernel", kernel(),
               "-initrd", image, "-append", "console=ttyS0 quiet panic=-1 cgroup_no_v1=all rdinit=/init"]
    code, begun = None, False
    with subprocess.Popen(machine, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as guest:
        timer = subprocess.Popen(["sh", "-c", f"sleep {arguments.timeout}; kill {guest.pid}"], start_new_session=True)
        try:
            for line in guest.stdout:
                text = line.decode(errors="replace").rstrip("\r\n")
                if text.startswith(DONE):
                    code = int(text[len(DONE):])
                    break
                if begun:
                    print(text, flush=True)
                begun = begun or text == BEGIN
        finally:
            guest.kill()
            os.killpg(timer.pid, 15)
            timer.wait()
    if code is None:
        print("error: the guest ended without a result", file=sys.stderr)
        return 1
    return code


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--file", action="append", default=[], help="a file or folder to take along, with its libraries")
    parser.add_argument("--python", action="store_true", help="take Debian's Python and its standard library along")
    parser.add_argument("--memory", type=int, default=2048)
    parser.add_argument("--timeout", type=int, default=600)
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    if not shutil.which("qemu-system-x86_64"):
        skip("no qemu-system-x86_64 (Debian's qemu-system-x86)")
    image = build(arguments)
    try:
        return run(image, arguments)
    finally:
        image.unlink()


if __name__ == "__main__":
    sys.exit(main())
