"""Connections: keep-alive, pipelining, chunks, slow and vanishing clients, limits."""
import json
import socket
import threading
import time

from _harness import INFER, ROW, Client, Server, case, check, equal, binary_infer, http_request, \
    json_infer, main, wait_until
import _harness


def binary_message(values, request_id):
    body, headers = binary_infer(values, request_id)
    return http_request("POST", INFER, body, headers)


def id_of(response):
    size = int(response.headers["inference-header-content-length"])
    return json.loads(response.body[:size])["id"]


@case
def a_connection_serves_many_requests():
    with Server(simulate="a=0.1ms,b=0ms") as server, server.client() as client:
        for number in range(300):
            response = client.send(binary_message(ROW, f"k{number}")).read()
            equal((response.status, id_of(response)), (200, f"k{number}"), "answer")
        equal(server.metrics()["telltale_connections_accepted_total"], 2, "connections")


@case
def a_connection_closes_after_http_1_0_and_where_the_client_asks():
    with Server() as server:
        for extra in (b"", b"Connection: keep-alive\r\n"):
            with server.client() as client:
                client.send(b"GET /v2/health/live HTTP/1.0\r\n" + extra + b"\r\n")
                equal(client.read().headers["connection"], "close", "connection")
                check(client.is_closed(), "stays open")
        with server.client() as client:
            client.request("GET", "/v2", headers=[("Connection", "close")])
            check(client.is_closed(), "stays open after Connection: close")


@case
def pipelined_requests_are_answered_in_order():
    with Server("--instances", "2", simulate="a=1ms,b=0ms") as server, server.client() as client:
        messages = []
        for number in range(60):
            messages.append(binary_message(ROW * (1 + number % 4), f"p{number}"))
            if number % 3 == 0:
                messages.append(http_request("GET", "/v2/models/simulated"))
            if number % 7 == 0:
                messages.append(http_request("POST", INFER, b"{nope"))
        client.send(b"".join(messages))
        for number in range(60):
            equal(id_of(client.read()), f"p{number}", "order")
            if number % 3 == 0:
                equal(client.read().json()["name"], "simulated", "metadata between")
            if number % 7 == 0:
                equal(client.read().status, 400, "error between")


@case
def reading_pauses_behind_a_request_in_progress():
    with Server(simulate="a=300ms,b=0ms") as server, server.client() as client:
        client.socket.setblocking(False)
        message = http_request("POST", INFER, json_infer(ROW))
        filler = http_request("GET", "/v2") * 2000
        sent, total = 0, message + filler * 400
        view = memoryview(total)
        deadline = time.monotonic() + 0.25
        while sent < len(total) and time.monotonic() < deadline:
            try:
                sent += client.socket.send(view[sent:sent + 65536])
            except BlockingIOError:
                threading.Event().wait(0.005)
        resident = server.resident_bytes()
        check(sent < len(total), "the server read everything")
        check(resident < 400 << 20, f"{resident >> 20} MiB resident")
        return f"took {sent >> 10} KiB of {len(total) >> 10} KiB, the kernel's buffers included"


@case
def chunked_bodies_cut_anywhere_are_understood():
    body, headers = binary_infer(ROW, "c")
    head = b"POST " + INFER.encode() + b" HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n"
    head += b"".join(f"{name}: {value}\r\n".encode() for name, value in headers) + b"\r\n"
    with Server() as server, server.client() as client:
        for size in (1, 7, 64, 1000):
            chunks = [body[i:i + size] for i in range(0, len(body), size)]
            message = head + b"".join(b"%x;ext=1\r\n%s\r\n" % (len(c), c) for c in chunks)
            message += b"0\r\nTrailer: x\r\n\r\n"
            response = client.send(message).read()
            equal((response.status, id_of(response)), (200, "c"), f"chunks of {size}")


@case
def a_request_sent_byte_by_byte_is_understood():
    with Server() as server, server.client() as client:
        for byte in binary_message(ROW, "slow"):
            client.send(bytes([byte]))
        equal(id_of(client.read()), "slow", "id")


@case
def expect_gets_100_continue_before_the_body():
    with Server() as server, server.client() as client:
        body = json_infer(ROW)
        client.send(http_request("POST", INFER, b"", [("Expect", "100-continue")]).replace(
            b"Content-Length: 0", f"Content-Length: {len(body)}".encode()))
        equal(client.read().status, 100, "interim answer")
        equal(client.send(body).read().status, 200, "final answer")


@case
def large_bodies_and_answers_pass_whole():
    values = [float(i % 1000) for i in range(16 * 65536)]
    with Server("--max-batch", "0", simulate="a=1ms,b=0ms") as server, server.client() as client:
        for _ in range(3):
            body, headers = binary_infer(values)
            response = client.request("POST", INFER, body, headers)
            equal(response.status, 200, response.body[:200])
            check(response.tensors()["OUTPUT0"][2] == [v + 1 for v in values], "wrong numbers")


@case
def a_client_that_reads_slowly_gets_everything_and_the_wait_is_in_send():
    values = [float(i % 1000) for i in range(16 * 65536)]
    with Server("--max-batch", "0", simulate="a=1ms,b=0ms") as server:
        client = Client.__new__(Client)
        client.socket, client.buffer = socket.socket(), b""
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        client.socket.settimeout(60)
        client.socket.connect(("127.0.0.1", server.port))
        body, headers = binary_infer(values, "reader")
        client.send(http_request("POST", INFER, body, headers))
        check(client.has_data(30), "no answer")
        threading.Event().wait(0.3)  # the reader's own slowness, not a wait for the server
        response = client.read()
        check(response.tensors()["OUTPUT0"][2] == [v + 1 for v in values], "wrong numbers")
        client.close()
        name = 'telltale_stage_duration_seconds_sum{model="simulated",version="1",stage="send"}'
        wait_until(lambda: server.metrics()[name] > 0.2, "0.2 s in the stage send")


