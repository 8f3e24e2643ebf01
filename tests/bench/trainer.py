"""The cost of the Python module: attach to first batch, Python time per batch, and the loader's tax on an epoch.

    PYTHONPATH=build/dev/python .venv/bin/python tests/bench/trainer.py RUN.yaml [--epochs 3] [--headroom 1.3] [--step busy]

Run it beside nothing else. The tax is the time of an epoch over the stream divided by the time of as many steps on one cached
batch; a step is so long that the workers could make batches `headroom` times as fast. `--step sleep`: it looks at the batch and
waits, as for a GPU, and the workers have every core. `--step busy`: it computes, on a core of its own of those that the
workers use; what they could make is measured beside such steps.
"""
import argparse
import contextlib
import functools
import json
import resource
import statistics
import subprocess
import sys
import time

import numpy

import patchbay


def first_batch_s(config, cluster):
    begun = time.perf_counter()
    with patchbay.attach(config, cluster=cluster) as stream:
        attached = time.perf_counter()
        next(iter(stream))
        return attached - begun, time.perf_counter() - begun


def python_us(config):
    """Python time of the loop itself and of one tensor, in microseconds of this thread's CPU time; the median of single batches."""
    loop, view = [], []
    with patchbay.attach(config) as stream:
        batches = iter(stream)
        for _ in range(len(stream) - 1):
            begun = time.thread_time_ns()
            batch = next(batches)
            taken = time.thread_time_ns()
            tensor = numpy.from_dlpack(batch["image"])
            made = time.thread_time_ns()
            loop.append(taken - begun)
            view.append(made - taken)
            assert tensor.ctypes.data == batch["image"].data_ptr, "a copy was made"
            del tensor, batch
            time.sleep(0.002)  # the next batch is there: what is measured is the hand-over, not the workers
    return statistics.median(loop) / 1e3, statistics.median(view) / 1e3


def busy(array, seconds):
    """A step that computes for that long, in this thread."""
    end, total = time.perf_counter() + seconds, 0.0
    while time.perf_counter() < end:
        total += float(numpy.square(array[0], dtype=numpy.float32).mean())
    return total


def sleep(array, seconds):
    """A step that touches the batch and waits for the rest of that time."""
    end = time.perf_counter() + seconds
    total = float(array[0].ravel()[::4096].sum(dtype=numpy.float64))
    time.sleep(max(end - time.perf_counter(), 0.0))
    return total


class BusyCore:
    """Computes in a process of its own until it is left: what a busy trainer takes from the workers."""

    def __enter__(self):
        self.process = subprocess.Popen([sys.executable, "-c", "while True: pass"])

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def epoch_s(stream, step):
    begun = time.perf_counter()
    for batch in stream:
        step(numpy.asarray(batch["image"]))
    return time.perf_counter() - begun


def tax(config, epochs, headroom, kind):
    """(capacity in batches/s, seconds of a step, ratio of each epoch's time to that of the cached batch, stats)."""
    with patchbay.attach(config) as stream:
        cached = numpy.asarray(next(iter(stream))["image"]).copy()
        epoch_s(stream, len)
        with BusyCore() if kind is busy else contextlib.nullcontext():
            capacity = len(stream) / epoch_s(stream, len)
        step = functools.partial(kind, seconds=headroom / capacity)
        ratios = []
        for _ in range(epochs):
            fed = epoch_s(stream, step)
            begun = time.perf_counter()
            for _ in range(len(stream)):
                step(cached)
            ratios.append(fed / (time.perf_counter() - begun))
        return capacity, headroom / capacity, ratios, stream.stats()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--headroom", type=float, default=1.3)
    parser.add_argument("--step", choices=["busy", "sleep"], default="busy")
    parser.add_argument("--cluster")
    arguments = parser.parse_args()
    attached, first = first_batch_s(arguments.config, arguments.cluster)
    loop, view = python_us(arguments.config)
    kind = {"busy": busy, "sleep": sleep}[arguments.step]
    capacity, step_s, ratios, stats = tax(arguments.config, arguments.epochs, arguments.headroom, kind)
    print(json.dumps({"attach_s": attached, "first_batch_s": first, "python_us_per_batch": loop, "python_us_per_tensor": view,
                      "capacity_batches_per_s": capacity, "headroom": arguments.headroom,
                      "step": arguments.step, "step_s": step_s, "tax": ratios,
                      "tax_median": statistics.median(ratios), "ring_bytes": stats["ring_bytes"],
                      "max_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}, indent=1))


if __name__ == "__main__":
    main()
