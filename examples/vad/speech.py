#!/usr/bin/env python3
"""Prints where a recording holds speech, by Silero VAD on a Telltale server.

    speech.py FILE.wav [--url http://127.0.0.1:8000] [--threshold 0.5] [--windows]

The model looks at 32 ms (512 samples at 16 kHz), with the 64 samples before them, and at the state
that it gave back for the window before: the server keeps nothing between requests, the client
carries both. Python's standard library only. FILE: 16-bit PCM at a multiple of 16 kHz.
"""
import argparse
import array
import http.client
import json
import sys
import urllib.parse
import wave

RATE, WINDOW, CONTEXT = 16000, 512, 64
STATE = 2 * 1 * 128


def samples_of(path):
    """The recording as floats at 16 kHz: channels and neighbouring samples averaged."""
    with wave.open(path) as file:
        channels, width, rate, count = file.getparams()[:4]
        if width != 2 or rate % RATE:
            sys.exit(f"speech.py: {path}: want 16-bit samples at a multiple of {RATE} Hz, "
                     f"it has {8 * width}-bit ones at {rate} Hz")
        data = array.array("h", file.readframes(count))
    if sys.byteorder == "big":
        data.byteswap()
    step = channels * rate // RATE
    return [sum(data[at:at + step]) / step / 32768 for at in range(0, len(data) - step + 1, step)]


class Detector:
    """One recording's way through the model."""

    def __init__(self, url, model="vad"):
        place = urllib.parse.urlsplit(url)
        self.connection = http.client.HTTPConnection(place.hostname, place.port or 80, timeout=10)
        self.path = f"/v2/models/{model}/infer"
        self.state = array.array("f", bytes(4 * STATE))
        self.context = [0.0] * CONTEXT

    def probability(self, window):
        """That of speech in WINDOW samples."""
        sent = [("input", "FP32", [1, CONTEXT + WINDOW], array.array("f", self.context + window)),
                ("state", "FP32", [2, 1, 128], self.state),
                ("sr", "INT64", [], array.array("q", [RATE]))]
        head = json.dumps({
            "inputs": [{"name": name, "datatype": kind, "shape": shape,
                        "parameters": {"binary_data_size": 4 * len(data) if kind == "FP32" else 8}}
                       for name, kind, shape, data in sent],
            "parameters": {"binary_data_output": True}}).encode()
        self.connection.request("POST", self.path, head + b"".join(data.tobytes() for *_, data in sent),
                                {"Inference-Header-Content-Length": str(len(head))})
        answer = self.connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            sys.exit(f"speech.py: {answer.status}: {body.decode(errors='replace')}")
        outputs = self.outputs(answer, body)
        self.state, self.context = outputs["stateN"], window[-CONTEXT:]
        return outputs["output"][0]

    @staticmethod
    def outputs(answer, body):
        at = int(answer.getheader("Inference-Header-Content-Length"))
        out = {}
        for tensor in json.loads(body[:at])["outputs"]:
            size = tensor["parameters"]["binary_data_size"]
            out[tensor["name"]] = array.array("f", body[at:at + size])
            at += size
        return out


def segments(probabilities, threshold):
    """(start, stop) in seconds of the runs over the threshold; a gap of three windows is bridged"""
    found = []
    for index, probability in enumerate(probabilities):
        if probability <= threshold:
            continue
        if found and index - found[-1][1] <= 3:
            found[-1][1] = index + 1
        else:
            found.append([index, index + 1])
    return [(start * WINDOW / RATE, stop * WINDOW / RATE) for start, stop in found]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("file", metavar="FILE.wav")
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--model", default="vad")
    parser.add_argument("--threshold", type=float, default=0.5)
    parser.add_argument("--windows", action="store_true", help="print each window's probability")
    options = parser.parse_args()
    samples = samples_of(options.file)
    detector = Detector(options.url, options.model)
    # What is left at the end and fills no window is not looked at.
    probabilities = [detector.probability(samples[at:at + WINDOW])
                     for at in range(0, len(samples) - WINDOW + 1, WINDOW)]
    if options.windows:
        for index, probability in enumerate(probabilities):
            print(f"{index * WINDOW / RATE:.3f} {probability:.4f}")
    for start, stop in segments(probabilities, options.threshold):
        print(f"speech from {start:.3f} s to {stop:.3f} s")
    speech = sum(probability > options.threshold for probability in probabilities)
    print(f"{speech} of {len(probabilities)} windows hold speech")


if __name__ == "__main__":
    main()
