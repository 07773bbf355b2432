"""Faults of the network and of the system around it: descriptors that run out, resets in every
state, peers that fall silent, ten thousand that do nothing. The server answers everybody else, and
when it is over nothing is left behind."""
import resource
import socket
import ssl
import time

from _harness import INFER, ROW, Client, Server, Skip, case, check, equal, binary_infer, \
    http_request, json_infer, main, wait_until
import _harness
from _tls import Certificates, TlsClient


def message_of(values=ROW, request_id=None):
    body, headers = binary_infer(values, request_id)
    return http_request("POST", INFER, body, headers)


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


def descriptors(server):
    import os
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


@case
def without_descriptors_those_who_have_a_connection_are_served_and_the_others_closed():
    with Server("--idle-timeout", "30s") as server:
        with server.client() as client:
            equal(client.request("POST", INFER, json_infer(ROW)).status, 200,
                  "before")
            hard = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)[1]
            limit = descriptors(server) + 4
            resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (limit, hard))
            crowd, closed = [], 0
            for _ in range(40):
                crowd.append(server.client())
            for late in crowd[10:]:
                closed += late.is_closed(5)
            check(closed >= 25, f"only {closed} of 30 were closed")
            began = cpu_seconds(server.process.pid)
            for _ in range(100):
                equal(client.request("POST", INFER, json_infer(ROW)).status, 200, "meanwhile")
            waiting = [server.client() for _ in range(5)]
            time_before = time.monotonic()
            wait_until(lambda: all(w.is_closed(0.2) for w in waiting), "the late ones are closed")
            used = cpu_seconds(server.process.pid) - began
            check(used < 1 + time.monotonic() - time_before, f"{used} s of processor time: it spins")
            page = client.request("GET", "/metrics").body.decode()
            shed = int([line for line in page.splitlines()
                        if line.startswith("telltale_connections_shed_total ")][0].split()[1])
            check(shed >= closed, f"{shed} counted")
            wait_until(lambda: "closed unanswered" in server.log(), "the log says so")
            check(server.log().count("closed unanswered") <= 3, "the log is flooded")
            for each in crowd:
                each.close()
            resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (hard, hard))
            wait_until(lambda: server.get("/v2").status == 200, "newcomers are served again")
            return f"{shed} clients shed"


STATES = [  # what a client has sent when it resets; None: nothing
    ("connected", b""),
    ("within the request line", b"POST /v2"),
    ("within the header", b"POST /v2 HTTP/1.1\r\nHost: t\r\nContent-"),
    ("before the body", message_of().split(b"\r\n\r\n", 1)[0] + b"\r\n\r\n"),
    ("within the body", message_of()[:-10]),
    ("within a chunk", b"POST /v2 HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n10\r\nab"),
    ("behind Expect", b"POST /v2 HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\n"
     b"Content-Length: 10\r\n\r\n"),
    ("with a request in flight", message_of()),
    ("with several pipelined", message_of() * 5),
    ("behind a malformed request", b"GET / HTTP/9.9\r\n\r\n"),
    ("behind a request whose answer is large", message_of(ROW * 4096)),
]


def quiet(server):
    metrics = server.metrics()
    return metrics["telltale_requests_in_flight"] == 0 and metrics["telltale_connections"] == 1


@case
def a_reset_in_every_state_leaves_nothing_behind():
    with Server("--max-batch", "0", simulate="a=5ms,b=0ms") as server:
        sockets = server.sockets()
        for turn in range(4):
            for _, data in STATES:
                client = server.client()
                client.send(data)
                if turn == 1:
                    client.has_data(0.02)  # gives the server time to begin
                if turn == 2:
                    client.socket.shutdown(socket.SHUT_WR)  # half closed, then reset
                client.reset()
        wait_until(lambda: quiet(server), "nothing is in flight")
        wait_until(lambda: server.sockets() == sockets, "the sockets are closed")
        equal(server.post(json_infer(ROW)).status, 200, "the next client")
        return f"{len(STATES)} states, four ways"


@case
def a_reset_in_every_state_of_tls_leaves_nothing_behind():
    with Certificates() as made, \
            Server("--max-batch", "0", *made.options(), simulate="a=5ms,b=0ms") as server:
        sockets = server.sockets()
        context = made.context()
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        hello = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
        try:
            hello.do_handshake()
        except ssl.SSLWantReadError:
            pass
        first = outgoing.read()
        for size in (0, 1, 5, 60, len(first) - 1, len(first)):
            for wait in (0, 0.05):
                client = Client(server.port)
                client.send(first[:size])
                if wait:
                    client.has_data(wait)
                client.reset()
        for _, data in STATES:
            for wait in (0, 0.02):
                client = TlsClient(server.port, context)
                client.send(data)
                if wait:
                    client.has_data(wait)
                client.reset()
        with Client(server.metrics_port) as client:
            def is_quiet():
                page = client.request("GET", "/metrics").body.decode()
                return "telltale_requests_in_flight 0\n" in page and \
                    "telltale_connections 1\n" in page
            wait_until(is_quiet, "nothing is in flight")
        wait_until(lambda: server.sockets() == sockets, "the sockets are closed")
        with TlsClient(server.port, context) as client:
            equal(client.request("POST", INFER, json_infer(ROW)).status, 200, "the next client")


