#!/usr/bin/env python3
"""Compares reading and writing of messages with protobuf's own libraries:

    test/oracle/schema_oracle.py BUILD_DIRECTORY [COUNT] [SEED]

COUNT random messages of each type (default 600) are written as text in every syntax that the
format has, and as JSON; what Telltale reads of them must be the message, and what it writes as
JSON must read back as the message. Then texts with one mutation each are offered to Telltale, to
Python's reader and, where these disagree, to protoc: Telltale must side with protoc, but for what
text_format.h says it is stricter in. Last, protoc encodes every config in
test/oracle/configs/*.pbtxt, and Telltale must give the same; those in configs/bad/ both must
refuse. Prints "kind: N same, M different". Exit 0: no difference; 1: differences, the first ones
shown; 77: protoc or Python's protobuf is missing (scripts/setup test installs them).
"""
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile

try:
    from google.protobuf import json_format, text_format
except ImportError as missing:
    print(f"skipped: {missing} (scripts/setup test installs it)")
    sys.exit(77)
if not shutil.which("protoc"):
    print("skipped: no protoc (scripts/setup test installs it)")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(sys.argv[1])
COUNT = int(sys.argv[2]) if len(sys.argv) > 2 else 600
RANDOM = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 4)
PROTOS = ROOT / "src/schema"


def generated():
    """the Python classes of our .proto files"""
    directory = tempfile.mkdtemp()
    subprocess.run(["protoc", f"-I{PROTOS}", f"--python_out={directory}", "model_config.proto",
                    "grpc_service.proto"], check=True)
    sys.path.insert(0, directory)
    import grpc_service_pb2
    import model_config_pb2
    shutil.rmtree(directory)
    return model_config_pb2, grpc_service_pb2


CONFIG, SERVICE = generated()
TYPES = {
    "c": CONFIG.ModelConfig,
    "i": SERVICE.ModelInferRequest,
    "s": SERVICE.ModelStatisticsResponse,
    "l": SERVICE.RepositoryModelLoadRequest,
    "r": SERVICE.SystemSharedMemoryStatusResponse,
}


class Program:
    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def read(self, size):
        data = self.process.stdout.read(size)
        if len(data) != size:
            sys.exit(f"schema_convert ended: {self.process.wait()}")
        return data

    def ask(self, what, letter, data):
        """-> (is ok, bytes)"""
        self.process.stdin.write((what + letter).encode() + struct.pack("<I", len(data)) + data)
        self.process.stdin.flush()
        is_ok, size = struct.unpack("<cI", self.read(5))
        return is_ok == b"1", self.read(size)


class Score:
    def __init__(self, kind):
        self.kind, self.same, self.different = kind, 0, 0

    def add(self, is_same, *shown):
        self.same += bool(is_same)
        self.different += not is_same
        if not is_same and self.different <= 5:
            print(f"  {self.kind}:", *shown)

    def close(self):
        print(f"{self.kind}: {self.same} same, {self.different} different")
        return self.different


PROGRAM = Program(BUILD / "oracle_schema_convert")

# --- random messages ---------------------------------------------------------------------------

EDGES = {
    "i32": [0, 1, -1, 2**31 - 1, -2**31], "i64": [0, 1, -1, 2**63 - 1, -2**63],
    "u32": [0, 1, 2**32 - 1], "u64": [0, 1, 2**63, 2**64 - 1],
}
REALS = [-0.0, 0.0, 1.0, -1.5, 0.1, 1e-40, 1e38, 3.4028234663852886e38, 5e-324, 1.7e308,
         float("inf"), float("-inf"), float("nan"), 123456789.0]
LETTERS = "abz09_ \"'\\\n\t\r\x01\x7fé漢😀?#{}<>[]"


def random_text():
    return "".join(RANDOM.choice(LETTERS) for _ in range(RANDOM.choice([0, 1, 3, 12])))


