"""telltale bench against real servers: the stall oracle, errors, interruption, counts."""
import base64
import json
import os
import re
import select
import signal
import socket
import subprocess
import tempfile
import threading
import time

from _harness import (BINARY, Server, case, check, equal, main, need_spam, run_program,
                      wait_until)

METADATA = {"name": "m", "versions": ["7"], "platform": "python",
            "inputs": [{"name": "TEXT", "datatype": "BYTES", "shape": [-1]}],
            "outputs": [{"name": "label", "datatype": "BYTES", "shape": [-1]}]}


class FakeServer:
    """An inference server whose answers and stalls are the test's. One thread, one select loop."""

    def __init__(self, answer, stall_every=0.0, stall=0.0):
        self.answer, self.stall_every, self.stall = answer, stall_every, stall
        self.bodies = []
        self.is_over = threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *unused):
        self.is_over.set()
        self.thread.join()
        self.listener.close()

    def run(self):
        buffers, next_stall = {}, time.monotonic() + self.stall_every
        while not self.is_over.is_set():
            readable = select.select([self.listener, *buffers], [], [], 0.01)[0]
            if self.stall_every and time.monotonic() >= next_stall:
                self.is_over.wait(self.stall)
                next_stall += self.stall_every
            for source in readable:
                if source is self.listener:
                    connection = source.accept()[0]
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    buffers[connection] = b""
                elif not self.serve(source, buffers):
                    source.close()
                    del buffers[source]
        for connection in buffers:
            connection.close()

    def serve(self, connection, buffers):
        try:
            data = connection.recv(1 << 16)
        except ConnectionError:
            return False
        buffers[connection] += data
        head, end, rest = buffers[connection].partition(b"\r\n\r\n")
        if not data:
            return False
        if not end:
            return True
        size = re.search(rb"(?i)content-length: (\d+)", head)
        size = int(size.group(1)) if size else 0
        if len(rest) < size:
            return True
        buffers[connection] = rest[size:]
        if head.startswith(b"GET"):
            status, body, headers = 200, json.dumps(METADATA).encode(), ""
        else:
            self.bodies.append(rest[:size])
            answer = self.answer(len(self.bodies))
            if answer is None:
                return False
            status, body, headers = answer
        text = f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
        connection.sendall(text.encode() + body)
        return True


OK = (200, b"{}", "Server-Timing: total;dur=0.5, execute;dur=0.4, odd;desc=x\r\n")


def bench_json(url, *options, code=0, timeout=60):
    result = run_program("bench", "--url", url, "--model-name", "m", "--json", *options,
                         timeout=timeout)
    equal(result.returncode, code, f"exit code; {result.stderr}")
    return json.loads(result.stdout)


def stalled_step(*options):
    """A step against a server that stalls 100 ms in every second: again where this machine stood
    still for longer than the stall, which the bench measures as rightly."""
    for _ in range(3):
        with FakeServer(lambda number: OK, stall_every=1.0, stall=0.1) as server:
            step = bench_json(server.url, "--rate", "200", "--arrivals", "constant",
                              "--input", "random", *options)["steps"][0]
        if step["service_ms"]["max"] < 130 and step["latency_ms"]["p50"] < 10:
            break
    return step


@case
def a_stall_of_the_server_is_seen_at_its_full_length():
    """100 ms in every second, 200 requests a second at constant gaps: a tenth of the requests
    are planned while it stalls and wait 0..100 ms, evenly: P95 50 ms, P99 90 ms."""
    step = stalled_step("--duration", "5s")
    latency = step["latency_ms"]
    equal(step["requests"], 1000, "requests")
    check(latency["p50"] < 10, latency)
    check(30 < latency["p95"] < 75, latency)
    check(80 < latency["p99"] < 110, latency)
    return f"P50 {latency['p50']:.2f}, P95 {latency['p95']:.1f}, P99 {latency['p99']:.1f} ms"


