"""Triton's Python client library and its public examples, run from their source as they are: only
the addresses in their text are replaced.

TRITON_CLIENT names a checkout of github.com/triton-inference-server/client. The messages that the
library expects to find generated are made from src/schema/ (protoc and Debian's
protobuf-compiler-grpc); nothing of the checkout is changed, it is copied.
"""
import os
import re
import shutil
import subprocess

from running import ROOT, Skip, check, output_of

PYTHON = "/usr/bin/python3"  # which sees Debian's packages
# example, options, what it needs of the server
EXAMPLES = [
    ("simple_http_infer_client", [], ""),
    ("simple_http_infer_client", ["--request-compression-algorithm", "gzip",
                                  "--response-compression-algorithm", "deflate"], ""),
    ("simple_http_infer_client", ["--request-compression-algorithm", "deflate",
                                  "--response-compression-algorithm", "gzip"], ""),
    ("simple_http_string_infer_client", [], ""),
    ("simple_http_async_infer_client", [], ""),
    ("simple_http_aio_infer_client", [], ""),
    ("simple_http_health_metadata", [], ""),
    ("simple_http_shm_client", [], ""),
    ("simple_http_shm_string_client", [], ""),
    ("simple_http_model_control", [], "explicit"),
    ("reuse_infer_objects_client", [], ""),
    ("memory_growth_test", [], ""),
    ("image_client", ["-m", "densenet_onnx", "-c", "3", "-s", "INCEPTION", "PICTURE"], ""),
    ("image_client", ["-m", "densenet_onnx", "-c", "3", "-a", "PICTURE"], ""),
    ("simple_grpc_infer_client", [], "grpc"),
    ("simple_grpc_infer_client", ["-C", "gzip"], "grpc"),
    ("simple_grpc_string_infer_client", [], "grpc"),
    ("simple_grpc_async_infer_client", [], "grpc"),
    ("simple_grpc_aio_infer_client", [], "grpc"),
    ("simple_grpc_health_metadata", [], "grpc"),
    ("simple_grpc_custom_args_client", [], "grpc"),
    ("simple_grpc_keepalive_client", [], "grpc"),
    ("simple_grpc_shm_client", [], "grpc"),
    ("simple_grpc_shm_string_client", [], "grpc"),
    ("simple_grpc_model_control", [], "grpc explicit"),
    ("grpc_client", [], "grpc"),
    ("grpc_explicit_int_content_client", [], "grpc"),
    ("grpc_explicit_int8_content_client", [], "grpc"),
    ("grpc_explicit_byte_content_client", [], "grpc"),
    ("reuse_infer_objects_client", ["-i", "grpc"], "grpc"),
    ("memory_growth_test", ["-i", "grpc"], "grpc"),
    ("image_client", ["-m", "densenet_onnx", "-c", "3", "-i", "grpc", "PICTURE"], "grpc"),
    ("image_client", ["-m", "densenet_onnx", "-c", "3", "-i", "grpc", "-a", "PICTURE"], "grpc"),
    ("image_client", ["-m", "densenet_onnx", "-c", "3", "-i", "grpc", "--streaming", "PICTURE"],
     "grpc"),
    ("grpc_image_client", ["-m", "densenet_onnx", "-c", "3", "PICTURE"], "grpc"),
]
NOT_SERVED = {
    "simple_*_sequence_*": "sequences with a state on the server",
    "simple_grpc_custom_repeat": "decoupled models",
    "simple_*_cudashm_client": "CUDA shared memory",
    "ensemble_image_client": "needs a model of another framework",
}


# image_client wants this package of PyPI, which Debian has not; of it, this much.
ATTRDICT = """class AttrDict(dict):
    def __getattr__(self, name):
        value = self[name]
        if isinstance(value, list):
            return [AttrDict(one) if isinstance(one, dict) else one for one in value]
        return AttrDict(value) if isinstance(value, dict) else value

    def __setattr__(self, name, value):
        self[name] = value
"""


