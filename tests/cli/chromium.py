"""A headless Chromium, spoken to through a pair of pipes (the DevTools protocol): no driver, no package from npm."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


class ChromiumError(Exception):
    pass


class Chromium:
    """One browser with one page. Console messages and exceptions of the page are kept in `complaints`, requests in
    `requests`."""

    def __init__(self, width=1100, height=1400):
        self.profile = tempfile.mkdtemp(prefix="plimsoll-chromium-")
        to_browser, self.commands = os.pipe()
        self.answers, from_browser = os.pipe()
        arguments = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     "--no-first-run", "--disable-extensions", "--disable-background-networking", "--hide-scrollbars",
                     f"--user-data-dir={self.profile}", f"--window-size={width},{height}", "--remote-debugging-pipe",
                     "about:blank"]

        def connect():
            # 3 and 4 are where Chromium looks; either may be one of ours.
            low, high = os.dup(to_browser), os.dup(from_browser)
            while low < 5 or high < 5:
                low, high = os.dup(low), os.dup(high)
            os.dup2(low, 3)
            os.dup2(high, 4)

        self.process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, close_fds=False, preexec_fn=connect)
        os.close(to_browser)
        os.close(from_browser)
        self.buffer, self.number, self.session = b"", 0, None
        self.complaints, self.requests, self.loaded = [], [], False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.resize(width, height)

    def close(self):
        os.close(self.commands)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.answers)
        shutil.rmtree(self.profile, ignore_errors=True)

    def _message(self, seconds):
        end = time.monotonic() + seconds
        while b"\0" not in self.buffer:
            if not select.select([self.answers], [], [], max(0, end - time.monotonic()))[0]:
                raise ChromiumError("no answer")
            got = os.read(self.answers, 1 << 20)
            if not got:
                raise ChromiumError("the browser ended")
            self.buffer += got
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def _note(self, event):
        name, parameters = event.get("method"), event.get("params", {})
        if name == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(parameters["exceptionDetails"])[:500])
        elif name == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            self.complaints.append(json.dumps(parameters["args"])[:500])
        elif name == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.complaints.append(parameters["entry"]["text"])
        elif name == "Page.javascriptDialogOpening":
            self.complaints.append("dialog: " + parameters["message"])
            self.call("Page.handleJavaScriptDialog", accept=True)
        elif name == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif name == "Page.loadEventFired":
            self.loaded = True

    def call(self, method, **parameters):
        self.number += 1
        number = self.number
        message = {"id": number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message(60)
            if answer.get("id") == number:
                if "error" in answer:
                    raise ChromiumError(f"{method}: {answer['error']}")
                return answer["result"]
            self._note(answer)

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def scheme(self, name):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def open(self, path):
        self.complaints, self.requests, self.loaded = [], [], False
        self.call("Page.navigate", url=f"file://{path}")
        end = time.monotonic() + 60
        while not self.loaded:
            self._note(self._message(max(0, end - time.monotonic())))
        self.settle()

    def settle(self):
        """Until what was asked for is drawn."""
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def evaluate(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise ChromiumError(json.dumps(answer["exceptionDetails"])[:500])
        return answer["result"].get("value")

    def mouse(self, kind, x, y, clicks=1, button="left"):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, clickCount=clicks,
                  buttons=0 if kind == "mouseReleased" else 1)

    def drag(self, x0, x1, y):
        self.mouse("mouseMoved", x0, y)
        self.mouse("mousePressed", x0, y)
        for step in range(1, 6):
            self.mouse("mouseMoved", x0 + (x1 - x0) * step / 5, y)
        self.mouse("mouseReleased", x1, y)
        self.settle()

    def screenshot(self, path):
        size = self.evaluate("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
        picture = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                            clip={"x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1})
        with open(path, "wb") as file:
            file.write(base64.b64decode(picture["data"]))
