"""patchbay.submit, wait, status and open_store on a cluster that stays."""
import harness
import trainer_test


class Jobs(trainer_test.ModuleCase):
    def test_a_slide_is_ingested_and_its_store_opened(self):
        if not harness.oracles("zarr", "numpy"):
            self.skipTest("the Python of the tests has no zarr: pip install 'zarr>=3'")
        self.slide("b.svs", size="900x700")
        cluster = self.up(1)
        self.run_program("""
            import numpy
            job = patchbay.submit("ingest", "b.svs", out="made", codec="lz4", chunk=256, shard=1024)
            assert type(job) is int
            result = patchbay.wait(job)
            stores = [name for name in os.listdir("made") if name.endswith(".ome.zarr")]
            assert len(stores) == 1, (stores, result)
            described = patchbay.status()
            assert {"nodes", "workers", "jobs"} <= set(described) and len(described["workers"]) == 1, described
            assert [each["state"] for each in described["jobs"] if each["job"] == job] == ["done"], described["jobs"]
            path = os.path.join("made", stores[0])
            levels = patchbay.open_store(path)
            assert [level.shape for level in levels][:1] == [(3, 700, 900)] and levels[0].dtype == numpy.uint8
            assert all(a.shape[1] > b.shape[1] for a, b in zip(levels, levels[1:])), "finest first"
            # The same pixels as a batch of the store has: one patch from a corner, neither scaled nor augmented.
            run = {"dataset": path, "numerics": "cpu", "patch": {"size": [256, 256]}, "sampling": {"order": "sequential"},
                   "batch": {"global_size": 1, "dtype": "uint8", "meta": True}}
            with patchbay.attach(run) as stream:
                batch = next(iter(stream))
                _, y, x, _, height, width = batch["box"].tolist()[0]
                patch = numpy.array(batch["image"])[0]
            assert (patch == levels[0][:, y:y + height, x:x + width]).all() and patch.std() > 0
            with open(os.path.join(path, "zarr.json"), "r+") as file:
                text = file.read()
                for broken in (text.replace("multiscales", "multiscalez"), text[:50], "[]"):
                    file.seek(0)
                    file.truncate()
                    file.write(broken)
                    file.flush()
                    assert path in raised(lambda: patchbay.open_store(path), patchbay.DataError)
            assert "no zarr.json" in raised(lambda: patchbay.open_store("made"), patchbay.NotFoundError)
            """)
        self.down(cluster)


if __name__ == "__main__":
    harness.main()
