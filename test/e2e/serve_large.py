"""Large bodies and answers, which workers decode and encode while the loop serves others: the
same answers, errors, timeouts, ids and records as for small ones. And bodies that are a picture or
a text as they are."""
import json
import os
import struct
import tempfile
import threading
import time

from _harness import INFER, ROW, SPAM, Server, Skip, case, check, equal, http_request, json_infer, \
    main, text_infer, wait_until
import _harness

ROWS = 600  # 600 x 16 numbers: some 60 KB of JSON, over what the loop decodes or encodes
MANY = ("--max-batch", "1024")
VALUES = [((i * 37) % 1000) / 8 for i in range(ROWS * 16)]


def huge(size=4 << 20):
    """A JSON body of several megabytes: tens of milliseconds to decode."""
    count = size // 8 // 16 * 16
    return json_infer([0.12345] * count, shape=[count // 16, 16])


def requests_by_status(server):
    start = 'telltale_requests_total{model="simulated",version="1",status="'
    return {name[len(start):-2]: int(value) for name, value in server.metrics().items()
            if name.startswith(start) and value}


def in_flight(server):
    return server.metrics()["telltale_requests_in_flight"]


@case
def large_json_in_and_out_gives_the_right_numbers_and_echoes_the_id():
    with Server(*MANY) as server, server.client() as client:
        for turn in range(4):
            response = client.request("POST", INFER, json_infer(VALUES, f"large-{turn}"))
            equal((response.status, response.json()["id"]), (200, f"large-{turn}"), "id")
            equal(response.tensors()["OUTPUT0"], ("FP32", [ROWS, 16], [v + 1 for v in VALUES]),
                  "numbers")
            small = client.request("POST", INFER, json_infer(ROW, "small"))
            equal(small.tensors()["OUTPUT0"][2], [v + 1 for v in ROW], "a small one after it")
        check("id" not in client.request("POST", INFER, json_infer(VALUES)).json(), "no id")


@case
def outputs_wanted_and_binary_are_heard_in_large_bodies_too():
    with Server(*MANY) as server:
        body = json.loads(json_infer(VALUES))
        body["outputs"] = [{"name": "OUTPUT0", "parameters": {"binary_data": True}}]
        response = server.post(json.dumps(body).encode())
        check("inference-header-content-length" in response.headers, response.headers)
        equal(response.tensors()["OUTPUT0"][2], [v + 1 for v in VALUES], "binary out")


@case
def what_is_wrong_with_a_large_body_is_said_as_with_a_small_one():
    cases = [(b"{" + b" " * 40000 + b"}", "inputs"), (b"[" * 40000, "JSON"),
             (json_infer(VALUES, shape=[ROWS, 15]), "INPUT0"),
             (json_infer(VALUES, name="PIXELS"), "PIXELS")]
    with Server(*MANY) as server, server.client() as client:
        for body, word in cases:
            response = client.request("POST", INFER, body)
            equal(response.status, 400, response.body)
            check(word in response.error(), response.error())
        response = client.request("POST", INFER, json_infer(VALUES * 2, shape=[2 * ROWS, 16]))
        equal(response.status, 400, "more rows than a batch holds")
        equal(client.request("POST", INFER, json_infer(VALUES)).status, 200, "goes on")
        wait_until(lambda: requests_by_status(server) == {"INVALID": 5, "OK": 1}, "the counts")


@case
def nan_in_a_large_answer_asks_for_binary():
    data = struct.pack(f"<{ROWS * 16}f", *VALUES[:-1], float("nan"))
    head = json.dumps({"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [ROWS, 16],
                                   "parameters": {"binary_data_size": len(data)}}]}).encode()
    with Server(*MANY) as server:
        response = server.post(head + data,
                               headers=[("Inference-Header-Content-Length", len(head))])
        equal(response.status, 400, response.body[:200])
        check("binary_data" in response.error(), response.error())


