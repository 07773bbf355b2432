"""The READMEs of examples/ say what happens: each curl line in them is run as it stands (but for the
port), and its answer is the one printed below it."""
import json
import os
import re
import shutil
import subprocess

from _harness import ONNXRUNTIME, ROOT, Server, Skip, case, check, equal, main
from _prep import DEPS, need, tally

EXAMPLES = os.path.join(ROOT, "examples")
BLOCK = re.compile(r"^```\n(.*?)^```$", re.M | re.S)
CLOSE = 1e-3  # of numbers: another processor sums in another order


def commands(example):
    """-> [(command, the answer printed below or None)]"""
    with open(os.path.join(EXAMPLES, example, "README.md"), encoding="utf-8") as file:
        blocks = BLOCK.findall(file.read())
    out = []
    for index, block in enumerate(blocks):
        if "curl -s localhost:8000" in block:
            following = blocks[index + 1] if index + 1 < len(blocks) else ""
            out.append((block, following if following.startswith("{") else None))
    check(out, f"no curl line in examples/{example}/README.md")
    return out


def run_line(command, port):
    done = subprocess.run(["sh", "-c", command.replace("localhost:8000", f"127.0.0.1:{port}")], cwd=ROOT,
                          capture_output=True, text=True, timeout=60, check=False)
    equal(done.returncode, 0, f"{command}: {done.stderr}")
    return done.stdout


def compare(got, expected, where):
    if isinstance(expected, float) or isinstance(got, float):
        check(abs(got - expected) <= CLOSE * max(1, abs(expected)), f"{where}: {got}, the README says {expected}")
    elif isinstance(expected, (list, dict)):
        equal(type(got), type(expected), where)
        equal(len(got), len(expected), f"length of {where}")
        for key in expected if isinstance(expected, dict) else range(len(expected)):
            compare(got[key], expected[key], f"{where}.{key}")
    else:
        equal(got, expected, where)


def try_lines(server, example):
    if not shutil.which("curl"):
        raise Skip("no curl: scripts/setup test")
    compared = 0
    for command, printed in commands(example):
        answer = run_line(command, server.port)
        check("outputs" in json.loads(answer), f"{command}: {answer}")
        if printed and printed.rstrip().endswith("..."):  # cut short: up to the numbers
            start = printed[:printed.index('"data":[') + 8]
            equal(answer[:len(start)], start, command)
        elif printed:
            compare(json.loads(answer), json.loads(printed), example)
        compared += 1
    tally("examples: curl lines answered as printed", compared)
    return f"{compared} lines"


def need_library():
    if not ONNXRUNTIME or not os.path.exists(ONNXRUNTIME):
        raise Skip("TELLTALE_ONNXRUNTIME names no library")


@case
def curl_lines_of_every_example_in_one_repository_work():
    need_library()
    with Server("--model-repository", need(os.path.join(DEPS, "models")), "--instances", "1",
                simulate=None) as server:  # one start: it reads 110 MB of weights
        for model in os.listdir(os.path.join(DEPS, "models")):
            equal(server.get(f"/v2/models/{model}/ready").json(), {"name": model, "ready": True}, model)
        return ", ".join(f"{example}: {try_lines(server, example)}"
                         for example in ("ultraface", "ocr", "minilm", "vad"))


@case
def curl_line_of_the_spam_example_works():
    need_library()
    model = need(os.path.join(EXAMPLES, "spam", "spam_fp32.onnx"))
    with Server("--model", model, "--model-name", "spam", simulate=None) as server:
        return try_lines(server, "spam")


main()