@case
def a_request_that_does_not_arrive_whole_gets_408():
    with Server("--read-timeout", "200ms") as server:
        for start in (b"GET /v2 HT", http_request("POST", INFER, json_infer(ROW))[:-5]):
            with server.client() as client:
                began = time.monotonic()
                client.send(start)
                response = client.read()
                took = time.monotonic() - began
                equal((response.status, response.headers["connection"]), (408, "close"), "answer")
                check(0.19 < took < 5, f"after {took} s")
        with server.client() as client:  # a byte now and then does not help
            began, sent = time.monotonic(), 0
            while not client.has_data(0.02) and time.monotonic() < began + 10:
                client.send(b"GET /v2 HTTP/1.1\r\nX: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"[sent:sent + 1])
                sent += 1
            equal(client.read().status, 408, "dripping client")


@case
def idle_connections_are_closed():
    with Server("--idle-timeout", "200ms") as server:
        with server.client() as fresh, server.client() as used:
            used.request("GET", "/v2")
            check(fresh.is_closed() and used.is_closed(), "still open")
        equal(server.metrics()['telltale_connection_timeouts_total{kind="idle"}'], 2, "counted")


@case
def the_newest_connection_over_the_limit_gets_503():
    with Server("--max-connections", "3") as server:
        clients = [server.client() for _ in range(3)]
        for client in clients:
            equal(client.request("GET", "/v2").status, 200, "within the limit")
        with server.client() as late:
            response = late.read()
            equal((response.status, response.headers["retry-after"]), (503, "1"), "over the limit")
            check("connections" in response.error(), response.error())
            check(late.is_closed(), "stays open")
        with Client(server.metrics_port) as client:
            page = client.request("GET", "/metrics").body.decode()
            check("telltale_connections_refused_total 1\n" in page, "not counted")
        clients[0].close()
        wait_until(lambda: server.get("/v2").status == 200, "room again")
        for client in clients:
            client.close()


@case
def a_thousand_connections_are_served_at_once():
    import resource
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 4096:
        raise _harness.Skip(f"only {hard} file descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))  # what the server inherits
    try:
        with Server("--max-connections", "1100", simulate="a=1ms,b=0.01ms") as server:
            resource.setrlimit(resource.RLIMIT_NOFILE, (4096, hard))
            clients = [server.client() for _ in range(1050)]
            body, headers = binary_infer(ROW)
            message = http_request("POST", INFER, body, headers)
            for client in clients:
                client.send(message)
            for client in clients:
                equal(client.read().status, 200, "answer")
                client.close()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@case
def vanishing_clients_leave_nothing_behind():
    with Server("--queue-limit", "100000", simulate="a=30ms,b=0ms") as server:
        sockets = server.sockets()  # nobody is connected
        body, headers = binary_infer(ROW * 4)
        message = http_request("POST", INFER, body, headers)
        half = message[:len(message) // 2]

        def storm():
            for turn in range(150):
                client = server.client()
                client.send((message, half, message * 3, b"GET /v2 HTTP/1.1\r\n")[turn % 4])
                (client.reset if turn % 3 else client.close)()

        def is_quiet():
            metrics = server.metrics()
            return metrics["telltale_requests_in_flight"] == 0 and metrics["telltale_connections"] == 1

        storm()
        wait_until(is_quiet, "requests in flight end")
        resident = server.resident_bytes()
        for _ in range(5):
            storm()
        wait_until(is_quiet, "requests in flight end")
        wait_until(lambda: server.sockets() == sockets, "the sockets are closed")
        grown = server.resident_bytes() - resident
        check(server.metrics()["telltale_clients_vanished_total"] > 0, "none was counted")
        # A sanitizer keeps freed memory in quarantine, and finds leaks in its own way.
        check(grown < 8 << 20 or _harness.IS_SANITIZED, f"{grown >> 10} KiB more resident")
        equal(server.post(json_infer(ROW)).status, 200, "the next client")
        return f"900 clients, {grown >> 10} KiB more resident"


@case
def a_vanished_client_s_request_is_not_run():
    with Server("--max-batch", "1", simulate="a=40ms,b=0ms") as server:
        def runs():
            return server.metrics()['nv_inference_exec_count{model="simulated",version="1"}']
        first = server.client().send(http_request("POST", INFER, json_infer(ROW, "first")))
        wait_until(lambda: server.metrics()[
            'telltale_instances_busy{model="simulated",version="1"}'] == 1, "the instance is busy")
        for _ in range(10):
            server.client().send(http_request("POST", INFER, json_infer(ROW))).reset()
        equal(first.read().status, 200, "the one that stayed")
        wait_until(lambda: server.metrics()["telltale_requests_in_flight"] == 0, "nothing in flight")
        cancelled = 'telltale_requests_total{model="simulated",version="1",status="CANCELLED"}'
        wait_until(lambda: server.metrics()[cancelled] == 10, "10 cancelled requests counted")
        check(runs() <= 3, f"{runs()} runs for one client that stayed")


if __name__ == "__main__":
    main()
