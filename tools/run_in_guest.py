#!/usr/bin/python3
"""run_in_guest.py [--file PATH]... [--python] [--memory MiB] [--timeout S] -- COMMAND...

Boots a virtual machine whose kernel has version 2 cgroups alone, with the files named (and every library they need)
on its disk, and runs COMMAND there as root with /bin/sh. Its output is ours, its exit code is ours.

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
import tempfile

CACHE = pathlib.Path(os.environ.get("PLIMSOLL_CACHE", pathlib.Path.home() / ".cache/plimsoll")) / "guest"
MODULES = ("virtio_pci", "virtio_blk")  # the disk's
BEGIN = "guest: begins"
DONE = "guest: exit code "
# In the initramfs: as little as it takes to reach the disk.
FIRST_INIT = """#!/bin/busybox sh
for module in {modules}; do /bin/busybox insmod /$module.ko; done
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mount -t ext4 /dev/vda /root
exec /bin/busybox switch_root /root /init
"""
INIT = """#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev
mkdir -p /dev/shm /dev/pts
mount -t tmpfs tmpfs /dev/shm; mount -t devpts devpts /dev/pts
ln -s /proc/self/fd /dev/fd
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t securityfs securityfs /sys/kernel/security 2>/dev/null
ifconfig lo 127.0.0.1 up
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


class Tree:
    """The guest's root, a folder of this machine until it becomes a disk."""

    def __init__(self, root):
        self.root = pathlib.Path(root)

    def write(self, name, data, mode=0o755):
        path = self.root / name.lstrip("/")
        if path.exists():
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(mode)

    def link(self, name, target):
        path = self.root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_symlink() and not path.exists():
            path.symlink_to(target)

    def host_file(self, path):
        """A file of this machine, under its own name, with its libraries."""
        path = os.path.abspath(path)
        mode = stat.S_IMODE(os.stat(path).st_mode)
        self.write(path, pathlib.Path(path).read_bytes(), mode)
        if mode & 0o100 or path.endswith(".so"):
            for library in libraries(path):
                self.write(library, pathlib.Path(library).read_bytes())

    def host_folder(self, path, wanted):
        for file in sorted(pathlib.Path(path).rglob("*")):
            if file.is_file() and wanted(file):
                self.host_file(file)


def fill(tree, arguments):
    busybox = debian_package("busybox-static") / "bin/busybox"
    for folder in ("proc", "sys", "dev", "tmp", "root", "var/tmp", "usr/bin", "usr/lib"):
        (tree.root / folder).mkdir(parents=True, exist_ok=True)
    for folder in ("tmp", "var/tmp"):
        (tree.root / folder).chmod(0o1777)
    tree.write("bin/busybox", busybox.read_bytes())
    for command in subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split():
        tree.link(f"bin/{command}", "busybox")
    tree.write("init", INIT.replace("{begin}", BEGIN).replace("{done}", DONE).encode())
    tree.write("command", (" ".join(arguments.command) + "\n").encode())
    tree.write("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\nuser:x:1000:1000::/tmp:/bin/sh\n", 0o644)
    tree.write("etc/group", b"root:x:0:\nnogroup:x:65534:\nuser:x:1000:\n", 0o644)
    tree.write("etc/shadow", b"root:*:19000:0:99999:7:::\n", 0o600)
    if arguments.python:
        interpreter = os.path.realpath("/usr/bin/python3")
        tree.host_file(interpreter)
        tree.link("usr/bin/python3", os.path.basename(interpreter))
        tree.host_folder("/usr/lib/python3.11", lambda f: f.suffix in (".py", ".so") and "/test/" not in str(f))
    for path in arguments.file:
        if os.path.isdir(path):
            tree.host_folder(path, lambda f: f.suffix != ".pyc")
        else:
            tree.host_file(path)


def in_order(names, found, drivers):
    """The modules and what they say they need, each after what it needs: that changes from one kernel to the next."""
    for name in names:
        if name in found:
            continue
        path, = drivers.rglob(f"{name}.ko")
        data = path.read_bytes()
        needed = re.search(rb"\0depends=([^\0]*)\0", data)[1].decode()
        in_order(filter(None, needed.split(",")), found, drivers)
        found[name] = data
    return found


def initramfs(image):
    """The list of files that the kernel unpacks (format `newc`): busybox, the disk's drivers, the first init."""
    drivers, = (kernel().parent.parent / "lib/modules").glob("*/kernel/drivers")
    modules = in_order(MODULES, {}, drivers)
    contents = {f"{name}.ko": data for name, data in modules.items()}
    contents["bin/busybox"] = (debian_package("busybox-static") / "bin/busybox").read_bytes()
    names = " ".join(modules)
    contents["init"] = FIRST_INIT.replace("{modules}", names).encode()
    entries = [(folder, stat.S_IFDIR | 0o755, b"") for folder in ("bin", "dev", "root")]
    entries += [(name, stat.S_IFREG | 0o755, data) for name, data in contents.items()]
    with gzip.open(image, "wb", compresslevel=1) as out:
        for number, (name, mode, data) in enumerate([*entries, ("TRAILER!!!", 0, b"")]):
            encoded = name.encode() + b"\0"
            fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(encoded), 0)
            header = b"070701" + b"".join(b"%08X" % field for field in fields)
            out.write(pad(header + encoded) + pad(data))


def pad(data):
    return data + b"\0" * (-len(data) % 4)


def build(room, arguments):
    tree = Tree(room / "root")
    tree.root.mkdir()
    fill(tree, arguments)
    subprocess.run(["/usr/sbin/mke2fs", "-q", "-t", "ext4", "-d", tree.root, room / "disk", "3G"], check=True,
                   stdout=subprocess.DEVNULL)
    initramfs(room / "initramfs.gz")


def run(room, arguments):
    machine = ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2",
               "-m", str(arguments.memory), "-nographic", "-no-reboot", "-nic", "none", "-kernel", kernel(),
               "-initrd", room / "initramfs.gz", "-drive", f"file={room}/disk,format=raw,if=virtio,cache=unsafe",
               "-append", "console=ttyS0 quiet panic=-1 cgroup_no_v1=all rdinit=/init"]
    code, begun, console = None, False, []
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
                else:
                    console.append(text)
                begun = begun or text == BEGIN
        finally:
            guest.kill()
            os.killpg(timer.pid, 15)
            timer.wait()
    if code is None:
        print(f"error: the guest ended without a result, {'in its command' if begun else 'before its command began; its console:'}",
              *([] if begun else console[-60:]), sep="\n  ", file=sys.stderr)
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
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as room:
        build(pathlib.Path(room), arguments)
        return run(pathlib.Path(room), arguments)


if __name__ == "__main__":
    sys.exit(main())