@case
def the_server_s_timeout_counts_from_the_start_while_a_worker_decodes():
    with Server("--request-timeout-ms", "2", "--max-body", "64MiB", *MANY) as server, \
            server.client() as client:
        body = huge()
        for _ in range(4):
            response = client.request("POST", INFER, body)
            equal(response.status, 504, response.body)
            check("2.000 ms" in response.error(), response.error())
        equal(client.request("GET", "/v2").status, 200, "the connection lives")
        wait_until(lambda: in_flight(server) == 0, "the worker gives the bodies back")
        wait_until(lambda: requests_by_status(server) == {"TIMEOUT": 4}, "the counts")


@case
def a_large_body_s_own_timeout_counts_once_it_is_read():
    with Server("--request-timeout-ms", "60000", *MANY, simulate="a=2s,b=0ms") as server, \
            server.client() as client:
        began = time.monotonic()
        response = client.request("POST", INFER, json_infer(VALUES, timeout=100_000))
        took = time.monotonic() - began
        equal(response.status, 504, response.body)
        check("100.000 ms" in response.error(), response.error())
        check(0.1 <= took < (1.5 if _harness.IS_SANITIZED else 0.5), f"after {took} s")
        wait_until(lambda: in_flight(server) == 0, "the instance gives it back")


@case
def clients_that_leave_while_a_worker_decodes_take_nothing_with_them():
    with Server("--workers", "1", *MANY) as server:
        size = (4 if _harness.IS_SANITIZED else 32) << 20
        busy = server.client(timeout=120).send(http_request("POST", INFER, huge(size)))
        wait_until(lambda: in_flight(server) > 0, "the worker has something to do")
        clients = [server.client() for _ in range(4)]
        for client in clients:
            client.send(http_request("POST", INFER, json_infer(VALUES)))
        wait_until(lambda: in_flight(server) == 5, "the others wait for it")
        for client in clients:
            client.reset()
        equal(server.post(json_infer(ROW)).status, 200, "a small one meanwhile")
        busy.reset()
        wait_until(lambda: in_flight(server) == 0, "nothing is left in flight")
        wait_until(lambda: sum(requests_by_status(server).values()) == 6, "a record each")
        counts = requests_by_status(server)
        check(counts["CANCELLED"] >= 4 and counts["OK"] == 1, counts)  # the worker was quick, or not


@case
def the_loop_serves_others_while_a_worker_decodes():
    """With one worker busy for long, small requests are answered as if there were none."""
    with Server("--workers", "1", *MANY) as server, server.client() as client:
        body = http_request("POST", INFER, huge(16 << 20))
        busy = server.client(timeout=120)
        sender = threading.Thread(target=busy.send, args=(body,))
        sender.start()
        sender.join()
        wait_until(lambda: in_flight(server) > 0, "the large body is whole")
        answered = 0
        while in_flight(server) > 0 and answered < 1000:
            equal(client.request("POST", INFER, json_infer(ROW)).status, 200, "a small one")
            answered += 1
        busy.read()
        busy.close()
        check(answered > 3, f"only {answered} small requests meanwhile")
        return f"{answered} small requests while 16 MiB of JSON were decoded"


def traced(options, work):
    with tempfile.TemporaryDirectory() as parent:
        directory = os.path.join(parent, "run")
        with Server("--trace", directory, "--trace-all", *options) as server:
            work(server)
        with open(os.path.join(directory, "requests.jsonl"), encoding="utf-8") as file:
            records = [json.loads(line) for line in file]
        with open(os.path.join(directory, "summary.json"), encoding="utf-8") as file:
            return records, json.load(file)


