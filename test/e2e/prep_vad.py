"""Silero VAD, the awkward model: tensors without a pipeline, a state that the client carries, a
scalar input of shape [], a first dimension that is not the batch. Recordings of alsa-utils."""
import os
import re
import subprocess
import sys

from _harness import ROOT, case, check, equal, main
from _prep import SOUNDS, ask, closest, json_body, need, np, path_of, same_answers, serve, tally

MODEL, WINDOW, CONTEXT = "vad", 512, 64
CLIENT = os.path.join(ROOT, "examples", "vad", "speech.py")
sys.path.insert(0, os.path.dirname(CLIENT))
import speech  # noqa: E402


def windows(name):
    """(windows, CONTEXT + WINDOW) float32"""
    samples = np.array(speech.samples_of(need(os.path.join(SOUNDS, name))), np.float32)
    count = len(samples) // WINDOW
    before = np.concatenate([np.zeros(CONTEXT, np.float32), samples])
    return np.stack([before[at * WINDOW:at * WINDOW + CONTEXT + WINDOW] for at in range(count)])


def step(server, chunk, state, **options):
    """chunk: (streams, samples); state: (2, streams, 128) -> (probabilities, next state)"""
    answer = ask(server, MODEL, {"input": chunk, "state": state, "sr": np.array(16000, np.int64)}, **options)
    equal(answer["output"].shape, (len(chunk), 1), "shape of output")
    equal(answer["stateN"].shape, state.shape, "shape of stateN")
    return answer["output"][:, 0], answer["stateN"]


def listen(server, chunks, **options):
    """chunks: (windows, streams, samples) -> probabilities (windows, streams)"""
    state, out = np.zeros((2, chunks.shape[1], 128), np.float32), []
    for chunk in chunks:
        heard, state = step(server, chunk, state, **options)
        out.append(heard)
    return np.array(out)


@case
def speech_is_found_where_a_voice_speaks_and_none_in_noise():
    with serve(MODEL) as server:
        voice = listen(server, windows("Front_Center.wav")[:, None])[:, 0]
        noise = listen(server, windows("Noise.wav")[:, None])[:, 0]
    equal(len(voice), 44, "windows")
    check(30 <= (voice > 0.5).sum() <= 34, f"{(voice > 0.5).sum()} windows of speech")
    equal(int((noise > 0.5).sum()), 0, "windows of speech in noise")
    tally("Silero VAD: recordings heard as published", 2)
    return f"{(voice > 0.5).sum()} of {len(voice)} windows"


@case
def the_state_matters():
    with serve(MODEL) as server:
        chunks = windows("Front_Center.wav")[:, None]
        carried = listen(server, chunks)
        empty = np.zeros((2, 1, 128), np.float32)
        forgotten = np.array([step(server, chunk, empty)[0] for chunk in chunks])
        check(np.abs(carried - forgotten).max() > 0.2, "the same without state")
        equal(float(carried[0, 0]), float(forgotten[0, 0]), "the first window")


@case
def two_streams_in_one_request_hear_what_each_hears_alone():
    voice, noise = windows("Front_Left.wav"), windows("Noise.wav")
    count = min(len(voice), len(noise))
    with serve(MODEL) as server:
        both = listen(server, np.stack([voice[:count], noise[:count]], axis=1))
        closest(both[:, 0], listen(server, voice[:count, None])[:, 0], 1e-5, "the voice")
        closest(both[:, 1], listen(server, noise[:count, None])[:, 0], 1e-5, "the noise")
    tally("Silero VAD: windows together and alone", 2 * count)


@case
def json_and_binary_give_the_same_state_and_probability():
    with serve(MODEL) as server:
        state = np.zeros((2, 1, 128), np.float32)
        for chunk in windows("Rear_Center.wav")[:6, None]:
            inputs = {"input": chunk, "state": state, "sr": np.array(16000, np.int64)}
            answer = ask(server, MODEL, inputs)
            same_answers(ask(server, MODEL, inputs, form=json_body), answer, "JSON")
            state = answer["stateN"]
        check(np.abs(state).max() > 0, "an empty state")


@case
def a_scalar_has_the_shape_of_no_dimensions():
    with serve(MODEL) as server:
        shown = server.get(path_of(MODEL).removesuffix("/infer")).json()
        shapes = {tensor["name"]: (tensor["datatype"], tensor["shape"]) for tensor in shown["inputs"]}
        equal(shapes["sr"], ("INT64", []), "sr")
        equal(shapes["state"], ("FP32", [2, -1, 128]), "state")
        wrong = {"input": np.zeros((1, 576), np.float32), "state": np.zeros((2, 1, 128), np.float32),
                 "sr": np.array([16000], np.int64)}
        body, headers = json_body(wrong)
        response = server.post(body, path_of(MODEL), headers)
        equal(response.status, 400, response.body)
        check("sr" in response.error(), response.error())


@case
def the_example_prints_the_segments_of_speech():
    with serve(MODEL) as server:
        url = f"http://127.0.0.1:{server.port}"
        def heard(name):
            done = subprocess.run([sys.executable, CLIENT, need(os.path.join(SOUNDS, name)), "--url", url],
                                  capture_output=True, text=True, timeout=60, check=False)
            equal(done.returncode, 0, done.stderr)
            return done.stdout
        check(re.search(r"^speech from \d\.\d+ s to \d\.\d+ s$", heard("Front_Center.wav"), re.M), "no speech")
        equal(heard("Noise.wav").splitlines(), ["0 of 43 windows hold speech"], "noise")


main()
