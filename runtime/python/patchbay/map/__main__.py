"""python3 -m patchbay.map: the command `patchbay map`, which runs the user's file in this Python. One process a device."""
import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading

from .. import errors
from . import TIMED_OUT

DONE, FAILED, USAGE, SOME_FAILED, STOPPED = 0, 1, 2, 3, 75


def _arguments(words):
    parser = argparse.ArgumentParser(prog="patchbay map", description="a model over every patch of images")
    parser.add_argument("config", metavar="RUN.yaml")
    parser.add_argument("--call", metavar="FILE.py", required=True, help="defines predict(model, batch), and load, finish")
    parser.add_argument("--out", metavar="DIR", required=True, help="the folder of results")
    parser.add_argument("--devices", metavar="N,N", default="cpu", help="one process each: cpu, or numbers of CUDA devices")
    parser.add_argument("--cluster", metavar="FILE")
    parser.add_argument("--split", metavar="NAME")
    parser.add_argument("--set", metavar="KEY=VALUE", action="append", default=[])
    parser.add_argument("--new", action="store_true", help="begin beside results of another function, weights, outputs or plan")
    parser.add_argument("--timeout", metavar="S", type=float, help="seconds that one call of predict may take")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--report", type=int, help=argparse.SUPPRESS)  # the pipe that one process reports to
    return parser.parse_args(words)


def _device(text):
    return f"cuda:{text}" if text.isdigit() else text


def _overrides(words):
    found = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise errors.ConfigError(f"map: --set {word}: expected KEY=VALUE")
        try:
            found[key] = json.loads(value)
        except ValueError:
            found[key] = value
    return found


def _end_with_parent():
    """Stops this process when the end of the pipe that is its standard input closes."""
    def wait():
        os.read(0, 1)
        os.kill(os.getpid(), signal.SIGTERM)
    threading.Thread(target=wait, daemon=True).start()


def stop(*_):
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a second one ends the process at once
    raise KeyboardInterrupt


def _consume(given):
    """One process: reports failed images and its end as lines of JSON."""
    from . import function, run
    report = os.fdopen(given.report, "w", buffering=1, encoding="utf-8")

    def say(**what):
        report.write(json.dumps(what) + "\n")

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's is passed on by the first process
    try:
        signal.signal(signal.SIGTERM, stop)
        failed = json.loads(sys.stdin.readline() or "[]")
        _end_with_parent()
        arguments = {"device": given.devices, "cluster": given.cluster, "overrides": _overrides(given.set), "split": given.split}
        job = run.prepare(given.config, function.Function.of_file(given.call), arguments)
        summary = run.consume(job, given.out, new=given.new, timeout=given.timeout, failed=failed,
                              on_failure=lambda *failure: say(failed=failure))
        say(summary=summary)
        return DONE
    except KeyboardInterrupt:
        return STOPPED
    except errors.PatchbayError as error:
        say(error=str(error))
        return USAGE if isinstance(error, errors.ConfigError) else FAILED


class _Process:
    """A child that consumes on one device."""

    def __init__(self, words, device):
        self.device, self._words, self.failed = device, words, []
        self.start()

    def start(self):
        self.lines = []
        reads, writes = os.pipe()
        command = [sys.executable, "-m", "patchbay.map", *self._words, "--devices", self.device, "--report", str(writes)]
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[writes], start_new_session=True)
        os.close(writes)
        with contextlib.suppress(BrokenPipeError):
            self.child.stdin.write(json.dumps(self.failed).encode() + b"\n")
            self.child.stdin.flush()
        self._reader = threading.Thread(target=self._read, args=(reads,))
        self._reader.start()

    def _read(self, descriptor):
        with os.fdopen(descriptor, encoding="utf-8") as file:
            self.lines += [json.loads(line) for line in file]

    def wait(self):
        """(exit code, summary or error). A child that its function's time-out ended starts again: its run may have ended with it,
        so the next one is told what failed."""
        while True:
            code = self.child.wait()
            self.child.stdin.close()
            self._reader.join()
            self.failed += [line["failed"] for line in self.lines if "failed" in line]
            if code != TIMED_OUT:
                return code, self.lines[-1] if self.lines else {}
            self.start()


def _stop_children(processes):
    for process in processes:
        if process.child.poll() is None:
            process.child.terminate()


def _end(given, ends):
    """Prints the end of all processes; the exit code."""
    summaries = [last["summary"] for _, last in ends if "summary" in last]
    broken = [(code, last) for code, last in ends if code not in (DONE, STOPPED)]
    for code, last in broken:
        reason = last.get("error", f"a process ended with {f'signal {-code}' if code < 0 else f'exit code {code}'}")
        print(f"error: {reason}", file=sys.stderr)
    if broken:
        return USAGE if all(code == USAGE for code, _ in broken) else FAILED
    if any(code == STOPPED for code, _ in ends):
        print("map: stopped; the same command goes on", file=sys.stderr)
        return STOPPED
    failed = {image: reason for each in summaries for image, reason in each["failed"]}
    summary = {**summaries[-1], "failed": list(map(list, failed.items())), "patches": sum(each["patches"] for each in summaries),
               "skipped": min(each["skipped"] for each in summaries)}
    if given.json:
        print(json.dumps(summary))
    else:
        print(f"{summary['out']}: {summary['complete']} of {summary['images']} images, {len(failed)} failed")
        for image, reason in failed.items():
            print(f"error: {image}: {reason}", file=sys.stderr)
    return SOME_FAILED if summary["complete"] < summary["images"] else DONE


def main(words):
    given = _arguments(words)
    if given.report is not None:
        return _consume(given)
    own = [word for word in words if word != "--json"]
    processes = []
    signal.signal(signal.SIGTERM, stop)
    try:
        for device in given.devices.split(","):
            processes.append(_Process(own, _device(device.strip())))
        ends = [process.wait() for process in processes]
    except KeyboardInterrupt:
        _stop_children(processes)
        ends = [process.wait() for process in processes]
        ends = [(STOPPED if code == -signal.SIGTERM else code, last) for code, last in ends]  # before it was ready
    return _end(given, ends)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
