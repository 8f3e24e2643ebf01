"""Each alert of deploy/site/monitoring fires by its cause and not without it, and the config of configs/metrics.md is one. promtool of
Debian's package prometheus says so; it is too large to install for this: without it the test is skipped."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
RULES = ROOT / "deploy/site/monitoring/alerts.yml"
CASES = ROOT / "tests/deploy/alerts.yml"


def promtool(*words):
    done = subprocess.run(["promtool", *map(str, words)], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


class Alerts(unittest.TestCase):
    def test_every_alert_fires_by_its_cause(self):
        code, said = promtool("test", "rules", CASES)
        self.assertEqual(code, 0, said)
        alerts = re.findall(r"- alert: (\w+)", RULES.read_text())
        tried = re.findall(r"alertname: (\w+), .*exp_alerts: \[\{", CASES.read_text())
        self.assertEqual(sorted(alerts), sorted(tried))

    def test_the_config_of_the_page_takes_the_rules(self):
        page = (ROOT / "configs/metrics.md").read_text()
        with tempfile.TemporaryDirectory() as folder:
            config = pathlib.Path(folder) / "prometheus.yml"
            config.write_text(re.search(r"```yaml\n(.*?)```", page, re.DOTALL)[1])
            shutil.copy(RULES, folder)
            code, said = promtool("check", "config", config)
        self.assertEqual(code, 0, said)
        self.assertIn("7 rules found", said)


if __name__ == "__main__":
    if not shutil.which("promtool"):
        print("skipped: promtool is not here")
        sys.exit(77)
    unittest.main()
