"""`patchbay forget`: all that derives from a slide or patient is found, listed and removed, and nothing else."""
import csv
import hashlib
import hmac
import json
import os
import pathlib
import shutil
import subprocess

import dicom_files
import harness
from trainer_test import MODULE

PATIENT, OTHER = "4711", "4712"
FUNCTION = """
import numpy

def predict(model, batch):
    red = numpy.asarray(batch["image"])[..., 0].reshape(len(batch["image"]), -1).mean(axis=1, keepdims=True) / 255
    return {"stain": numpy.concatenate([red, 1 - red], axis=1), "grade": red}

def finish(model, rows):
    return {"grade": float(rows["grade"].mean())}
"""
OUTLINE = {"type": "FeatureCollection", "features": [{
    "type": "Feature", "properties": {"classification": {"name": "lesion"}},
    "geometry": {"type": "Polygon", "coordinates": [[[100, 100], [300, 100], [300, 300], [100, 300], [100, 100]]]}}]}


class Forget(harness.Case):
    def scene(self):
        """Two patients, each with a slide and a CT, and all that is made of them; a copy of its own for the test."""
        kept = self.once("scene", self.make_scene)
        shutil.rmtree(self.folder)
        shutil.copytree(kept, self.folder, symlinks=True)  # image.json and tables name the paths of the first one
        for path in self.files():
            text = path.read_bytes()
            if str(kept).encode() in text:
                path.write_bytes(text.replace(str(kept).encode(), str(self.folder).encode()))
        os.chmod(self.home, 0o700)

    def make_scene(self):
        folder, self.folder = self.folder, self.kept / "scene"
        home, self.home = self.home, self.folder / "home"
        self.folder.mkdir()
        slides = [self.slide(f"{name}.svs", "701x503", seed) for seed, name in enumerate(("ann", "bob"), 1)]
        for number, patient in enumerate((PATIENT, OTHER)):
            dicom_files.single(self.folder / f"archive/series{number}", "CT", number,
                               elements={0x00100020: ("LO", patient), **dicom_files.rescale(1, -1024)})
        (self.folder / "broken.svs").write_bytes(b"II*\0")
        self.json("ingest", *slides, "broken.svs", "--out", "stores", expect=3)  # leaves failed.csv
        self.json("ingest", "archive", "--out", "stores")
        self.table(slides)
        (self.folder / "o.geojson").write_text(json.dumps(OUTLINE), encoding="utf-8")
        (self.folder / "classes.yaml").write_text("classes: [{value: 0, name: background}, {value: 1, name: lesion}]\n", encoding="utf-8")
        for store in self.stores_of("ann", "bob"):
            self.json("labels", "import", self.folder / "stores" / store, "o.geojson", "--set", "lesions", "--classes", "classes.yaml")
        stores = [self.folder / "stores" / store for store in self.stores_of("ann", "bob")]
        self.json("preview", *stores, "--out", "both.png")
        self.json("preview", stores[1], "--out", "bob.png")
        self.json("spectra", *slides, "--out", "spectra", "--coefficients", "--frame", "64")
        (self.folder / "run.yaml").write_text(
            "dataset: cohort.csv\nstores: stores\nnumerics: cpu\npatch: {size: [64, 64], level: 0}\nsampling: {order: sequential}\n"
            "batch: {global_size: 16, dtype: uint8, layout: nhwc}\noutputs:\n  stain: {kind: score, classes: [pale, dark]}\n"
            "  grade: {kind: image, columns: [grade]}\n", encoding="utf-8")
        (self.folder / "predict.py").write_text(FUNCTION, encoding="utf-8")
        self.json("lock", "run.yaml")
        done = subprocess.run([harness.BIN / "patchbay", "map", "run.yaml", "--call", "predict.py", "--out", "results"], cwd=self.folder,
                              text=True, capture_output=True, check=False,
                              env=self.environment(PYTHONPATH=str(MODULE), PATCHBAY_PYTHON=harness.PYTHON))
        self.assertEqual(done.returncode, 0, done.stderr[-4000:])
        made, self.folder, self.home = self.folder, folder, home
        return made

    def table(self, slides):
        rows = [("path", "slide_id", "patient_id", "content_hash", "note")] + [
            (slide.name, slide.stem, patient, hashlib.sha256(slide.read_bytes()).hexdigest(), f'two\nlines, "{slide.stem}"')
            for slide, patient in zip(slides, (PATIENT, OTHER))]
        with open(self.folder / "cohort.csv", "w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(rows)

    def files(self):
        return [path for path in sorted(self.folder.rglob("*")) if path.is_file() and not path.is_symlink()]

    def manifest(self):
        with open(self.folder / "stores/manifest.csv", encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    def stores_of(self, *names):
        return [row["store"] for name in names for row in self.manifest() if name in row["source"]]

    def pseudonym(self, kind, text):
        key = (self.home / "pseudonym.key").read_bytes()
        return hmac.new(key, f"{kind}\n{text}".encode(), hashlib.sha256).hexdigest()[:16]

    def tree(self):
        """Every file but the record of what was forgotten and keys."""
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in self.files()
                if path.relative_to(self.folder).parts[0] not in ("home", "tmp") and not path.name.startswith("log-")}

    def forget(self, *words, expect=0, **options):
        done = self.command("forget", *words, "--in", self.folder, "--json", **options)
        self.assertEqual(done.returncode, expect, done.stderr[-4000:])
        return json.loads(done.stdout) if expect == 0 else done.stderr

    def test_a_patient_leaves_with_all_that_derives_from_them(self):
        self.scene()
        before, slide, series = self.tree(), *self.stores_of("ann", "archive#1.2.3.0")
        hashes = [row["source_sha256"].encode() for row in self.manifest() if row["store"] in (slide, series)]  # both CTs have the same pixels
        listed = self.forget("--patient", PATIENT)
        self.assertEqual(self.tree(), before)  # nothing without --yes
        self.assertFalse((self.home / "forgotten.csv").exists())
        found = {}
        for trace in listed["traces"]:
            found.setdefault(trace["what"], []).append(os.path.relpath(trace["path"], self.folder))
        self.assertEqual(sorted(found.pop("store")), sorted([f"stores/{slide}", f"stores/{series}"]))
        self.assertEqual(found.pop("row of a table"), ["cohort.csv"])
        self.assertEqual(len(found.pop("result of map")), 1)
        self.assertEqual(len(found.pop("spectra of all slides")), 7)
        self.assertEqual(found.pop("sheet of preview"), ["both.png"])
        self.assertLessEqual({"stores/manifest.csv", "stores/verdicts.csv", "spectra/manifest.csv", "spectra/spectra.csv", "results/grade.csv"},
                             set(found.pop("row")))
        self.assertEqual(found, {})
        self.assertEqual(listed["locks"], [str(self.folder / "run.lock")])
        self.assertEqual(sorted(map(os.path.basename, listed["sources"])), ["ann.svs", f"archive#{self.pseudonym('series', '1.2.3.0')}"])
        self.assertEqual(listed["patient_unknown"], [])

        self.assertEqual(self.forget("--patient", PATIENT, "--yes")["traces"], listed["traces"])
        after = self.tree()
        words = [slide.split(".")[0].encode(), series.split(".")[0].encode(), self.pseudonym("patient", PATIENT).encode(), *hashes]
        for path, content in after.items():
            if path != "run.lock" and not path.startswith("archive"):
                for word in words:
                    self.assertNotIn(word, content, path)
                self.assertFalse(path.endswith(".csv") and b"ann.svs" in content, path)
        # The other patient's, to the byte; tables are those less the rows.
        gone = set(before) - set(after)
        self.assertTrue(all(slide in path or series in path or path.startswith(("results/0", "spectra/", "both.png"))
                            for path in gone), gone)
        changed = {path for path in after if after[path] != before[path]}
        self.assertEqual({path for path in changed if not path.endswith(".csv")}, set())
        for path in changed:
            kept = after[path].split(b"\n")
            self.assertEqual([line for line in before[path].split(b"\n") if line in kept], kept, path)
            self.assertEqual(os.stat(self.folder / path).st_mode & 0o777, 0o644 if path == "cohort.csv" else 0o600, path)
        self.assertFalse(list((self.folder / "spectra").iterdir()))
        for store in self.stores_of("bob", "archive#1.2.3.1"):
            self.assertEqual(self.command("verify", self.folder / "stores" / store).returncode, 0)

        record = self.home / "forgotten.csv"
        self.assertEqual(os.stat(record).st_mode & 0o777, 0o600)
        time, key, pseudonym = record.read_text(encoding="utf-8").strip().split(",")
        self.assertRegex(time, r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertTrue(key)
        self.assertEqual(pseudonym, self.pseudonym("patient", PATIENT))
        self.assertFalse([path for path in self.home.rglob("*") if path.is_file() and PATIENT.encode() in path.read_bytes()])
        again = self.forget("--patient", PATIENT)
        self.assertEqual((again["traces"], again["locks"]), ([], listed["locks"]))
        (self.folder / "run.lock").unlink()
        self.assertIn("nothing that derives from it", self.forget("--patient", PATIENT, expect=1))
        self.assertIn("result of map", [one["what"] for one in self.forget("--patient", OTHER)["traces"]])

    def test_a_slide_leaves_by_its_id_its_path_or_its_store_and_its_patient_stays(self):
        self.scene()
        store, series = self.stores_of("ann", "archive#1.2.3.0")
        by_id = self.forget("--slide", "-", input="ann\n")
        self.assertNotIn(series, json.dumps(by_id["traces"]))
        for other in ("ann.svs", self.folder / "ann.svs", store.split(".")[0], self.folder / "stores" / store):
            self.assertEqual(self.forget("--slide", other)["traces"], by_id["traces"], other)
        # The source and the table are gone: manifest.csv has the path.
        (self.folder / "ann.svs").unlink()
        (self.folder / "cohort.csv").unlink()
        left = self.forget("--slide", self.folder / "ann.svs", "--yes")
        self.assertEqual([one for one in by_id["traces"] if one["what"] != "row of a table"], left["traces"])
        self.assertFalse((self.folder / "stores" / store).exists())
        self.assertTrue((self.folder / "stores" / series).is_dir())

    def test_a_killed_run_is_ended_by_the_next(self):
        self.scene()
        words = ("--patient", PATIENT, "--yes", "--in", str(self.folder))
        for moment in ("results/.patchbay-forget", "stores/.patchbay-forget"):
            process = self.start("forget", *words)
            harness.wait_until(lambda: (self.folder / moment).exists() or process.poll() is not None, moment)
            process.kill()
            process.wait()
        self.command("forget", *words)
        for place in ("stores", "results", "results/failed", "stores/.patchbay-ingest"):  # all the rest was done
            (self.folder / place / ".patchbay-forget/0").mkdir(parents=True, exist_ok=True)
        self.command("forget", *words)
        self.assertFalse([*self.folder.rglob(".patchbay-forget"), *self.home.glob("forget-*")])
        killed = {path: content.replace(str(self.folder).encode(), b"") for path, content in self.tree().items()}
        self.scene()
        self.forget("--patient", PATIENT, "--yes")
        self.assertEqual(killed, {path: content.replace(str(self.folder).encode(), b"") for path, content in self.tree().items()})

    def test_refusals_leave_everything(self):
        self.scene()
        slide, series = self.stores_of("ann", "archive#1.2.3.0")
        before = self.tree()
        with open(self.folder / "stores" / series / "zarr.json", encoding="utf-8"):
            self.assertRegex(self.forget("--patient", PATIENT, "--yes", expect=1), rf"process {os.getpid()} \(\w+\) uses it")
        self.assertIn("one of the two", self.forget("--patient", PATIENT, "--slide", "a", expect=2))
        self.assertIn("one of the two", self.forget(expect=2))
        self.assertIn("no line", self.forget("--patient", "-", expect=2, input=""))
        self.assertIn("not a folder", self.command("forget", "--slide", "a", "--in", "nowhere").stderr)
        self.assertIn("nothing that derives from it", self.forget("--patient", "4", "--yes", expect=1))
        self.assertEqual(self.tree(), before)
        # Two patients for one content: neither goes.
        rows = (self.folder / "cohort.csv").read_text(encoding="utf-8")
        digest = hashlib.sha256((self.folder / "ann.svs").read_bytes()).hexdigest()
        (self.folder / "cohort.csv").write_text(f"{rows}copy.svs,copy,4713,{digest},\n", encoding="utf-8")
        self.assertRegex(self.forget("--patient", PATIENT, "--yes", expect=1), "lines 2 and 6 have one content and different patients")
        self.assertTrue((self.folder / "stores" / slide).is_dir())

    def test_links_and_foreign_names_are_not_followed(self):
        self.scene()
        slide, = self.stores_of("ann")
        outside = self.kept / "outside"
        shutil.copytree(self.folder / "stores" / slide, outside / slide, dirs_exist_ok=True)
        (outside / "file").write_text("mine", encoding="utf-8")
        (self.folder / "link").symlink_to(outside)
        (self.folder / "stores/mine.tif").write_text("mine", encoding="utf-8")
        with open(self.folder / "stores/manifest.csv", "a", encoding="utf-8") as file:
            digest = next(row["source_sha256"] for row in self.manifest() if row["store"] == slide)
            for name in (f"../../{outside.name}/file", str(outside / "file"), "..", "", "link"):
                file.write(f"{name},x,{digest},,\r\n")
        (self.folder / "stores/link").symlink_to(outside / "file")
        said = self.command("forget", "--patient", PATIENT, "--yes", "--in", self.folder)
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertIn("2 links were not followed", said.stderr)
        self.assertEqual((outside / "file").read_text(encoding="utf-8"), "mine")
        self.assertTrue((outside / slide / "zarr.json").exists())
        self.assertTrue((self.folder / "stores/mine.tif").exists() and (self.folder / "stores/link").is_symlink())

    def test_stores_that_name_nobody_are_said(self):
        harness.nifti(self.folder / "v.nii", (4, 6, 5), (3, 2, 2), lambda z, y, x: 10 * z + y + x)
        self.json("ingest", "v.nii", "--out", "stores", "--keep-names", "--modality", "CT")
        dicom_files.single(self.folder / "series", "CT", 1, elements=dicom_files.rescale(1, -1024))
        self.json("ingest", "series", "--out", "stores")
        said = self.forget("--patient", PATIENT)
        self.assertEqual([os.path.basename(path) for path in said["patient_unknown"]], ["v.ome.zarr"])
        (self.folder / "t.csv").write_text("path,patient_id\nv.nii,4712\n", encoding="utf-8")
        self.assertEqual(self.forget("--patient", PATIENT)["patient_unknown"], [])
        self.assertEqual([one["what"] for one in self.forget("--patient", OTHER)["traces"]], ["store", "row", "row of a table"])

    def test_records_of_ended_jobs_go_and_one_that_waits_holds_them(self):
        self.slide("ann.svs", "701x503")
        (self.folder / "broken.svs").write_bytes(b"II*\0")
        cluster = self.up(1)
        job = self.json("ingest", "ann.svs", "broken.svs", "--out", self.folder / "stores", "--detach")["job"]
        self.assertEqual(self.command("wait", job).returncode, 3)
        state, = (self.folder / "stores/.patchbay-ingest").glob("*/manifest.json")
        self.assertIn(b"ann.svs", state.read_bytes())
        record, = (self.home / "jobs").glob("*.json")
        node, = [row["name"] for row in self.json("status")["nodes"]]
        self.assertEqual(self.command("node", "drain", node).returncode, 0)
        waiting = self.json("spectra", "ann.svs", "--out", self.folder / "spectra", "--detach")["job"]
        self.assertIn(f"job {waiting} uses it", self.forget("--slide", "ann", "--yes", expect=1))
        self.assertEqual(self.command("cancel", waiting).returncode, 0)
        other = self.json("spectra", self.slide("bob.svs", "701x503"), "--out", self.folder / "spectra", "--detach")["job"]
        self.assertEqual(self.command("cancel", other).returncode, 0)
        said = self.command("forget", "--slide", "ann", "--in", self.folder)
        self.assertIn(f"job of a cluster's journal {job}\njob of a cluster's journal {waiting}\n", said.stdout)
        self.assertEqual(self.forget("--slide", "ann")["journalled_jobs"], [job, waiting])
        self.assertEqual([row["job"] for row in self.json("jobs")["jobs"]], [other, waiting, job])  # nothing without --yes
        self.assertEqual(self.forget("--slide", "ann", "--yes")["journalled_jobs"], [job, waiting])
        self.assertEqual([row["job"] for row in self.json("jobs")["jobs"]], [other])
        self.assertIn("no such job", self.command("logs", job).stderr)
        self.assertFalse([path for path in (self.folder / "state").rglob("*") if path.is_file() and b"ann" in path.read_bytes()])
        self.assertFalse(state.exists() or record.exists())
        self.assertEqual([path.name.split("-")[0] for path in (self.home / "jobs").glob("*.json")], [str(other)])
        self.down(cluster)


if __name__ == "__main__":
    harness.main()
