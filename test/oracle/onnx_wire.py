"""Asks a server for an inference in every way that the protocol has: JSON, JSON with binary
tensors, gRPC with raw and with typed contents. All answer the outputs as Tensors, or Refused.

gRPC needs python3-grpcio and protoc, which makes the messages of src/schema/ at run time.
"""
import glob
import http.client
import importlib
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

from onnx_cases import BY_NAME, FLOATS, Tensor, pack_strings

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NOT_IN_JSON = {"FP16", "BF16"}
TIMEOUT = 60
# InferTensorContents' field of a type
CONTENTS = {"BOOL": "bool_contents", "INT8": "int_contents", "INT16": "int_contents",
            "INT32": "int_contents", "INT64": "int64_contents", "UINT8": "uint_contents",
            "UINT16": "uint_contents", "UINT32": "uint_contents", "UINT64": "uint64_contents",
            "FP32": "fp32_contents", "FP64": "fp64_contents", "BYTES": "bytes_contents"}


class Refused(Exception):
    """An answer that is an error: status (HTTP's number or gRPC's name) and its sentence."""

    def __init__(self, status, sentence):
        super().__init__(f"{status}: {sentence}")
        self.status, self.sentence = status, sentence


def json_values(tensor, is_nested):
    """"data" of a tensor: flat, or nested as its shape says"""
    if tensor.datatype == "BYTES":
        array = np.array([text.decode() for text in tensor.strings()], dtype=object)
    else:
        array = tensor.array()
        # Doubles as they print are exact for floats too.
        array = array.astype("f8") if tensor.datatype == "FP32" else array
    return (array.reshape(tensor.shape) if is_nested and tensor.shape else array.ravel()).tolist()


def from_json(output):
    """an output with data as a Tensor"""
    datatype, values, shape = output["datatype"], output["data"], output["shape"]
    if datatype == "BYTES":
        data = pack_strings([text.encode() for text in values])
    else:
        data = np.array(values, dtype=BY_NAME[datatype][1]).tobytes()
    return Tensor(output["name"], datatype, shape, data)


class Http:
    """One connection. is_binary: every tensor as bytes; else JSON where it has the type, values
    nested in every other request."""

    def __init__(self, port, is_binary):
        self.is_binary, self.is_nested = is_binary, False
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)

    def request(self, inputs, outputs):
        """-> (JSON, bytes after it)"""
        head, tail = {"inputs": [], "outputs": []}, b""
        self.is_nested = not self.is_nested
        for tensor in inputs:
            member = {"name": tensor.name, "datatype": tensor.datatype, "shape": tensor.shape}
            if self.is_binary or tensor.datatype in NOT_IN_JSON:
                member["parameters"] = {"binary_data_size": len(tensor.data)}
                tail += tensor.data
            else:
                member["data"] = json_values(tensor, self.is_nested)
            head["inputs"].append(member)
        for name, datatype in outputs:
            is_binary = self.is_binary or datatype in NOT_IN_JSON
            head["outputs"].append({"name": name, "parameters": {"binary_data": is_binary}})
        return json.dumps(head).encode(), tail

    def infer(self, model, inputs, outputs):
        self.send(model, inputs, outputs)
        return self.receive()

    def send(self, model, inputs, outputs):
        head, tail = self.request(inputs, outputs)
        headers = {"Content-Type": "application/json"}
        if self.is_binary or tail:
            headers = {"Content-Type": "application/octet-stream",
                       "Inference-Header-Content-Length": str(len(head))}
        self.connection.request("POST", f"/v2/models/{model}/infer", head + tail, headers)

    def receive(self):
        answer = self.connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise Refused(answer.status, json.loads(body)["error"])
        size = int(answer.headers.get("Inference-Header-Content-Length", len(body)))
        out, at = [], size
        for output in json.loads(body[:size])["outputs"]:
            length = output.get("parameters", {}).get("binary_data_size")
            if length is None:
                out.append(from_json(output))
                continue
            out.append(Tensor(output["name"], output["datatype"], output["shape"],
                              body[at:at + length]))
            at += length
        assert at == len(body), f"{len(body) - at} bytes of the body belong to no output"
        return out

    def close(self):
        self.connection.close()


