"""gRPC against the real server: methods, streams, deadlines, cancellation, sizes, drains, floods."""
import os
import signal
import socket
import struct
import threading
import time

import _grpc
from _grpc import Stub, call_headers, code_of, frame, message
from _harness import Server, case, check, equal, main, wait_until

_grpc.again_with_debian()
ROW = [float(i) for i in range(16)]


def values(response):
    data = response.raw_output_contents[0]
    return list(struct.unpack(f"<{len(data) // 4}f", data))


@case
def every_method_answers_or_says_why_not():
    with Server() as server, Stub(server.grpc_port) as stub:
        pb = stub.pb
        check(stub.ServerLive(pb.ServerLiveRequest(), timeout=20).live, "live")
        check(stub.ServerReady(pb.ServerReadyRequest(), timeout=20).ready, "ready")
        check(stub.ModelReady(pb.ModelReadyRequest(name="simulated"), timeout=20).ready, "ready")
        check(not stub.ModelReady(pb.ModelReadyRequest(name="no"), timeout=20).ready, "not ready")
        equal(stub.ServerMetadata(pb.ServerMetadataRequest(), timeout=20).name, "telltale", "name")
        metadata = stub.ModelMetadata(pb.ModelMetadataRequest(name="simulated"), timeout=20)
        equal(list(metadata.inputs[0].shape), [-1, 16], "shape")
        config = stub.ModelConfig(pb.ModelConfigRequest(name="simulated"), timeout=20).config
        equal(config.max_batch_size, 32, "max batch")
        equal(code_of(lambda: stub.ModelMetadata(pb.ModelMetadataRequest(name="no"),
                                                 timeout=20))[0], "NOT_FOUND", "metadata")
        index = code_of(lambda: stub.RepositoryIndex(pb.RepositoryIndexRequest(), timeout=20))
        check(index[0] in ("OK", "UNIMPLEMENTED"), str(index))
        load = code_of(lambda: stub.RepositoryModelLoad(
            pb.RepositoryModelLoadRequest(model_name="no"), timeout=20))
        check(load[0] not in ("OK", "INTERNAL", "UNKNOWN") and load[1], str(load))
        shared = stub.SystemSharedMemoryStatus(pb.SystemSharedMemoryStatusRequest(), timeout=20)
        equal(len(shared.regions), 0, "regions")
        stub.CudaSharedMemoryStatus(pb.CudaSharedMemoryStatusRequest(), timeout=20)
        equal(code_of(lambda: stub.CudaSharedMemoryRegister(
            pb.CudaSharedMemoryRegisterRequest(name="a"), timeout=20))[0], "UNIMPLEMENTED", "cuda")
        equal(stub.check(timeout=20).status, 1, "serving")
        equal(code_of(lambda: stub.check("nothing", timeout=20))[0], "NOT_FOUND", "service")
        return f"index {index[0]}, load {load}"


@case
def raw_and_typed_contents_give_the_same_answer():
    with Server() as server, Stub(server.grpc_port) as stub:
        for raw in (True, False):
            answer = stub.ModelInfer(stub.request(ROW, "id7", raw=raw), timeout=20)
            equal(values(answer), [v + 1 for v in ROW], f"raw {raw}")
            equal(answer.id, "id7", "id")


@case
def faults_have_their_codes():
    with Server() as server, Stub(server.grpc_port) as stub:
        bad = stub.request(ROW)
        bad.raw_input_contents[0] = b"1234"
        code, text = code_of(lambda: stub.ModelInfer(bad, timeout=20))
        equal(code, "INVALID_ARGUMENT", text)
        check("INPUT0" in text, text)
        equal(code_of(lambda: stub.ModelInfer(stub.request(ROW, name="no"), timeout=20))[0],
              "NOT_FOUND", "model")
        unknown = stub.channel.unary_unary("/inference.GRPCInferenceService/Nothing")
        equal(code_of(lambda: unknown(b"", timeout=20))[0], "UNIMPLEMENTED", "method")
        broken = stub.channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
        equal(code_of(lambda: broken(b"\xff\xff", timeout=20))[0], "INVALID_ARGUMENT", "bytes")


