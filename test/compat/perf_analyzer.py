"""Triton's perf_analyzer, where PERF_ANALYZER names it or it is in PATH: HTTP and gRPC, synchronous
and asynchronous, by concurrency and by request rate, shared memory, the server's statistics.
"""
import os
import re
import shutil

from running import Skip, check, output_of


def run(server, *options, port=None):
    """-> its output; fails without a throughput above zero"""
    program = os.environ.get("PERF_ANALYZER") or shutil.which("perf_analyzer")
    if not program:
        raise Skip("PERF_ANALYZER names no program")
    said = output_of([program, "-m", "simple", "-u", f"127.0.0.1:{port or server.http}", "-p", "500",
                      "-s", "100", "-r", "3", *options])
    rate = re.search(r"Throughput: ([\d.]+) infer/sec", said)
    check(rate and float(rate[1]) > 0, said[-1500:])
    return said


def summary(said):
    found = re.search(r"throughput: .*|Throughput: .*", said)
    return found[0] if found else None


def http_with_one_connection_shows_statistics(server):
    said = run(server, "-i", "http")
    check(re.search(r"Server:\s+Inference count: [1-9]", said), said[-1500:])
    check(re.search(r"queue \d+ usec, compute input \d+ usec, compute infer \d+ usec", said),
          said[-1500:])
    return summary(said)


def http_asynchronous(server):
    return summary(run(server, "-i", "http", "-a", "--concurrency-range", "8"))


def http_by_request_rate(server):
    return summary(run(server, "-i", "http", "--request-rate-range", "200"))


def http_with_shared_memory(server):
    return summary(run(server, "-i", "http", "--shared-memory", "system",
                       "--output-shared-memory-size", "64"))


def grpc_with_one_connection_shows_statistics(server):
    said = run(server, "-i", "grpc", port=server.need_grpc())
    check(re.search(r"Server:\s+Inference count: [1-9]", said), said[-1500:])
    return summary(said)


def grpc_asynchronous(server):
    return summary(run(server, "-i", "grpc", "-a", "--concurrency-range", "8",
                       port=server.need_grpc()))


def grpc_streaming(server):
    return summary(run(server, "-i", "grpc", "--streaming", "-a", "--concurrency-range", "4",
                       port=server.need_grpc()))


def grpc_by_request_rate(server):
    return summary(run(server, "-i", "grpc", "--request-rate-range", "200",
                       port=server.need_grpc()))


def grpc_with_shared_memory(server):
    return summary(run(server, "-i", "grpc", "--shared-memory", "system",
                       "--output-shared-memory-size", "64", port=server.need_grpc()))


CLIENTS = {"perf_analyzer": [
    http_with_one_connection_shows_statistics, http_asynchronous, http_by_request_rate,
    http_with_shared_memory, grpc_with_one_connection_shows_statistics, grpc_asynchronous,
    grpc_streaming, grpc_by_request_rate, grpc_with_shared_memory]}