def messages():
    """The module of src/schema/grpc_service.proto, made by protoc; ImportError without it."""
    schema = os.path.join(ROOT, "src", "schema")
    with tempfile.TemporaryDirectory() as scratch:
        files = [os.path.basename(path) for path in glob.glob(os.path.join(schema, "*.proto"))]
        if not files:
            raise ImportError("src/schema has no .proto")
        try:
            subprocess.run(["protoc", f"-I{schema}", f"--python_out={scratch}", *files], check=True)
        except FileNotFoundError:
            raise ImportError("no protoc") from None
        sys.path.insert(0, scratch)
        try:
            return importlib.import_module("grpc_service_pb2")
        finally:
            sys.path.remove(scratch)


class Grpc:
    """One channel. is_raw: tensors as raw bytes, else as typed contents."""

    def __init__(self, port, is_raw, pb):
        import grpc  # where it is missing, the caller leaves gRPC out
        self.is_raw, self.pb, self.error, self.future = is_raw, pb, grpc.RpcError, None
        limits = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
        self.channel = grpc.insecure_channel(f"127.0.0.1:{port}", limits)
        self.call = self.channel.unary_unary(
            "/inference.GRPCInferenceService/ModelInfer",
            request_serializer=pb.ModelInferRequest.SerializeToString,
            response_deserializer=pb.ModelInferResponse.FromString)

    def request(self, model, inputs, outputs):
        request = self.pb.ModelInferRequest(model_name=model)
        for tensor in inputs:
            member = request.inputs.add(name=tensor.name, datatype=tensor.datatype,
                                        shape=tensor.shape)
            if self.is_raw:
                request.raw_input_contents.append(tensor.data)
                continue
            values = tensor.strings() if tensor.datatype == "BYTES" else \
                tensor.array().ravel().tolist()
            getattr(member.contents, CONTENTS[tensor.datatype]).extend(values)
        for name, _ in outputs:
            request.outputs.add(name=name)
        return request

    def infer(self, model, inputs, outputs):
        self.send(model, inputs, outputs)
        return self.receive()

    def send(self, model, inputs, outputs):
        self.future = self.call.future(self.request(model, inputs, outputs), timeout=TIMEOUT)

    def receive(self):
        try:
            answer = self.future.result()
        except self.error as error:
            raise Refused(error.code().name, error.details()) from None
        raw, out = list(answer.raw_output_contents), []
        for output in answer.outputs:
            if output.HasField("contents"):
                values = list(getattr(output.contents, CONTENTS[output.datatype]))
                data = pack_strings(values) if output.datatype == "BYTES" else \
                    np.array(values, dtype=BY_NAME[output.datatype][1]).tobytes()
            else:
                data = raw.pop(0)
            out.append(Tensor(output.name, output.datatype, output.shape, data))
        assert not raw, f"{len(raw)} raw contents belong to no output"
        return out

    def close(self):
        self.channel.close()


def cannot_carry(transport, inputs, outputs):
    """why this transport has no way to send these inputs or give these outputs; or None"""
    if transport == "JSON":
        for side, tensors in (("inputs", inputs), ("outputs", outputs)):
            for tensor in tensors:
                if not tensor.is_finite() and tensor.datatype not in NOT_IN_JSON:
                    return f"{side} with NaN or infinities"
                if not tensor.is_utf8():
                    return f"{side} with strings that are not UTF-8"
    if transport == "gRPC typed" and any(tensor.datatype in NOT_IN_JSON for tensor in inputs):
        return "FP16 and BF16 inputs"
    return None


assert NOT_IN_JSON < FLOATS