@case
def a_stream_answers_each_request_and_survives_a_bad_one():
    with Server() as server, Stub(server.grpc_port) as stub:
        requests = [stub.request(ROW, str(i)) for i in range(200)]
        requests.insert(100, stub.request(ROW, "bad", name="no"))
        answers = list(stub.ModelStreamInfer(iter(requests), timeout=60))
        equal(len(answers), 201, "answers")
        equal([a.infer_response.id for a in answers if a.error_message], ["bad"], "errors")
        equal(sorted(int(a.infer_response.id) for a in answers if not a.error_message),
              list(range(200)), "ids")
        call = stub.ModelStreamInfer(iter([stub.request(ROW, name="no")]), timeout=20,
                                     metadata=[("triton_grpc_error", "true")])
        equal(code_of(lambda: list(call))[0], "NOT_FOUND", "strict")


@case
def a_deadline_is_answered_on_time_and_its_work_is_cancelled():
    with Server(simulate="a=400ms,b=0ms") as server, Stub(server.grpc_port) as stub:
        begin = time.monotonic()
        code, _ = code_of(lambda: stub.ModelInfer(stub.request(ROW), timeout=0.1))
        equal(code, "DEADLINE_EXCEEDED", "code")
        check(time.monotonic() - begin < 0.35, "late")
        code, text = code_of(lambda: stub.ModelInfer(stub.request(ROW, timeout=50000), timeout=20))
        equal(code, "DEADLINE_EXCEEDED", text)


@case
def a_cancelled_call_leaves_the_server_well():
    with Server(simulate="a=50ms,b=0ms") as server, Stub(server.grpc_port) as stub:
        calls = [stub.ModelInfer.future(stub.request(ROW), timeout=20) for _ in range(100)]
        wait_until(lambda: server.metrics().get("telltale_grpc_streams", 0) > 0, "streams")
        for call in calls:
            call.cancel()
        wait_until(lambda: server.metrics()["telltale_grpc_streams"] == 0, "the streams to go")
        stub.ModelInfer(stub.request(ROW), timeout=20)
        wait_until(lambda: server.metrics()["telltale_grpc_message_bytes"] == 0, "memory")


@case
def fifty_megabytes_pass_and_a_hundred_are_refused():
    with Server("--max-batch", "0") as server, Stub(server.grpc_port) as stub:
        request = stub.request(ROW)
        rows = 50 * 1000 * 1000 // 64
        request.inputs[0].shape[0] = rows
        request.raw_input_contents[0] = struct.pack("<16f", *ROW) * rows
        answer = stub.ModelInfer(request, timeout=120)
        equal(len(answer.raw_output_contents[0]), rows * 64, "bytes")
        equal(values(answer)[-16:], [v + 1 for v in ROW], "the last row")
        request.inputs[0].shape[0] = 2 * rows
        request.raw_input_contents[0] *= 2
        code, text = code_of(lambda: stub.ModelInfer(request, timeout=120))
        equal(code, "RESOURCE_EXHAUSTED", text)
        check("--grpc-max-message" in text, text)
        stub.ModelInfer(stub.request(ROW), timeout=20)


@case
def a_thousand_calls_at_once_on_one_connection():
    with Server(simulate="a=20ms,b=0ms") as server, Stub(server.grpc_port) as stub:
        calls = [stub.ModelInfer.future(stub.request(ROW, str(i)), timeout=60)
                 for i in range(1000)]
        equal([call.result().id for call in calls], [str(i) for i in range(1000)], "ids")
        equal(server.metrics()["telltale_grpc_connections"], 1, "connections")


@case
def gzip_is_taken_and_given():
    import grpc
    with Server("--grpc-compression", "low") as server, \
            Stub(server.grpc_port, ("grpc.default_compression_algorithm", 2)) as stub:
        for rows in (1, 30):
            answer = stub.ModelInfer(stub.request(ROW * rows), timeout=20,
                                     compression=grpc.Compression.Gzip)
            equal(values(answer), [v + 1 for v in ROW * rows], f"{rows} rows")