@case
def records_of_large_bodies_add_up_and_say_that_a_worker_was_waited_for():
    def work(server):
        def client(number):
            with server.client() as connection:
                for turn in range(10):
                    body = json_infer(VALUES, f"{number}-{turn}")
                    equal(connection.request("POST", INFER, body).status, 200, "answer")

        threads = [threading.Thread(target=client, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    records, summary = traced(MANY, work)
    equal({record["id"] for record in records},
          {f"{n}-{t}" for n in range(8) for t in range(10)}, "ids")
    for record in records:
        stages = sum(value for name, value in record.items()
                     if name.endswith("_ns") and name in STAGE_FIELDS)
        equal(stages, record["total_ns"], f"sum of stages of {record}")
        for stage in ("preprocess_wait", "decode", "encode"):
            check(record[f"{stage}_ns"] > 0, f"no {stage}: {record}")
        equal(record["steps"], {}, "a tensor model has no steps")
    equal(summary["models"][0]["stamps_out_of_order"], 0, "stamps out of order")
    turns = summary["loop_turn_ns"]
    check(turns["count"] > 80 and turns["p99"] > 0, turns)
    return f"P99 of the loop's turn {turns['p99'] / 1e6:.2f} ms"


STAGE_FIELDS = {f"{stage}_ns" for stage in (
    "receive", "decode", "preprocess_wait", "preprocess", "batch_enqueue", "batch_hold",
    "instance_wait", "dispatch", "input_copy", "execute", "output_copy", "postprocess_wait",
    "postprocess", "encode", "send", "other")}


@case
def records_of_those_that_were_let_go_end_when_they_were():
    def work(server):
        with server.client() as client:
            equal(client.request("POST", INFER, huge()).status, 504, "answer")
        wait_until(lambda: in_flight(server) == 0, "the worker gives it back")

    records, summary = traced(("--request-timeout-ms", "2", *MANY), work)
    record = records[0]
    equal((record["status"], record["http"]), ("timeout", 504), "status")
    equal(sum(record[name] for name in STAGE_FIELDS), record["total_ns"], "sum of stages")
    check(record["decode_ns"] + record["preprocess_wait_ns"] >= 1_000_000, record)
    equal(record["execute_ns"], 0, "the model never ran")
    equal(summary["models"][0]["stamps_out_of_order"], 0, "stamps out of order")


def text_server():
    tokenizer = os.path.join(SPAM, "tokenizer.json")
    if not os.path.exists(tokenizer):
        raise Skip("examples/spam is not there")
    return Server("--tokenizer", tokenizer)


@case
def a_text_as_the_body_is_answered_like_one_in_json():
    text = "You have won: free money \u20ac now"
    with text_server() as server, server.client() as client:
        expected = client.request("POST", INFER, text_infer(text)).json()["outputs"]
        for method, content_type in (("POST", "text/plain"), ("PUT", "Text/Plain; charset=utf-8"),
                                     ("POST", "application/octet-stream"), ("PUT", "text/plain")):
            response = client.request(method, INFER, text.encode(),
                                      [("Content-Type", content_type)])
            equal(response.status, 200, response.body)
            equal(response.headers["content-type"], "application/json", "type of the answer")
            equal(response.json()["outputs"], expected, content_type)
        empty = client.request("POST", INFER, b"", [("Content-Type", "text/plain")])
        equal(empty.json()["outputs"],
              client.request("POST", INFER, text_infer("")).json()["outputs"], "an empty text")
        long = "free money " * 20000
        response = client.request("PUT", INFER, long.encode(), [("Content-Type", "text/plain")])
        equal(response.json()["outputs"],
              client.request("POST", INFER, text_infer(long)).json()["outputs"], "a long text")


@case
def a_picture_for_a_model_of_tensors_gets_415_with_the_remedy():
    with Server() as server, server.client() as client:
        for content_type in ("image/jpeg", "image/webp;q=1", "text/plain"):
            response = client.request("PUT", INFER, b"\xff\xd8\xff",
                                      [("Content-Type", content_type)])
            equal(response.status, 415, response.body)
            check("pipeline.yaml" in response.error(), response.error())
            check(content_type in response.error(), response.error())
        body = json_infer(ROW)
        for content_type in ("application/json", "application/octet-stream",
                             "application/x-www-form-urlencoded", "imaginary", "text/plainer"):
            response = client.request("POST", INFER, body, [("Content-Type", content_type)])
            equal(response.status, 200, content_type)


if __name__ == "__main__":
    main()
