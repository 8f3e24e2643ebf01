"""A store that lost files is not read as background: stream and spectra fail and name the file."""
import shutil

import harness


class LostShards(harness.Case):
    def setUp(self):
        super().setUp()
        (self.good,) = self.store([self.slide()]).glob("*.ome.zarr")
        self.at = self.folder / "damaged" / self.good.name

    def damaged(self, lost):
        shutil.rmtree(self.at.parent, ignore_errors=True)
        shutil.copytree(self.good, self.at)
        if (self.at / lost).is_dir():
            shutil.rmtree(self.at / lost)
        else:
            (self.at / lost).unlink()

    def stream(self):
        result = self.command("stream", self.run_file(self.at.parent), "--digest")
        self.assertEqual(result.returncode, 1, result.stderr[-4000:])
        return result.stderr

    def test_stream_names_the_shard_file(self):
        self.damaged("0/c/0/1/2")
        self.assertIn(f"{self.at}/0/c/0/1/2: missing", self.stream())
        self.damaged("0/c")
        self.assertRegex(self.stream(), f"{self.at}/0/c/0/[012]/[012]: missing")

    def test_a_store_that_was_mended_streams_from_a_cluster_that_refused_it(self):
        cluster = self.up(1)

        def stream(expect):
            result = self.command("stream", self.run_file(self.at.parent), "--digest", "--cluster", self.home / "operator.key")
            self.assertEqual(result.returncode, expect, result.stderr[-4000:])
            return result.stderr
        shard = self.at / "0/c/0/1/2"
        self.damaged("0/c/0/1/2")
        self.assertIn(f"{shard}: missing", stream(1))
        self.damaged("0/c/0/1/2")
        content = bytearray((self.good / "0/c/0/1/2").read_bytes())
        content[100:164] = bytes(64)
        shard.write_bytes(content)
        self.assertIn("crc32c mismatch", stream(1))
        shutil.rmtree(self.at)  # the damaged files have the names of the good ones
        shutil.copytree(self.good, self.at)
        stream(0)
        self.down(cluster)

    def test_stream_names_a_lost_level_and_so_does_config_check(self):
        self.damaged("1")
        self.assertIn(f"{self.at}/1: missing", self.stream())
        result = self.command("config", "check", self.run_file(self.at.parent))
        self.assertNotEqual(result.returncode, 0)
        self.assertIn(f"{self.at}/1: missing", result.stderr)

    def test_spectra_lists_the_store_with_the_file(self):
        self.damaged("0/c/0/1/2")
        result = self.command("spectra", self.at.parent, "--out", self.folder / "spectra")
        self.assertNotEqual(result.returncode, 0)
        failed = (self.folder / "spectra/failed.csv").read_text(encoding="utf-8")
        self.assertIn(str(self.at), failed)
        self.assertIn("0/c/0/1/2: missing", failed)


if __name__ == "__main__":
    harness.main()
