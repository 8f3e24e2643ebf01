"""stain_normalize by scanner: slides of two scanners, each mapped to the reference that the config gives its scanner."""
import json

import harness

CONFIG = """dataset: cohort.csv
stores: stores
numerics: cpu
patch: {size: [128, 128], level: 0}
sampling: {order: sequential}
batch: {global_size: 8, dtype: uint8}
"""
NUMBERS = [0.6442, 0.7166, 0.2669, 0.0928, 0.9541, 0.2831, 1.2, 0.8]
PATCH_BYTES, SLIDE_PATCHES = 3 * 128 * 128, 12
TABLE = "scanners: {at2: other.zarr, s360: cohort}"


class Scanners(harness.Case):
    def setUp(self):
        super().setUp()
        self.folder = self.once("cohort", self.cohort)
        self.home = self.folder / "home"
        for left in ("run.yaml", "run.lock"):
            (self.folder / left).unlink(missing_ok=True)
        self.table()

    def cohort(self):
        slides = [self.slide(f"s{i}.svs", "512x384", i) for i in range(4)]
        self.json("ingest", *slides, "--out", "stores")
        self.json("ingest", self.slide("other.svs", "512x384", 9), "--out", "other")
        next((self.folder / "other").glob("*.zarr")).rename(self.folder / "other.zarr")
        return self.keep(self.folder)

    def table(self, scanners=("at2", "s360", "at2", "s360"), column="scanner"):
        rows = [f"s{i}.svs,{i},p{i},{scanner}" for i, scanner in enumerate(scanners)]
        (self.folder / "cohort.csv").write_text("\n".join([f"path,slide_id,patient_id,{column}", *rows]) + "\n")

    def config(self, options, more=""):
        path = self.folder / "run.yaml"
        path.write_text(CONFIG + f"preprocess:\n  - stain_normalize: {{{options}}}\n{more}")
        return path

    def digest(self, options, more="", *words):
        return self.json("stream", self.config(options, more), "--digest", *words)["digest"]

    def patches(self, folder):
        """The patches of a saved run, as bytes, in order."""
        found = []
        for path in sorted((self.folder / folder).glob("*image.npy")):
            data = path.read_bytes()
            data = data[10 + int.from_bytes(data[8:10], "little"):]
            found += [data[i:i + PATCH_BYTES] for i in range(0, len(data), PATCH_BYTES)]
        return found

    def refused(self, options, *parts, more=""):
        said = self.command("config", "check", self.config(options, more))
        self.assertEqual(said.returncode, 2, said.stdout + said.stderr)
        for part in parts:
            self.assertIn(part, said.stderr)

    def test_each_scanner_has_its_reference(self):
        cluster = self.up(2)
        for profile in ("macenko/cucim", "reinhard"):
            each = {}
            for scanner, reference in (("at2", "other.zarr"), ("s360", "default")):
                alone = f"where: {{scanner: {scanner}}}\n"
                name = profile[:3] + scanner
                each[scanner] = self.digest(f"profile: {profile}, reference: {reference}", alone, "--save", name)
                listed = f"profile: {profile}, scanners: {{at2: other.zarr, other: default}}"
                if scanner == "at2":
                    self.assertEqual(self.digest(listed, alone), each[scanner], profile)
            self.assertNotEqual(each["at2"], each["s360"])
            self.digest(listed, "", "--save", profile[:3])
            at2, s360 = (self.patches(profile[:3] + scanner) for scanner in ("at2", "s360"))
            n = SLIDE_PATCHES
            self.assertTrue(self.patches(profile[:3]) == at2[:n] + s360[:n] + at2[n:] + s360[n:], profile)
            self.assertEqual(len(at2), 2 * n)
        numbers = f"scanner_fits: {{at2: {NUMBERS}}}, scanners: {{other: default}}"
        self.assertEqual(self.digest(numbers, "where: {scanner: at2}\n"),
                         self.digest(f"reference_fit: {NUMBERS}", "where: {scanner: at2}\n"))
        # All of them: the same patches on two workers, after a resume, on one worker, and whatever the column is called.
        whole = self.json("stream", self.config(TABLE), "--digest", "--save", "whole")
        first = self.json("stream", self.config(TABLE), "--batches", 2, "--save", "parts")
        self.json("stream", self.config(TABLE), "--batches", 4, "--resume", first["resume_token"], "--save", "rest")
        parts = {path.name: path.read_bytes() for part in ("parts", "rest") for path in (self.folder / part).glob("*.npy")}
        self.assertTrue(parts == {path.name: path.read_bytes() for path in (self.folder / "whole").glob("*.npy")})
        other = self.command("stream", self.config("scanners: {at2: other.zarr, s360: default}"), "--resume",
                             first["resume_token"])
        self.assertIn("its stain reference (the picture, or the slides of the cohort) differs", other.stderr)
        self.table(column="device")
        self.assertEqual(self.json("stream", self.config(TABLE + ", scanner_column: device"), "--digest")["digest"],
                         whole["digest"])
        self.down(cluster)
        self.table()
        self.assertEqual(self.json("stream", self.config(TABLE), "--digest", "--cpus", 1)["digest"], whole["digest"])

    def test_a_lock_pins_scanners_and_the_cohort(self):
        free = self.digest(TABLE)
        self.json("lock", "run.yaml")
        pinned = json.loads((self.folder / "run.lock").read_text())["statistics"]
        self.assertEqual(pinned["stain_reference:other.zarr"]["profile"], "macenko/cucim")
        shown = self.json("config", "print", "run.yaml")["preprocess"][0]["stain_normalize"]
        fits = {"s360": pinned["stain_reference"], "at2": pinned["stain_reference:other.zarr"]["fit"]}
        self.assertEqual((shown["scanner_fits"], shown["scanners"]), (fits, {}))
        self.assertEqual(self.json("stream", "run.yaml", "--digest")["digest"], free)
        self.table(("at2", "at2", "at2", "s360"))
        moved = self.command("stream", "run.yaml")
        self.assertNotEqual(moved.returncode, 0)
        self.assertIn("cohort.csv:3: column 'scanner': it is 'at2', 's360' in the run's lock", moved.stderr)

    def test_what_is_refused_names_file_line_and_key(self):
        self.refused("scanners: {at2: default}", "cohort.csv:3: column 'scanner'", "the scanner 's360' is not in",
                     "preprocess[0].stain_normalize.scanners", "give `other` a reference")
        self.refused("scanners: {at: default, s360: cohort}", "'at2'", "did you mean 'at'?")
        self.table(("at2", "s360", "", "s360"))
        self.refused(TABLE, "cohort.csv:4: column 'scanner'", "no scanner is named")
        self.table(column="device")
        self.refused(TABLE, "run.yaml:8", "preprocess[0].stain_normalize.scanner_column", "has no column 'scanner'")
        self.table()
        self.refused(TABLE + ", reference: cohort", "run.yaml:8", "exclude reference")
        self.refused("scanner_fits: {at2: [1, 2]}", "run.yaml:8", "scanner_fits.at2", "expected 8 numbers")
        self.refused("scanners: {at2: ''}", "run.yaml:8", "scanners.at2: an empty path")
        self.refused(f"scanners: {{at2: cohort}}, scanner_fits: {{at2: {NUMBERS}}}", "'at2' is in scanner_fits too")
        run = self.config(TABLE)
        run.write_text(run.read_text().replace("dataset: cohort.csv\nstores: stores", "dataset: stores"))
        listed = self.command("config", "check", run)
        self.assertEqual(listed.returncode, 2, listed.stderr)
        self.assertIn("run.yaml:7: check ops: key 'preprocess[0].stain_normalize.scanners': the dataset is not a table",
                      listed.stderr)
        for key, options in (("scanners", "scanners: {at2: gone.tif, s360: default}"), ("reference", "reference: gone.tif")):
            missing = self.command("stream", self.config(options))
            self.assertEqual(missing.returncode, 2, missing.stderr)
            self.assertIn(f"run.yaml:8: plan stream: key 'preprocess[0].stain_normalize.{key}'", missing.stderr)
            self.assertIn("the stain reference: No such file", missing.stderr)


if __name__ == "__main__":
    harness.main()
