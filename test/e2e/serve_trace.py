"""What the server tells of its time: trace files, Server-Timing, slow log, metrics, statistics."""
import json
import os
import re
import resource
import shutil
import subprocess
import tempfile
import threading

from _harness import INFER, ROOT, ROW, SPAM, Server, Skip, case, check, equal, binary_infer, \
    http_request, json_infer, main, text_infer, wait_until

TOKEN = re.compile(r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+;dur=\d+\.\d{3}$")


def load(server, clients, requests, message):
    def work(number):
        with server.client() as client:
            for turn in range(requests):
                response = client.send(message(number, turn)).read()
                equal(response.status, 200, response.body)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def binary_message(number, turn):
    body, headers = binary_infer(ROW * (1 + turn % 3), f"{number}-{turn}")
    return http_request("POST", INFER, body, headers)


def read_records(directory):
    with open(os.path.join(directory, "requests.jsonl"), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


STAGES = ("receive", "decode", "preprocess_wait", "preprocess", "batch_enqueue", "batch_hold",
          "instance_wait", "dispatch", "input_copy", "execute", "output_copy", "postprocess_wait",
          "postprocess", "encode", "send", "other")


def stages_of(record):
    return {stage: record.get(f"{stage}_ns", 0) for stage in STAGES}


def traced(options, simulate, clients, requests, message):
    import tempfile
    with tempfile.TemporaryDirectory() as parent:
        directory = os.path.join(parent, "run")
        with Server("--trace", directory, "--trace-all", *options, simulate=simulate) as server:
            load(server, clients, requests, message)
        check(os.path.exists(os.path.join(directory, "config.json")), "no config.json")
        return read_records(directory)


@case
def stages_sum_to_the_total_in_every_record():
    records = traced((), "a=0.3ms,b=0.01ms", 20, 150, binary_message)
    equal(len(records), 3000, "records")
    equal(len({record["id"] for record in records}), 3000, "ids")
    worst = 0
    for record in records:
        stages, total = stages_of(record), record["total_ns"]
        gap = abs(sum(stages.values()) - total)
        worst = max(worst, gap)
        check(gap <= max(1000, total / 1000), f"{gap} ns apart: {record}")
        check(all(value >= 0 for value in stages.values()), record)
    check(sum(stages_of(r).get("execute", 0) for r in records) > 0, "no time in execute")
    return f"3000 records, furthest apart {worst} ns"


@case
def stages_of_texts_sum_to_the_total_too():
    tokenizer = os.path.join(SPAM, "tokenizer.json")
    if not os.path.exists(tokenizer):
        raise Skip("examples/spam is not there")

    def message(number, turn):
        text = "free money now " * (1 + (number * 7 + turn) % 40)
        return http_request("POST", INFER, text_infer(text, f"{number}-{turn}"))

    for where in ("pool", "inline"):
        records = traced(("--tokenizer", tokenizer, "--preprocess", where), "a=0.5ms,b=0.01ms", 12,
                         50, message)
        equal(len(records), 600, "records")
        for record in records:
            gap = abs(sum(stages_of(record).values()) - record["total_ns"])
            check(gap <= max(1000, record["total_ns"] / 1000), record)
        check(sum(stages_of(r).get("preprocess", 0) for r in records) > 0,
              f"no time in preprocess ({where})")


def parse_timing(text):
    entries = text.split(", ")
    for entry in entries:
        check(TOKEN.match(entry), f"{entry!r} of {text!r}")
    return {name: float(value) for name, value in
            (entry.split(";dur=") for entry in entries)}


@case
def server_timing_parses_and_its_stages_sum_to_its_total():
    with Server(simulate="a=5ms,b=0ms") as server, server.client() as client:
        for body in (json_infer(ROW), b"{nope"):
            response = client.request("POST", INFER, body)
            timing = parse_timing(response.headers["server-timing"])
            total = timing.pop("total")
            check(abs(sum(timing.values()) - total) <= 0.0005 * (len(timing) + 1) + 1e-9, timing)
            check("send" not in timing, "send cannot be known yet")
            check(all(value >= 0 for value in timing.values()), timing)
            if response.status == 200:
                check(4.9 < timing["execute"] < total, timing)


@case
def a_slow_request_logs_one_line_with_its_stages_and_floods_are_held_back():
    with Server("--slow-ms", "20", simulate="a=30ms,b=0ms") as server, server.client() as client:
        client.request("POST", INFER, json_infer(ROW, "tortoise"))
        line = wait_until(lambda: next((line for line in server.log().splitlines()
                                        if "tortoise" in line), None), "the line")
        for part in ("simulated", "status 200", " ms:", "execute 3", "batch of 1 ("):
            check(part in line, f"{part!r} is not in {line!r}")
        shares = [float(share) for share in re.findall(r"\((\d+\.\d) %\)", line)]
        check(abs(sum(shares) - 100) < 1, f"shares sum to {sum(shares)}")
        load(server, 16, 5, binary_message)
        lines = server.log().count("slow request")
        check(5 <= lines <= 40, f"{lines} lines for 81 slow requests")
    with Server("--slow-ms", "0", simulate="a=60ms,b=0ms") as server:
        server.post(json_infer(ROW))
        check("slow request" not in server.log(), "--slow-ms 0 logs")


@case
def metrics_agree_with_what_was_sent():
    label = '{model="simulated",version="1"}'
    for queue in ("ring", "mutex"):
        with Server("--queue", queue, simulate="a=0.5ms,b=0.01ms") as server:
            load(server, 8, 50, binary_message)
            server.post(b"{nope")
            wait_until(lambda: server.metrics()[f"nv_inference_request_success{label}"] == 400,
                       "400 requests counted")
            metrics = server.metrics()
            rows = sum(1 + turn % 3 for turn in range(50)) * 8
            equal(metrics[f"nv_inference_count{label}"], rows, "rows")
            batches = metrics[f"nv_inference_exec_count{label}"]
            equal(metrics[f"telltale_batch_size_count{label}"], batches, "batches")
            equal(metrics[f"telltale_batch_size_sum{label}"], 400, "requests in batches")
            equal(sum(value for name, value in metrics.items()
                      if name.startswith("telltale_batches_total{")), batches, "reasons")
            equal(metrics[f"telltale_request_duration_seconds_count{label}"], 401, "durations")
            inner = sum(metrics[f"nv_inference_{part}_duration_us{label}"] for part in
                        ("queue", "compute_input", "compute_infer", "compute_output"))
            check(0 < inner <= metrics[f"nv_inference_request_duration_us{label}"], "durations")
            equal(metrics['telltale_info{version="%s",backend="simulated",simulated="true"}'
                          % server.get("/v2").json()["version"]], 1, "info")
            locks = [name for name in metrics if name.startswith("telltale_lock_wait_seconds_count")]
            equal(bool(locks), queue == "mutex", f"lock histograms with queue={queue}")
            check(metrics["process_resident_memory_bytes"] > 1 << 20, "resident memory")


@case
def a_trace_that_cannot_be_written_is_told_once_and_requests_are_served_on():
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    with tempfile.TemporaryDirectory() as directory:
        server = Server("--trace", os.path.join(directory, "run"), "--trace-all", "--read-timeout",
                        "1s")
        resource.setrlimit(resource.RLIMIT_FSIZE, (40000, old[1]))  # as a full disk
        try:
            server.start()
            resource.setrlimit(resource.RLIMIT_FSIZE, old)
            with server.client() as client:
                for _ in range(300):
                    client.request("POST", INFER, json_infer(ROW))
            wait_until(lambda: "requests.jsonl" in server.log(), "a line in the log")
            equal(server.metrics()["telltale_trace_stopped"], 1, "telltale_trace_stopped")
            equal(server.post(json_infer(ROW)).status, 200, "a request after that")
            server.stop()
            equal(server.log().count("requests.jsonl"), 1, server.log())
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, old)
            server.kill()


@case
def promtool_finds_no_fault_in_our_metrics():
    promtool = shutil.which("promtool")
    if not promtool:
        raise Skip("promtool is not installed")
    with Server("--queue", "mutex") as server:
        load(server, 4, 5, binary_message)
        server.post(b"{nope")
        page = server.get("/metrics").body
    result = subprocess.run([promtool, "check", "metrics"], input=page, capture_output=True,
                            check=False)
    faults = (result.stdout + result.stderr).decode().splitlines()
    # Triton's names break the rules of naming, and are what existing dashboards ask for.
    ours = [line for line in faults if line and not line.startswith("nv_")]
    equal(ours, [], "promtool")
    without = b"".join(line + b"\n" for line in page.splitlines() if b"nv_inference" not in line)
    result = subprocess.run([promtool, "check", "metrics"], input=without, capture_output=True,
                            check=False)
    equal(result.returncode, 0, result.stderr.decode())


@case
def every_metric_is_documented():
    with open(os.path.join(ROOT, "docs", "metrics.md"), encoding="utf-8") as f:
        text = f.read()
    with Server("--queue", "mutex") as server:
        page = server.get("/metrics").body.decode()
    names = re.findall(r"^# TYPE (\S+)", page, re.M)
    check(len(names) > 30, names)
    equal([name for name in names if f"`{name}" not in text], [], "not in docs/metrics.md")


@case
def statistics_have_the_form_that_triton_s_clients_read():
    with Server() as server:
        load(server, 2, 10, binary_message)

        def stats():
            return server.get("/v2/models/simulated/stats").json()["model_stats"][0]

        wait_until(lambda: stats()["inference_stats"]["success"]["count"] == 20, "20 requests")
        one = stats()
        equal(one, server.get("/v2/models/simulated/versions/1/stats").json()["model_stats"][0],
              "by version")
        equal((one["name"], one["version"]), ("simulated", "1"), "name")
        inner = one["inference_stats"]
        check(0 < inner["compute_infer"]["ns"] < inner["success"]["ns"], inner)
        equal(sorted(inner), sorted(["success", "fail", "queue", "compute_input", "compute_infer",
                                     "compute_output", "cache_hit", "cache_miss"]), "members")
        equal(len(server.get("/v2/models/stats").json()["model_stats"]), 1, "all models")


if __name__ == "__main__":
    main()
