"""The page of metrics of a real cluster, as Prometheus reads it."""
import re
import shutil
import subprocess
import urllib.request

import harness

PAGE = harness.pathlib.Path(__file__).resolve().parents[2] / "configs/metrics.md"
PATIENT = "Mustermann"


class Metrics(harness.Case):
    def scrape(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=10) as answer:
            return answer.read().decode()

    def values(self):
        """Value by series, without the prefix."""
        return {name: float(value) for name, value in re.findall(r"^patchbay_scheduler_(\S+) (\S+)$", self.scrape(), re.MULTILINE)}

    def test_one_scrape_sees_slides_streams_and_nodes_and_no_names(self):
        self.port = harness.free_port()
        cluster = self.up(1, "--metrics", self.port)
        (self.folder / "slides").mkdir()
        self.slide(f"slides/{PATIENT}.svs", size="900x700")
        (self.folder / f"slides/{PATIENT}_2.svs").write_bytes(b"no slide at all")
        self.assertEqual(self.command("ingest", self.folder / "slides", "--out", "stores").returncode, 3)
        run = self.run_file(self.folder / "stores", patch=64, batch=2)
        stream = self.start("stream", run, "--batches", 100_000, "--step-ms", 20, "--name", PATIENT)
        series = harness.wait_until(lambda: self.fed(), "patches of a stream", 10)
        job, = (re.search(r'job="(\d+)"', name)[1] for name in series if name.startswith("stream_patches_total"))
        self.assertEqual(series[f'stream_trainers{{job="{job}"}}'], 1)
        self.assertEqual(series["tasks_failed_total"], 1, "one slide failed")
        self.assertEqual([series[f'slides_total{{outcome="{outcome}"}}'] for outcome in ("done", "failed")], [1, 1])
        self.assertEqual(series['jobs{state="partly_failed"}'], 1)
        self.assertEqual(series['nodes{state="up"}'], 1)
        self.assertGreater(series['cpu_seconds_total{outcome="counted"}'], 0)
        self.assertGreater(series['delivered_bytes_total{outcome="counted"}'], 0)
        self.assertGreater(series['path_bytes_total{path="mapped"}'], 0)
        self.assertEqual(series['path_bytes_total{path="tls"}'], 0)
        self.assertGreater(series[f'stream_stage_seconds_total{{job="{job}",stage="transform"}}'], 0)
        self.assertGreater(series[f'stream_wait_p99_seconds{{job="{job}"}}'] + series[f'stream_wait_p50_seconds{{job="{job}"}}'], 0)
        self.assertIn('team_cores{team="default",state="wanted"}', series)
        for name in ("memory_bytes", f'stream_memory_bytes{{job="{job}"}}', *(name for name in series if name.startswith("node_memory_bytes"))):
            self.assertGreater(series[name], 1e6, name)
        self.assertGreater(series["state_free_bytes"], 1e6)
        text = self.scrape()
        for secret in (PATIENT, "operator", str(self.folder), next((self.folder / "stores").glob("*.zarr")).name.split(".")[0]):
            self.assertNotIn(secret, text)
        kinds = dict(re.findall(r"^# TYPE (\S+) (\w+)$", text, re.MULTILINE))
        self.assertEqual(kinds, dict(re.findall(r"^\| `(patchbay\w+)` \| (\w+) \|", PAGE.read_text(), re.MULTILINE)))
        if shutil.which("promtool"):
            checked = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, capture_output=True, check=False)
            self.assertEqual((checked.returncode, checked.stdout + checked.stderr), (0, ""))
        stream.terminate()
        stream.wait(timeout=30)
        self.down(cluster)

    def fed(self):
        series = self.values()
        patches = [value for name, value in series.items() if name.startswith("stream_patches_total")]
        delivered = series['delivered_bytes_total{outcome="counted"}']
        return series if any(patches) and delivered > 0 else None

    def test_every_alert_fires_for_its_cause(self):
        if not shutil.which("promtool"):
            self.skipTest("promtool is not installed")
        cases = PAGE.parents[1] / "tests/scheduler/metrics/alerts_cases.yml"
        tested = subprocess.run(["promtool", "test", "rules", cases], text=True, capture_output=True, check=False)
        self.assertEqual(tested.returncode, 0, tested.stdout + tested.stderr)


if __name__ == "__main__":
    harness.main()