def random_scalar(field):
    kind = field.type
    # protobuf-c takes a singular -0 for the default, which is not sent.
    reals = REALS if field.label == field.LABEL_REPEATED or field.containing_oneof else REALS[1:]
    if kind == field.TYPE_STRING:
        return random_text()
    if kind == field.TYPE_BYTES:
        return RANDOM.randbytes(RANDOM.choice([0, 1, 2, 3, 20]))
    if kind == field.TYPE_BOOL:
        return RANDOM.random() < 0.5
    if kind == field.TYPE_ENUM:
        return RANDOM.choice(field.enum_type.values).number
    if kind == field.TYPE_DOUBLE:
        return RANDOM.choice(reals + [RANDOM.uniform(-10, 10)])
    if kind == field.TYPE_FLOAT:
        value = RANDOM.choice(reals + [RANDOM.uniform(-10, 10)])
        try:
            return struct.unpack("<f", struct.pack("<f", value))[0]
        except OverflowError:
            return 1.0
    edges = EDGES[{field.TYPE_INT32: "i32", field.TYPE_INT64: "i64", field.TYPE_UINT32: "u32",
                   field.TYPE_UINT64: "u64"}[kind]]
    return RANDOM.choice(edges + [RANDOM.randrange(100)])


def is_map(field):
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def fill(message, chance):
    for field in message.DESCRIPTOR.fields:
        if RANDOM.random() > chance:
            continue
        if field.containing_oneof and message.WhichOneof(field.containing_oneof.name):
            continue
        target = getattr(message, field.name)
        if is_map(field):
            key, value = field.message_type.fields_by_name["key"], field.message_type.fields_by_name["value"]
            for _ in range(RANDOM.randrange(1, 4)):
                name = random_scalar(key)
                if value.message_type:
                    fill(target[name], chance)
                else:
                    target[name] = random_scalar(value)
        elif field.label == field.LABEL_REPEATED:
            for _ in range(RANDOM.randrange(1, 5)):
                if field.message_type:
                    fill(target.add(), chance)
                else:
                    target.append(random_scalar(field))
        elif field.message_type:
            target.SetInParent()
            fill(target, chance)
        else:
            setattr(message, field.name, random_scalar(field))
    return message


# --- the text format, in every syntax ----------------------------------------------------------


def gap():
    return RANDOM.choice([" ", " ", "\n", "  ", "\t", " # a comment: {\n", "\r\n", "\v\f"])


def maybe_gap():
    return RANDOM.choice(["", "", gap()])


def text_of_bytes(data):
    """one or more literals that stand for data"""
    pieces, at = [], 0
    while at < len(data) or not pieces:
        size = RANDOM.choice([len(data), 1, 5]) or 1
        piece, at = data[at:at + size], at + size
        quote = RANDOM.choice("\"'")
        out = quote
        # An x escape takes up to two digits, an octal one up to three: always written in full.
        for byte in piece:
            style = RANDOM.randrange(4)
            if byte == ord(quote) or byte in b"\\\n":
                out += {"\n": "\\n", "\\": "\\\\"}.get(chr(byte), "\\" + chr(byte))
            elif 32 <= byte < 127 and style:
                out += chr(byte)
            elif style == 1:
                out += f"\\x{byte:02x}"
            else:
                out += f"\\{byte:03o}"
        pieces.append(out + quote)
    return gap().join(pieces)


def text_of_real(value):
    if value != value:
        return RANDOM.choice(["nan", "NaN", "NAN"])
    if value in (float("inf"), float("-inf")):
        return ("-" if value < 0 else "") + RANDOM.choice(["inf", "Infinity", "INF"])
    text = repr(value)
    if text.endswith(".0") and RANDOM.random() < 0.5 and value < 1e15 and not text.startswith("-0"):
        text = text[:-2]
    return text + RANDOM.choice(["", "", "f" if RANDOM.random() < 0.5 else "F"])


def text_of_whole(value):
    sign, value = ("-" + RANDOM.choice(["", " "]) if value < 0 else ""), abs(value)
    return sign + RANDOM.choice([f"{value}", f"{value}", f"0x{value:x}", f"0X{value:X}",
                                 f"0{value:o}" if value else "0"])


