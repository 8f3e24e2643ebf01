"""Images and bands of them go to any number of consumers, which come, leave and are killed: each is finished once, and no bit differs."""
import json
import pathlib
import signal

import harness
from trainer_test import ModuleCase

CONSUMER = """
    from patchbay._units import Units, UnitLost

    def sums(batch):
        arrays = {name: memoryview(batch[name]) for name in ("image", "ordinal", "image_index", "box", "level")}
        for i in range(batch.count):
            parts = [bytes(a)[i * a.nbytes // len(a):(i + 1) * a.nbytes // len(a)] for a in arrays.values()]
            yield int(arrays["ordinal"][i]), int(arrays["image_index"][i]), hashlib.sha256(b"".join(parts)).hexdigest()

    out, stop_after = sys.argv[1], int(sys.argv[2])
    with Units("map.yaml", name="run", cpus=1, overrides={"batch.global_size": int(sys.argv[3])}) as units:
        batches = 0
        print("begun", units.description["units"], units.description["plan"], len(units.images), flush=True)
        for unit in units:
            rows = []
            try:
                for batch in unit:
                    rows += sums(batch)
                    batches += 1
                    if batches == stop_after:
                        print("stops in", unit.number, flush=True)
                        time.sleep(600)
            except UnitLost:
                continue
            assert units.images[unit.image]["units"] == [unit.number - unit.band, unit.bands], (unit.number, unit.band, unit.bands)
            assert len(rows) == unit.patches and {image for _, image, _ in rows} == {unit.image}, (unit.number, rows)
            with open(f"{out}/{unit.number}.{os.getpid()}", "w") as file:
                json.dump(rows, file)
            unit.finish()
        finished, failed = units.progress()
        print("end", finished, failed, flush=True)
"""


class Consumers(ModuleCase):
    def setUp(self):
        super().setUp()
        slides = [self.slide(f"{name}.svs", size, seed) for seed, (name, size) in
                  enumerate((("a", "1300x900"), ("b", "700x500"), ("c", "2100x1500")), 1)]
        self.map = self.folder / "map.yaml"
        self.map.write_text(f"dataset: {self.store(slides)}\nnumerics: cpu\npatch: {{size: [128, 128]}}\n"
                            "sampling: {order: sequential}\nbatch: {global_size: 16, dtype: uint8, layout: nhwc}\n"
                            "outputs: {score: {kind: score}}\n", encoding="utf-8")

    def consumer(self, out, stop_after=0, batch=16):
        (self.folder / out).mkdir(exist_ok=True)
        return self.program(CONSUMER, self.folder / out, stop_after, batch)

    def results(self, out):
        """Digest of every patch by image and ordinal; each image is whole in every file of it."""
        patches = {}
        for file in sorted(pathlib.Path(self.folder / out).iterdir()):
            for ordinal, image, digest in json.loads(file.read_text(encoding="utf-8")):
                self.assertEqual(patches.setdefault((image, ordinal), digest), digest)
        return patches

    def test_any_number_of_consumers_makes_the_same_patches(self):
        expected = None
        for count, batch in ((1, 16), (2, 7), (4, 64)):
            out = f"out{count}"
            for process in [self.consumer(out, batch=batch) for _ in range(count)]:
                said = self.said(process)
                self.assertEqual(said[:2], ["begun", "3"])
                self.assertEqual(said[-2:], ["3", "{}"])
            self.assertEqual(len(list((self.folder / out).iterdir())), 3, "each image once")
            found = self.results(out)
            self.assertEqual(len(found), 11 * 8 + 6 * 4 + 17 * 12)
            expected = expected or found
            self.assertEqual(found, expected)
        self.nothing_left()

    def test_an_image_with_many_patches_goes_to_consumers_in_bands(self):
        self.map.write_text(self.map.read_text(encoding="utf-8").replace("[128, 128]", "[16, 16]"), encoding="utf-8")
        for process in [self.consumer("bands", batch=64) for _ in range(2)]:
            self.assertEqual(self.said(process)[-2:], ["5", "{}"])
        counts = [[], [], []]  # by image, whose order the names of stores decide
        for file in sorted(pathlib.Path(self.folder / "bands").iterdir()):
            rows = json.loads(file.read_text(encoding="utf-8"))
            counts[rows[0][1]].append(len(rows))
        self.assertEqual(sorted(counts), [[44 * 32], [31 * 132, 31 * 132, 32 * 132], [82 * 57]])
        self.assertEqual(len(self.results("bands")), 82 * 57 + 44 * 32 + 94 * 132)
        self.nothing_left()

    def test_the_image_of_a_killed_consumer_goes_to_another(self):
        self.said(self.consumer("whole"))
        victim = self.consumer("killed", stop_after=2)
        self.assertTrue(self.await_line(victim).startswith("begun"))
        self.assertTrue(self.await_line(victim).startswith("stops"))
        other = self.consumer("killed")
        self.assertTrue(self.await_line(other).startswith("begun"))
        victim.send_signal(signal.SIGKILL)
        self.assertEqual(self.said(other)[-2:], ["3", "{}"])
        self.assertEqual(self.results("killed"), self.results("whole"))
        self.nothing_left()

    def test_an_image_that_fails_fails_alone(self):
        out = self.run_program("""
            from patchbay._units import Units
            done = []
            with Units("map.yaml", cpus=1) as units:
                for unit in units:
                    for batch in unit:
                        if unit.number == 1:
                            unit.fail("no model for it")
                            break
                    else:
                        unit.finish()
                        done.append(unit.number)
                print(done, units.progress())
        """)
        self.assertEqual("".join(out), "[0,2](3,{1:'nomodelforit'})")

    def test_a_map_is_not_streamed_and_a_stream_not_mapped(self):
        self.assertIn("key 'outputs': this config is for `patchbay map`", self.command("stream", self.map).stderr)
        out = self.run_program("""
            from patchbay._units import Units
            print(raised(lambda: patchbay.attach("map.yaml", cpus=1), patchbay.errors.ConfigError))
            print(raised(lambda: Units("run.yaml", cpus=1), patchbay.errors.ConfigError))
        """)
        self.assertIn("this config is for `patchbay map`", " ".join(out))
        self.assertIn("`patchbay map` needs some", " ".join(out))


if __name__ == "__main__":
    harness.main()