class Checkout:
    """A copy of the library and the examples, with generated messages beside it."""

    def __init__(self, scratch):
        source = os.environ.get("TRITON_CLIENT")
        if not source:
            raise Skip("TRITON_CLIENT names no checkout of triton-inference-server/client")
        self.python = os.path.join(scratch, "library")
        self.examples = os.path.join(scratch, "examples")
        shutil.copytree(os.path.join(source, "src/python/library"), self.python)
        shutil.copytree(os.path.join(source, "src/python/examples"), self.examples)
        self.generate(scratch)
        with open(os.path.join(self.examples, "attrdict.py"), "w", encoding="ascii") as file:
            file.write(ATTRDICT)
        self.environment = dict(os.environ, PYTHONPATH=self.python)
        probe = subprocess.run([PYTHON, "-c", "import tritonclient.http, tritonclient.http.aio, "
                                "tritonclient.grpc, tritonclient.grpc.aio"], text=True,
                               env=self.environment, capture_output=True, check=False)
        if probe.returncode:
            raise Skip(probe.stderr.strip().splitlines()[-1])

    def generate(self, scratch):
        messages = os.path.join(scratch, "messages")
        os.makedirs(messages)
        schema = os.path.join(ROOT, "src", "schema")
        shutil.copy(os.path.join(schema, "grpc_service.proto"),
                    os.path.join(messages, "service.proto"))
        shutil.copy(os.path.join(schema, "model_config.proto"), messages)
        plugin = shutil.which("grpc_python_plugin")
        if not plugin:
            raise Skip("no grpc_python_plugin (Debian: protobuf-compiler-grpc)")
        package = os.path.join(self.python, "tritonclient", "grpc")
        subprocess.run(["protoc", f"-I{messages}", f"--python_out={package}",
                        f"--grpc_python_out={package}", f"--plugin=protoc-gen-grpc_python={plugin}",
                        "service.proto", "model_config.proto"], check=True)
        for name in ("service_pb2.py", "service_pb2_grpc.py"):
            path = os.path.join(package, name)
            with open(path, encoding="utf-8") as file:
                text = file.read()
            text = re.sub(r"^import (service_pb2|model_config_pb2)", r"from tritonclient.grpc import \1",
                          text, flags=re.M)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)

    def run(self, example, options, server):
        """The example with this server's addresses in its text."""
        with open(os.path.join(self.examples, example + ".py"), encoding="utf-8") as file:
            text = file.read()
        text = text.replace("localhost:8000", f"localhost:{server.http}")
        text = text.replace("localhost:8001", f"localhost:{server.grpc}")
        path = os.path.join(self.examples, f"here_{example}.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        if example in ("image_client", "grpc_image_client"):
            port = server.grpc if "grpc" in options or example == "grpc_image_client" else server.http
            options = ["-u", f"localhost:{port}", *options]
        elif example == "reuse_infer_objects_client" and "grpc" in options:
            options = ["-u", f"localhost:{server.grpc}", *options]
        return output_of([PYTHON, path, *options], environment=self.environment)


def picture(path):
    """a picture to classify"""
    output_of([PYTHON, "-c", "import sys; from PIL import Image; "
               "Image.linear_gradient('L').convert('RGB').save(sys.argv[1])", path])
    return path


class Examples:
    def __init__(self, scratch):
        self.checkout = Checkout(scratch)
        self.picture = picture(os.path.join(scratch, "gradient.png"))

    def checks(self, is_explicit):
        """[(name, function of a Server)] for a server with or without model control"""
        out = []
        for example, options, needs in EXAMPLES:
            if ("explicit" in needs) == is_explicit:
                given = [self.picture if option == "PICTURE" else option for option in options]
                name = " ".join([example, *options])
                out.append((name, lambda server, e=example, g=given, n=needs: self.ask(e, g, n, server)))
        return out

    def ask(self, example, options, needs, server):
        if "grpc" in needs:
            server.need_grpc()
        said = self.checkout.run(example, options, server)
        # Three of them end well without saying so.
        silent = ("simple_http_infer_client", "simple_http_async_infer_client", "health_metadata",
                  "reuse_infer_objects_client", "memory_growth_test")
        check("PASS" in said or any(name in example for name in silent), said[-1500:])