@case
def who_watches_is_told_before_the_server_drains():
    with Server("--drain-delay", "300ms") as server, Stub(server.grpc_port) as stub:
        watch = stub.watch()
        equal(next(watch).status, 1, "serving")
        server.signal(signal.SIGTERM)
        equal(next(watch).status, 2, "not serving")
        equal(code_of(lambda: list(watch))[0], "UNAVAILABLE", "the end")
        server.wait()


@case
def no_call_is_lost_when_the_server_drains():
    with Server(simulate="a=30ms,b=0ms") as server, Stub(server.grpc_port) as stub:
        calls = [stub.ModelInfer.future(stub.request(ROW), timeout=60) for _ in range(300)]
        wait_until(lambda: calls[0].done(), "the first answer")
        server.signal(signal.SIGTERM)
        for call in calls:
            equal(values(call.result()), [v + 1 for v in ROW], "values")
        server.wait()


def talk(port, data, seconds=5):
    """What the server says to these bytes until it closes or is silent for so long."""
    out = b""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as client:
        try:
            client.sendall(data)
            while part := client.recv(65536):
                out += part
        except OSError:
            pass
    return out


def calm(answer):
    return b"\x00\x00\x00\x0b" in answer


@case
def floods_are_met_with_your_calm():
    with Server() as server, Stub(server.grpc_port) as stub:
        start = _grpc.PREFACE + frame(_grpc.SETTINGS, 0, 0)
        call = call_headers(b"/inference.GRPCInferenceService/ServerLive")
        reset = start + b"".join(frame(_grpc.HEADERS, 4, 2 * i + 1, call) +
                                 frame(_grpc.RST_STREAM, 0, 2 * i + 1, b"\0\0\0\x08")
                                 for i in range(20000))
        ping = start + frame(_grpc.PING, 0, 0, b"12345678") * 50000
        settings = start + frame(_grpc.SETTINGS, 0, 0) * 50000
        continuation = start + frame(_grpc.HEADERS, 0, 1, call[:2]) + \
            frame(_grpc.CONTINUATION, 0, 1, b"") * 50000
        for name, data in (("reset", reset), ("ping", ping), ("settings", settings)):
            check(calm(talk(server.grpc_port, data)), f"{name}: no ENHANCE_YOUR_CALM")
        talk(server.grpc_port, continuation)
        wait_until(lambda: server.metrics()["telltale_grpc_connections"] == 0, "the connections")
        stub.ModelInfer(stub.request(ROW), timeout=20)


@case
def other_protocols_and_nonsense_end_the_connection():
    with Server() as server, Stub(server.grpc_port) as stub:
        answer = talk(server.grpc_port, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        check(answer.startswith(b"HTTP/1.1 505 ") and b"gRPC" in answer, repr(answer))
        talk(server.grpc_port, os.urandom(100000), 2)
        stub.ModelInfer(stub.request(ROW), timeout=20)


@case
def a_client_that_stops_reading_or_sending_is_ended():
    with Server("--read-timeout", "300ms", "--max-batch", "0") as server, \
            Stub(server.grpc_port) as stub:
        call = call_headers(b"/inference.GRPCInferenceService/ModelInfer")
        half = _grpc.PREFACE + frame(_grpc.SETTINGS, 0, 0) + frame(_grpc.HEADERS, 4, 1, call) + \
            frame(_grpc.DATA, 0, 1, message(b"x" * 100)[:50])
        answer = talk(server.grpc_port, half, 3)
        check(b"grpc-status" in answer or len(answer) > 40, repr(answer))
        request = stub.request(ROW * 20000).SerializeToString()
        body = message(request)
        pieces = [body[i:i + 16384] for i in range(0, len(body), 16384)]
        with socket.create_connection(("127.0.0.1", server.grpc_port)) as client:
            client.sendall(_grpc.PREFACE + frame(_grpc.SETTINGS, 0, 0, b"\0\4\0\0\0\0") +
                           frame(_grpc.HEADERS, 4, 1, call))
            for i, piece in enumerate(pieces):
                client.sendall(frame(_grpc.DATA, int(i + 1 == len(pieces)), 1, piece))
            wait_until(lambda: server.metrics()["telltale_grpc_timeouts_total"] >= 1, "the stall")
            wait_until(lambda: server.metrics()["telltale_grpc_streams"] == 0, "the stream")


if __name__ == "__main__":
    main()
