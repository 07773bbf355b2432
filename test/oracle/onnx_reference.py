"""ONNX Runtime itself, by way of oracle_infer_onnx_run: one process that answers many models.

A model that takes the process down is answered for, and the next one has a new process.
"""
import os
import struct
import subprocess

from onnx_cases import BY_NAME, TYPES, Tensor


def write_tensors(path, tensors):
    out = [struct.pack("<I", len(tensors))]
    for tensor in tensors:
        name = tensor.name.encode()
        out.append(struct.pack("<I", len(name)) + name +
                   struct.pack("<II", BY_NAME[tensor.datatype][0], len(tensor.shape)) +
                   struct.pack(f"<{len(tensor.shape)}q", *tensor.shape) +
                   struct.pack("<Q", len(tensor.data)) + tensor.data)
    with open(path, "wb") as file:
        file.write(b"".join(out))


def read_tensors(path):
    with open(path, "rb") as file:
        data = file.read()
    out, at = [], 4
    for _ in range(struct.unpack_from("<I", data)[0]):
        size = struct.unpack_from("<I", data, at)[0]
        name = data[at + 4:at + 4 + size].decode()
        kind, rank = struct.unpack_from("<II", data, at + 4 + size)
        at += 12 + size
        shape = struct.unpack_from(f"<{rank}q", data, at)
        size = struct.unpack_from("<Q", data, at + 8 * rank)[0]
        at += 8 * rank + 8
        out.append(Tensor(name, TYPES[kind][0], shape, data[at:at + size]))
        at += size
    assert at == len(data), path
    return out


class Reference:
    def __init__(self, program, library, scratch):
        self.command = [program, library]
        self.given = os.path.join(scratch, "given")
        self.taken = os.path.join(scratch, "taken")
        self.process = None

    def ask(self, model, inputs, runs=1):
        """of the last of so many runs -> ("ok", tensors) or ("load" | "type" | "run" | "crash", sentence)"""
        if self.process is None:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, text=True)
        write_tensors(self.given, inputs)
        self.process.stdin.write(f"{model}\t{self.given}\t{self.taken}\t{runs}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            code = self.process.wait()
            self.close()
            return "crash", f"exit code {code}"
        kind, _, sentence = line.rstrip("\n").partition(" ")
        return (kind, read_tensors(self.taken)) if kind == "ok" else (kind, sentence)

    def close(self):
        if self.process:
            self.process.stdin.close()
            self.process.stdout.close()
            self.process.wait()
            self.process = None
