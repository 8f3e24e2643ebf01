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
            # The same elements where zarr 3 is not.
            sys.modules["zarr"], with_zarr = None, levels
            levels = patchbay.open_store(path)
            assert [type(level).__name__ for level in levels] == ["StoreArray"] * len(with_zarr), levels
            for level, other in zip(levels, with_zarr):
                assert (level.shape, level.dtype, level.chunks) == (other.shape, other.dtype, other.chunks)
                assert (numpy.asarray(level) == other[...]).all()
            for key in (0, (1, slice(100, 500, 3), slice(-50, None)), (..., 7), slice(2, 2), (2, -1, 5), (slice(None), slice(650, 9999))):
                assert numpy.array_equal(levels[0][key], with_zarr[0][key]), key
            for key in (3, (0, 0, 0, 0), slice(None, None, -1)):
                raised(lambda: levels[0][key], IndexError)
            shard = os.path.join(path, "0", "c", "0", "0", "0")
            kept = open(shard, "rb").read()
            for content, what in ((kept[:100] + bytes([kept[100] ^ 1]) + kept[101:], "checksum"), (kept[:-2], "index"), (b"", "index")):
                with open(shard, "wb") as file:
                    file.write(content)
                said = raised(lambda: patchbay.open_store(path)[0][...], patchbay.DataError)
                assert shard in said and what in said, said
            os.remove(shard)
            assert (patchbay.open_store(path)[0][0, :200, :200] == 255).all(), "the fill value"
            del sys.modules["zarr"]
            with open(os.path.join(path, "zarr.json"), "r+") as file:
                text = file.read()
                for broken in (text.replace("multiscales", "multiscalez"), text[:50], "[]", text.replace('"path": "0"', '"path": "../0"').replace('"path":"0"', '"path":"../0"')):
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
