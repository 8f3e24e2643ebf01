"""The arguments, run config and standing cluster of the benchmarks that ingest one slide and stream it: kept_tiles.py, codec_plan.py."""
import argparse
import contextlib
import json
import os
import pathlib
import subprocess
import time

RUN = """dataset: {dataset}
numerics: cpu
seed: 7678
patch: {{size: [512, 512], level: 0}}
sampling: {{order: shuffled, positions: random}}
batch: {{global_size: 32, dtype: float16, layout: nchw, prefetch: 2, tail: keep}}
preprocess: [{{normalize: {{scale: 255, mean: [0.70, 0.55, 0.70], std: [0.2, 0.2, 0.2]}}}}]
augment: {augment}
"""


def parser(text):
    """SLIDE, --folder and --bin; a benchmark adds its own."""
    made = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("slide", type=pathlib.Path)
    made.add_argument("--folder", default=None, help="where stores go; default: the system's for temporary files")
    made.add_argument("--bin", default="build/dev/bin", help="folder of the programs")
    return made


class Cluster:
    """A cluster that stays while `running` lasts. `prepare` runs in each of its processes before the program."""

    def __init__(self, binaries, home, cores=2, prepare=None):
        self.patchbay, self.cores, self.prepare = pathlib.Path(binaries).absolute() / "patchbay", cores, prepare
        self.environment = os.environ | {"PATCHBAY_HOME": str(home)}

    def run(self, *words):
        """The object that a command prints, and what it says."""
        done = subprocess.run([self.patchbay, *words, "--json"], check=True, capture_output=True, text=True, env=self.environment,
                              preexec_fn=self.prepare)
        return json.loads(done.stdout), done.stderr

    @contextlib.contextmanager
    def running(self):
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": self.environment}
        with subprocess.Popen([self.patchbay, "up", "--cpus", str(self.cores)], preexec_fn=self.prepare, **quiet):
            while subprocess.run([self.patchbay, "status"], check=False, **quiet).returncode:
                time.sleep(0.1)
            yield
            self.run("down")

    def core_seconds(self):
        """The processor time of the newest job."""
        return 3600 * max(self.run("usage", "--by", "job")[0]["rows"], key=lambda row: row["job"])["core_hours"]

    def stream(self, folder, dataset, batches, augment="[]"):
        (folder / "run.yaml").write_text(RUN.format(dataset=pathlib.Path(dataset).absolute(), augment=augment), encoding="utf-8")
        return self.run("stream", folder / "run.yaml", "--batches", str(batches))[0]
