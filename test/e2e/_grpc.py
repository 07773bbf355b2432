"""gRPC clients for the end-to-end tests: Debian's python3-grpcio with messages that protoc makes of
the schema, and HTTP/2 frames by hand.

Another python3 that comes first in PATH does not see Debian's modules: the script is then run again
by /usr/bin/python3.
"""
import atexit
import os
import shutil
import struct
import subprocess
import sys
import tempfile

from _harness import ROOT, Skip

DEBIAN_PYTHON = "/usr/bin/python3"


def again_with_debian():
    """Replaces this process by one that sees grpc, where there is such a one."""
    try:
        import grpc  # noqa: F401
    except ImportError:
        if sys.executable != DEBIAN_PYTHON and os.path.exists(DEBIAN_PYTHON) and not \
                os.environ.get("TELLTALE_PYTHON_AGAIN"):
            os.environ["TELLTALE_PYTHON_AGAIN"] = "1"
            os.execv(DEBIAN_PYTHON, [DEBIAN_PYTHON] + sys.argv)


def messages():
    """(grpc_service_pb2, health_pb2), made once a process."""
    if not hasattr(messages, "made"):
        try:
            import google.protobuf  # noqa: F401
            import grpc  # noqa: F401
        except ImportError:
            raise Skip("no python3-grpcio (apt-get install python3-grpcio)") from None
        if not shutil.which("protoc"):
            raise Skip("no protoc (apt-get install protobuf-compiler)")
        directory = tempfile.mkdtemp(prefix="telltale-pb-")
        atexit.register(shutil.rmtree, directory, True)
        schema = os.path.join(ROOT, "src", "schema")
        names = ["model_config.proto", "grpc_service.proto", "health.proto"]
        subprocess.run(["protoc", f"-I{schema}", f"--python_out={directory}", *names], check=True)
        sys.path.insert(0, directory)
        import grpc_service_pb2
        import health_pb2
        messages.made = (grpc_service_pb2, health_pb2)
    return messages.made


class Stub:
    """Methods of the inference service by name: stub.ServerLive(request, timeout=...)."""
    STREAMS = {"ModelStreamInfer"}

    def __init__(self, port, *options, credentials=None):
        import grpc
        self.pb, self.health_pb = messages()
        options = list(options) + [("grpc.max_send_message_length", -1),
                                   ("grpc.max_receive_message_length", -1)]
        target = f"localhost:{port}"
        if credentials:
            self.channel = grpc.secure_channel(target, credentials, options)
        else:
            self.channel = grpc.insecure_channel(target, options)
        self.port = port

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.channel.close()

    def __getattr__(self, name):
        request = getattr(self.pb, name.replace("ModelStreamInfer", "ModelInfer") + "Request")
        response = getattr(self.pb, name + "Response")
        make = self.channel.stream_stream if name in self.STREAMS else self.channel.unary_unary
        return make(f"/inference.GRPCInferenceService/{name}",
                    request_serializer=request.SerializeToString,
                    response_deserializer=response.FromString)

    def check(self, service="", **options):
        make = self.channel.unary_unary(
            "/grpc.health.v1.Health/Check",
            request_serializer=self.health_pb.HealthCheckRequest.SerializeToString,
            response_deserializer=self.health_pb.HealthCheckResponse.FromString)
        return make(self.health_pb.HealthCheckRequest(service=service), **options)

    def watch(self, service=""):
        make = self.channel.unary_stream(
            "/grpc.health.v1.Health/Watch",
            request_serializer=self.health_pb.HealthCheckRequest.SerializeToString,
            response_deserializer=self.health_pb.HealthCheckResponse.FromString)
        return make(self.health_pb.HealthCheckRequest(service=service))

    def request(self, values, request_id="", name="simulated", raw=True, **parameters):
        """A ModelInferRequest for the simulated model."""
        out = self.pb.ModelInferRequest(model_name=name, id=request_id)
        tensor = out.inputs.add(name="INPUT0", datatype="FP32", shape=[len(values) // 16, 16])
        if raw:
            out.raw_input_contents.append(struct.pack(f"<{len(values)}f", *values))
        else:
            tensor.contents.fp32_contents.extend(values)
        for key, value in parameters.items():
            kind = "bool_param" if isinstance(value, bool) else \
                "int64_param" if isinstance(value, int) else "string_param"
            setattr(out.parameters[key], kind, value)
        return out


def code_of(call):
    """The status's name and text that a call ends with."""
    import grpc
    try:
        call()
    except grpc.RpcError as error:
        return error.code().name, error.details()
    return "OK", ""


# ---- frames by hand ----

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = \
    0, 1, 2, 3, 4, 6, 7, 8, 9


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + \
        struct.pack(">I", stream) + payload


def literal(name, value):
    """A header that is not put into the table; sizes below 127."""
    return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value


def call_headers(path, *more):
    out = b"\x83\x86" + literal(b":path", path) + literal(b":authority", b"x")
    out += literal(b"te", b"trailers") + literal(b"content-type", b"application/grpc")
    for name, value in more:
        out += literal(name, value)
    return out


def message(data, compressed=0):
    return struct.pack(">BI", compressed, len(data)) + data
