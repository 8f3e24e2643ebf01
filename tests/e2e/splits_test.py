"""Splits of a table: which rows they take, what is augmented, what is refused, and what is said of leaks."""
import json
import shutil
import subprocess
import unittest

import harness


class Splits(harness.Case):
    def setUp(self):
        super().setUp()
        self.slides = [self.slide(f"s{i}.tif", "300x260", i) for i in (1, 2, 3)]

    def table(self, *rows, columns="path,patient_id,fold"):
        (self.folder / "cohort.csv").write_text("\n".join((columns, *rows)) + "\n", encoding="utf-8")

    def config(self, more="", augment="[flip]"):
        (self.folder / "run.yaml").write_text(
            "dataset: cohort.csv\nsplit_column: fold\npatch: {size: [64, 64]}\nbatch: {global_size: 8, dtype: uint8}\n"
            f"augment: {augment}\n{more}", encoding="utf-8")

    def refused(self, cause, *words, expect=2):
        done = self.command(*words)
        self.assertEqual(done.returncode, expect, done.stderr)
        self.assertIn(cause, done.stderr)

    def digest(self, *words):
        return self.json("stream", "run.yaml", "--digest", "--cpus", 1, *words)["digest"]

    def test_augmentation_follows_the_role_and_a_table_is_streamed_by_split(self):
        self.table("s1.tif,P1,training", "s2.tif,P2,val", "s3.tif,P3,")
        self.config()
        self.refused("run.yaml:2: key 'split_column': a table with splits is streamed by split: name one of training, val (--split, "
                     "or split= in Python), or `all`, which is every row without augmentation", "stream", "run.yaml")
        self.refused("run.yaml:5: key 'augment': it applies to splits whose role is train, and the split 'training' has none: say "
                     "`splits: {training: {role: train}}`, or `role: evaluate`", "stream", "run.yaml", "--split", "training")
        self.refused("run.yaml:5: key 'augment'", "config", "check", "run.yaml", "--split", "training")
        val, every = self.digest("--split", "val"), self.json("stream", "run.yaml", "--split", "all", "--digest")
        self.assertEqual(every["patches"], 3 * 25)
        checked = self.json("config", "check", "run.yaml")
        self.assertEqual((checked["images"], checked["splits"]["rows"]), (3, {"training": 1, "val": 1}))
        self.assertEqual((checked["splits"]["roles"], checked["splits"]["without_split"]), ({"val": "evaluate"}, 1))
        self.json("lock", "run.yaml")
        (self.folder / "run.lock").unlink()

        self.config("splits: {training: {role: train}}\n")
        train = self.json("stream", "run.yaml", "--split", "training", "--digest")
        self.assertEqual(self.digest("--split", "val"), val)
        self.assertEqual(self.digest("--split", "all"), every["digest"])
        self.assertEqual(self.json("config", "print", "run.yaml", "--split", "training")["augment"][0].keys(), {"flip"})
        self.assertEqual(train["splits"]["roles"], {"training": "train", "val": "evaluate"})
        self.config("splits: {training: {role: evaluate}}\n")
        plain = self.digest("--split", "training")
        self.assertNotEqual(plain, train["digest"])
        self.config(augment="[]")  # nothing hangs on a role
        self.assertEqual(self.digest("--split", "training"), plain)
        self.assertEqual(self.digest("--split", "all"), every["digest"])

    def test_the_usual_name_and_a_stated_role_give_the_same_plan(self):
        self.table("s1.tif,P1,train", "s2.tif,P2,val")
        self.config()
        usual = self.digest("--split", "train")
        self.config("splits: {train: {role: train}, val: {role: evaluate}}\n")
        self.assertEqual(self.digest("--split", "train"), usual)

    def test_tables_that_say_nothing_clear_are_refused_by_line(self):
        self.config()
        self.table("s1.tif,P1,train", "s2.tif,P2,val", "s3.tif,P3,Val")
        for words in (("config", "check", "run.yaml"), ("lock", "run.yaml"), ("stream", "run.yaml", "--split", "val")):
            self.refused("cohort.csv:4: column 'fold': the split 'Val' and 'val' in line 3 differ only in case; spell them alike", *words)
        self.table("s1.tif,P1,train", "s2.tif,P2,all")
        self.refused("cohort.csv:3: column 'fold': 'all' stands for every row", "stream", "run.yaml", "--split", "all")
        self.table("s1.tif,P1,train", "s2.tif,P2,val", "s3.tif,P3")
        for words in (("config", "check", "run.yaml"), ("stream", "run.yaml", "--split", "val")):
            self.refused("cohort.csv:4: column 'fold': the line ends before it, with 2 of 3 cells", *words)
        self.refused("cohort.csv:4: column 'fold': the line ends before it", "ingest", "cohort.csv", "--out", "out", expect=1)
        self.assertFalse((self.folder / "out").exists())

    def test_what_was_compared_for_leaks_is_said(self):
        self.config()
        self.table("s1.tif,P1,train", "s2.tif,p1,val", "s3.tif,P3,")
        for words in (("config", "check", "run.yaml"), ("stream", "run.yaml", "--split", "val"), ("lock", "run.yaml")):
            done = self.command(*words)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("cohort.csv:4: column 'fold': it is empty: the row is in no split; only `all` has it", done.stderr)
            self.assertIn("cohort.csv:3: column 'patient_id': 'p1' in the split 'val' and 'P1' in 'train' in line 2 differ only in case",
                          done.stderr)
            known = 1 if words[0] == "stream" else 2
            self.assertIn(f"compared for leaks patient_id of 2 and content of {known} of 2 rows", done.stdout)
            self.assertEqual("the content of 1 of 2 rows is not known" in done.stderr, words[0] == "stream", done.stderr)
        (self.folder / "run.lock").unlink()
        for columns, cause in (("path,patient,fold", "no column 'patient_id' (is it 'patient'?): none were compared"),
                               ("path,x,fold", "no column 'patient_id': none were compared")):
            self.table("s1.tif,P1,train", "s2.tif,P1,val", columns=columns)
            self.assertIn(cause, self.command("config", "check", "run.yaml").stderr)
        self.table("s1.tif,,train", "s2.tif,,val")
        said = self.json("config", "check", "run.yaml")["splits"]
        self.assertEqual(said["compared"], {"rows": 2, "patient_id": 0, "content": 2})
        self.assertIn("column 'patient_id' is empty: none were compared", said["notices"][0])
        self.table("s1.tif,\u00a0P1 ,train", "s2.tif,P1,val")
        self.refused("cohort.csv:3: column 'patient_id': the patient 'P1' is in the split 'val' here and in 'train' in line 2",
                     "stream", "run.yaml", "--split", "val")

    def test_equal_content_in_two_splits_is_refused_wherever_it_is_known(self):
        shutil.copy(self.slides[0], self.folder / "copy.tif")
        self.table("s1.tif,P1,train", "s2.tif,P2,train", "copy.tif,P3,val")
        self.config()
        # One split knows its own contents alone.
        self.digest("--split", "val")
        leak = "column 'path': the content is in the split 'val' here and in 'train' in line 2, so that one split knows the other"
        for words in (("config", "check", "run.yaml"), ("lock", "run.yaml"), ("stream", "run.yaml", "--split", "all")):
            self.refused("cohort.csv:4: " + leak, *words)
        self.assertFalse((self.folder / "run.lock").exists())
        # Through the stores that both rows come to.
        self.json("ingest", *self.slides, "--out", "stores")
        self.config("stores: stores\n")
        for words in (("config", "check", "run.yaml"), ("lock", "run.yaml")):
            self.refused("cohort.csv:4: " + leak, *words)
        # A content_hash in the other split's rows is known to each.
        digest = subprocess.run(["sha256sum", self.slides[0]], capture_output=True, text=True, check=True).stdout.split()[0]
        self.table(f"s1.tif,P1,train,{digest}", "s2.tif,P2,train,", "copy.tif,P3,val,", columns="path,patient_id,fold,content_hash")
        for stores in ("", "stores: stores\n"):
            self.config(stores)
            self.refused("cohort.csv:4: " + leak, "stream", "run.yaml", "--split", "val")
            self.digest("--split", "train")
        self.table("s1.tif,P1,train,", f"s2.tif,P2,val,{'1' * 64}", columns="path,patient_id,fold,content_hash")
        self.config()
        self.refused(f"cohort.csv:3: {self.folder / 's2.tif'}: its content (SHA-256 ", "config", "check", "run.yaml", expect=1)

    def test_a_lock_that_has_one_content_in_two_splits_is_refused(self):
        self.table("s1.tif,P1,train", "s2.tif,P2,val")
        self.config()
        self.json("lock", "run.yaml")
        self.digest("--split", "val")
        lock = json.loads((self.folder / "run.lock").read_text(encoding="utf-8"))
        lock["images"][1]["digest"] = lock["images"][0]["digest"]
        (self.folder / "run.lock").write_text(json.dumps(lock), encoding="utf-8")
        self.refused("cohort.csv:3: column 'path': the content is in the split 'val' here and in 'train' in line 2",
                     "stream", "run.yaml", "--split", "val")

    def test_a_lock_sums_over_the_splits_to_train_on(self):
        self.json("ingest", *self.slides, "--out", "stores")
        self.table("s1.tif,P1,training", "s3.tif,P3,val", "s2.tif,P2,more")
        more = "stores: stores\npreprocess: [{stain_normalize: {reference: cohort}}]\n"
        self.config(more)
        self.refused("run.yaml:2: key 'split_column': the lock's statistics are of the splits to train on, and none of column 'fold' "
                     "has that role: say `splits: {NAME: {role: train}}`", "lock", "run.yaml")
        self.config(more + "splits: {training: {role: train}}\n")
        self.json("lock", "run.yaml")
        one = json.loads((self.folder / "run.lock").read_text(encoding="utf-8"))["statistics"]["stain_reference"]
        self.config(more + "splits: {training: {role: train}, more: {role: train}}\n")
        self.refused("the config's splits (a role) is not the lock's; `patchbay lock --update` takes it as it is now",
                     "stream", "run.yaml", "--split", "val", expect=1)
        self.json("lock", "run.yaml", "--update")
        two = json.loads((self.folder / "run.lock").read_text(encoding="utf-8"))["statistics"]["stain_reference"]
        self.assertNotEqual(one, two)


if __name__ == "__main__":
    unittest.main()
