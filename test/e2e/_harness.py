"""Runs the real server over loopback: what every end-to-end test of it shares.

TELLTALE names the program (default build/telltale). A test file registers cases with @case and
ends in main(); each case prints one line, the last line is a summary. Nothing here sleeps for a
fixed time: wait_until looks for a condition until a deadline.
"""
import json
import os
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BINARY = os.environ.get("TELLTALE", os.path.join(ROOT, "build", "telltale"))
ONNXRUNTIME = os.environ.get("TELLTALE_ONNXRUNTIME", "")
SPAM = os.path.join(ROOT, "examples", "spam")
IS_SANITIZED = False  # set by main: sanitizers make everything several times slower

CASES = []


class Skip(Exception):
    """Raised by a case that cannot run here; its text says why."""


def case(function):
    """Registers a case; its name is the function's, as a sentence."""
    CASES.append(function)
    return function


def check(condition, text):
    if not condition:
        raise AssertionError(text)


def equal(got, expected, what):
    check(got == expected, f"{what}: got {got!r}, expected {expected!r}")


def wait_until(condition, what, seconds=20):
    """The condition's first true value; a failure after that many seconds."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while True:
        value = condition()
        if value:
            return value
        check(time.monotonic() < deadline, f"not within {seconds} s: {what}")
        pause.wait(0.005)


class Response:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)

    def error(self):
        """The sentence of an error answer, whose form is checked on the way."""
        equal(list(self.json()), ["error"], "members of an error body")
        return self.json()["error"]

    def tensors(self):
        """Outputs by name: (datatype, shape, values), binary ones decoded."""
        size = int(self.headers.get("inference-header-content-length", len(self.body)))
        head, at, out = json.loads(self.body[:size]), size, {}
        for tensor in head["outputs"]:
            length = tensor.get("parameters", {}).get("binary_data_size")
            values = tensor.get("data")
            if length is not None:
                values = unpack(tensor["datatype"], self.body[at:at + length])
                at += length
            out[tensor["name"]] = (tensor["datatype"], tensor["shape"], values)
        equal(at, len(self.body), "bytes used of the body")
        return out


FORMATS = {"FP32": "f", "FP64": "d", "INT64": "q", "INT32": "i", "UINT8": "B", "BOOL": "?"}


def unpack(datatype, data):
    if datatype == "BYTES":
        out, at = [], 0
        while at < len(data):
            size = struct.unpack_from("<I", data, at)[0]
            out.append(data[at + 4:at + 4 + size])
            at += 4 + size
        return out
    letter = FORMATS[datatype]
    return list(struct.unpack(f"<{len(data) // struct.calcsize(letter)}{letter}", data))


class Client:
    """One connection, bytes under the test's control."""

    def __init__(self, port, timeout=30):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.socket.close()

    def close(self):
        self.socket.close()

    def reset(self):
        """Closes with a reset, as a client does that was killed."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)
        return self

    def _fill(self):
        data = self.socket.recv(1 << 16)
        if not data:
            raise EOFError("the server closed the connection")
        self.buffer += data

    def read_head(self):
        while b"\r\n\r\n" not in self.buffer:
            self._fill()
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        lines = head.decode("latin-1").split("\r\n")
        headers = {}
        for line in lines[1:]:
            name, value = line.split(":", 1)
            headers[name.strip().lower()] = value.strip()
        return int(lines[0].split(" ")[1]), headers

    def read(self, is_head=False):
        status, headers = self.read_head()
        size = 0 if is_head or status < 200 else int(headers["content-length"])
        while len(self.buffer) < size:
            self._fill()
        body, self.buffer = self.buffer[:size], self.buffer[size:]
        return Response(status, headers, body)

    def is_closed(self, seconds=10):
        """True when the server ends the connection within that time."""
        self.socket.settimeout(seconds)
        try:
            while True:
                if not self.socket.recv(1 << 16):
                    return True
        except ConnectionError:
            return True
        except socket.timeout:
            return False

    def has_data(self, seconds):
        return bool(self.buffer) or bool(select.select([self.socket], [], [], seconds)[0])

    def request(self, method, path, body=b"", headers=()):
        self.send(http_request(method, path, body, headers))
        return self.read(is_head=method == "HEAD")


def http_request(method, path, body=b"", headers=()):
    head = [f"{method} {path} HTTP/1.1", "Host: test"]
    head += [f"{name}: {value}" for name, value in headers]
    if body or method == "POST":
        head.append(f"Content-Length: {len(body)}")
    return ("\r\n".join(head) + "\r\n\r\n").encode("latin-1") + body


def json_infer(values, request_id=None, shape=None, name="INPUT0", **parameters):
    """Body of a JSON request to the simulated model."""
    rows = len(values) // 16
    body = {"inputs": [{"name": name, "datatype": "FP32", "shape": shape or [rows, 16],
                        "data": values}]}
    if request_id is not None:
        body["id"] = request_id
    if parameters:
        body["parameters"] = parameters
    return json.dumps(body).encode()


def binary_infer(values, request_id=None, binary_output=True, **parameters):
    """(body, headers) of a binary request to the simulated model."""
    data = struct.pack(f"<{len(values)}f", *values)
    head = {"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [len(values) // 16, 16],
                        "parameters": {"binary_data_size": len(data)}}],
            "parameters": dict(parameters, binary_data_output=binary_output)}
    if request_id is not None:
        head["id"] = request_id
    text = json.dumps(head).encode()
    return text + data, [("Inference-Header-Content-Length", len(text))]


def text_infer(text, request_id=None):
    body = {"inputs": [{"name": "TEXT", "datatype": "BYTES", "shape": [1], "data": [text]}]}
    if request_id is not None:
        body["id"] = request_id
    return json.dumps(body).encode()


INFER = "/v2/models/simulated/infer"
ROW = [float(i) for i in range(16)]


class Server:
    """The program under test. Stopped whatever happens; a sanitizer's report is a failure."""

    def __init__(self, *options, simulate="a=1ms,b=0.01ms", exit_code=0):
        self.options, self.simulate, self.exit_code = list(options), simulate, exit_code
        self.directory = tempfile.TemporaryDirectory(prefix="telltale-e2e-")
        self.log_path = os.path.join(self.directory.name, "log")
        self.process = None
        self.port = self.metrics_port = self.grpc_port = 0

    def path(self, name):
        return os.path.join(self.directory.name, name)

    def start(self):
        port_file = self.path("ports")
        command = [BINARY, "serve", "--http-port", "0", "--metrics-port", "0",
                   "--grpc-port", "0", "--port-file", port_file]
        if self.simulate:
            command += ["--simulate", self.simulate]
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(command + self.options, stderr=log, stdout=log,
                                            stdin=subprocess.DEVNULL)
        wait_until(lambda: os.path.exists(port_file) or self.process.poll() is not None,
                   "the port file", 60)
        check(self.process.poll() is None, f"the server did not start: {self.log()}")
        with open(port_file, encoding="ascii") as file:
            ports = dict(line.split() for line in file)
        self.port, self.metrics_port = int(ports["http"]), int(ports["metrics"])
        self.grpc_port = int(ports.get("grpc", 0))
        return self

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.kill()
            raise

    def __exit__(self, kind, *unused):
        if kind:
            self.kill()
            return
        try:
            self.stop()
        finally:
            self.kill()

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
        if self.process:
            self.process.wait()
        self.directory.cleanup()

    def signal(self, number=signal.SIGTERM):
        self.process.send_signal(number)

    def wait(self, seconds=60):
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the server did not end: {self.log()}") from None
        equal(code, self.exit_code, f"exit code; log: {self.log()}")
        log = self.log()
        check("Sanitizer" not in log and "runtime error" not in log, log)

    def stop(self):
        if self.process.poll() is None:
            self.signal()
        self.wait()

    def log(self):
        try:
            with open(self.log_path, encoding="utf-8", errors="replace") as file:
                return file.read()
        except FileNotFoundError:
            return "(no log)"

    def client(self, **options):
        return Client(self.port, **options)

    def get(self, path, method="GET"):
        with self.client() as client:
            return client.request(method, path)

    def post(self, body, path=INFER, headers=()):
        with self.client() as client:
            return client.request("POST", path, body, headers)

    def metrics(self):
        """Samples by name{labels} as printed."""
        out = {}
        for line in self.get("/metrics").body.decode().splitlines():
            if line and not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                out[name] = float(value)
        return out

    def sockets(self):
        """How many the server has open, those it listens on included."""
        count, directory = 0, f"/proc/{self.process.pid}/fd"
        for name in os.listdir(directory):
            try:
                count += os.readlink(os.path.join(directory, name)).startswith("socket:")
            except FileNotFoundError:
                pass  # closed meanwhile
        return count

    def resident_bytes(self):
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def run_program(*arguments, timeout=60):
    return subprocess.run([BINARY, *arguments], capture_output=True, text=True, timeout=timeout,
                          check=False)


