"""bench against an https:// server: trust, client certificates, what it says when it has neither."""
import json

from _harness import Server, case, check, equal, main, run_program
from _tls import Certificates

QUICK = ["--concurrency", "4", "--duration", "300ms", "--warmup", "4", "--json"]


def bench(server, *options, host="localhost"):
    return run_program("bench", "--url", f"https://{host}:{server.port}", "--model-name",
                       "simulated", *QUICK, *options)


def measured(done):
    equal(done.returncode, 0, f"exit code: {done.stderr}")
    step = json.loads(done.stdout)["steps"][0]
    check(step["ok"] > 10 if "ok" in step else step["requests"] > 10, done.stdout)
    equal(step["failed"], 0, "failed requests")
    return step


@case
def a_server_is_measured_over_tls():
    with Certificates() as made, Server(*made.options()) as server:
        for host in ("localhost", "127.0.0.1"):
            measured(bench(server, "--tls-ca", made.ca, "--metrics-url",
                           f"http://127.0.0.1:{server.metrics_port}/metrics", host=host))
        measured(bench(server, "--tls-insecure"))


@case
def the_metrics_page_is_read_over_tls_too():
    with Certificates() as made, Server("--tls-metrics", *made.options()) as server:
        step = measured(bench(server, "--tls-ca", made.ca, "--metrics-url",
                              f"https://localhost:{server.metrics_port}/metrics"))
        check((step.get("cpu") or {}).get("server"), f"no processor time of the server: {step}")


@case
def a_server_that_is_not_trusted_is_not_measured():
    with Certificates() as made, Certificates() as other, Server(*made.options()) as server:
        for options in ((), ("--tls-ca", other.ca)):
            done = bench(server, *options)
            equal(done.returncode, 1, "exit code")
            check("its certificate is not trusted" in done.stderr, done.stderr)
            check("--tls-ca" in done.stderr, "the remedy is missing: " + done.stderr)


@case
def a_clients_certificate_is_shown_where_it_is_asked_for():
    with Certificates() as made, Server("--tls-client-ca", made.ca, *made.options()) as server:
        certificate, key = made.sign("bench")
        measured(bench(server, "--tls-ca", made.ca, "--tls-certificate", certificate,
                       "--tls-key", key))
        done = bench(server, "--tls-ca", made.ca)
        equal(done.returncode, 1, "exit code without one")
        check("certificate required" in done.stderr, done.stderr)


@case
def options_that_make_no_sense_are_named():
    with Certificates() as made, Server() as server:
        plain = ["bench", "--url", f"http://127.0.0.1:{server.port}", "--model-name", "simulated"]
        secure = ["bench", "--url", f"https://127.0.0.1:{server.port}", "--model-name", "simulated"]
        for arguments, code, part in (
                ([*plain, "--tls-ca", made.ca], 2, "https://"),
                ([*secure, "--tls-key", made.key], 2, "need each other"),
                ([*secure, "--tls-ca", made.ca, "--tls-insecure"], 2, "give one"),
                ([*secure, "--tls-ca", "/nowhere"], 1, "/nowhere"),
                (secure, 1, f"https://127.0.0.1:{server.port}")):
            done = run_program(*arguments)
            equal(done.returncode, code, f"exit code of {arguments}: {done.stderr}")
            check(part in done.stderr, f"{part!r} is not in {done.stderr!r}")


if __name__ == "__main__":
    main()
