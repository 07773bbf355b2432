"""Clients that come with Debian, and what asks a server whether it is well: curl, wrk, hey, ab,
h2load, KServe's probes, python3-grpcio. Each function is one check: see CLIENTS at the end.

A check takes the running Server; the models are those of models.py.
"""
import gzip
import json
import re
import struct
import tempfile

from running import Skip, check, output_of

MODEL = "/v2/models/simple/infer"


def request_of(rows=1):
    """JSON of a request to the model simple"""
    values = list(range(16 * rows))
    inputs = [{"name": f"INPUT{i}", "datatype": "INT32", "shape": [rows, 16], "data": values}
              for i in range(2)]
    return json.dumps({"id": "7", "inputs": inputs}).encode()


def check_sum(body, rows=1):
    answer = json.loads(body)
    outputs = {output["name"]: output for output in answer["outputs"]}
    check(answer["id"] == "7", f"id is {answer.get('id')}")
    check(outputs["OUTPUT0"]["data"] == [2 * i for i in range(16 * rows)], outputs["OUTPUT0"])
    check(outputs["OUTPUT1"]["data"] == [0] * 16 * rows, outputs["OUTPUT1"])


def curl(server, path, *options, given=None):
    return output_of(["curl", "-sS", "--max-time", "30", *options,
                      f"http://127.0.0.1:{server.http}{path}"], given=given)


def curl_asks_health_and_metadata(server):
    for path in ("/v2/health/live", "/v2/health/ready", "/v2/models/simple/ready"):
        check(curl(server, path, "-o", "/dev/null", "-w", "%{http_code}") == "200", path)
    metadata = json.loads(curl(server, "/v2/models/simple"))
    check(metadata["platform"] == "onnxruntime_onnx", metadata)
    check(json.loads(curl(server, "/v2/models/simple/config"))["name"] == "simple", "config")
    check("binary_tensor_data" in json.loads(curl(server, "/v2"))["extensions"], "extensions")


def curl_infers_with_json(server):
    check_sum(curl(server, MODEL, "--data-binary", "@-", given=request_of()))


def curl_sends_chunks_and_waits_for_100(server):
    check_sum(curl(server, MODEL, "-H", "Transfer-Encoding: chunked", "--data-binary", "@-",
                   given=request_of(4)), 4)
    check_sum(curl(server, MODEL, "-H", "Expect: 100-continue", "--data-binary", "@-",
                   given=request_of()))


def curl_speaks_http_1_0_and_keeps_a_connection(server):
    check_sum(curl(server, MODEL, "--http1.0", "--data-binary", "@-", given=request_of()))
    url = f"http://127.0.0.1:{server.http}/v2/health/live"
    said = output_of(["curl", "-sv", url, url])
    check("Re-using existing connection" in said, "two connections for two requests")


def curl_takes_compressed_answers(server):
    head = curl(server, "/metrics", "--compressed", "-o", "/dev/null", "-D", "-")
    if "content-encoding" not in head.lower():
        raise Skip("answers are not compressed")
    check_sum(curl(server, MODEL, "--compressed", "--data-binary", "@-", given=request_of(8)), 8)


def curl_sends_compressed_requests(server):
    said = curl(server, MODEL, "-H", "Content-Encoding: gzip", "--data-binary", "@-",
                given=gzip.compress(request_of(8)))
    if "Content-Encoding" in said and "error" in said:
        raise Skip("compressed requests are refused")
    check_sum(said, 8)


def binary_body():
    """(file's bytes, length of the JSON) of a binary request to simple, both outputs binary"""
    data = struct.pack("<16i", *range(16))
    head = json.dumps({"inputs": [{"name": f"INPUT{i}", "datatype": "INT32", "shape": [1, 16],
                                   "parameters": {"binary_data_size": 64}} for i in range(2)],
                       "parameters": {"binary_data_output": True}}).encode()
    return head + 2 * data, len(head)


def with_body(run, body):
    """run(path) of a file that holds body"""
    with tempfile.NamedTemporaryFile(prefix="telltale-compat-") as file:
        file.write(body)
        file.flush()
        return run(file.name)


