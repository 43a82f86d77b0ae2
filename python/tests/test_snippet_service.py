"""examples/snippet_service.py, as its users see it."""
import importlib.util
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TORCH = importlib.util.find_spec("torch") is not None


class Service:
    def __init__(self, *arguments):
        self.process = subprocess.Popen([sys.executable, ROOT / "examples/snippet_service.py", "--port", "0", *arguments],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        assert "listening" in line, line + self.process.stderr.read()
        self.address = re.search(r"http://\S+", line)[0]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def ask(self, path, data=None):
        request = urllib.request.Request(self.address + path, None if data is None else json.dumps(data).encode())
        try:
            with urllib.request.urlopen(request, timeout=120) as reply:
                return reply.status, json.load(reply)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    def run(self, code, **more):
        return self.ask("/run", {"code": code, **more})

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        output, errors = self.process.communicate(timeout=60)
        assert self.process.returncode == 0 and output == "stopped\n" and errors == "", errors


@pytest.fixture(name="service", scope="module")
def running_service():
    with Service("--timeout", "60", "--limit", "1GiB") as service:
        yield service


def test_snippets(service):
    status, reply = service.run("print('hi')\ny = [x, 2]", inputs={"x": 1}, result="y")
    assert status == 200 and reply["value"] == [1, 2] and reply["stdout"] == "hi\n", reply
    assert reply["receipt"]["peak_bytes"] > 0


@pytest.mark.skipif(not TORCH, reason="no torch")
def test_torch():
    code = "import torch\nlayer = torch.nn.Linear(512, 512)\ny = layer(torch.ones(8, 512)).detach().shape[1]\nz = torch.ones(2)"
    with Service("--preload", "torch", "--workers", "1") as service:
        status, reply = service.run(code, result="z")
        assert status == 200 and reply["value"] == [1.0, 1.0], reply
        service.stop()


def test_bad_ones(service):
    status, reply = service.run("x = 1 / 0")
    assert status == 422 and "ZeroDivisionError" in reply["message"]
    status, reply = service.run("import os\nos._exit(3)")
    assert status == 500 and reply["error"] == "worker died"
    assert service.ask("/run", {"no": "code"})[0] == 400
    assert service.ask("/nowhere")[0] == 404
    assert service.ask("/run", {"code": "x = 1", "inputs": 5})[0] == 400
    status, reply = service.run("y = open", result="y")
    assert status == 422, reply


def test_values_that_json_does_not_know(service):
    status, reply = service.run("y = [float('nan'), 10 ** 5000, 1j, b'x']", result="y")
    assert status == 200 and reply["value"] == ["nan", hex(10 ** 5000), "1j", "78"], reply


def test_strangers_do_not_read_our_files(service):
    if not service.run("x = 0", result="x")[1]["receipt"]["sandbox"]:
        pytest.skip("no layer of the sandbox is available here")
    for path in (ROOT / "README.md", ROOT / "examples/snippet_service.py", "/etc/shadow"):
        status, reply = service.run(f"x = open({str(path)!r}).read()", result="x")
        assert status == 422 and "Error" in reply["message"], reply


def test_memory_stays_flat(service):
    """What each snippet leaves in its interpreter ends with it: neither the service nor its workers grow."""
    service.run("x = 0")
    before = service.ask("/memory")[1]
    for _ in range(5):
        status, reply = service.run("import sys\nsys.kept = bytearray(b'x' * (50 << 20))\nn = len(sys.kept)", result="n")
        assert status == 200 and reply["value"] == 50 << 20, reply
    after = service.ask("/memory")[1]
    assert after["private_bytes"] - before["private_bytes"] < 2 << 20
    assert after["pool"]["recycled_by_jobs"] > before["pool"]["recycled_by_jobs"]
    assert not set(before["worker_pids"]) & set(after["worker_pids"])


def test_endless_one_and_ctrl_c():
    with Service("--timeout", "0.5", "--workers", "1") as service:
        status, reply = service.run("while True: pass")
        assert status == 408 and reply["error"] == "time limit", reply
        pids = service.ask("/memory")[1]["worker_pids"]
        service.stop()
        assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)