@case
def a_user_who_waits_does_not_hide_the_stall():
    """One user with a schedule: the requests it could not send during a stall count from their
    planned instants; its service time alone would show one slow request a stall."""
    step = stalled_step("--concurrency", "1", "--duration", "4s")
    equal(step["mode"], "paced", "mode")
    check(80 < step["latency_ms"]["p99"] < 125, step["latency_ms"])
    check(step["service_ms"]["p95"] < 30, step["service_ms"])


@case
def errors_are_counted_by_kind_and_end_nothing():
    def answer(number):
        if number % 4 == 0:
            return 503, b'{"error":"the queue is full"}', "Retry-After: 1\r\n"
        return None if number % 10 == 5 else OK
    with FakeServer(answer) as server:
        step = bench_json(server.url, "--concurrency", "2", "--requests", "200", "--warmup", "0",
                          "--input", "random")["steps"][0]
        errors = {(item["kind"], item.get("http")): item for item in step["errors"]}
        equal(step["requests"], 200, "requests")
        equal(errors[("status", 503)]["count"], 50, "503 answers")
        equal(errors[("status", 503)]["first"], "the queue is full", "sentence")
        equal(errors[("connection", None)]["count"], 20, "connections closed without an answer")
        equal(step["failed"], 70, "failed")
        equal(step["latency_ms"]["count"], 130, "latency is of those that were answered")


@case
def a_server_that_refuses_everything_ends_the_run_with_its_sentence():
    with FakeServer(lambda number: (400, b'{"error":"no such input: TEXT"}', "")) as server:
        result = run_program("bench", "--url", server.url, "--model-name", "m", "--concurrency",
                             "4", "--input", "random")
        equal(result.returncode, 1, "exit code")
        check("no such input: TEXT" in result.stderr, result.stderr)
        check(50 <= len(server.bodies) <= 60, len(server.bodies))


@case
def a_timeout_enters_the_latency_figures():
    release = threading.Event()

    def answer(number):
        if number == 30:  # holds the whole server: others on the way time out as well
            release.wait(1)
        return OK
    with FakeServer(answer) as server:
        step = bench_json(server.url, "--concurrency", "1", "--requests", "60", "--warmup", "0",
                          "--timeout", "200ms", "--input", "random")["steps"][0]
        check(1 <= step["timeouts"] <= 6, step)
        check(200 <= step["latency_ms"]["max"] < 400, step["latency_ms"])
        equal(step["latency_ms"]["count"], 60, "requests with a latency")


