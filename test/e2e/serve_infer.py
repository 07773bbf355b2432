"""Inference: JSON and binary in both directions, ids, outputs wanted, texts, bad batch mates."""
import json
import math
import struct
import threading

from _harness import INFER, ROW, SPAM, Server, case, check, equal, binary_infer, json_infer, main, \
    need_spam, text_infer


def plus_one(values):
    return [value + 1 for value in values]


@case
def json_in_and_out_gives_the_right_numbers_and_echoes_the_id():
    with Server() as server:
        response = server.post(json_infer(ROW, "my id \u00e9"))
        data = response.json()
        equal((response.status, data["id"], data["model_name"], data["model_version"]),
              (200, "my id \u00e9", "simulated", "1"), "members")
        equal(response.tensors()["OUTPUT0"], ("FP32", [1, 16], plus_one(ROW)), "OUTPUT0")
        check("id" not in server.post(json_infer(ROW)).json(), "an id that was not sent")


@case
def a_simulation_says_so_in_every_answer():
    with Server() as server:
        response = server.post(json_infer(ROW))
        equal(response.json()["parameters"], {"simulated": True}, "parameters")
        equal(response.headers["telltale-simulated"], "true", "header")


@case
def binary_in_and_out_gives_the_right_numbers():
    with Server() as server, server.client() as client:
        values = [i * 0.5 for i in range(64)]
        for binary_output in (True, False):
            body, headers = binary_infer(values, "b", binary_output)
            response = client.request("POST", INFER, body, headers)
            equal(response.status, 200, response.body)
            equal("inference-header-content-length" in response.headers, binary_output, "header")
            equal(response.tensors()["OUTPUT0"], ("FP32", [4, 16], plus_one(values)), "OUTPUT0")


@case
def json_in_with_binary_out_by_the_output_and_an_output_may_say_no():
    with Server() as server:
        body = json.loads(json_infer(ROW))
        body["outputs"] = [{"name": "OUTPUT0", "parameters": {"binary_data": True}}]
        response = server.post(json.dumps(body).encode())
        check("inference-header-content-length" in response.headers, response.headers)
        equal(response.tensors()["OUTPUT0"][2], plus_one(ROW), "binary")
        body["parameters"] = {"binary_data_output": True}
        body["outputs"] = [{"name": "OUTPUT0", "parameters": {"binary_data": False}}]
        response = server.post(json.dumps(body).encode())
        equal(response.json()["outputs"][0]["data"], plus_one(ROW), "JSON by override")


@case
def a_raw_binary_request_is_the_single_input():
    with Server() as server:
        raw = [("Inference-Header-Content-Length", 0)]
        response = server.post(struct.pack("<16f", *ROW), headers=raw)
        equal(response.status, 200, response.body)
        equal(response.tensors()["OUTPUT0"], ("FP32", [1, 16], plus_one(ROW)), "OUTPUT0")
        response = server.post(b"12345", headers=raw)
        equal(response.status, 400, "wrong size")
        check("INPUT0" in response.error(), response.error())


@case
def odd_floats_survive_in_binary_and_nan_in_json_is_an_error():
    with Server() as server:
        values = [math.inf, -math.inf, 1e-45, 3.4e38] + [0.0] * 12
        body, headers = binary_infer(values)
        got = server.post(body, headers=headers).tensors()["OUTPUT0"][2]
        equal(got[:2], [math.inf, -math.inf], "infinities")
        body, headers = binary_infer(values, binary_output=False)
        response = server.post(body, headers=headers)
        check(400 <= response.status < 500, response.status)
        check("binary" in response.error(), response.error())


