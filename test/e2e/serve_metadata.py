"""What the server says about itself: health, metadata, configuration, methods, paths."""
import os
import select
import stat
import subprocess
import tempfile

from _harness import BINARY, INFER, ROW, SPAM, Server, case, check, equal, json_infer, main, \
    need_spam, run_program, wait_until


@case
def live_and_ready_answer_200_with_a_body():
    with Server() as server:
        for path, body in (("/v2/health/live", {"live": True}), ("/v2/health/ready", {"ready": True}),
                           ("/v2/models/simulated/ready", {"name": "simulated", "ready": True}),
                           ("/v2/models/simulated/versions/1/ready",
                            {"name": "simulated", "ready": True})):
            response = server.get(path)
            equal((response.status, response.json()), (200, body), path)


@case
def server_metadata_names_only_the_extensions_that_are_served():
    with Server() as server:
        data = server.get("/v2").json()
        equal(data["name"], "telltale", "name")
        check(data["version"], "version is empty")
        extensions = data["extensions"]
        check("binary_tensor_data" in extensions, extensions)
        served = {"model_configuration": "/v2/models/simulated/config",
                  "statistics": "/v2/models/stats", "trace": "/v2/trace/setting",
                  "logging": "/v2/logging", "system_shared_memory": "/v2/systemsharedmemory/status"}
        for name, path in served.items():
            equal((name in extensions, server.get(path).status), (True, 200), name)
        equal(sorted(extensions), sorted(["binary_tensor_data", "classification", "parameters",
                                          "schedule_policy", *served]), "extensions")


@case
def model_metadata_tells_names_types_and_shapes_and_that_it_is_simulated():
    with Server("--model-name", "m.1") as server:
        for path in ("/v2/models/m.1", "/v2/models/m.1/versions/1", "/v2/models/m%2e1"):
            equal(server.get(path).json(),
                  {"name": "m.1", "versions": ["1"], "platform": "telltale_simulated",
                   "inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [-1, 16]}],
                   "outputs": [{"name": "OUTPUT0", "datatype": "FP32", "shape": [-1, 16]}]}, path)


@case
def model_configuration_has_what_perf_analyzer_needs():
    with Server("--max-batch", "8") as server:
        config = server.get("/v2/models/simulated/config").json()
        equal(config["max_batch_size"], 8, "max_batch_size")
        equal(config["input"], [{"name": "INPUT0", "data_type": "TYPE_FP32", "dims": [16]}], "input")
        equal(config["output"], [{"name": "OUTPUT0", "data_type": "TYPE_FP32", "dims": [16]}], "output")
    with Server("--max-batch", "0") as server:
        config = server.get("/v2/models/simulated/config").json()
        equal((config["max_batch_size"], config["input"][0]["dims"]), (0, [-1, 16]), "unbatched")


@case
def head_works_where_get_does():
    with Server() as server, server.client() as client:
        for path in ("/v2", "/v2/health/live", "/v2/models/simulated", "/metrics"):
            head = client.request("HEAD", path)
            get = client.request("GET", path)
            equal((head.status, get.status), (200, 200), path)
            if path != "/metrics":
                equal(head.headers["content-length"], str(len(get.body)), path)


@case
def wrong_method_gets_405_with_allow():
    with Server() as server:
        for method, path, allow in (("POST", "/v2", "GET, HEAD"), ("GET", INFER, "POST, PUT"),
                                    ("DELETE", "/v2/models/simulated", "GET, HEAD"),
                                    ("HEAD", INFER, "POST, PUT")):
            response = server.get(path, method)
            equal((response.status, response.headers["allow"]), (405, allow), f"{method} {path}")
            if method != "HEAD":
                response.error()


@case
def unknown_paths_models_and_versions_get_404_that_names_them():
    with Server() as server:
        for path, part in (("/", '"/"'), ("/v2/", "/v2/"), ("/v2/models/", "/v2/models/"),
                           ("/v2/models/nope", "nope"), ("/v2/models/simulated/nope", "nope"),
                           ("/v2/models/simulated/versions/7", "7"),
                           ("/v2/models/simulated/versions/", "versions"),
                           ("/v2/models/simulated/versions/x/ready", "x"),
                           ("/v2/models/%00", "%00"), ("/v2/models/%zz", "%zz"),
                           ("/v2/models/" + "a" * 400, "aaa")):
            response = server.get(path)
            equal(response.status, 404, path)
            check(part in response.error(), f"{path}: {response.error()}")
        response = server.post(json_infer(ROW), "/v2/models/nope/infer")
        equal(response.status, 404, "infer of an unknown model")


@case
def metrics_port_serves_metrics_and_nothing_else():
    with Server() as server:
        from _harness import Client
        with Client(server.metrics_port) as client:
            equal(client.request("GET", "/metrics").status, 200, "/metrics")
            equal(client.request("GET", "/v2").status, 404, "/v2")