def text_of_scalar(field, value):
    kind = field.type
    if kind == field.TYPE_STRING:
        return text_of_bytes(value.encode())
    if kind == field.TYPE_BYTES:
        return text_of_bytes(value)
    if kind == field.TYPE_BOOL:
        return RANDOM.choice(["true", "True", "t", "1"] if value else ["false", "False", "f", "0"])
    if kind == field.TYPE_ENUM:
        name = field.enum_type.values_by_number[value].name
        return RANDOM.choice([name, name, str(value)])
    if kind in (field.TYPE_DOUBLE, field.TYPE_FLOAT):
        return text_of_real(value)
    return text_of_whole(value)


def text_of_submessage(message):
    opening, closing = RANDOM.choice([("{", "}"), ("{", "}"), ("<", ">")])
    return opening + maybe_gap() + text_of(message) + maybe_gap() + closing


class Entry:
    """a map's entry, as if it were a message"""

    def __init__(self, field, key, value):
        self.DESCRIPTOR, self.key, self.value = field.message_type, key, value

    def given(self):
        return list(zip(self.DESCRIPTOR.fields, [self.key, self.value]))


def text_of_field(field, value):
    if field.message_type:
        return RANDOM.choice([":", "", " "]) + maybe_gap() + text_of_submessage(value)
    return ":" + maybe_gap() + text_of_scalar(field, value)


def text_of(message):
    given = message.given() if isinstance(message, Entry) else message.ListFields()
    parts = []
    for field, value in given:
        if is_map(field):
            value = [Entry(field, key, value[key]) for key in value]
        if field.label != field.LABEL_REPEATED:
            parts.append([field.name + text_of_field(field, value)])
        elif RANDOM.random() < 0.5:
            one = text_of_submessage if field.message_type else lambda v, f=field: text_of_scalar(f, v)
            colon = RANDOM.choice([":", " "]) if field.message_type else ":"
            listed = ("," + maybe_gap()).join(one(v) for v in value)
            parts.append([f"{field.name}{colon}{maybe_gap()}[{maybe_gap()}{listed}{maybe_gap()}]"])
        else:
            parts.append([field.name + text_of_field(field, v) for v in value])
    if RANDOM.random() < 0.2:
        RANDOM.shuffle(parts)
    return "".join(part + RANDOM.choice([gap(), ";" + maybe_gap(), "," + maybe_gap(), gap()])
                   for field in parts for part in field)


# --- comparisons -------------------------------------------------------------------------------


def same(a, b):
    """equal, NaN included"""
    return a.SerializeToString(deterministic=True) == b.SerializeToString(deterministic=True)


def from_wire(letter, wire):
    message = TYPES[letter]()
    message.ParseFromString(wire)
    return message


def compare_text(score, meant, letter, message):
    """meant: now and then protoc says whether the text means what it was written to mean"""
    text = text_of(message)
    is_ok, wire = PROGRAM.ask("t", letter, text.encode())
    score.add(is_ok and same(from_wire(letter, wire), message), repr(text), wire)
    if RANDOM.random() < 0.03:
        encoded = protoc(text.encode(), letter)
        meant.add(encoded is not None and same(from_wire(letter, encoded), message), repr(text))


def compare_json(read, write, letter, message):
    text = json_format.MessageToJson(message, including_default_value_fields=RANDOM.random() < 0.5,
                                     preserving_proto_field_name=RANDOM.random() < 0.5)
    is_ok, wire = PROGRAM.ask("j", letter, text.encode())
    read.add(is_ok and same(from_wire(letter, wire), message), text, wire)
    is_ok, ours = PROGRAM.ask("w", letter, message.SerializeToString())
    try:
        again = json_format.Parse(ours.decode(), TYPES[letter]())
        write.add(is_ok and same(again, message), ours)
    except (json_format.ParseError, UnicodeDecodeError) as fault:
        write.add(False, ours, fault)


