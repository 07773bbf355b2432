"""What the machine refuses: memory at every step of a start, descriptors under load. Either it
works or it says why; it never ends by a signal and never hangs."""
import os
import shutil
import signal
import subprocess
import tempfile

from _harness import BINARY, INFER, ROOT, ROW, Skip, Server, case, check, equal, json_infer, \
    main, wait_until
import _harness

MOST = 600  # allocations of a start, far more than there are


def failing_malloc(directory):
    if _harness.IS_SANITIZED:
        raise Skip("a sanitizer has its own malloc")
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        raise Skip("no C compiler")
    library = os.path.join(directory, "failing_malloc.so")
    source = os.path.join(ROOT, "test", "e2e", "failing_malloc.c")
    subprocess.run([*compiler.split(), "-O1", "-shared", "-fPIC", "-o", library, source],
                   check=True)
    return library


def environment(library, after, is_once):
    out = dict(os.environ, LD_PRELOAD=library, FAIL_AFTER=str(after))
    if is_once:
        out["FAIL_ONCE"] = "1"
    return out


def start_once(directory, library, after, is_once, options):
    """True when the server started in spite of it (or nothing was left to fail)."""
    ports, log = os.path.join(directory, "ports"), os.path.join(directory, "log")
    if os.path.exists(ports):
        os.unlink(ports)
    where = f"allocation {after}{' alone' if is_once else ''}"
    with open(log, "wb") as file:
        process = subprocess.Popen(
            [BINARY, "serve", "--http-port", "0", "--metrics-port", "0", "--grpc-port",
             "0", "--port-file", ports, *options], stdout=file, stderr=file, stdin=subprocess.DEVNULL,
            env=environment(library, after, is_once))
    try:
        wait_until(lambda: os.path.exists(ports) or process.poll() is not None, where)
        has_started = process.poll() is None
        if has_started:
            process.send_signal(signal.SIGTERM)
        code = process.wait(20)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    with open(log, encoding="utf-8") as file:
        text = file.read()
    check(code in ((0,) if has_started else (1, 2)), f"{where}: exit code {code}: {text}")
    check(has_started or text.strip(), f"{where}: nothing was said")
    return has_started


def sweep(options, least):
    with tempfile.TemporaryDirectory(prefix="telltale-e2e-") as directory:
        library = failing_malloc(directory)
        failed = after = 0
        while not start_once(directory, library, after, False, options):
            after += 1
            check(after < MOST, "no end of allocations")
        for one in range(0, after, 2):
            failed += not start_once(directory, library, one, True, options)
        check(after >= least, f"only {after} allocations failed")
        return f"{after} allocations, {failed} of {(after + 1) // 2} were vital alone"


@case
def a_start_without_memory_says_so():
    return sweep(["--simulate", "a=1ms,b=0.01ms", "--workers", "2"], 30)


def ask(server):
    """Status of a request on a connection of its own; None where that was closed."""
    try:
        response = server.post(json_infer(ROW))
    except (EOFError, ConnectionError):
        return None
    if response.status != 200:
        response.error()
    return response.status


@case
def a_request_without_memory_fails_alone():
    with tempfile.TemporaryDirectory(prefix="telltale-e2e-") as directory:
        library = failing_malloc(directory)
        options = ["--simulate", "a=0.1ms,b=0.01ms", "--workers", "2"]
        after = 0
        while not start_once(directory, library, after, False, options):
            after += 1
            check(after < MOST, "no end of allocations")
        usual, failed = dict(os.environ), []
        for one in range(after, after + 40):
            os.environ.update(environment(library, one, True))
            try:
                with Server("--workers", "2", simulate="a=0.1ms,b=0.01ms") as server:
                    seen = [ask(server) for _ in range(4)]
                    check(all(status in (200, 503, None) for status in seen), f"{one}: {seen}")
                    check(sum(status != 200 for status in seen) <= 1, f"{one}: {seen}")
                    failed += [status for status in seen if status != 200]
            finally:
                os.environ.clear()
                os.environ.update(usual)
        check(len(failed) >= 8, f"only {failed} failed")
        return f"{failed.count(503)} times 503, {failed.count(None)} times closed"


@case
def a_benchmark_without_memory_says_so():
    with tempfile.TemporaryDirectory(prefix="telltale-e2e-") as directory:
        library = failing_malloc(directory)
        failed = 0
        for after in range(0, 120, 1):
            for is_once in (False, True):
                out = os.path.join(directory, f"run{after}{is_once}")
                result = subprocess.run(
                    [BINARY, "bench", "--simulate", "a=0.1ms,b=0.01ms", "--concurrency", "2",
                     "--duration", "20ms", "--warmup", "2", "--out", out],
                    capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL,
                    env=environment(library, after, is_once))
                where = f"allocation {after}{' alone' if is_once else ''}: {result.stderr}"
                check(result.returncode in (0, 1, 2), f"exit code {result.returncode}, {where}")
                check(result.returncode == 0 or result.stderr.strip(), f"nothing said, {where}")
                failed += result.returncode != 0
        check(failed >= 60, f"only {failed} failed")
        return f"{failed} of 240 runs failed, with a sentence each"


def shed(clients, least):
    ended = [client for client in clients if client.is_closed(0.001)]
    return ended if len(ended) >= least else None


@case
def a_server_without_descriptors_goes_on_with_those_it_has():
    limit = 80
    with tempfile.TemporaryDirectory(prefix="telltale-e2e-") as directory:
        program = os.path.join(directory, "limited")
        with open(program, "w", encoding="ascii") as file:
            file.write(f"#!/bin/sh\nulimit -n {limit}\nexec '{BINARY}' \"$@\"\n")
        os.chmod(program, 0o755)
        usual, _harness.BINARY = _harness.BINARY, program
        try:
            with Server() as server, server.client() as first:
                equal(first.request("POST", INFER, json_infer(ROW)).status, 200, "before")
                many = [server.client() for _ in range(limit + 40)]
                ended = wait_until(lambda: shed(many, 40), "40 to be shed")
                equal(first.request("POST", INFER, json_infer(ROW)).status, 200, "under the load")
                for client in many:
                    client.close()
                wait_until(lambda: server.sockets() < 10, "the connections to go")
                equal(server.post(json_infer(ROW)).status, 200, "afterwards")
        finally:
            _harness.BINARY = usual
        return f"{len(ended)} of {len(many)} shed"


if __name__ == "__main__":
    main()
