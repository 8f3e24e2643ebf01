#!/usr/bin/env python3
"""Plans a stream over many annotated stores and prints what it took: wall time and memory.

    planning.py --bin BIN [--stores 1000] [--patches-per-store 1000] [--side 8192]

One slide is made and ingested with its tissue, and 1,000 outlines of two classes are imported; the further stores are
copies of it whose files are hard links and whose digests differ, in a cohort table with sites and a split. The command
streams one batch by tissue, class weights and masks, whose patches are of as many images. The time of that over 200 of the
stores is subtracted: the rest is the planning of the others. Memory is that of all processes at their fullest, shared pages counted
once: until the stream has a ring, which is the planning, and in all.
"""
import hashlib
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time
import uuid

from many_stores import copy_store, options_of, run

CLASSES = "classes: [{name: benign, value: 0}, {name: tumour, value: 1}]\n"
OUTLINES = 1000
FEW = 200  # stores; a batch has fewer patches
CORNERS = 24


def write_outlines(path, side):
    """Many-cornered outlines anywhere on the slide, two classes in turns."""
    draw = random.Random(7)
    features = []
    for number in range(OUTLINES):
        x, y, reach = draw.uniform(0, side), draw.uniform(0, side), side / 30
        ring = [[x + draw.uniform(-reach, reach), y + draw.uniform(-reach, reach)] for _ in range(CORNERS)]
        features.append({"type": "Feature", "geometry": {"type": "Polygon", "coordinates": [ring + ring[:1]]},
                         "properties": {"classification": {"name": ("benign", "tumour")[number % 2]}}})
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))


def make_store(options, work):
    program = str(options.bin / "patchbay")
    slide = work / "slide.svs"
    run([program, "synth", "slide", str(slide), "--size", f"{options.side}x{options.side}"])
    run([program, "ingest", str(slide), "--out", str(work / "one"), "--tissue", "clam"])
    store = next(p for p in (work / "one").iterdir() if (p / "zarr.json").exists())
    (work / "classes.yaml").write_text(CLASSES)
    write_outlines(work / "drawn.geojson", options.side)
    run([program, "labels", "import", str(store), str(work / "drawn.geojson"), "--set", "drawn", "--classes",
         str(work / "classes.yaml")])
    return store


def copy_of(store, target, number):
    """A copy that counts as another slide's store: other digests of the source, the files and the pixels."""
    copy_store(store, target, number)
    document = json.loads((target / "zarr.json").read_text())
    for key in ("source_sha256", "pixel_digest"):
        document["attributes"]["patchbay"][key] = hashlib.sha256(f"{key} {number}".encode()).hexdigest()
    (target / "zarr.json").write_text(json.dumps(document))


def write_run(work, name, stores, patches):
    rows = [f"many/{n:05}.ome.zarr,S{n},{n % 7},train" for n in range(stores)]
    (work / f"{name}.csv").write_text("path,slide_id,site,fold\n" + "\n".join(rows) + "\n")
    path = work / f"{name}.yaml"
    path.write_text(
        f"dataset: {work}/{name}.csv\nseed: 7\npatch: {{size: [256, 256]}}\nlabels: {{set: drawn, mask: true}}\n"
        f"sampling: {{positions: random, patches_per_epoch: {patches}, tissue: {{min_fraction: 0.1}}, "
        "class_weights: {benign: 0.5, tumour: 0.5}, weight_by: [site]}\n"
        "batch: {global_size: 64, dtype: uint8, tail: drop}\n")
    return path


def memory_bytes(mark):
    """(bytes, shared bytes) of all processes with `mark` in their environment: a command's own cluster detaches from it.

    Proportional set sizes; the shared ones are of rings.
    """
    total = shared = 0
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if not entry.name.isdigit() or mark not in (entry / "environ").read_bytes():
                continue
            rows = (entry / "smaps_rollup").read_text().splitlines()
            sizes = {row.split()[0]: int(row.split()[1]) * 1024 for row in rows[1:]}
            total += sizes["Pss:"]
            shared += sizes["Pss_Shmem:"]
        except OSError:
            continue
    return total, shared


def planned(options, path):
    """As measured."""
    return measured([str(options.bin / "patchbay"), "stream", str(path), "--batches", "1", "--cpus", "2", "--json"])


def measured(words):
    """(seconds of the whole command, bytes of its processes at most, of them before there was a ring)."""
    mark = f"planning-{uuid.uuid4()}"
    begun, most, before_ring, has_ring = time.perf_counter(), 0, 0, False
    with tempfile.TemporaryFile("w+") as log:
        running = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=log, env={**os.environ, "PLANNING_MARK": mark})
        while running.poll() is None:
            total, shared = memory_bytes(mark.encode())
            has_ring = has_ring or shared > 0
            most = max(most, total)
            before_ring = before_ring if has_ring else most
            time.sleep(0.1)
        wall = time.perf_counter() - begun
        log.seek(0)
        if running.returncode != 0:
            sys.exit(f"{' '.join(words)}: {log.read()[-2000:]}")
    return wall, most, before_ring


def main():
    options = options_of(__doc__, stores=1000, patches_per_store=1000, side=8192)
    if options.stores <= FEW:
        sys.exit(f"--stores {options.stores}: more than {FEW} are needed")
    with tempfile.TemporaryDirectory(dir=".") as folder:
        work = pathlib.Path(folder).absolute()
        store = make_store(options, work)
        for number in range(options.stores):
            copy_of(store, work / "many" / f"{number:05}.ome.zarr", number)
        few_s, few_bytes, _ = planned(options, write_run(work, "few", FEW, FEW * options.patches_per_store))
        patches = options.stores * options.patches_per_store
        many_s, many_bytes, planning_bytes = planned(options, write_run(work, "all", options.stores, patches))
        print(f"{options.stores} stores, {patches} patches: {many_s - few_s:.1f} s of planning ({many_s:.1f} s whole "
              f"command, {few_s:.1f} s over {FEW} stores), {planning_bytes / 2**20:.0f} MiB at most; "
              f"with the stream {many_bytes / 2**20:.0f} ({few_bytes / 2**20:.0f} over {FEW} stores)")


if __name__ == "__main__":
    main()