def need_spam():
    """Path of the sample model; skips where it or ONNX Runtime is missing."""
    model = os.path.join(SPAM, "spam_int8.onnx")
    if not ONNXRUNTIME or not os.path.exists(ONNXRUNTIME):
        raise Skip("TELLTALE_ONNXRUNTIME names no library")
    if not os.path.exists(model):
        raise Skip("examples/spam is not there")
    return model


def sentence(function):
    return function.__name__.replace("_", " ")


def main():
    global IS_SANITIZED
    with open(BINARY, "rb") as file:
        IS_SANITIZED = re.search(rb"__asan_init|__tsan_init", file.read()) is not None
    passed = failed = skipped = 0
    wanted = sys.argv[1:]
    for function in CASES:
        if wanted and not any(word in function.__name__ for word in wanted):
            continue
        try:
            note = function()
        except Skip as skip:
            skipped += 1
            print(f"skip  {sentence(function)}: {skip}", flush=True)
        except Exception:  # a case must not take the others with it
            failed += 1
            print(f"FAIL  {sentence(function)}\n{traceback.format_exc()}", flush=True)
        else:
            passed += 1
            print(f"ok    {sentence(function)}{f': {note}' if note else ''}", flush=True)
    print(f"{passed} passed, {skipped} skipped, {failed} failed")
    sys.exit(1 if failed else 0)