@case
def every_row_of_many_concurrent_requests_gets_its_own_answer():
    failures = []

    def work(server, number):
        with server.client() as client:
            for turn in range(40):
                values = [number * 1000.0 + turn + i / 16 for i in range(16 * (1 + turn % 3))]
                body, headers = binary_infer(values, f"{number}-{turn}")
                got = client.request("POST", INFER, body, headers)
                size = int(got.headers["inference-header-content-length"])
                if got.tensors()["OUTPUT0"][2] != plus_one(values) or \
                        json.loads(got.body[:size])["id"] != f"{number}-{turn}":
                    failures.append((number, turn))

    for queue in ("ring", "mutex"):
        with Server("--queue", queue, simulate="a=0.2ms,b=0.01ms") as server:
            threads = [threading.Thread(target=work, args=(server, n)) for n in range(12)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            equal(failures, [], f"mixed-up answers with {queue}")
            metrics = server.metrics()
            label = '{model="simulated",version="1"}'
            check(metrics[f"nv_inference_exec_count{label}"] < 12 * 40, "nothing was batched")


@case
def one_bad_request_does_not_fail_the_others_of_its_batch():
    results = {}

    def work(server, number):
        values = [float(number)] * 16
        if number == 3:
            values[5] = math.nan
        body, headers = binary_infer(values)
        results[number] = server.post(body, headers=headers)

    with Server("--policy", "timer", "--max-delay-us", "200000", "--max-batch", "8",
                simulate="a=2ms,b=0.1ms,fail=nan") as server:
        threads = [threading.Thread(target=work, args=(server, n)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for number, response in results.items():
            if number == 3:
                equal(response.status, 500, "the bad one")
                response.error()
            else:
                equal(response.status, 200, f"request {number}: {response.body}")
                equal(response.tensors()["OUTPUT0"][2], [number + 1.0] * 16, "its numbers")
        check("failed" in server.log(), "the failure is not in the log")


def fnv_logits(ids):
    value = 14695981039346656037
    for token in ids:
        for byte in struct.pack("<q", token):
            value = ((value ^ byte) * 1099511628211) & (1 << 64) - 1
    return [((value & 65535) - 32768) / 8192, ((value >> 16 & 65535) - 32768) / 8192]


def as_fp32(values):
    return list(struct.unpack(f"<{len(values)}f", struct.pack(f"<{len(values)}f", *values)))


@case
def texts_are_tokenized_and_padding_changes_no_answer():
    import os
    from _harness import Skip
    tokenizer = os.path.join(SPAM, "tokenizer.json")
    if not os.path.exists(tokenizer):
        raise Skip("examples/spam is not there")
    with open(tokenizer, encoding="utf-8") as file:
        vocabulary = json.load(file)["model"]["vocab"]
    words = [word for word in ("free", "money", "hello", "meeting", "the", "you") if word in vocabulary]
    check(len(words) >= 2, "the vocabulary has none of the words")
    texts = [" ".join(words[:1 + n % len(words)]) for n in range(12)]
    results = {}

    def work(server, number):
        results[number] = server.post(text_infer(texts[number], f"t{number}"), path)

    for where in ("pool", "inline"):
        with Server("--tokenizer", tokenizer, "--preprocess", where, "--policy", "timer",
                    "--max-delay-us", "20000") as server:
            path = INFER
            threads = [threading.Thread(target=work, args=(server, n)) for n in range(len(texts))]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            for number, text in enumerate(texts):
                ids = [vocabulary["[CLS]"], *(vocabulary[word] for word in text.split()),
                       vocabulary["[SEP]"]]
                equal(results[number].status, 200, results[number].body)
                datatype, shape, values = results[number].tensors()["logits"]
                equal((datatype, shape, as_fp32(values)), ("FP32", [1, 2], fnv_logits(ids)),
                      f"logits of {text!r} ({where})")


@case
def the_spam_model_tells_spam_from_ham():
    model = need_spam()
    with Server("--model", model, "--model-name", "spam", simulate=None) as server:
        texts = {"spam": "Congratulations! You have WON a $1000000 prize. Click here to claim your "
                         "FREE money now, limited offer, 100% guaranteed, no risk!!!",
                 "ham": "Hi Matthias, the patch applies cleanly to the 2.4 kernel, but the build of "
                        "the module fails with an unresolved symbol. I attach the log."}
        for label, text in texts.items():
            response = server.post(text_infer(text), "/v2/models/spam/infer")
            equal(response.status, 200, response.body)
            outputs = response.tensors()
            check("telltale-simulated" not in response.headers, "a real model marked simulated")
            if "label" in outputs:
                equal(outputs["label"][2], [label], f"label, outputs {outputs}")


if __name__ == "__main__":
    main()
