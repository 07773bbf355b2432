"""Time and load: request timeouts, overload, shutdown without a lost answer."""
import signal
import threading
import time

from _harness import INFER, ROW, Client, Server, case, check, equal, binary_infer, http_request, \
    json_infer, main, wait_until
import _harness


def late_by(server, client, body, timeout_ms):
    """How much later than its timeout a 504 came, in ms, as the client sees it."""
    began = time.monotonic()
    response = client.request("POST", INFER, body)
    took = (time.monotonic() - began) * 1000
    equal(response.status, 504, response.body)
    response.error()
    check(took >= timeout_ms, f"{took} ms is before the timeout of {timeout_ms} ms")
    return took - timeout_ms


@case
def the_server_s_timeout_is_exact_while_the_instance_is_busy():
    with Server("--request-timeout-ms", "20", simulate="a=300ms,b=0ms") as server, \
            server.client() as client:
        late = sorted(late_by(server, client, json_infer(ROW), 20) for _ in range(20))
        check(late[len(late) // 2] < (20 if _harness.IS_SANITIZED else 5), f"late by {late} ms")
        return f"median {late[len(late) // 2]:.2f} ms late as the client sees it, worst {late[-1]:.2f}"


@case
def a_request_s_own_timeout_counts_and_may_only_shorten_the_server_s():
    with Server("--request-timeout-ms", "60", simulate="a=300ms,b=0ms") as server, \
            server.client() as client:
        for timeout_us, expected in ((7000, 7), (10_000_000, 60), (0, 60)):
            late = late_by(server, client, json_infer(ROW, timeout=timeout_us), expected)
            check(late < 40, f"{late} ms after {expected} ms")
    with Server(simulate="a=100ms,b=0ms") as server, server.client() as client:
        late_by(server, client, json_infer(ROW, timeout=5000), 5)
        equal(client.request("POST", INFER, json_infer(ROW)).status, 200, "without a timeout")


@case
def a_timed_out_request_leaves_the_queue_and_is_traced_as_such():
    label = '{model="simulated",version="1"}'
    with Server("--request-timeout-ms", "30", "--max-batch", "1", simulate="a=50ms,b=0ms") as server:
        clients = [server.client() for _ in range(20)]
        for client in clients:
            client.send(http_request("POST", INFER, json_infer(ROW)))
        for client in clients:
            equal(client.read().status, 504, "all take longer")
            client.close()
        name = 'telltale_requests_total{model="simulated",version="1",status="TIMEOUT"}'
        wait_until(lambda: server.metrics().get(name) == 20, "20 timeouts counted")
        runs = server.metrics()[f"nv_inference_exec_count{label}"]
        check(runs <= 3, f"{runs} runs for nobody")
        equal(server.metrics()[f"telltale_queue_length{label}"], 0, "queue")


@case
def a_pipelined_request_follows_a_timed_out_one():
    with Server("--request-timeout-ms", "25", simulate="a=60ms,b=0ms") as server, \
            server.client() as client:
        client.send(http_request("POST", INFER, json_infer(ROW)) + http_request("GET", "/v2"))
        equal(client.read().status, 504, "first")
        equal(client.read().status, 200, "second")


@case
def a_full_queue_gets_503_with_retry_after_and_is_counted():
    label = '{model="simulated",version="1"}'
    with Server("--queue-limit", "4", "--max-batch", "1", simulate="a=200ms,b=0ms") as server:
        clients = [server.client() for _ in range(24)]
        for client in clients:
            client.send(http_request("POST", INFER, json_infer(ROW)))
        refused = 0
        for client in clients:
            response = client.read()
            check(response.status in (200, 503), response.status)
            if response.status == 503:
                refused += 1
                equal(response.headers["retry-after"], "1", "Retry-After")
                response.error()
                equal(client.request("GET", "/v2").status, 200, "the connection lives on")
            client.close()
        check(24 - refused <= 8 and refused > 0, f"{refused} of 24 refused")
        equal(server.metrics()[f"telltale_queue_refused_total{label}"], refused, "counted")
        return f"{refused} of 24 refused"


class Load(threading.Thread):
    """A closed loop on one connection until an answer says Connection: close: every request that
    was sent must be answered whole."""

    def __init__(self, port):
        super().__init__()
        self.port, self.answered, self.lost, self.was_told = port, 0, 0, False

    def run(self):
        body, headers = binary_infer(ROW)
        message = http_request("POST", INFER, body, headers)
        with Client(self.port) as client:
            while not self.was_told:
                try:
                    response = client.send(message).read()
                except (EOFError, ConnectionError):
                    self.lost += 1
                    return
                self.answered += response.status == 200
                self.was_told = response.headers.get("connection") == "close"


@case
def a_drain_under_load_loses_no_answer():
    total = 0
    for queue in ("ring", "mutex"):
        with Server("--queue", queue, simulate="a=3ms,b=0.1ms") as server:
            loads = [Load(server.port) for _ in range(16)]
            late = server.client()  # connected, and sends its first request into the drain
            for load in loads:
                load.start()
            wait_until(lambda: sum(load.answered for load in loads) > 200, "load")
            server.signal()
            wait_until(lambda: "draining" in server.log(), "the log line")
            response = late.request("POST", INFER, json_infer(ROW))
            equal((response.status, response.headers["connection"]), (200, "close"), "late client")
            for load in loads:
                load.join(60)
            server.wait()
            equal(sum(load.lost for load in loads), 0, f"lost answers ({queue})")
            check(all(load.was_told for load in loads), "answers did not say Connection: close")
            total += sum(load.answered for load in loads)
    return f"{total} answers"


@case
def a_drain_answers_what_waits_and_says_not_ready_meanwhile():
    with Server("--drain-delay", "2s", "--policy", "timer", "--max-delay-us", "30000000",
                simulate="a=100ms,b=0ms") as server:
        clients = [server.client() for _ in range(5)]
        for client in clients:
            client.send(http_request("POST", INFER, json_infer(ROW)))
        label = '{model="simulated",version="1"}'
        wait_until(lambda: server.metrics()[f"telltale_queue_length{label}"] == 5, "5 waiting")
        server.signal()
        wait_until(lambda: "draining" in server.log(), "the log line")
        ready = server.get("/v2/health/ready")
        equal((ready.status, ready.json()), (503, {"ready": False}), "ready")
        equal(server.get("/v2/health/live").status, 200, "live")
        for client in clients:  # held for 30 s by the timer, were it not for the drain
            response = client.read()
            equal((response.status, response.headers["connection"]), (200, "close"), "answer")
        server.wait(20)


@case
def idle_connections_do_not_hold_a_drain():
    with Server(exit_code=0) as server:
        idle = [server.client() for _ in range(3)]
        idle[0].request("GET", "/v2")
        began = time.monotonic()
        server.signal(signal.SIGINT)
        server.wait(20)
        check(time.monotonic() - began < 10, "took too long")
        for client in idle:
            client.close()


@case
def the_drain_timeout_ends_with_1_and_says_what_was_left():
    with Server("--drain-delay", "0s", "--drain-timeout", "200ms", simulate="a=20s,b=0ms",
                exit_code=1) as server, server.client() as client:
        client.send(http_request("POST", INFER, json_infer(ROW)))
        wait_until(lambda: server.metrics()["telltale_requests_in_flight"] == 1, "in flight")
        server.signal()
        server.wait(15)
        check("1 requests in flight" in server.log(), server.log())


@case
def a_second_signal_ends_at_once():
    with Server("--drain-timeout", "60s", simulate="a=20s,b=0ms", exit_code=1) as server, \
            server.client() as client:
        client.send(http_request("POST", INFER, json_infer(ROW)))
        wait_until(lambda: server.metrics()["telltale_requests_in_flight"] == 1, "in flight")
        server.signal()
        wait_until(lambda: "draining" in server.log(), "the first signal is seen")
        server.signal()
        server.wait(10)
        check("second signal" in server.log(), server.log())


if __name__ == "__main__":
    main()
