"""Spectra of real slides with real processes: NumPy's numbers, the same bytes whatever happens on the way."""
import json
import pathlib
import shutil
import signal
import subprocess

import harness
from harness import wait_until

# Run by the Python of the oracles: the definition of configs/spectra.md in float64, on OpenSlide's pixels.
NUMPY = r"""
import json, pathlib, sys
import numpy
from PIL import Image
Image.MAX_IMAGE_PIXELS = None
png, out = sys.argv[1:]
document = json.loads((pathlib.Path(out) / "spectra.json").read_text())
definition, slide = document["definition"], document["slides"][0]
frame, hop = definition["frame"], definition["hop"]
pixels = numpy.asarray(Image.open(png).convert("RGB")).astype(numpy.int64)
if definition["channel"] == "grey":
    planes = {"": (pixels @ [9798, 19235, 3735] + 16384) >> 15}
else:
    planes = {name: pixels[..., i] for i, name in enumerate(("red", "green", "blue"))}
window = numpy.ones(frame) if definition["window"] == "rect" else 0.5 - 0.5 * numpy.cos(2 * numpy.pi * numpy.arange(frame) / frame)
window = numpy.outer(window, window)
ky, kx = numpy.meshgrid(numpy.fft.fftfreq(frame, 1 / frame), numpy.fft.fftfreq(frame, 1 / frame), indexing="ij")
ring = numpy.rint(numpy.hypot(ky, kx)).astype(int)

def blurred(plane):
    kernel = numpy.exp(-numpy.arange(-3, 4) ** 2 / (2 * 1.5 ** 2))
    kernel /= kernel.sum()
    padded = numpy.pad(plane.astype(float), 3, mode="reflect")
    rows = sum(w * padded[i:i + plane.shape[0]] for i, w in enumerate(kernel))
    return sum(w * rows[:, i:i + plane.shape[1]] for i, w in enumerate(kernel))

wrong = []
def hold(what, mine, theirs, tolerance):
    if not abs(mine - theirs) <= tolerance:
        wrong.append(f"{what}: {mine} here, {theirs} in NumPy")

for name, plane in planes.items():
    part = slide["channels"][name] if name else slide
    if definition["prefilter"] == "gauss7":
        plane = blurred(plane)
    levels, power = [], numpy.zeros(frame // 2 + 1)
    for y in range(0, plane.shape[0] - frame + 1, hop):
        for x in range(0, plane.shape[1] - frame + 1, hop):
            values = numpy.abs(numpy.fft.fft2(plane[y:y + frame, x:x + frame] * 1.0))
            if definition["window"] == "hann":
                block = plane[y:y + frame, x:x + frame]
                values = numpy.abs(numpy.fft.fft2((block - block.mean()) * window))
                values[0, 0] = (block * window).sum()
            levels.append(20 * numpy.log10(numpy.maximum(values, 1)))
            power += numpy.bincount(ring.ravel(), (values ** 2).ravel())[:frame // 2 + 1]
    levels = numpy.stack(levels)
    counts = numpy.histogram(levels, bins=640, range=(0, 160))[0]
    if slide["frames"] != len(levels):
        wrong.append(f"{slide['frames']} frames, {len(levels)} in NumPy")
    hold(name + " mean", part["mean_db"], levels.mean(), 1e-3)
    hold(name + " std", part["std_db"], levels.std(), 1e-3)
    hold(name + " p50", part["percentiles"]["p50"], numpy.percentile(levels, 50), 0.05)
    distance = numpy.abs(counts - numpy.array(part["histogram"]["counts"])).sum() / counts.sum()
    hold(name + " histogram", distance, 0, 1e-3)
    rings = power[1:] / numpy.bincount(ring.ravel())[1:frame // 2 + 1] / len(levels)
    hold(name + " rings", numpy.max(numpy.abs(numpy.array(part["radial"]["power"]) / rings - 1)), 0, 1e-3)
    stem = slide["id"] + ("." + name if name else "")
    mine = numpy.load(pathlib.Path(out) / "coefficients" / (stem + ".npy"))
    difference = numpy.abs(mine - levels.mean(axis=0)[:, :frame // 2 + 1])
    if mine.dtype != numpy.float32 or mine.shape != (frame, frame // 2 + 1):
        wrong.append(f"coefficients are {mine.dtype} {mine.shape}")
    hold(name + " coefficients p99.9", numpy.quantile(difference, 0.999), 0, 0.01)
print("; ".join(wrong) or "ok")
"""