@case
def ids_and_texts_reach_the_server():
    with tempfile.TemporaryDirectory() as directory, FakeServer(lambda number: OK) as server:
        path = os.path.join(directory, "texts")
        texts = ["plain", 'quotes " and \\', "näïve ✓"]
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(texts) + "\n\n")
        out = os.path.join(directory, "run")
        result = bench_json(server.url, "--concurrency", "1", "--requests", "6", "--warmup", "2",
                            "--input", f"text:{path}", "--out", out, "--order", "sequential")
        bodies = [json.loads(body) for body in server.bodies]
        equal([body["id"] for body in bodies],
              ["w1-0", "w1-1"] + [f"b1-{i}" for i in range(6)], "ids")
        equal([body["inputs"][0]["data"][0] for body in bodies[2:]], texts * 2, "texts")
        equal(bodies[0]["inputs"][0]["name"], "TEXT", "input")
        with open(os.path.join(out, "client.jsonl"), encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        equal([line["id"] for line in lines], [body["id"] for body in bodies], "client.jsonl")
        equal([line["phase"] for line in lines], ["warmup"] * 2 + ["measure"] * 6, "phases")
        for line in lines:
            check(line["planned_ns"] <= line["sent_ns"] <= line["first_byte_ns"] <= line["done_ns"],
                  line)
            equal(line["latency_ns"], line["done_ns"] - line["planned_ns"], "latency")
            equal((line["http"], line["server_total_ns"]), (200, 500000), "server's account")
            equal(line["stages_ns"], {"execute": 400000}, "stages")
        with open(os.path.join(out, "result.json"), encoding="utf-8") as file:
            equal(json.load(file), result, "result.json is what --json prints")
        equal(result["model"]["version"], "7", "model version")
        equal(result["input"]["bytes"]["count"], 3, "inputs")
        equal(result["steps"][0]["server"]["stages"]["execute"]["mean_ms"], 0.4, "execute")
        again = run_program("bench", "--url", server.url, "--model-name", "m", "--out", out)
        equal(again.returncode, 2, "a run is not written over")
        check("holds a run already" in again.stderr, again.stderr)


@case
def pictures_of_mixed_sizes_reach_the_server():
    with tempfile.TemporaryDirectory() as directory, FakeServer(lambda number: OK) as server:
        pictures = [b"\xff\xd8\xff" + os.urandom(size) for size in (70000, 10, 3001)]
        for i, picture in enumerate(pictures):
            with open(os.path.join(directory, f"{i}.jpg"), "wb") as file:
                file.write(picture)
        with open(os.path.join(directory, "LICENSE"), "w", encoding="utf-8") as file:
            file.write("no picture")
        options = ("--concurrency", "1", "--requests", "3", "--warmup", "0", "--input",
                   f"image:{directory}", "--order", "sequential")
        result = bench_json(server.url, *options)
        tensors = [json.loads(body)["inputs"][0] for body in server.bodies]
        equal([base64.b64decode(tensor["data"][0], validate=True) for tensor in tensors], pictures,
              "pictures in JSON")
        sent = result["input"]
        equal((sent["kind"], sent["format"], sent["sent_as"], sent["count"]),
              ("image", "json", "pictures in base64", 3), "input")
        equal((sent["bytes"]["min"], sent["bytes"]["max"]), (13, 70003), "sizes")
        result = bench_json(server.url, *options, "--format", "binary")
        equal(result["input"]["sent_as"], "pictures", "sent as")
        for body, picture in zip(server.bodies[3:], pictures):
            check(body.endswith(len(picture).to_bytes(4, "little") + picture), "binary tensor")


@case
def shapes_of_random_tensors_are_those_asked_for():
    result = run_program("bench", "--simulate", "a=1ms,b=0ms", "--shape", "nothing:1")
    equal(result.returncode, 2, f"exit code; {result.stderr}")
    check("has no input nothing" in result.stderr, result.stderr)
    result = run_program("bench", "--simulate", "a=1ms,b=0ms", "--shape", "INPUT0:3,16", "--requests",
                         "5", "--concurrency", "1", "--json")
    equal(result.returncode, 0, f"exit code; {result.stderr}")
    equal(json.loads(result.stdout)["input"]["bytes"]["p50"], 3 * 16 * 4, "bytes of an input")


@case
def subnormal_weights_are_warned_of_unless_they_are_taken_as_zero():
    need_spam()  # skips without ONNX Runtime
    model = os.path.join(os.path.dirname(__file__), "..", "data", "subnormal.onnx")
    options = ("--model", model, "--requests", "5", "--warmup", "0", "--concurrency", "1", "--json")
    result = run_program("bench", *options)
    weights = json.loads(result.stdout)["model"]["weights"]
    equal((weights["values"], weights["subnormal"], weights["external_tensors"]), (16, 3, 0), "weights")
    check("3 of 16 weights are subnormal" in weights["warning"], weights)
    check(weights["warning"] in result.stderr, result.stderr)
    result = run_program("bench", *options, "--denormal-as-zero")
    weights = json.loads(result.stdout)["model"]["weights"]
    equal((weights["subnormal"], weights.get("warning"), result.stderr), (3, None, ""), "said")


@case
def ready_bodies_are_sent_as_they_are_with_our_id():
    with tempfile.TemporaryDirectory() as directory, FakeServer(lambda number: OK) as server:
        path = os.path.join(directory, "bodies.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            file.write('{"id":"old","inputs":[],"parameters":{"x":1.5}}\n{"inputs":[1]}\n')
        bench_json(server.url, "--concurrency", "1", "--requests", "2", "--warmup", "0",
                   "--input", f"json:{path}", "--order", "sequential")
        equal([json.loads(body) for body in server.bodies],
              [{"id": "b1-0", "inputs": [], "parameters": {"x": 1.5}},
               {"id": "b1-1", "inputs": [1]}], "bodies")


@case
def an_interrupted_run_prints_and_writes_what_there_is():
    with tempfile.TemporaryDirectory() as directory, FakeServer(lambda number: OK) as server:
        out = os.path.join(directory, "run")
        process = subprocess.Popen(
            [BINARY, "bench", "--url", server.url, "--model-name", "m", "--concurrency", "2,4",
             "--duration", "60s", "--input", "random", "--out", out, "--json"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_until(lambda: len(server.bodies) > 200, "some load")
        process.send_signal(signal.SIGINT)
        text, errors = process.communicate(timeout=20)
        equal(process.returncode, 130, f"exit code; {errors}")
        result = json.loads(text)
        equal((result["interrupted"], len(result["steps"])), (True, 1), "result")
        check(result["steps"][0]["requests"] > 50, result["steps"][0])
        with open(os.path.join(out, "result.json"), encoding="utf-8") as file:
            equal(json.load(file), result, "result.json")


@case
def the_same_seed_sends_the_same_requests_at_the_same_instants():
    planned = []
    with tempfile.TemporaryDirectory() as directory, FakeServer(lambda number: OK) as server:
        for seed in ("5", "5", "6"):
            out = os.path.join(directory, f"run{len(planned)}")
            bench_json(server.url, "--rate", "300", "--duration", "1s", "--seed", seed,
                       "--input", "random", "--out", out)
            with open(os.path.join(out, "client.jsonl"), encoding="utf-8") as file:
                lines = [json.loads(line) for line in file]
            lines = sorted((line for line in lines if line["phase"] == "measure"),
                           key=lambda line: line["planned_ns"])
            planned.append([(line["planned_ns"] - lines[0]["planned_ns"], line["input"])
                            for line in lines])
    equal(planned[0], planned[1], "planned sends of equal seeds")
    check(planned[0] != planned[2], "another seed changes nothing")


@case
def a_closed_loop_on_the_real_server_counts_right():
    with tempfile.TemporaryDirectory() as directory, Server(simulate="a=2ms,b=0.05ms") as server:
        out = os.path.join(directory, "run")
        result = run_program("bench", "--url", f"http://127.0.0.1:{server.port}", "--model-name",
                             "simulated", "--metrics-url",
                             f"http://127.0.0.1:{server.metrics_port}/metrics", "--concurrency",
                             "8", "--duration", "1s", "--out", out)
        equal(result.returncode, 0, f"exit code; {result.stderr}")
        check("SIMULATED" in result.stdout and "execute" in result.stdout, result.stdout)
        with open(os.path.join(out, "result.json"), encoding="utf-8") as file:
            data = json.load(file)
        step = data["steps"][0]
        equal((data["simulated"], step["failed"], step["timeouts"]), (True, 0, 0), "result")
        check(abs(step["in_flight"] - 8) < 1.2, f"8 clients, {step['in_flight']} in flight")
        equal(step["requests"], step["server"]["requests"], "requests with the server's account")
        check(step["cpu"]["server"] is not None and step["device"]["busy"] > 0.2, step)
        served = sum(value for name, value in server.metrics().items()
                     if name.startswith("nv_inference_request_success"))
        equal(served, step["requests"] + 50, "requests that the server counted")


@case
def in_process_the_engines_trace_joins_the_clients():
    with tempfile.TemporaryDirectory() as directory:
        out = os.path.join(directory, "run")
        result = run_program("bench", "--simulate", "a=2ms,b=0.05ms", "--rate", "400",
                             "--concurrency", "40", "--duration", "1s", "--out", out,
                             "--trace-all")
        equal(result.returncode, 0, f"exit code; {result.stderr}")
        check("SIMULATED" in result.stdout, result.stdout)
        with open(os.path.join(out, "client.jsonl"), encoding="utf-8") as file:
            client = {json.loads(line)["id"] for line in file}
        with open(os.path.join(out, "requests.jsonl"), encoding="utf-8") as file:
            engine = {json.loads(line)["id"] for line in file}
        equal(engine, client, "ids")
        check(os.path.exists(os.path.join(out, "batches.jsonl")), "batches.jsonl")


@case
def nobody_listening_is_one_line_and_exit_1():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with tempfile.TemporaryDirectory() as directory:
        for _ in range(2):  # the first try leaves nothing that the second takes for a run
            result = run_program("bench", "--url", f"http://127.0.0.1:{port}", "--model-name",
                                 "m", "--out", os.path.join(directory, "run"))
            equal(result.returncode, 1, "exit code")
            equal(len(result.stderr.splitlines()), 1, result.stderr)
            check("refused" in result.stderr, result.stderr)


@case
def a_server_that_dies_in_the_middle_is_an_error_and_not_a_storm():
    with FakeServer(lambda number: OK) as server:
        process = subprocess.Popen(
            [BINARY, "bench", "--url", server.url, "--model-name", "m", "--concurrency", "4",
             "--duration", "1s", "--input", "random", "--json"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_until(lambda: len(server.bodies) > 100, "some load")
    text, errors = process.communicate(timeout=20)
    equal(process.returncode, 0, f"exit code; {errors}")
    step = json.loads(text)["steps"][0]
    equal([item["kind"] for item in step["errors"]][-1], "connection", "kind of error")
    check(10 < step["failed"] < 1000, f"{step['failed']} tries: each client pauses 10 ms")


@case
def an_interrupted_warm_up_and_a_hopeless_one_leave_nothing_behind():
    with FakeServer(lambda number: OK) as server:
        process = subprocess.Popen(
            [BINARY, "bench", "--url", server.url, "--model-name", "m", "--concurrency", "4",
             "--warmup", "1000000", "--input", "random"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_until(lambda: len(server.bodies) > 50, "some warm-up")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
        equal((process.returncode, errors), (130, ""), "exit code and what is said")
    with FakeServer(lambda number: (503, b'{"error":"busy"}', "")) as server:
        result = run_program("bench", "--url", server.url, "--model-name", "m", "--concurrency", "4",
                             "--input", "random")
        equal(result.returncode, 1, "exit code")
        check("Sanitizer" not in result.stderr, result.stderr)


@case
def more_clients_than_descriptors_are_refused_before_the_load():
    with FakeServer(lambda number: OK) as server:
        result = subprocess.run(
            ["bash", "-c", 'ulimit -n 100; exec "$@"', "bash", BINARY, "bench", "--url", server.url,
             "--model-name", "m", "--concurrency", "4,500"],
            capture_output=True, text=True, timeout=30, check=False)
        equal((result.returncode, len(server.bodies)), (1, 0), "exit code, requests")
        check("ulimit -n" in result.stderr and "500" in result.stderr, result.stderr)


@case
def an_input_that_is_a_pipe_is_named_and_not_waited_for():
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "pipe")
        os.mkfifo(path)
        for kind in ("text", "json"):
            result = run_program("bench", "--simulate", "a=1ms,b=0ms", "--input", f"{kind}:{path}",
                                 timeout=20)
            check(result.returncode == 2 and "is not a file" in result.stderr, result.stderr)


@case
def misuse_is_exit_2_and_names_the_option():
    for options, word in (((), "--url"), (("--url", "http://x:1"), "--model-name"),
                          (("--url", "ftp://x", "--model-name", "m"), "http://"),
                          (("--simulate", "a=1ms", "--input", "what"), "--input"),
                          (("--simulate", "a=1ms", "--concurrency", "0"), "--concurrency"),
                          (("--simulate", "a=1ms", "--shape", "x:1", "--input", "text:x"),
                           "--shape"),
                          (("--simulate", "a=1ms", "--tokens"), "--tokens")):
        result = run_program("bench", *options)
        equal(result.returncode, 2, f"{options}: exit code")
        check(word in result.stderr, f"{options}: {result.stderr}")


@case
def inputs_that_are_not_there_are_named():
    result = run_program("bench", "--simulate", "a=1ms", "--input", "text:/nowhere")
    equal(result.returncode, 1, "exit code")
    check("/nowhere" in result.stderr, result.stderr)


if __name__ == "__main__":
    main()