def fall_silent(server, connect, states):
    """Peers that stop in each of the states, and one that never reads its answer."""
    silent = [connect().send(data) for data in states]
    for client in silent:
        check(client.is_closed(20), "a silent peer keeps its connection")
        client.close()
    large = message_of(ROW * 131072)  # its answer is more than the kernel's buffers hold
    client = connect(receive_buffer=4096)
    client.send(large)
    name = 'telltale_connection_timeouts_total{kind="write"} 1\n'

    def gave_up():
        with Client(server.metrics_port) as scrape:
            return name in scrape.request("GET", "/metrics").body.decode()
    wait_until(gave_up, "it gave up writing")
    client.close()


SILENCE = ["--read-timeout", "1500ms", "--idle-timeout", "1500ms", "--max-batch", "0"]


@case
def peers_that_fall_silent_are_let_go_in_every_state():
    with Server(*SILENCE, simulate="a=1ms,b=0ms") as server:
        def connect(receive_buffer=None):
            return small_client(server.port, receive_buffer)
        fall_silent(server, connect, [data for _, data in STATES[:7]])


@case
def peers_that_fall_silent_are_let_go_in_every_state_of_tls():
    with Certificates() as made, Server(*SILENCE, *made.options(),
                                        simulate="a=1ms,b=0ms") as server:
        def connect(receive_buffer=None):
            client = small_client(server.port, receive_buffer)
            client.socket = made.context().wrap_socket(client.socket, server_hostname="localhost")
            return client
        for data in (b"", b"\x16", b"\x16\x03\x01\x02\x00\x01"):
            with Client(server.port) as client:
                client.send(data)
                check(client.is_closed(20), "a silent peer keeps its connection")
        fall_silent(server, connect, [data for _, data in STATES[:7]])


def small_client(port, receive_buffer):
    client = Client.__new__(Client)
    client.socket, client.buffer = socket.socket(), b""
    if receive_buffer:
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    client.socket.settimeout(30)
    client.socket.connect(("127.0.0.1", port))
    return client


def idle_connections(count, connect, server):
    """Resident bytes a connection, of so many that have had one request each."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < count + 1000:
        raise Skip(f"only {hard} file descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    clients = []
    try:
        warm = [connect() for _ in range(100)]
        for client in warm:
            equal(client.request("POST", INFER, json_infer(ROW)).status, 200, "warming up")
        before = server.resident_bytes()
        for _ in range(count):
            clients.append(connect())
        for client in clients:
            equal(client.request("POST", INFER, json_infer(ROW)).status, 200, "its one request")
        each = (server.resident_bytes() - before) / count
        began, cpu = time.monotonic(), cpu_seconds(server.process.pid)
        wait_until(lambda: time.monotonic() > began + 2, "two seconds of doing nothing")
        idle = (cpu_seconds(server.process.pid) - cpu) / 2
        times = []
        for _ in range(50):
            began = time.monotonic()
            equal(warm[0].request("POST", INFER, json_infer(ROW)).status, 200, "one among many")
            times.append(time.monotonic() - began)
        return each, idle, sorted(times)[len(times) // 2]
    finally:
        for client in clients:
            client.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@case
def ten_thousand_idle_connections_cost_little_and_disturb_nobody():
    count = 2000 if _harness.IS_SANITIZED else 10000
    with Server("--max-connections", "20000", "--idle-timeout", "10m",
                simulate="a=0.1ms,b=0ms") as server:
        each, idle, middle = idle_connections(count, server.client, server)
        # A sanitizer's own memory is no measure.
        check(each < 16384 or _harness.IS_SANITIZED, f"{each:.0f} bytes a connection")
        check(idle < 0.5, f"{idle:.2f} processors while nothing happens")
        wait_until(lambda: quiet(server) or server.metrics()["telltale_connections"] < 105,
                   "they are gone")
    return f"{count}: {each:.0f} bytes each, {idle * 100:.1f} % of a processor while idle, " \
           f"median of a request among them {middle * 1e3:.2f} ms"


@case
def thousands_of_idle_tls_connections_too():
    count = 300 if _harness.IS_SANITIZED else 3000
    with Certificates() as made, \
            Server("--max-connections", "20000", "--idle-timeout", "10m", *made.options(),
                   simulate="a=0.1ms,b=0ms") as server:
        context = made.context()
        each, idle, middle = idle_connections(
            count, lambda: TlsClient(server.port, context), server)
        check(each < 65536 or _harness.IS_SANITIZED, f"{each:.0f} bytes a connection")
        check(idle < 0.5, f"{idle:.2f} processors while nothing happens")
    return f"{count}: {each:.0f} bytes each, {idle * 100:.1f} % of a processor while idle, " \
           f"median of a request among them {middle * 1e3:.2f} ms"


if __name__ == "__main__":
    main()
