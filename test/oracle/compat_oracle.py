#!/usr/bin/env python3
"""Every client that Debian has, against the real server: scripts/check_compat does the work.

    test/oracle/compat_oracle.py BUILD_DIRECTORY [--all]
"""
import os
import sys

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "check_compat")
os.execv(sys.executable, [sys.executable, SCRIPT, "--build", sys.argv[1]])
