"""An import of labels may be killed at any moment: the store has the set whole or not at all, and the same command succeeds."""
import json
import pathlib
import random
import shutil

import harness

CLASSES = "classes: [{name: benign, value: 0}, {name: tumour, value: 1}]\n"
WIDTH, HEIGHT = 1400, 4300  # two rows of zarr shards: the first is written while the second is made


def polygons(seed):
    """Stars of 40 corners all over the slide."""
    draw = random.Random(seed)
    features = []
    for _ in range(200):
        x, y = draw.uniform(100, WIDTH - 100), draw.uniform(100, HEIGHT - 100)
        ring = [[x + draw.uniform(-90, 90), y + draw.uniform(-90, 90)] for _ in range(40)]
        features.append({"type": "Feature", "geometry": {"type": "Polygon", "coordinates": [ring + ring[:1]]},
                         "properties": {"classification": {"name": "tumour"}}})
    return {"type": "FeatureCollection", "features": features}


class LabelFaults(harness.Case):
    def setUp(self):
        super().setUp()
        (self.folder / "classes.yaml").write_text(CLASSES)
        for number, name in enumerate(("a.geojson", "b.geojson")):
            (self.folder / name).write_text(json.dumps(polygons(number)))

    def fresh(self, name):
        """A store without labels."""
        def make():
            self.json("ingest", self.slide(size=f"{WIDTH}x{HEIGHT}"), "--out", "stores", "--keep-names")
            return self.keep(self.folder / "stores/a.ome.zarr")
        return pathlib.Path(shutil.copytree(self.once("store", make), self.folder / name))

    def words(self, store, file):
        return "labels", "import", store, file, "--set", "t", "--classes", "classes.yaml", "--cpus", 1

    def imported(self, store, file):
        return self.json(*self.words(store, file))["imported"][0]["revision"]

    def sets(self, store):
        listing = store / "labels/zarr.json"
        return json.loads(listing.read_text())["attributes"]["ome"]["labels"] if listing.exists() else []

    def staged(self, store):
        """Files of a revision that is being written."""
        return [p for p in (store / "labels").glob(".staging*/**/*") if p.is_file()]

    def killed(self, moment, store, file):
        """Kills an import with all of its cluster at that moment, and checks that the store is sound."""
        running = self.start(*self.words(store, file))
        harness.wait_until(lambda: moment(store) or running.poll() is not None, "the moment to kill an import")
        self.assertIsNone(running.poll(), "ended before it could be killed")
        for pid in harness.processes(running.pid):
            try:
                self.kill(pid)
            except ProcessLookupError:
                pass
        running.kill()
        running.wait()
        self.assertTrue(self.json("verify", store)["clean"])
        return self.sets(store)

    def test_a_killed_import_leaves_all_of_a_set_or_nothing_and_the_next_one_succeeds(self):
        store = self.fresh("store")
        found = [self.killed(moment, store, "a.geojson") for moment in (lambda at: (at / "labels").exists(), self.staged)]
        first = self.imported(store, "a.geojson")
        self.assertEqual((self.sets(store), self.staged(store)), ([first], []))
        for sets in found:
            self.assertIn(sets, ([], [first]))
        # A correction that is killed leaves the revision before it, or is there.
        found = self.killed(self.staged, store, "b.geojson")
        second = self.imported(store, "b.geojson")
        self.assertIn(found, ([first], [second]))
        self.assertEqual((self.sets(store), self.staged(store)), ([second], []))

    def test_a_full_disk_is_an_error_that_leaves_nothing_and_more_room_lets_it_go_on(self):
        whole = self.fresh("whole")
        revision = self.imported(whole, "a.geojson")
        bytes_of_store = sum((f.stat().st_size + 4095) // 4096 * 4096 for f in whole.rglob("*") if "labels" not in f.parts)
        disk = self.small_disk(bytes_of_store + (40 << 10))
        store = disk / "a.ome.zarr"
        shutil.copytree(whole, store, ignore=shutil.ignore_patterns("labels"))
        result = self.command(*self.words(store, "a.geojson"))
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn("No space left", result.stderr)
        self.assertEqual((self.sets(store), self.staged(store)), ([], []))
        self.assertEqual(self.command("verify", store).returncode, 0)
        self.resize(disk, "200m")
        self.assertEqual(self.imported(store, "a.geojson"), revision)

    def test_a_task_whose_worker_is_killed_is_made_again(self):
        store = self.fresh("again")
        for words in (self.words(store, "a.geojson"), ("labels", "tissue", store, "--cpus", 1)):
            with self.subTest(words=words[:2]):
                running = self.start(*words, "--json")
                harness.wait_until(lambda: self.pids(running, "patchbay-worker") and (store / "labels").exists(), "the work")
                for pid in self.pids(running, "patchbay-worker"):
                    self.kill(pid)
                made = json.loads(self.done(running))["imported"][0]
                self.assertIn(made["revision"], self.sets(store))
        self.assertEqual(self.staged(store), [])
        self.assertTrue(self.json("verify", store)["clean"])


if __name__ == "__main__":
    harness.main()
