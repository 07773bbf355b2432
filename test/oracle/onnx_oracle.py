#!/usr/bin/env python3
"""A sample of ONNX's node tests through the server, over every transport; `make check-onnx` takes
all of them. scripts/check_onnx does the work.

    test/oracle/onnx_oracle.py BUILD_DIRECTORY [--all]
"""
import os
import sys

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "check_onnx")
SAMPLE = [] if "--all" in sys.argv else ["--sample", "60"]
os.execv(sys.executable, [sys.executable, SCRIPT, "--build", sys.argv[1], *SAMPLE])
