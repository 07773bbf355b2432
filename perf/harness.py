"""What the benchmarks that drive a server share: starting it, loading it with wrk, its processor
time, medians, the closing line. Imported by the scripts beside it; not a benchmark.

The server runs on the first processor that this process may use and the generator on the second,
so that neither disturbs the other's times; with one processor both share it, and the output says
so.
"""
import contextlib
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / os.environ.get("BUILD", "build")
LIBRARY = ROOT / ".deps/onnxruntime/lib/libonnxruntime.so.1"
PROCESSORS = sorted(os.sched_getaffinity(0))
SERVER_CPUS = {PROCESSORS[0]}
CLIENT_CPUS = {PROCESSORS[-1]}
TELLTALE = BUILD / "telltale"


def need(*paths):
    for path in paths:
        if not path.exists():
            sys.exit(f"{sys.argv[0]}: {path} is missing: run make perf")


def machine():
    """One line about where the figures come from."""
    model = "unknown processor"
    for line in open("/proc/cpuinfo", encoding="utf-8"):
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    load = os.getloadavg()[0]
    note = "" if len(PROCESSORS) > 1 else "; server and generator share one processor"
    return f"{model}, {len(PROCESSORS)} processors, load {load:.1f}{note}"


def cpu_seconds(pid):
    """(user, system) of a process; the kernel's ticks are 10 ms, the sum of both is finer."""
    fields = open(f"/proc/{pid}/stat", encoding="ascii").read().rsplit(")", 1)[1].split()
    tick = os.sysconf("SC_CLK_TCK")
    user, system = int(fields[11]) / tick, int(fields[12]) / tick
    clock = (~pid << 3) | 2  # the process's CPU clock, see clock_getcpuclockid(3): nanoseconds
    total = time.clock_gettime(clock)
    share = user / (user + system) if user + system > 0 else 0.5
    return total * share, total * (1 - share)


@contextlib.contextmanager
def started(command, cpus, log_name="server"):
    """Runs command with --port-file, waits for the file, gives (process, port of http); the
    process has ports, all of them by name, and metrics_port."""
    with tempfile.TemporaryDirectory() as scratch:
        port_file = pathlib.Path(scratch) / "port"
        log = pathlib.Path(scratch) / "log"
        with open(log, "wb") as log_out:
            process = subprocess.Popen(
                [str(word) for word in command] + ["--port-file", str(port_file)],
                stdout=log_out, stderr=log_out,
                preexec_fn=lambda: os.sched_setaffinity(0, cpus))
        try:
            for _ in range(600):
                if port_file.exists() or process.poll() is not None:
                    break
                time.sleep(0.05)
            if not port_file.exists():
                sys.exit(f"{sys.argv[0]}: {log_name} did not start:\n{log.read_text()}")
            ports = dict(line.split() for line in port_file.read_text().splitlines())
            process.ports = {name: int(port) for name, port in ports.items()}
            process.metrics_port = process.ports.get("metrics")
            yield process, int(ports["http"])
            if process.poll() is not None:
                sys.exit(f"{sys.argv[0]}: {log_name} ended by itself:\n{log.read_text()}")
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


def serve(options, cpus=None):
    need(TELLTALE, LIBRARY)
    return started([TELLTALE, "serve", "--onnxruntime", LIBRARY, "--http-port", "0",
                    "--metrics-port", "0", "--grpc-port", "0", "--slow-ms", "0", *options],
                   cpus or SERVER_CPUS)


ADD_MODEL = ROOT / "test/data/add.onnx"
ADD_PATH = "/v2/models/add/infer"
# One FP32 tensor of 16 elements, in binary, answered in binary.
ADD_SCRIPT = r"""
local json = '{"inputs":[{"name":"INPUT0","shape":[1,16],"datatype":"FP32",' ..
    '"parameters":{"binary_data_size":64}}],"parameters":{"binary_data_output":true}}'
wrk.method = "POST"
wrk.body = json .. string.rep(string.char(0, 0, 128, 63), 16)
wrk.headers["Content-Type"] = "application/octet-stream"
wrk.headers["Inference-Header-Content-Length"] = tostring(#json)
"""


def wrk(port, path, connections, seconds, script=ADD_SCRIPT):
    """Requests answered, and the seconds it took; ends the benchmark on any error."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as lua:
        lua.write(script)
        lua.flush()
        done = subprocess.run(
            ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "-s", lua.name,
             f"http://127.0.0.1:{port}{path}"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
            preexec_fn=lambda: os.sched_setaffinity(0, CLIENT_CPUS))
    found = re.search(r"(\d+) requests in ([\d.]+)(m?s|m)", done.stdout)
    if done.returncode != 0 or not found or re.search(r"Non-2xx|Socket errors", done.stdout):
        sys.exit(f"{sys.argv[0]}: wrk failed:\n{done.stdout}")
    unit = {"ms": 1e-3, "s": 1.0, "m": 60.0}[found.group(3)]
    return int(found.group(1)), float(found.group(2)) * unit


def loaded(process, port, path, connections, seconds):
    """One loaded stretch: {user, sys, cpu: us a request; rate: requests a second}."""
    before = cpu_seconds(process.pid)
    requests, took = wrk(port, path, connections, seconds)
    after = cpu_seconds(process.pid)
    user, system = ((b - a) / requests * 1e6 for a, b in zip(before, after))
    return {"user": user, "sys": system, "cpu": user + system, "rate": requests / took}


def median(rows, key):
    return statistics.median(row[key] for row in rows)


def spread(values):
    """Median and the range of the middle half."""
    values = sorted(values)
    quarter = len(values) // 4
    return statistics.median(values), values[quarter], values[-1 - quarter]


def goal(name, figure, unit, comparison, limit, digits=2):
    is_ok = figure <= limit if comparison == "<=" else figure >= limit
    print(f"{name} {figure:.{digits}f} {unit} goal {comparison}{limit:g} "
          f"{'ok' if is_ok else 'short'}", flush=True)
