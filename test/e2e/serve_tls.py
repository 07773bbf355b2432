"""HTTPS: certificates of the server and of clients, what is refused, renewal, shutdown."""
import os
import shutil
import signal
import socket
import ssl
import subprocess
import threading

from _harness import INFER, ROW, Client, Server, Skip, case, check, equal, binary_infer, \
    http_request, json_infer, main, run_program, wait_until
from _tls import Certificates, TlsClient


def metric(server, context, name):
    with TlsClient(server.port, context) as client:
        page = client.request("GET", "/metrics").body.decode()
    for line in page.splitlines():
        if line.startswith(name + " "):
            return float(line.rsplit(" ", 1)[1])
    return None


@case
def requests_are_answered_over_tls_1_2_and_1_3():
    with Certificates() as made, Server(*made.options()) as server:
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = made.context(alpn=["h2", "http/1.1"])
            context.maximum_version = version
            with TlsClient(server.port, context) as client:
                equal(client.socket.selected_alpn_protocol(), "http/1.1", "protocol")
                for number in range(50):
                    body, headers = binary_infer(ROW, f"t{number}")
                    response = client.request("POST", INFER, body, headers)
                    equal(response.tensors()["OUTPUT0"][2], [v + 1 for v in ROW], "numbers")
                equal(client.request("GET", "/v2/health/ready").status, 200, "ready")
        check("listening on https://" in server.log(), server.log())
        full = metric(server, made.context(),
                      'telltale_tls_handshakes_total{port="http",kind="full"}')
        equal(full, 3, "full handshakes")


@case
def large_bodies_and_answers_pass_whole():
    values = [float(i % 1000) for i in range(16 * 65536)]
    with Certificates() as made, \
            Server("--max-batch", "0", *made.options(), simulate="a=1ms,b=0ms") as server, \
            TlsClient(server.port, made.context()) as client:
        for _ in range(2):
            body, headers = binary_infer(values)
            response = client.request("POST", INFER, body, headers)
            check(response.tensors()["OUTPUT0"][2] == [v + 1 for v in values], "wrong numbers")


@case
def a_client_that_reads_slowly_gets_everything():
    values = [float(i % 1000) for i in range(16 * 65536)]
    with Certificates() as made, \
            Server("--max-batch", "0", *made.options(), simulate="a=1ms,b=0ms") as server, \
            TlsClient(server.port, made.context()) as client:
        body, headers = binary_infer(values)
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        client.send(http_request("POST", INFER, body, headers))
        check(client.has_data(30), "no answer")
        threading.Event().wait(0.3)  # the reader's own slowness, not a wait for the server
        check(client.read().tensors()["OUTPUT0"][2] == [v + 1 for v in values], "wrong numbers")


@case
def pipelined_requests_are_answered_in_order():
    with Certificates() as made, Server(*made.options()) as server, \
            TlsClient(server.port, made.context()) as client:
        client.send(b"".join(http_request("POST", INFER, json_infer(ROW, f"p{n}"))
                             for n in range(50)))
        for number in range(50):
            equal(client.read().json()["id"], f"p{number}", "order")


@case
def sessions_are_resumed():
    with Certificates() as made, Server(*made.options()) as server:
        context = made.context()
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        with TlsClient(server.port, context) as client:
            equal(client.request("GET", "/v2").status, 200, "first")
            session = client.socket.session
        with TlsClient(server.port, context, session=session) as client:
            equal(client.request("GET", "/v2").status, 200, "second")
            check(client.socket.session_reused, "a full handshake again")
        resumed = metric(server, made.context(),
                         'telltale_tls_handshakes_total{port="http",kind="resumed"}')
        equal(resumed, 1, "resumed handshakes")


@case
def answers_of_errors_and_refusals_arrive_and_the_end_is_said():
    with Certificates() as made, Server("--max-connections", "1", *made.options()) as server:
        with TlsClient(server.port, made.context()) as client:
            equal(client.request("GET", "/v2").status, 200, "within the limit")
            with TlsClient(server.port, made.context()) as late:
                equal(late.read().status, 503, "over the limit")
                equal(late.socket.recv(1), b"", "the end (a cut would raise)")
            client.send(b"GET / HTTP/1.1\r\n\r\n")
            equal(client.read().status, 400, "no Host")
            equal(client.socket.recv(1), b"", "the end")


