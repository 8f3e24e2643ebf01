"""Resume at 10, 50 and 90 % of an epoch of ten million patches: time to the first batch, memory, and the bytes.

    patchbay synth slide big.svs --size 3200x3200 && patchbay ingest big.svs --out stores --chunk 64
    PYTHONPATH=build/dev/python .venv/bin/python tests/bench/trainer_resume.py stores

A grid of step 1 over 3200 x 3200 pixels has 10.1 million places. Three epochs are resumed: a sequential one, whose every patch
has a closed form in the pixels that zarr-python reads; a shuffled one and one of ten million random places, held against a run
that passes over the place uncut (it begins --lead batches before it). With --whole the uncut run begins with the epoch instead and takes
as long as ten million patches take.
"""
import argparse
import hashlib
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time

import numpy
import zarr

import patchbay

SIDE = 16
TAKEN = 3  # batches compared at each place
PLACES = (0.1, 0.5, 0.9)


SAMPLING = {"sequential": "{stride: [1, 1], order: sequential}", "shuffled": "{stride: [1, 1], order: shuffled}",
            "random": "{positions: random, patches_per_epoch: 10000000}"}


def config(folder, store, order, batch):
    path = pathlib.Path(folder) / f"{order}.yaml"
    path.write_text(f"dataset: {store}\nnumerics: cpu\nseed: 1\npatch: {{size: [{SIDE}, {SIDE}], level: 0}}\n"
                    f"sampling: {SAMPLING[order]}\n"
                    f"batch: {{global_size: {batch}, dtype: uint8, layout: nchw, meta: true, tail: keep}}\n", encoding="utf-8")
    return path


def state_at(stream, batch):
    """A state of the stream as if it had been taken there: what it would be after that many batches."""
    state = stream.state_dict()
    words = state["token"].split(":")
    words[1], words[2] = "0", str(batch)
    return {**state, "token": ":".join(words)}


def taken(batches, count):
    """Yields for each of the next batches: SHA-256 of every array, and copies of ordinals, boxes and images."""
    for _, batch in zip(range(count), batches):
        digest = hashlib.sha256(b"".join(bytes(array) for array in batch.values())).hexdigest()
        yield digest, numpy.array(batch["ordinal"]), numpy.array(batch["box"]), numpy.array(batch["image"])
        del batch


def memory_mib(mark):
    """Proportional set size of every process that has `mark` in its environment, by program."""
    sizes = {}
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if not entry.name.isdigit() or mark not in (entry / "environ").read_bytes():
                continue
            name = "trainer" if int(entry.name) == os.getpid() else (entry / "comm").read_text().strip()
            rows = dict(line.split(":") for line in (entry / "smaps_rollup").read_text().splitlines()[1:])
            sizes[name] = sizes.get(name, 0) + int(rows["Pss"].split()[0]) / 1024
        except OSError:
            continue
    return sizes


def pixels_of(store):
    """Level 0 of the one image below, (channels, height, width)."""
    image = next(pathlib.Path(store).glob("*.ome.zarr"))
    return numpy.asarray(zarr.open_group(str(image), mode="r")["0"][:])


def closed_form(pixels, ordinals):
    """(boxes' y and x, patches) of a sequential grid of step 1."""
    across = pixels.shape[2] - SIDE + 1
    y, x = ordinals // across, ordinals % across
    return y, x, numpy.stack([pixels[:, b:b + SIDE, a:a + SIDE] for b, a in zip(y, x)])


def check_sequential(pixels, batches, first):
    for i, (_, ordinals, boxes, images) in enumerate(batches):
        expected = numpy.arange(len(ordinals)) + (first + i) * len(ordinals)
        y, x, patches = closed_form(pixels, expected)
        assert (ordinals == expected).all() and (boxes[:, 1] == y).all() and (boxes[:, 2] == x).all()
        assert (images == patches).all(), f"batch {first + i} has other pixels"


def resumed(path, state, mark):
    """(batches, seconds from attach to the first batch, memory once they are taken)."""
    begun = time.perf_counter()
    with patchbay.attach(path, state=state) as stream:
        batches = taken(stream, TAKEN)
        first = next(batches)
        first_s = time.perf_counter() - begun
        return [first, *batches], first_s, sum(memory_mib(mark).values())


def measure(path, order, pixels, arguments, mark):
    rows = []
    with patchbay.attach(path) as stays:  # keeps the cluster warm
        for place in PLACES:
            at, times = int(place * len(stays)), []
            for _ in range(arguments.repeats):
                batches, first_s, mib = resumed(path, state_at(stays, at), mark)
                times.append(first_s)
            if order == "sequential":
                check_sequential(pixels, batches, at)
            else:
                check_uncut(path, stays, batches, at, at if arguments.whole else arguments.lead)
            rows.append({"place": place, "batch": at, "first_batch_s": statistics.median(times), "slowest_s": max(times),
                         "memory_mib": round(mib, 1)})
        return {"order": order, "patches": stays.description["patches_per_epoch"], "rows": rows}


def check_uncut(path, stays, batches, at, lead):
    """The same batches, by a run that begins `lead` batches before and is not cut."""
    with patchbay.attach(path, state=state_at(stays, at - lead)) as stream:
        passed = [row[0] for row in taken(stream, lead + TAKEN)]
    assert passed[lead:] == [row[0] for row in batches], f"at batch {at} the bytes differ"
    assert len(set(passed)) == len(passed), "batches repeat"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stores")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--lead", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--whole", action="store_true")
    arguments = parser.parse_args()
    store = pathlib.Path(arguments.stores).resolve()
    pixels = pixels_of(store)
    if "PATCHBAY_RESUME_MARK" not in os.environ:  # found again in /proc/PID/environ, this process included
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | {"PATCHBAY_RESUME_MARK": str(os.getpid())})
    mark = f"PATCHBAY_RESUME_MARK={os.environ['PATCHBAY_RESUME_MARK']}".encode()
    with tempfile.TemporaryDirectory(prefix="patchbay-resume-") as folder:
        results = [measure(config(folder, store, order, arguments.batch), order, pixels, arguments, mark)
                   for order in SAMPLING]
    for result in results:
        sizes = [row["memory_mib"] for row in result["rows"]]
        result["memory_spread"] = max(sizes) / min(sizes)
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