def url_of(server):
    return f"http://127.0.0.1:{server.http}{MODEL}"


def wrk_posts_json(server):
    script = b'wrk.method = "POST"\nwrk.body = [[' + request_of() + b"]]\n"
    said = with_body(lambda path: output_of(["wrk", "-t", "1", "-c", "8", "-d", "2s", "-s", path,
                                             url_of(server)]), script)
    rate = re.search(r"Requests/sec:\s+([\d.]+)", said)
    check(rate and float(rate[1]) > 10 and "Non-2xx" not in said and "Socket errors" not in said,
          said)
    return f"{float(rate[1]):.0f} requests/s"


def hey_posts_binary_tensors(server):
    body, size = binary_body()
    said = with_body(lambda path: output_of(
        ["hey", "-n", "2000", "-c", "8", "-m", "POST", "-D", path, "-T", "application/octet-stream",
         "-H", f"Inference-Header-Content-Length: {size}", url_of(server)]), body)
    check(re.search(r"\[200\]\s+2000 responses", said), said)


def ab_keeps_http_1_0_connections(server):
    said = with_body(lambda path: output_of(
        ["ab", "-q", "-k", "-n", "2000", "-c", "8", "-p", path, "-T", "application/json",
         url_of(server)]), request_of())
    check(re.search(r"Complete requests:\s+2000", said) and "Non-2xx" not in said, said)
    check(re.search(r"Failed requests:\s+0", said), said)
    kept = re.search(r"Keep-Alive requests:\s+(\d+)", said)
    return f"{kept[1] if kept else 0} of 2000 on a kept connection"


def h2load_speaks_http_1_1(server):
    said = with_body(lambda path: output_of(
        ["h2load", "--h1", "-n", "2000", "-c", "8", "-d", path, "-H",
         "content-type: application/json", url_of(server)]), request_of())
    check("2000 succeeded, 0 failed" in said and re.search(r"status codes: 2000 2xx", said), said)


def kserve_probes_over_http(server):
    """what a Kubernetes httpGet probe takes for success, and the body that KServe's agent reads"""
    for path, member in (("/v2/health/live", "live"), ("/v2/health/ready", "ready"),
                         ("/v2/models/simple/ready", "ready")):
        said = curl(server, path, "-A", "kube-probe/1.30", "-w", "\n%{http_code}")
        body, status = said.rsplit("\n", 1)
        check(200 <= int(status) < 400, f"{path}: {status}")
        check(json.loads(body).get(member) is True, f"{path}: {body}")
    status = curl(server, "/v2/models/absent/ready", "-o", "/dev/null", "-w", "%{http_code}")
    check(status == "404" or status == "400", f"an absent model's ready: {status}")


def kserve_lists_what_its_transformer_reads(server):
    """metadata and inference as KServe's own REST client for protocol v2 sends it"""
    metadata = json.loads(curl(server, "/v2/models/simple"))
    check([tensor["name"] for tensor in metadata["inputs"]] == ["INPUT0", "INPUT1"], metadata)
    check(metadata["inputs"][0]["shape"] == [-1, 16], metadata)
    check_sum(curl(server, MODEL, "-H", "content-type: application/json", "--data-binary", "@-",
                   given=request_of()))


def curl_reads_what_prometheus_scrapes(server):
    said = output_of(["curl", "-sS", f"http://127.0.0.1:{server.metrics}/metrics"])
    check("telltale_" in said and "# TYPE" in said, said[:200])


CLIENTS = {
    "curl": [curl_asks_health_and_metadata, curl_infers_with_json,
             curl_sends_chunks_and_waits_for_100, curl_speaks_http_1_0_and_keeps_a_connection,
             curl_takes_compressed_answers, curl_sends_compressed_requests,
             curl_reads_what_prometheus_scrapes],
    "wrk": [wrk_posts_json],
    "hey": [hey_posts_binary_tensors],
    "ab": [ab_keeps_http_1_0_connections],
    "h2load": [h2load_speaks_http_1_1],
    "KServe probes": [kserve_probes_over_http, kserve_lists_what_its_transformer_reads],
}
