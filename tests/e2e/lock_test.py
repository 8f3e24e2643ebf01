"""A locked run streams what it was locked to: slides that come later, labels that are imported again."""
import csv
import json
import os
import shutil
import subprocess
import unittest

import harness

TABLE = "classes: [{name: a, value: 0}, {name: b, value: 1}]"
SQUARE = {"type": "FeatureCollection", "features": [
    {"type": "Feature", "properties": {"classification": {"name": "b"}},
     "geometry": {"type": "Polygon", "coordinates": [[[10, 10], [200, 10], [200, 200], [10, 200], [10, 10]]]}}]}
CONFIG = """
dataset: cohort.csv
stores: stores
split_column: fold
patch: {size: [64, 64]}
labels: {set: mine, mask: true}
batch: {global_size: 8, dtype: uint8}
"""


class Lock(harness.Case):
    def setUp(self):
        super().setUp()
        slides = [self.slide(f"s{i}.svs", "300x260", i) for i in (1, 2, 3)]
        self.json("ingest", *slides, "--out", "stores")
        self.json("scan", *slides, "--out", "all.csv", "--hash")
        with open(self.folder / "all.csv", newline="", encoding="utf-8") as table:
            self.rows = list(csv.DictReader(table))
        for i, row in enumerate(self.rows):
            row["fold"] = "val" if i == 1 else "train"
            row["patient_id"] = str(i)
            row["annotation"] = f"drawn{i}.geojson"
        self.draw(0, 1, 2)
        (self.folder / "classes.yaml").write_text(TABLE)
        (self.folder / "run.yaml").write_text(CONFIG)
        self.table(2)
        self.labels()

    def draw(self, *numbers, corner=200):
        for i in numbers:
            ring = SQUARE["features"][0]["geometry"]["coordinates"][0]
            ring[2] = [corner, corner]
            (self.folder / f"drawn{i}.geojson").write_text(json.dumps(SQUARE))

    def table(self, count):
        with open(self.folder / "cohort.csv", "w", newline="", encoding="utf-8") as table:
            writer = csv.DictWriter(table, list(self.rows[0]))
            writer.writeheader()
            writer.writerows(self.rows[:count])

    def labels(self):
        return self.json("labels", "import", "cohort.csv", "--stores", "stores", "--set", "mine", "--classes", "classes.yaml")

    def digest(self):
        return self.json("stream", "run.yaml", "--split", "all", "--digest")["digest"]

    def test_a_lock_holds_while_the_cohort_grows(self):
        made = self.json("lock", "run.yaml")
        self.assertEqual((made["images"], made["written"]), (2, True))
        before = self.digest()
        self.assertTrue(self.json("config", "check", "run.yaml")["lock"]["current"])
        self.assertFalse(self.json("lock", "run.yaml")["written"])

        self.table(3)
        self.draw(0, corner=150)
        self.labels()
        self.assertEqual(self.digest(), before)
        checked = self.json("config", "check", "run.yaml")["lock"]
        self.assertEqual((checked["current"], checked["summary"]), (False, "+1 slide, 1 relabelled"))
        text = (self.folder / "run.lock").read_bytes()
        refused = self.command("lock", "run.yaml")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("+1 slide, 1 relabelled", refused.stderr)
        self.assertEqual((self.folder / "run.lock").read_bytes(), text)

        unnamed = self.command("labels", "prune", "stores")
        self.assertEqual(unnamed.returncode, 2)
        self.assertIn("--lock RUN.lock", unnamed.stderr)
        kept = self.json("labels", "prune", "stores", "--lock", "run.lock")
        self.assertEqual((kept["removed"], kept["kept"]), (0, 1))
        self.assertEqual(self.digest(), before)

        updated = self.json("lock", "run.yaml", "--update")
        self.assertEqual(updated["difference"]["relabelled"], [self.rows[0]["slide_id"]])
        after = self.digest()
        self.assertNotEqual(after, before)
        self.assertTrue(self.json("config", "check", "run.yaml")["lock"]["current"])
        for words, removed in ((("--dry-run",), 1), (("--lock", "run.lock", "--set", "other"), 0), (("--lock", "run.lock"), 1),
                               (("--no-lock",), 0)):
            found = self.json("labels", "prune", "stores", *words)
            self.assertEqual((found["removed"], found["kept"]), (removed, 0), words)
        self.assertEqual(self.digest(), after)
        self.assertTrue(all(self.json("verify", store)["clean"] for store in (self.folder / "stores").glob("*.zarr")))

    def test_sets_are_listed_shown_and_deleted(self):
        self.json("lock", "run.yaml")
        self.draw(0, corner=150)
        self.labels()
        self.json("labels", "tissue", "stores")
        found = self.json("labels", "list", "stores")
        self.assertEqual((found["stores"], found["without"]), (3, 0))
        mine = [one for one in found["sets"] if one["set"] == "mine"]
        self.assertEqual(sorted(len(one["older"]) for one in mine), [0, 1])
        self.assertEqual({one["from"] for one in mine}, {"geojson"})
        said = self.command("labels", "list", "cohort.csv", "--stores", "stores").stdout
        self.assertIn("4 label sets in 2 stores", said)

        redrawn = next(one for one in mine if one["older"])
        shown = self.json("labels", "show", redrawn["store"], "--set", "mine")
        self.assertEqual(shown, redrawn)
        # The outline's area by its corners (shoelace formula), and half a pixel at each of its edges.
        corners = [(10, 10), (200, 10), (150, 150), (10, 200)]
        area = abs(sum(x0 * y1 - x1 * y0 for (x0, y0), (x1, y1) in zip(corners, corners[1:] + corners[:1]))) / 2
        self.assertAlmostEqual(sum(one["pixels"] for one in shown["classes"]), area, delta=4 * 190 / 2)
        missing = self.command("labels", "show", redrawn["store"], "--set", "other")
        self.assertEqual(missing.returncode, 1)
        self.assertIn("no set 'other' (it has mine, tissue)", missing.stderr)
        self.assertEqual(self.command("labels", "list", str(self.folder / "drawn0.geojson")).returncode, 1)

        unnamed = self.command("labels", "delete", "stores", "--set", "mine")
        self.assertEqual(unnamed.returncode, 2)
        self.assertEqual(self.command("labels", "delete", "stores", "--no-lock").returncode, 2)
        would = self.json("labels", "delete", "stores", "--set", "mine", "--lock", "run.lock", "--dry-run")
        self.assertEqual((would["removed"], would["kept"]), (1, 2))
        self.assertEqual(self.json("labels", "list", "stores"), found)
        self.assertEqual(self.json("labels", "delete", "stores", "--set", "mine", "--lock", "run.lock")["removed"], 1)
        # The locked revisions still stream, one of them no longer current.
        self.digest()
        self.assertEqual(self.json("labels", "delete", "stores", "--set", "mine", "--no-lock")["removed"], 2)
        left = self.json("labels", "list", "stores")["sets"]
        self.assertEqual({one["set"] for one in left}, {"tissue"})
        gone = self.command("stream", "run.yaml", "--split", "all")
        self.assertEqual(gone.returncode, 2)
        self.assertIn("is gone: it was pruned", gone.stderr)
        self.assertTrue(all(self.json("verify", store)["clean"] for store in (self.folder / "stores").glob("*.zarr")))
        self.assertEqual(self.json("labels", "import", "cohort.csv", "--stores", "stores", "--set", "mine", "--classes", "classes.yaml")["failed"], [])

    def test_what_is_not_the_lock_s_is_refused(self):
        self.json("lock", "run.yaml")
        for row in self.rows:
            row["fold"] = "val" if row["fold"] == "train" else "train"
        self.table(2)
        moved = self.command("stream", "run.yaml", "--split", "all")
        self.assertEqual(moved.returncode, 1)
        self.assertIn("cohort.csv:2: column 'fold': it is 'val', 'train' in the run's lock", moved.stderr)
        for row in self.rows:
            row["fold"] = "val" if row["fold"] == "train" else "train"
        self.table(2)
        # The revision that the lock has is gone.
        self.draw(0, corner=150)
        self.labels()
        for revision in (self.folder / "stores").glob("*/labels/mine.*"):
            listed = json.loads((revision.parent / "zarr.json").read_text())["attributes"]["ome"]["labels"]
            if revision.name not in listed:
                shutil.rmtree(revision)
        gone = self.command("stream", "run.yaml", "--split", "all")
        self.assertNotEqual(gone.returncode, 0)
        self.assertIn("is gone: it was pruned, or the store was made again; `patchbay lock --update`", gone.stderr)
        self.json("lock", "run.yaml", "--update")
        # The slide behind a row without a store is another one.
        stores = self.folder / "stores"
        subprocess.run(["rm", "-rf", str(stores)], check=True)
        self.json("ingest", "cohort.csv", "--out", "stores", "--codec-level", "1")
        self.labels()
        other = self.command("stream", "run.yaml", "--split", "all")
        self.assertEqual(other.returncode, 1)
        self.assertIn("it was changed, replaced or made again; `patchbay lock --update`", other.stderr)

    def test_statistics_are_those_of_the_training_split(self):
        text = CONFIG + "preprocess: [{stain_normalize: {reference: cohort}}]\n"
        (self.folder / "run.yaml").write_text(text)
        free = self.json("stream", "run.yaml", "--split", "val", "--digest")["digest"]
        trained = self.json("stream", "run.yaml", "--split", "train", "--digest")["digest"]
        self.json("lock", "run.yaml")
        reference = json.loads((self.folder / "run.lock").read_text())["statistics"]["stain_reference"]
        found = self.json("config", "print", "run.yaml", "--split", "val")["preprocess"][0]["stain_normalize"]
        self.assertEqual(found["reference_fit"], reference)
        self.assertNotEqual(self.json("stream", "run.yaml", "--split", "val", "--digest")["digest"], free)
        self.assertEqual(self.json("stream", "run.yaml", "--split", "train", "--digest")["digest"], trained)

    def test_a_lock_is_its_owner_s_alone_and_an_update_keeps_its_mode(self):
        lock = self.folder / "run.lock"
        before = os.umask(0o002)
        self.addCleanup(os.umask, before)
        self.json("lock", "run.yaml")
        self.assertEqual(lock.stat().st_mode & 0o7777, 0o600)
        for count, mode in ((3, 0o660), (2, 0o644), (3, 0o400)):
            os.umask(0o077)
            lock.chmod(mode)
            self.table(count)
            self.labels()
            self.assertTrue(self.json("lock", "run.yaml", "--update")["written"])
            self.assertEqual(lock.stat().st_mode & 0o7777, mode)
        lock.unlink()
        (self.folder / "shared").mkdir()
        lock.symlink_to(self.folder / "shared/run.lock")
        (self.folder / "shared/run.lock").touch(0o640)
        (self.folder / "shared/run.lock").chmod(0o640)
        self.json("lock", "run.yaml", "--update")
        self.assertTrue(lock.is_symlink())
        self.assertEqual((self.folder / "shared/run.lock").stat().st_mode & 0o7777, 0o640)

    def test_a_picture_that_stains_go_by_is_pinned_and_a_resume_names_it(self):
        target, cure = self.folder / "target.tif", "`patchbay lock --update` takes it as it is now"
        config = CONFIG + "preprocess: [{stain_normalize: {reference: target.tif}}]\n"
        (self.folder / "run.yaml").write_text(config)
        shutil.copy(self.folder / "s1.svs", target)
        streamed = self.json("stream", "run.yaml", "--split", "all", "--digest")
        token = ("stream", "run.yaml", "--split", "all", "--resume", streamed["resume_token"])
        self.assertEqual(self.command(*token).returncode, 0)
        self.json("lock", "run.yaml")
        self.assertEqual(self.digest(), streamed["digest"])
        shutil.copy(self.folder / "s2.svs", target)
        self.assertEqual(self.digest(), streamed["digest"])
        self.assertEqual(self.command(*token).returncode, 0)
        checked = self.json("config", "check", "run.yaml")["lock"]
        self.assertEqual((checked["current"], checked["summary"]), (False, "other statistics (stain_reference:target.tif)"))
        self.assertEqual(self.command("lock", "run.yaml").returncode, 1)
        (self.folder / "run.yaml").write_text(config.replace("reference:", "profile: reinhard, reference:"))
        other = self.command("stream", "run.yaml", "--split", "all")
        self.assertEqual(other.returncode, 1)
        self.assertIn("the numbers of the stain reference 'target.tif' for another profile, or other colours (icc_to_srgb); " + cure,
                      other.stderr)
        (self.folder / "run.yaml").write_text(config.replace("target.tif", "s2.svs"))
        other = self.command("stream", "run.yaml", "--split", "all")
        self.assertEqual(other.returncode, 1)
        self.assertIn(f"the run's lock has no numbers of the stain reference {self.folder.resolve()}/s2.svs; {cure}", other.stderr)
        (self.folder / "run.yaml").write_text(config)
        self.json("lock", "run.yaml", "--update")
        self.assertNotEqual(self.digest(), streamed["digest"])
        # Without a lock the picture counts as it is, and a resume says that it changed.
        (self.folder / "run.lock").unlink()
        refused = self.command(*token)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("its stain reference (the picture, or the slides of the cohort) differs", refused.stderr)
        self.assertNotIn("its config", refused.stderr)

    def test_the_positions_of_a_table_are_pinned(self):
        ids = [row["slide_id"] for row in self.rows]

        def places(*rows):
            (self.folder / "coords.csv").write_text("slide_id,x,y\n" + "".join(f"{ids[i]},{x},{y}\n" for i, x, y in rows))
        places((0, 10, 20), (1, 0, 0))
        (self.folder / "run.yaml").write_text(CONFIG + "sampling: {positions: coords.csv}\n")
        self.json("lock", "run.yaml")
        before = self.digest()
        self.table(3)
        self.labels()
        places((2, 5, 5), (0, 10, 20), (1, 0, 0))
        self.assertEqual(self.digest(), before)
        places((2, 5, 5), (0, 10, 21), (1, 0, 0))
        refused = self.command("stream", "run.yaml", "--split", "train")
        self.assertEqual(refused.returncode, 1)
        self.assertIn(f"coords.csv: the positions of '{ids[0]}' are not those of the run's lock; `patchbay lock --update`", refused.stderr)
        self.json("stream", "run.yaml", "--split", "val")
        # The third slide comes first now, so that the other one has its positions in another place of the order.
        self.assertIn("+1 slide, 2 with other positions", self.command("lock", "run.yaml").stderr)
        self.json("lock", "run.yaml", "--update")
        self.assertNotEqual(self.digest(), before)

    def test_equal_outlines_are_one_revision_whatever_the_site(self):
        self.json("lock", "run.yaml")
        for site in ("north", "south", ""):
            for row in self.rows:
                row["site"] = site
            self.table(2)
            self.labels()
            self.assertEqual(self.json("lock", "run.yaml")["difference"]["summary"], "no difference")
        revisions = [path.name for path in (self.folder / "stores").glob("*/labels/mine.*")]
        self.assertEqual(len(revisions), 2)

    def test_a_label_revision_that_was_exchanged_for_another_is_refused(self):
        self.json("lock", "run.yaml")
        before = self.digest()
        self.draw(0, corner=150)
        self.labels()
        revisions = [sorted(folder.glob("mine.*")) for folder in (self.folder / "stores").glob("*/labels")]
        old, new = next(two for two in revisions if len(two) == 2)
        if new.name.split(".")[1] in (self.folder / "run.lock").read_text():
            old, new = new, old
        self.assertEqual(self.digest(), before)
        for path in sorted(old.rglob("*"), reverse=True):
            path.unlink() if path.is_file() else path.rmdir()
        shutil.copytree(new, old, dirs_exist_ok=True)
        refused = self.command("stream", "run.yaml", "--split", "all")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("recorded, not", refused.stderr)

    def test_rows_that_where_leaves_out_are_no_rows_left_out(self):
        (self.folder / "run.yaml").write_text(CONFIG + "where: {use: 1}\n")
        for row in self.rows:
            row["use"] = "1"
        self.table(2)
        self.json("lock", "run.yaml")
        self.rows[2]["use"] = "0"
        self.table(3)
        self.assertNotIn("rows left out", self.command("stream", "run.yaml", "--split", "all").stderr)
        self.rows[2]["use"] = "1"
        self.table(3)
        self.assertIn("rows left out        1 of the table that are not in the run's lock",
                      self.command("stream", "run.yaml", "--split", "all").stderr)

    def test_a_dataset_without_a_table_and_damaged_locks(self):
        (self.folder / "plain.yaml").write_text("dataset: stores\npatch: {size: [64, 64]}\nbatch: {global_size: 8, dtype: uint8}\n")
        free = self.json("stream", "plain.yaml", "--digest")["digest"]
        self.json("lock", "plain.yaml")
        self.assertEqual(self.json("stream", "plain.yaml", "--digest")["digest"], free)
        self.json("ingest", self.slide("s4.svs", "300x260", 4), "--out", "stores")
        self.assertEqual(self.json("stream", "plain.yaml", "--digest")["digest"], free)
        lock = self.folder / "plain.lock"
        for damage in ("", "{}", lock.read_text()[:200]):
            lock.write_text(damage)
            refused = self.command("stream", "plain.yaml")
            self.assertEqual(refused.returncode, 1)
            self.assertIn("plain.lock", refused.stderr)
        self.json("lock", "plain.yaml", "--update")
        self.assertNotEqual(self.json("stream", "plain.yaml", "--digest")["digest"], free)


if __name__ == "__main__":
    unittest.main()