def protoc(text, letter):
    """the wire bytes, or None where protoc refuses"""
    done = subprocess.run(["protoc", f"-I{PROTOS}", f"--encode={TYPES[letter].DESCRIPTOR.full_name}",
                           "grpc_service.proto"], input=text, capture_output=True)
    return done.stdout if done.returncode == 0 else None


STRICTER = [b"is given a second time", b"excludes", b"UTF-8 without zero", b"has no value",
            b"no valid escape", b"outside of a string", b"holds a zero byte"]
PIECES = ["{", "}", "[", "]", "<", ">", ":", ",", ";", "\"", "'", "\\", "-", ".", "0", "9", "08",
          "0x", "1e", "1.5.2", "f", "name", "true", "\n", "#", "\\u00e9", "\\q", "inf", "  "]


def mutated(text):
    at = RANDOM.randrange(len(text) + 1)
    how = RANDOM.randrange(3)
    if how == 0:
        return text[:at] + RANDOM.choice(PIECES) + text[at:]
    if how == 1:
        return text[:at] + text[at + RANDOM.randrange(1, 4):]
    return text[:at] + RANDOM.choice(PIECES) + text[at + 1:]


def compare_mutation(score, letter, message):
    text = mutated(text_of(message))
    is_ok, wire = PROGRAM.ask("t", letter, text.encode())
    theirs = TYPES[letter]()
    try:
        text_format.Parse(text, theirs)
    except (text_format.ParseError, UnicodeDecodeError, ValueError):
        theirs = None
    if (theirs is not None) == is_ok and (not is_ok or same(from_wire(letter, wire), theirs)):
        score.add(True)
        return False
    encoded = protoc(text.encode(), letter)
    if encoded is None:
        score.add(not is_ok, repr(text), "protoc refuses it")
    elif is_ok:
        score.add(same(from_wire(letter, wire), from_wire(letter, encoded)), repr(text))
    else:
        score.add(any(part in wire for part in STRICTER), repr(text), "protoc takes it", wire)
    return True


def compare_configs():
    good, bad = Score("configs that protoc encodes"), Score("configs that protoc refuses")
    directory = ROOT / "test/oracle/configs"
    for path in sorted(directory.glob("*.pbtxt")):
        text = path.read_bytes()
        encoded = protoc(text, "c")
        is_ok, wire = PROGRAM.ask("t", "c", text)
        good.add(is_ok and encoded is not None
                 and same(from_wire("c", wire), from_wire("c", encoded)), path.name, wire[:200])
    for path in sorted((directory / "bad").glob("*.pbtxt")):
        text = path.read_bytes()
        is_ok, wire = PROGRAM.ask("t", "c", text)
        bad.add(not is_ok and wire.startswith(b"line ") and protoc(text, "c") is None, path.name,
                is_ok, wire[:200])
    return good.close() + bad.close()


def main():
    text, meant = Score("random texts"), Score("random texts that protoc encodes")
    read, write = Score("JSON read"), Score("JSON written")
    mutations = Score("mutated texts")
    for letter in TYPES:
        for _ in range(COUNT):
            message = fill(TYPES[letter](), RANDOM.choice([0.1, 0.3, 0.6]))
            compare_text(text, meant, letter, message)
            compare_json(read, write, letter, message)
    arbitrated = 0
    for _ in range(2 * COUNT):
        letter = RANDOM.choice("cccil")
        message = fill(TYPES[letter](), RANDOM.choice([0.05, 0.2]))
        arbitrated += compare_mutation(mutations, letter, message)
    print(f"{arbitrated} mutated texts were for protoc to decide")
    wrong = text.close() + meant.close() + read.close() + write.close() + mutations.close()
    wrong += compare_configs()
    PROGRAM.process.stdin.close()
    sys.exit(1 if wrong or PROGRAM.process.wait() != 0 else 0)


if __name__ == "__main__":
    main()