class Spectra(harness.Case):
    def spectra(self, *sources, out, expect=0, more=()):
        """A finished analysis; its folder."""
        result = self.command("spectra", *sources, "--out", out, *more)
        self.assertEqual(result.returncode, expect, result.stderr[-4000:])
        return self.folder / out

    def files(self, out):
        """Name to content of everything that is published."""
        return {str(p.relative_to(out)): p.read_bytes() for p in sorted(pathlib.Path(out).rglob("*"))
                if p.is_file() and p.name != "failed.csv"}

    def assert_same(self, out, reference):
        mine = self.files(out)
        self.assertEqual(sorted(mine), sorted(reference))
        self.assertEqual([name for name in mine if mine[name] != reference[name]], [])

    def tasks_done(self):
        return sum(row["tasks_done"] for row in json.loads(self.command("status", "--json").stdout)["workers"])

    def document(self, out):
        return json.loads((pathlib.Path(out) / "spectra.json").read_text())

    def test_real_slide_agrees_with_numpy_on_openslides_pixels(self):
        slide = harness.DATA / "wsi/CMU-1-Small-Region.svs"
        if not slide.exists():
            self.skipTest(f"{slide} is not here: set PATCHBAY_TEST_DATA")
        if not shutil.which("openslide-write-png") or not harness.oracles("numpy", "PIL"):
            self.skipTest("needs openslide-write-png (openslide-tools) and PATCHBAY_PYTHON with numpy and pillow")
        png = self.folder / "oracle.png"
        subprocess.run(["openslide-write-png", slide, "0", "0", "0", "2220", "2967", png], check=True)
        for name, more in (("grey", []), ("hann", ["--window", "hann", "--hop", 256]),
                           ("nedc", ["--profile", "nedc", "--hop", 256])):
            with self.subTest(name=name):
                out = self.spectra(slide, out=name, more=["--coefficients", *more])
                found = subprocess.run([harness.PYTHON, "-c", NUMPY, png, out], text=True, check=True, capture_output=True)
                self.assertEqual(found.stdout.strip(), "ok")

    def test_workers_strips_and_stores_do_not_change_a_byte(self):
        slide = self.slide(size="3600x3000", seed=5)
        how = ["--hop", 32, "--coefficients"]
        reference = None
        for cpus, strip in ((1, 1024), (2, 256), (4, 512), (2, 4096)):
            out = self.spectra(slide, out=f"out-{cpus}-{strip}", more=[*how, "--cpus", cpus, "--strip", strip])
            self.assertFalse((out / ".patchbay-spectra").exists())
            reference = reference or self.files(out)
            self.assert_same(out, reference)
        # The same pixels out of a store: another file, so another name, and the same numbers.
        stored = self.document(self.spectra(self.store([slide]), out="from-store", more=how))["slides"][0]
        sliced = self.document(self.folder / "out-1-1024")["slides"][0]
        for part in (stored, sliced):
            del part["id"]
        self.assertEqual(stored, sliced)

    def test_killed_processes_of_the_cluster_change_nothing(self):
        slides = [self.slide("a.svs", "600x500", 1), self.slide("b.svs", "3600x3000", 2)]
        how = ["--hop", 32, "--strip", 256]
        reference = self.files(self.spectra(*slides, out="reference", more=how))
        cluster = self.up(2)
        for program in ("patchbay-worker", "patchbay-agent", "patchbay-scheduler"):
            with self.subTest(program=program):
                out = self.folder / program
                before = self.tasks_done()
                job = self.start("spectra", *slides, "--out", out, *how)
                # The plan, both openings and a strip or two of about ten.
                wait_until(lambda before=before: self.tasks_done() >= before + 4, "a measured strip")
                self.kill(self.pids(cluster, program)[0])
                self.done(job)
                self.assert_same(out, reference)
                self.await_workers(cluster, 2)
        self.down(cluster)

    def test_killed_command_is_adopted_by_the_next(self):
        slides = [self.slide("a.svs", "600x500", 1), self.slide("b.svs", "3600x3000", 2)]
        how = ["--hop", 16, "--cpus", 1]
        reference = self.files(self.spectra(*slides, out="reference", more=how))
        out = self.folder / "out"
        first = self.start("spectra", *slides, "--out", out, *how)
        wait_until(lambda: list(out.glob(".patchbay-spectra/*/slides/*.json")), "a measured slide")
        children = harness.processes(first.pid)
        first.kill()
        first.wait()
        wait_until(lambda: not any(pathlib.Path(f"/proc/{pid}/exe").exists() for pid in children), "the end of all", 15)
        finished = len(list(out.glob(".patchbay-spectra/*/slides/*.json")))
        rows = self.json("spectra", *slides, "--out", out, *how)["slides"]
        self.assertEqual(sum(row["already_there"] for row in rows), finished)
        self.assert_same(out, reference)

    def damaged_slide(self):
        """A slide with bytes of one tile of level 0 overwritten."""
        slide = self.slide("damaged.svs", "3000x2500", 3)
        content = bytearray(slide.read_bytes())
        at = len(content) // 3
        content[at:at + 600] = bytes(range(7, 157)) * 4
        slide.write_bytes(content)
        return slide

    def test_damaged_tile_is_named_and_the_other_slide_goes_on(self):
        good, damaged = self.slide("good.svs", "600x500", 1), self.damaged_slide()
        report = self.json("spectra", good, damaged, "--out", "out", expect=3)
        document = self.document(self.folder / "out")
        self.assertEqual(len(document["slides"]), 1)
        self.assertRegex(document["failed"][0]["reason"], r"slide 0: decode tile: level 0 row \d+ column \d+: jpeg")
        self.assertIn("damaged.svs", (self.folder / "out/failed.csv").read_text())
        self.assertIn("damaged.svs", json.dumps(report))
        self.assertNotIn("damaged.svs", json.dumps(document))
        alone = self.files(self.spectra(good, out="alone"))
        self.assertEqual(self.document(self.folder / "out")["cohort"], json.loads(alone["spectra.json"])["cohort"])
        # Leaving out the frames on it instead, in the same way however the slide is cut.
        reference = None
        for strip in (32, 1024):
            out = self.spectra(good, damaged, out=f"skip-{strip}", more=["--skip-damaged", "--strip", strip, "--hop", 64])
            reference = reference or self.files(out)
            self.assert_same(out, reference)
        skipped = sorted(s["frames_skipped"] for s in self.document(out)["slides"])
        self.assertEqual(skipped[0], 0)
        self.assertTrue(16 <= skipped[1] <= 100, skipped)

    def test_mended_slide_is_measured_by_a_retry_and_the_others_are_not_again(self):
        good, damaged = self.slide("good.svs", "600x500", 1), self.damaged_slide()
        broken = damaged.read_bytes()
        mended = self.slide("damaged.svs", "3000x2500", 3).read_bytes()
        reference = self.files(self.spectra(good, damaged, out="reference"))
        damaged.write_bytes(broken)
        cluster = self.up(2)
        out = self.folder / "out"
        job = self.json("spectra", good, damaged, "--out", out, expect=3)["job"]
        self.assertEqual(len(self.document(out)["failed"]), 1)
        damaged.write_bytes(mended)
        self.assertGreater(self.json("retry", job)["tasks"], 0)
        self.assertEqual(self.command("wait", job).returncode, 0)
        self.assert_same(out, reference)
        self.assertFalse((out / ".patchbay-spectra").exists())
        self.down(cluster)

    def test_full_disk_is_an_error_and_more_room_lets_it_go_on(self):
        slide = self.slide(size="1200x1000")
        disk = self.small_disk("300k")
        result = self.command("spectra", slide, "--out", disk / "out")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("No space left", result.stderr)
        self.assertFalse((disk / "out/spectra.json").exists())
        self.resize(disk, "50m")
        self.spectra(slide, out=disk / "out")
        self.assert_same(disk / "out", self.files(self.spectra(slide, out="reference")))

    def test_unwritable_folder_and_a_change_of_settings_are_refused(self):
        slide = self.slide(size="600x500")
        result = self.command("spectra", slide, "--out", "/proc/nowhere")
        self.assertEqual(result.returncode, 1)
        self.assertIn("/proc/nowhere", result.stderr)
        before = self.files(self.spectra(slide, out="out"))
        result = self.command("spectra", slide, "--out", "out", "--window", "hann")
        self.assertEqual(result.returncode, 1)
        self.assertIn("spectra.json", result.stderr)
        self.assert_same(self.folder / "out", before)

    def test_interrupted_job_ends_and_leaves_only_its_folder(self):
        slide = self.slide(size="3600x3000")
        out = self.folder / "out"
        job = self.start("spectra", slide, "--out", out, "--hop", 16, "--cpus", 1)
        wait_until(lambda: list(out.glob(".patchbay-spectra/*/manifest.json")), "a planned job")
        job.send_signal(signal.SIGINT)
        job.communicate(timeout=60)
        self.assertNotEqual(job.returncode, 0)
        self.assertEqual([p.name for p in out.iterdir()], [".patchbay-spectra"])
        self.assertEqual(list((self.folder / "tmp").iterdir()), [])


if __name__ == "__main__":
    harness.main()
