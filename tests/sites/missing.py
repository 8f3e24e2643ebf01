"""A component of another party that a test of a site needs and this machine lacks."""
import os
import sys
import unittest

FAILS = "PATCHBAY_TEST_MISSING_FAILS" in os.environ  # deploy/test --all sets it


def absent(why):
    """The exception for it: the test is skipped, or fails in deploy/test --all."""
    return AssertionError(why) if FAILS else unittest.SkipTest(why)


def leave(why, skipped_status):
    """Ends a script of which nothing can run."""
    print(("failed: " if FAILS else "skipped: ") + why)
    sys.exit(1 if FAILS else skipped_status)
