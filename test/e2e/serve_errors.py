"""Bad input: the right status, a sentence that names the field, and a server that lives on."""
import json
import struct

from _harness import INFER, ROW, Client, Server, case, check, equal, binary_infer, http_request, \
    json_infer, main


def changed(**members):
    """A good request with members of its input replaced (None: left out)."""
    body = json.loads(json_infer(ROW))
    body["inputs"][0].update(members)
    body["inputs"][0] = {k: v for k, v in body["inputs"][0].items() if v is not None}
    return json.dumps(body).encode()


@case
def bad_requests_get_400_and_a_sentence_that_names_the_field():
    cases = [
        (b"{nope", ""),
        (b"", ""),
        (b"[]", ""),
        (b"{}", "inputs"),
        (b'{"inputs":[]}', "INPUT0"),
        (b'{"inputs":7}', "inputs"),
        (changed(name=None), "name"),
        (changed(name="OTHER"), "OTHER"),
        (changed(datatype="FP99"), "FP99"),
        (changed(datatype="INT64", data=[1] * 16), "INPUT0"),
        (changed(datatype=None), "datatype"),
        (changed(shape=[1, 15]), "INPUT0"),
        (changed(shape=[16]), "INPUT0"),
        (changed(shape=[4, 4]), "INPUT0"),
        (changed(shape=[-1, 16]), "INPUT0"),
        (changed(shape=[1 << 62, 16]), "INPUT0"),
        (changed(shape="x"), "shape"),
        (changed(data=ROW[:7]), "INPUT0"),
        (changed(data=["x"] * 16), "INPUT0"),
        (changed(data=None), "INPUT0"),
        (changed(data=[1e999] * 16).replace(b"Infinity", b"1e999"), ""),
        (json_infer(ROW * 33), "batch"),
        (changed(shape=[0, 16], data=[]), "batch"),
    ]
    with Server() as server, server.client() as client:
        for body, part in cases:
            response = client.request("POST", INFER, body)
            equal(response.status, 400, f"status of {body[:80]!r}: {response.body!r}")
            check(part in response.error(), f"{part!r} is not in {response.error()!r}")
        response = client.request("POST", INFER, b"\xff\xd8\xff\xe0 a JPEG without a Content-Type")
        equal((response.status, "image/jpeg" in response.error()), (415, True), "a picture as JSON")
        twice = json.loads(json_infer(ROW))
        twice["inputs"] *= 2
        response = client.request("POST", INFER, json.dumps(twice).encode())
        equal(response.status, 400, "an input given twice")
        wanted = dict(json.loads(json_infer(ROW)), outputs=[{"name": "NOPE"}])
        response = client.request("POST", INFER, json.dumps(wanted).encode())
        equal((response.status, "NOPE" in response.error()), (400, True), "unknown output")
        equal(client.request("POST", INFER, json_infer(ROW)).status, 200, "the next good request")
        return f"{len(cases) + 2} bad requests on one connection"


@case
def binary_sizes_that_do_not_add_up_get_400():
    body, _ = binary_infer(ROW)
    size = len(body) - 64
    with Server() as server, server.client() as client:
        for data, length in ((body[:-4], size), (body + b"1234", size), (body, size + 1000),
                             (body, "-1"), (body, "12x"), (body, ""), (body, "9" * 30)):
            response = client.request("POST", INFER, data,
                                      [("Inference-Header-Content-Length", length)])
            equal(response.status, 400, f"{len(data)} bytes, header {length}")
            response.error()
        response = client.request("POST", INFER, body, [("Inference-Header-Content-Length", size)] * 2)
        equal(response.status, 400, "the header twice")
        check("twice" in response.error(), response.error())
        equal(client.request("POST", INFER, json_infer(ROW)).status, 200, "the next good request")


@case
def failures_have_a_trace_and_are_counted():
    with Server() as server:
        server.post(b"{nope")
        check("server-timing" in server.post(b"{nope").headers, "no Server-Timing on a failure")
        name = 'telltale_requests_total{model="simulated",version="1",status="INVALID"}'
        from _harness import wait_until
        wait_until(lambda: server.metrics()[name] == 2, "two INVALID requests counted")
        equal(server.metrics()['telltale_http_answers_total{code="400"}'], 2, "400 answers")


@case
def compressed_bodies_get_415():
    with Server() as server:
        response = server.post(json_infer(ROW), headers=[("Content-Encoding", "gzip")])
        equal((response.status, "gzip" in response.error()), (415, True), "gzip")
        equal(server.post(json_infer(ROW), headers=[("Content-Encoding", "identity")]).status, 200,
              "identity")


