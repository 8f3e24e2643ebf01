"""A dataset with images that cannot be read: one is named, or all of them are left out and reported."""
import json
import os

import harness


class BadImages(harness.Case):
    def dataset(self, count=20):
        folder = self.folder / "slides"
        folder.mkdir()
        slide = self.slide("one.tif", size="600x500", seed=4)
        for i in range(count):
            os.link(slide, folder / f"{100 + i}.tif")
        return folder

    def runs(self, folder):
        fail = self.run_file(folder, patch=128, batch=16)
        skip = self.folder / "skip.yaml"
        skip.write_text(fail.read_text() + "on_bad_image: skip\n")
        return fail, skip

    def test_one_is_named_or_left_out(self):
        folder = self.dataset()
        fail, skip = self.runs(folder)
        good = self.json("stream", fail, "--batches", 3, "--digest")
        self.assertEqual(good["skipped"], {"count": 0, "images": []})
        bad = folder / "110a.tif"
        bad.write_bytes(b"II*\0 no slide")
        for words in (["stream", fail, "--batches", 3], ["config", "check", fail]):
            result = self.command(*words)
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(str(bad), result.stderr)
        left = self.json("stream", skip, "--batches", 3, "--digest")
        self.assertEqual((left["digest"], left["plan_digest"]), (good["digest"], good["plan_digest"]))
        self.assertEqual(left["skipped"]["count"], 1)
        self.assertEqual(left["skipped"]["images"][0]["path"], str(bad))
        self.assertTrue(left["skipped"]["images"][0]["reason"])
        checked = self.json("config", "check", skip)
        self.assertEqual((checked["images"], checked["skipped"]), (20, left["skipped"]))
        said = self.command("stream", skip, "--batches", 1)
        self.assertIn(f"skipped {bad}: ", said.stderr)

    def test_all_workers_of_a_cluster_plan(self):
        folder = self.dataset(200)
        fail, _ = self.runs(folder)
        cluster = self.up(2)
        self.json("stream", fail, "--batches", 1)
        workers = json.loads(self.command("status", "--json").stdout)["workers"]
        self.assertTrue(all(worker["tasks_done"] > 0 for worker in workers), workers)
        rows = json.loads(self.command("jobs", "--json").stdout)["jobs"]
        self.assertGreater(rows[0]["tasks"]["total"], 20, rows)
        self.down(cluster)


if __name__ == "__main__":
    harness.main()
