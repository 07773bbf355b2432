"""The sample model on the mails that its training never saw: what its README promises, through the
whole path (HTTP, tokenizer, batches of mixed length, labels), in both precisions."""
import json
import os

from _harness import ROOT, SPAM, ONNXRUNTIME, Server, Skip, case, check, equal, main

SAMPLES = os.path.join(ROOT, ".deps", "samples")
ROWS = 16  # texts a request: of mixed length, so they are padded together
PROMISED = 0.986


def held_out():
    path = os.path.join(SAMPLES, "heldout.txt")
    if not os.path.exists(path) or not ONNXRUNTIME or not os.path.exists(ONNXRUNTIME):
        raise Skip("needs the sample mails and ONNX Runtime: scripts/setup run")
    mails = []
    for line in open(path, encoding="utf-8"):
        with open(os.path.join(SAMPLES, "mails", line.strip()), encoding="utf-8") as file:
            mails.append((line.split("/")[0], file.read()))
    return mails


def accuracy_of(variant, mails):
    right = 0
    model = os.path.join(SPAM, f"spam_{variant}.onnx")
    with Server("--model", model, "--model-name", "spam", simulate=None) as server:
        for start in range(0, len(mails), ROWS):
            part = mails[start:start + ROWS]
            body = json.dumps({"inputs": [{"name": "TEXT", "datatype": "BYTES", "shape": [len(part)],
                                           "data": [text for _, text in part]}],
                               "outputs": [{"name": "label"}]}).encode()
            response = server.post(body, "/v2/models/spam/infer")
            equal(response.status, 200, response.body)
            labels = response.tensors()["label"][2]
            equal(len(labels), len(part), "labels")
            right += sum(label == truth for label, (truth, _) in zip(labels, part))
    return right / len(mails)


@case
def held_out_mails_are_classified_as_promised():
    mails = held_out()
    equal(len(mails), 907, "held-out mails")
    for variant in ("fp32", "int8"):
        accuracy = accuracy_of(variant, mails)
        print(f"{variant}: {accuracy:.4f} of {len(mails)} held-out mails", flush=True)
        check(accuracy >= PROMISED, f"{variant}: accuracy {accuracy:.4f}, promised {PROMISED}")


if __name__ == "__main__":
    main()
