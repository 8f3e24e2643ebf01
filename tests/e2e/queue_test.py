"""Commands on what waits and runs: hold, release, priority, node drain and resume, why; rate and stall of a stream."""
import platform

import harness
from harness import wait_until

SLIDES = 12


class Queue(harness.Case):
    def row(self, kind):
        rows = [row for row in self.json("jobs")["jobs"] if row["kind"] == kind]
        return rows[0] if rows else {"state": "none", "tasks": {"done": 0, "running": 0}}

    def say(self, *words):
        done = self.command(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def ingest(self):
        slide = self.slide()
        folder = self.folder / "slides"
        folder.mkdir()
        for number in range(SLIDES):
            (folder / f"{number}.svs").write_bytes(slide.read_bytes() + bytes([number]))
        process = self.start("ingest", folder, "--priority", 7, "--out", self.folder / "out", "--chunk", 256, "--shard", 512)
        wait_until(lambda: self.row("ingest")["tasks"]["done"] > 2, "a few tasks of the ingest")
        return process, self.row("ingest")["job"]

    def waits(self, job, cause):
        """Nothing of the job runs, and nothing starts, for that cause."""
        wait_until(lambda: self.row("ingest")["tasks"]["running"] == 0, "the end of what runs")
        before = wait_until(lambda: next((row for row in [self.row("ingest")] if row["state"] != "draining"), None), "its end")
        self.assertEqual(before["cause"], cause)
        why = self.json("why", job)
        self.assertEqual(why["cause"], cause, why)
        self.assertEqual(self.row("ingest")["tasks"], before["tasks"])
        return why["facts"]["starts"]

    def test_an_ingest_is_held_and_its_node_drained_and_both_are_undone(self):
        cluster = self.up(1)
        process, job = self.ingest()
        self.say("hold", job)
        self.assertIn(self.row("ingest")["state"], ("draining", "held"))
        self.assertEqual(self.row("ingest")["priority"], 7)
        self.assertEqual(self.waits(job, "held"), f"when it is released: patchbay release {job}")
        self.say("priority", job, "--", -5)
        self.assertEqual(self.row("ingest")["priority"], -5)
        self.say("release", job)
        held_at = self.row("ingest")["tasks"]["done"]
        wait_until(lambda: self.row("ingest")["tasks"]["done"] > held_at, "more of the ingest")
        self.say("node", "drain", platform.node(), "--reason", "new disk")
        self.assertIn("patchbay node resume", self.waits(job, "drained"))
        row = self.json("node", "list")["nodes"][0]
        self.assertEqual((row["state"], row["drained_by"], row["reason"]), ("drained", "operator", "new disk"))
        self.say("node", "label", platform.node(), "rack 7")
        self.assertEqual(self.json("node", "list")["nodes"][0]["label"], "rack 7")
        self.assertRegex(self.say("node", "list"), r"label +drained by +reason\n.*rack 7 +operator +new disk")
        self.assertIn("new disk", self.say("status"))
        self.say("node", "resume", platform.node())
        self.done(process)
        self.assertIn("does not wait, done", self.say("why", job))
        self.assertIn("it has ended", self.command("hold", job).stderr)
        refused = self.command("node", "drain", "nowhere")
        self.assertEqual((refused.returncode, "no such node" in refused.stderr), (1, True), refused.stderr)
        self.down(cluster)

    def test_a_stream_shows_what_it_made_and_how_long_its_trainer_waited(self):
        slide = self.slide(size="600x500")
        cluster = self.up(1)
        trainer = self.start("stream", self.run_file(slide, patch=100, batch=2), "--batches", 100, "--step-ms", 20)
        wait_until(lambda: self.row("stream").get("patches", {"made": 0})["made"] > 4, "batches")
        row = self.json("job", self.row("stream")["job"])
        self.assertEqual(row["state"], "running")
        self.assertGreater(row["patches_per_s"], 0)
        self.assertGreaterEqual(row["stalled_s"], 0)
        self.assertGreaterEqual(row["patches"]["total"], row["patches"]["made"])
        text = self.say("job", row["job"])
        self.assertRegex(text, r"streaming: \d+ patches made, \d+ at the end of this epoch, \d+ patches/s, stalled for ")
        self.assertNotIn("99 %", text)
        self.done(trainer)
        self.down(cluster)


if __name__ == "__main__":
    harness.main()
