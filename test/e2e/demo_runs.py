"""scripts/demo, short and small: every configuration is run, told apart and left on disk, and what
it prints is what the run directories hold."""
import json
import os
import re
import subprocess
import sys
import tempfile

from _harness import BINARY, ROOT, Skip, case, check, equal, main

NAMES = ("bad", "timer", "tokenizer", "queue", "good")


@case
def the_simulated_experiment_leaves_what_it_prints():
    if not os.path.isdir(os.path.join(ROOT, ".deps", "samples", "mails")):
        raise Skip("the sample mails are missing: scripts/setup run")
    with tempfile.TemporaryDirectory() as directory:
        out = os.path.join(directory, "demo")
        result = subprocess.run(
            [sys.executable, os.path.join(ROOT, "scripts", "demo"), "--seconds", "1", "--users", "20",
             "--shares", "0.3", "--only", "simulated", "--out", out],
            env=dict(os.environ, TELLTALE=BINARY), stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=240, check=False)
        equal(result.returncode, 0, f"exit code; it said {result.stderr}")
        check("SIMULATED" in result.stdout, "the simulation is not named as one")
        for name in NAMES:
            row = re.search(rf"^  {name} +(\d+) ", result.stdout, re.M)
            check(row, f"no row for {name} in:\n{result.stdout}")
            with open(os.path.join(out, "simulated", "load-30", f"{name}-client", "result.json"),
                      encoding="utf-8") as file:
                step = json.load(file)["steps"][0]
            equal(int(row.group(1)), int(f"{step['qps']:.0f}"), f"requests a second of {name}")
            with open(os.path.join(out, "simulated", "load-30", f"{name}-server", "explain.json"),
                      encoding="utf-8") as file:
                check(json.load(file), f"nothing explained of {name}")
        equal(result.stdout.count("-- telltale explain,"), 2, "verdicts printed")


if __name__ == "__main__":
    main()