@case
def a_body_over_the_limit_gets_413_and_the_client_can_read_it():
    with Server("--max-body", "100k") as server:
        for body in (b" " * 102401, b" " * 5000000):
            with server.client() as client:
                try:
                    client.send(http_request("POST", INFER, body))
                except ConnectionError:
                    pass  # the answer came first
                response = client.read()
                equal(response.status, 413, "status")
                equal(response.headers["connection"], "close", "connection")
                check("100" in response.error() or "body" in response.error(), response.error())
                check(client.is_closed(), "the connection stays open")
        equal(server.post(json_infer(ROW)).status, 200, "the next client")
        with server.client() as client:
            client.send(b"POST " + INFER.encode() + b" HTTP/1.1\r\nHost: t\r\n"
                        b"Transfer-Encoding: chunked\r\n\r\n")
            try:
                for _ in range(40):
                    client.send(b"1000\r\n" + b" " * 4096 + b"\r\n")
            except ConnectionError:
                pass
            equal(client.read().status, 413, "chunked")


@case
def a_header_over_the_limit_gets_431():
    with Server("--max-header", "2048") as server:
        with server.client() as client:
            client.send(b"GET /v2 HTTP/1.1\r\nHost: t\r\nX: " + b"a" * 3000 + b"\r\n\r\n")
            response = client.read()
            equal((response.status, response.headers["connection"]), (431, "close"), "one long line")
        with server.client() as client:
            client.send(b"GET /" + b"a" * 3000)
            equal(client.read().status, 431, "an endless target")
        equal(server.get("/v2").status, 200, "the next client")


SMUGGLING = [
    b"POST %s HTTP/1.1\r\nHost: t\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST %s HTTP/1.1\r\nHost: t\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcde",
    b"POST %s HTTP/1.1\r\nHost: t\r\nContent-Length: +4\r\n\r\nabcd",
    b"POST %s HTTP/1.1\r\nHost: t\r\nContent-Length: 4, 4\r\n\r\nabcd",
    b"POST %s HTTP/1.1\r\nHost: t\r\nContent-Length : 4\r\n\r\nabcd",
    b"POST %s HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    b"POST %s HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    b"POST %s HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n0x1\r\na\r\n0\r\n\r\n",
    b"POST %s HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\na\r\n0\r\n\r\n",
    b"GET %s HTTP/1.1\r\nHost: t\nX: y\r\n\r\n",
    b"GET %s HTTP/1.1\r\nHost: t\r\nX: a\rb\r\n\r\n",
    b"GET %s HTTP/1.1\r\nHost: t\r\nX: a\r\n folded\r\n\r\n",
    b"GET %s HTTP/1.1\r\nHost: t\r\nX: a\0b\r\n\r\n",
    b"GET %s HTTP/1.1\r\n\r\n",
    b"GET %s HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"GET %s HTTP/3.7\r\nHost: t\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
]


@case
def ambiguous_and_malformed_messages_get_400_and_the_connection_ends():
    with Server() as server:
        for text in SMUGGLING:
            message = text.replace(b"%s", INFER.encode())
            with Client(server.port) as client:
                client.send(message)
                response = client.read()
                check(response.status in (400, 501, 505), f"{response.status} for {message!r}")
                equal(response.headers["connection"], "close", f"connection, {message!r}")
                check(client.is_closed(), f"open after {message!r}")
        equal(server.metrics()["telltale_http_malformed_total"], len(SMUGGLING), "counted")
        return f"{len(SMUGGLING)} messages"


@case
def nesting_and_huge_numbers_of_tensors_are_refused_not_followed():
    with Server() as server:
        deep = b'{"inputs":' + b"[" * 100000 + b"]" * 100000 + b"}"
        equal(server.post(deep).status, 400, "deep nesting")
        many = {"inputs": [{"name": f"i{n}", "datatype": "FP32", "shape": [1], "data": [1]}
                           for n in range(1000)]}
        equal(server.post(json.dumps(many).encode()).status, 400, "1000 inputs")


@case
def bytes_tensors_with_wrong_lengths_get_400():
    import os
    from _harness import SPAM, Skip
    tokenizer = os.path.join(SPAM, "tokenizer.json")
    if not os.path.exists(tokenizer):
        raise Skip("examples/spam is not there")
    with Server("--tokenizer", tokenizer) as server:
        for data in (struct.pack("<I", 100) + b"short", b"\1\0", struct.pack("<I", 0xffffffff)):
            head = json.dumps({"inputs": [{"name": "TEXT", "datatype": "BYTES", "shape": [1],
                                           "parameters": {"binary_data_size": len(data)}}]}).encode()
            response = server.post(head + data,
                                   headers=[("Inference-Header-Content-Length", len(head))])
            equal((response.status, "TEXT" in response.error()), (400, True), response.body)
        both = {"inputs": [{"name": "TEXT", "datatype": "BYTES", "shape": [1], "data": ["a"]},
                           {"name": "input_ids", "datatype": "INT64", "shape": [1, 1], "data": [5]}]}
        response = server.post(json.dumps(both).encode())
        equal((response.status, "not both" in response.error()), (400, True), response.body)


if __name__ == "__main__":
    main()