@case
def what_does_not_speak_tls_is_closed_and_counted():
    with Certificates() as made, \
            Server("--log-level", "debug", "--read-timeout", "300ms", *made.options()) as server:
        for text in (b"GET /v2 HTTP/1.1\r\nHost: t\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                     b"\0", b"\x80\x01"):
            with Client(server.port) as client:
                client.send(text)
                check(client.is_closed(), f"open after {text!r}")
                equal(client.buffer, b"", "nothing was sent")
        for text in (b"", b"\x16\x03\x01\x02\x00\x01"):  # silence, and half a hello
            with Client(server.port) as client:
                client.send(text)
                check(client.is_closed(), f"open after {text!r}")
        with Client(server.port) as client:
            client.send(b"\x16\x03\x01\x00\x05hello")
            check(client.is_closed(), "open after garbage")
        context = made.context()
        for kind, count in (("plain", 4), ("timeout", 2), ("failed", 1)):
            name = f'telltale_tls_failures_total{{port="http",kind="{kind}"}}'
            wait_until(lambda: metric(server, context, name) == count, f"{count} {kind}")
        check("does not speak TLS" in server.log(), server.log())
        page = Client(server.metrics_port).request("GET", "/metrics")
        equal(page.status, 200, "the metrics port is plain")


@case
def a_client_must_trust_the_server():
    with Certificates() as made, Certificates() as other, Server(*made.options()) as server:
        try:
            TlsClient(server.port, other.context()).close()
        except ssl.SSLCertVerificationError:
            pass
        else:
            raise AssertionError("the client trusts anybody")
        name = 'telltale_tls_failures_total{port="http",kind="failed"}'
        wait_until(lambda: metric(server, made.context(), name) == 1, "it is counted")


@case
def old_versions_are_refused():
    with Certificates() as made, Server(*made.options()) as server:
        done = subprocess.run(
            ["openssl", "s_client", "-connect", f"127.0.0.1:{server.port}", "-tls1_1",
             "-cipher", "ALL:@SECLEVEL=0"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False)
        check(done.returncode != 0 and "alert protocol version" in done.stderr, done.stderr)


@case
def clients_show_a_certificate_where_it_is_wanted():
    with Certificates() as made, Certificates() as other, \
            Server("--tls-client-ca", made.ca, *made.options()) as server:
        known = made.sign("known")
        context = made.context(client=known)
        with TlsClient(server.port, context) as client:
            equal(client.request("POST", INFER, json_infer(ROW)).status, 200, "a known client")
        for stranger in (None, other.sign("stranger")):
            try:
                with TlsClient(server.port, made.context(client=stranger)) as client:
                    client.request("GET", "/v2")
            except (ssl.SSLError, ConnectionError, EOFError):
                continue
            raise AssertionError(f"{stranger} was let in")
        name = 'telltale_tls_failures_total{port="http",kind="failed"}'
        wait_until(lambda: metric(server, context, name) == 2, "both are counted")


@case
def sighup_reads_the_certificate_again_and_a_bad_one_changes_nothing():
    def serial(server, made):
        with TlsClient(server.port, made.context()) as client:
            return client.socket.getpeercert()["serialNumber"]
    with Certificates() as made:
        with Server(*made.options()) as server:
            first = serial(server, made)
            with TlsClient(server.port, made.context()) as old:
                equal(old.request("GET", "/v2").status, 200, "before")
                certificate, key = made.sign("renewed", "subjectAltName=DNS:localhost,IP:127.0.0.1")
                shutil.copy(certificate, made.certificate)  # not its key: they do not match
                server.signal(signal.SIGHUP)
                wait_until(lambda: "does not match" in server.log(), "the fault is logged")
                check("stays in use" in server.log(), server.log())
                equal(serial(server, made), first, "certificate")
                shutil.copy(key, made.key)
                server.signal(signal.SIGHUP)
                wait_until(lambda: "was read again" in server.log(), "it is logged")
                check(serial(server, made) != first, "still the old certificate")
                equal(old.request("POST", INFER, json_infer(ROW)).status, 200,
                      "a connection from before")


@case
def sighup_without_tls_changes_nothing_and_says_so():
    with Server() as server:
        server.signal(signal.SIGHUP)
        wait_until(lambda: "SIGHUP: nothing to read again" in server.log(), "the line")
        equal(server.post(json_infer(ROW)).status, 200, "it serves on")


@case
def stopping_loses_no_answer_and_says_the_end():
    with Certificates() as made, Server(*made.options(), simulate="a=200ms,b=0ms") as server, \
            TlsClient(server.port, made.context()) as busy, \
            TlsClient(server.port, made.context()) as idle:
        equal(idle.request("GET", "/v2").status, 200, "idle")
        busy.send(http_request("POST", INFER, json_infer(ROW)))
        wait_until(lambda: metric(server, made.context(), "telltale_requests_in_flight") == 1,
                   "the request is with the engine")
        server.signal()
        response = busy.read()
        equal((response.status, response.headers["connection"]), (200, "close"), "answer")
        equal(busy.socket.recv(1), b"", "the end of the busy one")
        equal(idle.socket.recv(1), b"", "the end of the idle one")
        server.wait()


@case
def the_metrics_port_speaks_tls_when_told():
    with Certificates() as made, Server("--tls-metrics", *made.options()) as server:
        with TlsClient(server.metrics_port, made.context()) as client:
            equal(client.request("GET", "/metrics").status, 200, "metrics")
        with Client(server.metrics_port) as client:
            client.send(b"GET /metrics HTTP/1.1\r\nHost: t\r\n\r\n")
            check(client.is_closed(), "plain HTTP is served too")


@case
def curl_agrees():
    if not shutil.which("curl"):
        raise Skip("curl is not installed")
    with Certificates() as made, Server(*made.options()) as server:
        done = subprocess.run(
            ["curl", "-sS", "--cacert", made.ca, "-d", json_infer(ROW).decode(),
             f"https://localhost:{server.port}{INFER}"],
            capture_output=True, text=True, timeout=30, check=False)
        check(done.returncode == 0 and '"OUTPUT0"' in done.stdout, done.stderr + done.stdout)


@case
def files_that_cannot_be_used_are_named():
    with Certificates() as made:
        other = made.sign("other")
        base = ["serve", "--simulate", "a=1ms,b=0ms", "--http-port", "0", "--metrics-port", "0",
                "--grpc-port", "0"]
        cases = [
            (["--tls-certificate", made.certificate], 2, "needs --tls-key"),
            (["--tls-key", made.key], 2, "--tls-key needs --tls-certificate"),
            (["--tls-client-ca", made.ca], 2, "--tls-client-ca needs"),
            (["--tls-metrics"], 2, "--tls-metrics needs"),
            (["--tls-certificate", "/nowhere", "--tls-key", made.key], 1, "certificate /nowhere"),
            (["--tls-certificate", made.certificate, "--tls-key", other[1]], 1, "does not match"),
            (["--tls-certificate", made.key, "--tls-key", made.key], 1, "holds no certificate"),
            ([*made.options(), "--tls-client-ca", made.key], 1, "holds no CA certificate"),
        ]
        for options, code, part in cases:
            done = run_program(*base, *options)
            equal(done.returncode, code, f"exit code of {options}: {done.stderr}")
            check(part in done.stderr, f"{part!r} is not in {done.stderr!r}")
        return f"{len(cases)} of them"


@case
def an_expired_certificate_is_warned_of():
    with Certificates() as made:
        made.certificate, made.key = made.sign("old", days="-1")
        if not os.path.getsize(made.certificate):
            raise Skip("this openssl makes no expired certificates")
        with Server(*made.options()) as server:
            check("expired on" in server.log(), server.log())


if __name__ == "__main__":
    main()
