"""python3-grpcio with the messages of src/schema/: the health service that probes ask, every
unary method that a CPU server answers, and a stream. See CLIENTS at the end.
"""
import glob
import importlib
import os
import struct
import subprocess
import sys
import tempfile

from running import ROOT, Skip, check

SECONDS = 20


def module(name):
    """A generated module of src/schema/, made by protoc once."""
    if name in sys.modules:
        return sys.modules[name]
    schema = os.path.join(ROOT, "src", "schema")
    files = [os.path.basename(path) for path in glob.glob(os.path.join(schema, "*.proto"))]
    with tempfile.TemporaryDirectory() as scratch:
        try:
            subprocess.run(["protoc", f"-I{schema}", f"--python_out={scratch}", *files], check=True)
        except FileNotFoundError:
            raise Skip("no protoc") from None
        sys.path.insert(0, scratch)
        try:
            return importlib.import_module(name)
        finally:
            sys.path.remove(scratch)


class Channel:
    def __init__(self, server, service="inference.GRPCInferenceService"):
        try:
            import grpc
        except ImportError as missing:
            raise Skip(str(missing)) from None
        self.grpc, self.service = grpc, service
        self.channel = grpc.insecure_channel(f"127.0.0.1:{server.need_grpc()}")

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.channel.close()

    def call(self, method, request, answer):
        return self.channel.unary_unary(
            f"/{self.service}/{method}", request_serializer=type(request).SerializeToString,
            response_deserializer=answer.FromString)(request, timeout=SECONDS)


def infer_request(pb, request_id):
    request = pb.ModelInferRequest(model_name="simple", id=request_id)
    for i in range(2):
        request.inputs.add(name=f"INPUT{i}", datatype="INT32", shape=[1, 16])
        request.raw_input_contents.append(struct.pack("<16i", *range(16)))
    return request


def check_sum(answer):
    check([output.name for output in answer.outputs] == ["OUTPUT0", "OUTPUT1"], answer)
    check(struct.unpack("<16i", answer.raw_output_contents[0]) == tuple(range(0, 32, 2)), answer)


def kubelet_asks_the_health_service(server):
    pb = module("health_pb2")
    with Channel(server, "grpc.health.v1.Health") as channel:
        for service in ("", "inference.GRPCInferenceService"):
            answer = channel.call("Check", pb.HealthCheckRequest(service=service),
                                  pb.HealthCheckResponse)
            check(answer.status == pb.HealthCheckResponse.SERVING, answer)


def unary_methods_answer(server):
    pb = module("grpc_service_pb2")
    with Channel(server) as channel:
        def ask(method, **fields):
            return channel.call(method, getattr(pb, method + "Request")(**fields),
                                getattr(pb, method + "Response"))
        check(ask("ServerLive").live and ask("ServerReady").ready, "live and ready")
        check(ask("ModelReady", name="simple").ready, "model ready")
        check("binary_tensor_data" in ask("ServerMetadata").extensions, "extensions")
        check(ask("ModelMetadata", name="simple").inputs[0].datatype == "INT32", "metadata")
        check(ask("ModelConfig", name="simple").config.name == "simple", "config")
        check(len(ask("ModelStatistics", name="simple").model_stats) == 1, "statistics")
        check(len(ask("RepositoryIndex").models) == 7, "repository index")
        check(len(ask("SystemSharedMemoryStatus").regions) == 0, "regions")
        check("trace_level" in ask("TraceSetting").settings, "trace settings")
        check(len(ask("LogSettings").settings) > 0, "log settings")


def unary_inference_gives_the_sum(server):
    pb = module("grpc_service_pb2")
    with Channel(server) as channel:
        answer = channel.call("ModelInfer", infer_request(pb, "1"), pb.ModelInferResponse)
        check(answer.id == "1", answer)
        check_sum(answer)


def a_stream_answers_each_request(server):
    pb = module("grpc_service_pb2")
    with Channel(server) as channel:
        stream = channel.channel.stream_stream(
            f"/{channel.service}/ModelStreamInfer",
            request_serializer=pb.ModelInferRequest.SerializeToString,
            response_deserializer=pb.ModelStreamInferResponse.FromString)
        answers = list(stream((infer_request(pb, str(i)) for i in range(10)), timeout=SECONDS))
        check(sorted(answer.infer_response.id for answer in answers) == [str(i) for i in range(10)],
              answers)
        for answer in answers:
            check_sum(answer.infer_response)


CLIENTS = {"python3-grpcio": [kubelet_asks_the_health_service, unary_methods_answer,
                              unary_inference_gives_the_sum, a_stream_answers_each_request]}
