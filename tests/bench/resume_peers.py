"""The measurement of trainer_resume.py for other loaders: from nothing to the first batch at 10, 50 and 90 % of a shuffled epoch.

    deploy/setup --torch && python3 -m venv build/peers
    echo $PWD/build/torch/lib/python3*/site-packages > $(echo build/peers/lib/python3*/site-packages)/torch.pth
    build/peers/bin/python -m pip install mosaicml-streaming==0.13.0
    build/peers/bin/python tests/bench/resume_peers.py torchdata
    build/peers/bin/python tests/bench/resume_peers.py mosaicml

A sample is its number and nothing else, so that what is measured is the way to the place; ours decodes patches in its figure.
Two workers, batches of 64. Each resume is a process of its own: time from making the loader, after all imports, to the first batch;
the highest memory of the process (its workers not counted); and whether the next batches are those of a run that passes over
the place uncut. torchdata's states are taken in one pass over the epoch; one of MosaicML's has the number of samples in plain, which
is set, and the run that passes the place begins five batches before it.
"""
import argparse
import itertools
import json
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import torch

BATCH, WORKERS, TAKEN, LEAD = 64, 2, 3, 5
PLACES = (0.1, 0.5, 0.9)


class Numbers(torch.utils.data.Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return index


def torchdata(_, samples):
    from torchdata.stateful_dataloader import StatefulDataLoader
    return StatefulDataLoader(Numbers(samples), BATCH, shuffle=True, generator=torch.Generator().manual_seed(1),
                              num_workers=WORKERS, collate_fn=torch.tensor)


def mosaicml(folder, _):
    from streaming import StreamingDataLoader, StreamingDataset
    dataset = StreamingDataset(local=str(folder), shuffle=True, shuffle_seed=1, batch_size=BATCH)
    return StreamingDataLoader(dataset, batch_size=BATCH, num_workers=WORKERS,
                               collate_fn=lambda rows: torch.tensor([row["id"] for row in rows]))


def write_shards(folder, samples):
    from streaming import MDSWriter
    with MDSWriter(out=str(folder), columns={"id": "int"}) as out:
        for number in range(samples):
            out.write({"id": number})


def resume(make, folder, samples, path, count):
    """In a process of its own: the next `count` batches after a state, the seconds to the first one, and memory."""
    state = torch.load(path, weights_only=False)
    begun = time.perf_counter()
    loader = make(folder, samples)
    loader.load_state_dict(state)
    batches = iter(loader)
    taken = [next(batches)]
    first_s = time.perf_counter() - begun
    taken += itertools.islice(batches, count - 1)
    print(json.dumps({"first_s": first_s, "taken": [batch.tolist() for batch in taken],
                      "mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


def resumed(peer, folder, samples, path, count=TAKEN):
    done = subprocess.run([sys.executable, __file__, peer, "--samples", str(samples), "--folder", str(folder), "--resume", str(path),
                           str(count)], check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def states_of_torchdata(folder, samples, places):
    """Yields (path of the state at each place, the batches that an uncut run has after it)."""
    loader = torchdata(folder, samples)
    batches, path, at = iter(loader), folder / "state", 0
    for place in places:
        for _ in itertools.islice(batches, place - at):
            pass
        torch.save(loader.state_dict(), path)
        after = [batch.tolist() for batch in itertools.islice(batches, TAKEN)]
        at = place + TAKEN
        yield path, after


def states_of_mosaicml(folder, samples, places):
    loader = mosaicml(folder, samples)
    next(iter(loader))
    state, path, before = loader.state_dict(), folder.parent / "state", folder.parent / "before"
    del loader
    for place in places:
        torch.save({**state, "sample_in_epoch": (place - LEAD) * BATCH}, before)
        torch.save({**state, "sample_in_epoch": place * BATCH}, path)
        yield path, resumed("mosaicml", folder, samples, before, LEAD + TAKEN)["taken"][LEAD:]


def measure(peer, folder, samples, repeats):
    if peer == "mosaicml":
        write_shards(folder, samples)
    places = [int(part * (samples // BATCH)) for part in PLACES]
    states = {"torchdata": states_of_torchdata, "mosaicml": states_of_mosaicml}[peer](folder, samples, places)
    for place, (path, after) in zip(PLACES, states):
        runs = [resumed(peer, folder, samples, path) for _ in range(repeats)]
        times = [run["first_s"] for run in runs]
        yield {"place": place, "first_batch_s": statistics.median(times), "slowest_s": max(times),
               "memory_mib": round(max(run["mib"] for run in runs), 1), "as_uncut": all(run["taken"] == after for run in runs)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", choices=["torchdata", "mosaicml"])
    parser.add_argument("--samples", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    parser.add_argument("--resume", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.resume:
        path, count = options.resume
        resume(globals()[options.peer], pathlib.Path(options.folder), options.samples, path, int(count))
        return
    with tempfile.TemporaryDirectory(prefix="patchbay-resume-") as folder:
        inner = pathlib.Path(folder) / "shards"
        inner.mkdir()
        rows = list(measure(options.peer, inner, options.samples, options.repeats))
    print(json.dumps({"peer": options.peer, "samples": options.samples, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
