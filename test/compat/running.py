"""What the clients of scripts/check_compat share: the server that they ask, and how a check is told.

A check is a function that raises when it fails; Skip says why it cannot run here.
"""
import os
import subprocess
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIBRARY = os.environ.get("TELLTALE_ONNXRUNTIME") or \
    os.path.join(ROOT, ".deps", "onnxruntime", "lib", "libonnxruntime.so.1")
START_SECONDS, CLIENT_SECONDS = 60, 120
SHOWN = 1500  # characters of a failed client's output


class Skip(Exception):
    """Not installed, or not made for this server."""


def check(condition, text):
    if not condition:
        raise AssertionError(text)


class Server:
    """telltale serve over a repository; ports at its .http, .grpc (None: not served), .metrics"""

    def __init__(self, program, repository, *options):
        self.program, self.options = program, ["--model-repository", repository, *options]
        self.help = subprocess.run([program, "serve", "--help"], capture_output=True, text=True,
                                   check=True).stdout
        self.scratch = tempfile.TemporaryDirectory(prefix="telltale-compat-")
        self.process = self.http = self.grpc = self.metrics = None

    def has(self, option):
        return f"{option} " in self.help or f"{option}\n" in self.help

    def __enter__(self):
        port_file = os.path.join(self.scratch.name, "ports")
        command = [self.program, "serve", *self.options, "--http-port", "0", "--metrics-port", "0",
                   "--port-file", port_file, "--onnxruntime", LIBRARY, "--log-level", "error"]
        if self.has("--grpc-port"):
            command += ["--grpc-port", "0"]
        self.log = open(os.path.join(self.scratch.name, "log"), "w+b")
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log,
                                        stderr=self.log)
        deadline = time.monotonic() + START_SECONDS
        while not os.path.exists(port_file) and self.process.poll() is None:
            check(time.monotonic() < deadline, "the server did not start in time")
            try:
                self.process.wait(0.02)
            except subprocess.TimeoutExpired:
                pass
        check(self.process.poll() is None, f"the server did not start: {self.said()}")
        with open(port_file, encoding="ascii") as file:
            ports = {name: int(port) for name, port in map(str.split, file)}
        self.http, self.grpc, self.metrics = (ports.get(name) for name in ("http", "grpc", "metrics"))
        return self

    def __exit__(self, *unused):
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(60)
        finally:
            self.process.kill()
            self.log.close()
            self.scratch.cleanup()

    def said(self):
        self.log.seek(0)
        return self.log.read().decode(errors="replace")[-SHOWN:]

    def need_grpc(self):
        if self.grpc is None:
            raise Skip("this telltale has no --grpc-port")
        return self.grpc

    def resident_bytes(self):
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def output_of(command, seconds=CLIENT_SECONDS, environment=None, given=None):
    """What a client printed, both streams; fails when the client does."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=seconds, env=environment, input=given, check=False)
    except FileNotFoundError:
        raise Skip("not installed") from None
    except subprocess.TimeoutExpired as late:
        text = (late.output or b"").decode(errors="replace")
        raise AssertionError(f"not done within {seconds} s: {text[-SHOWN:]}") from None
    text = done.stdout.decode(errors="replace")
    check(done.returncode == 0, f"exit code {done.returncode}: {text[-SHOWN:]}")
    return text