@case
def start_up_says_what_is_served_where_and_how():
    with Server("--policy", "timer", "--max-delay-us", "1500", "--max-batch", "7") as server:
        log = server.log()
        for part in ("simulated", "SIMULATED", f"127.0.0.1:{server.port}", "policy timer",
                     "max batch 7", "1500 us", "queue ring"):
            check(part in log, f"{part} is not in {log}")


@case
def a_port_in_use_gives_one_clear_line_and_exit_code_1():
    with Server() as server:
        result = run_program("serve", "--simulate", "a=1ms,b=0ms", "--http-port", str(server.port),
                             "--metrics-port", "0", "--grpc-port", "0")
        equal(result.returncode, 1, "exit code")
        check(str(server.port) in result.stderr, result.stderr)
        equal(len(result.stderr.strip().splitlines()), 1, f"lines of {result.stderr!r}")


@case
def a_port_file_that_is_a_pipe_is_written_into_and_stays_one():
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "ports")
        os.mkfifo(path)
        reader = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        process = subprocess.Popen(
            [BINARY, "serve", "--simulate", "a=1ms,b=0ms", "--http-port", "0", "--metrics-port",
             "0", "--grpc-port", "0", "--port-file", path], stderr=subprocess.DEVNULL)
        try:
            ready = select.select([reader], [], [], 20)[0]
            check(ready and os.read(reader, 100).startswith(b"http "), "nothing came by the pipe")
            equal(os.listdir(directory), ["ports"], "files")
            check(stat.S_ISFIFO(os.stat(path).st_mode), "the pipe was replaced")
        finally:
            process.terminate()
            process.wait(20)
            os.close(reader)
        link = os.path.join(directory, "link")
        os.symlink("target", link)
        process = subprocess.Popen(
            [BINARY, "serve", "--simulate", "a=1ms,b=0ms", "--http-port", "0", "--metrics-port",
             "0", "--grpc-port", "0", "--port-file", link], stderr=subprocess.DEVNULL)
        try:
            wait_until(lambda: process.poll() is not None or not os.path.islink(link) or
                       os.path.exists(link), "the ports")
            check(os.path.islink(link), "the link was replaced")
        finally:
            process.terminate()
            process.wait(20)
        result = run_program("serve", "--simulate", "a=1ms,b=0ms", "--http-port", "0",
                             "--metrics-port", "0", "--grpc-port", "0", "--port-file",
                             directory)
        check(result.returncode == 1 and "--port-file" in result.stderr, result.stderr)
        check(not os.path.exists(directory + ".tmp"), "half a port file is left")


@case
def nothing_that_no_client_could_ask_for_is_served():
    with tempfile.TemporaryDirectory() as directory:
        result = run_program("serve", "--model-repository", directory, "--http-port", "0",
                             "--metrics-port", "0", "--grpc-port", "0")
        check(result.returncode == 1 and "model.onnx" in result.stderr, result.stderr)
    for options, word in ((("--model-name", ""), "--model-name"),
                          (("--model-name", "x" * 256), "--model-name"),
                          (("--model-name", "a\nb"), "--model-name"),
                          (("--http-port", "7", "--metrics-port", "7"), "--metrics-port"),
                          (("--http-port", "7", "--grpc-port", "7"), "--grpc-port"),
                          (("--grpc-port", "70000"), "--grpc-port")):
        result = run_program("serve", "--simulate", "a=1ms", *options)
        equal(result.returncode, 2, f"{options}: exit code")
        check(word in result.stderr, f"{options}: {result.stderr}")


@case
def wrong_usage_gets_exit_code_2_and_help_0():
    for arguments in ((), ("--simulate", "a=1ms,b=0ms", "--max-header", "1GiB"), ("--nope",),
                      ("--simulate", "a=1ms,b=0ms", "extra")):
        result = run_program("serve", *arguments)
        equal(result.returncode, 2, f"exit code of {arguments}: {result.stderr}")
        check(result.stderr, "no message")
    result = run_program("serve", "--simulate", "nonsense")
    check(result.returncode in (1, 2) and "simulate" in result.stderr, result.stderr)
    check(os.path.exists(BINARY) and run_program("serve", "--help").returncode == 0, "--help")


@case
def a_real_model_reports_its_own_signature():
    model = need_spam()
    with Server("--model", model, simulate=None) as server:
        name = server.log().split("model ")[1].split(" ")[0]
        data = server.get(f"/v2/models/{name}").json()
        equal(data["platform"], "onnxruntime_onnx", "platform")
        check(any(tensor["name"] == "TEXT" for tensor in data["inputs"]), data)
        check(os.path.exists(os.path.join(SPAM, "tokenizer.json")), "no tokenizer beside it")


if __name__ == "__main__":
    main()
