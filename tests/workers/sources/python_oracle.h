// Scripts of this folder, by which other packages read or write what the tests compare.
#pragma once

#include <cstdlib>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "runtime/core/strings.h"

namespace patchbay::workers {

/// The Python at PATCHBAY_PYTHON, else the project's own.
inline std::string PythonPath() {
  const char* python = std::getenv("PATCHBAY_PYTHON");
  return python != nullptr ? python : PATCHBAY_SOURCE_DIR "/.venv/bin/python";
}

/// Whether that Python is there and imports `packages` ("numpy, tifffile"). Without them a test
/// skips; once they are there, a script that fails fails its test.
inline bool HasPackages(std::string_view packages) {
  const std::string probe =
      StrCat("'", PythonPath(), "' -c 'import ", packages, "' >/dev/null 2>&1");
  return std::system(probe.c_str()) == 0;
}

/// Runs a script of this folder; its exit status is asserted by the caller.
inline testing::AssertionResult RunScript(std::string_view name, std::string_view arguments) {
  const std::string command = StrCat(
      "'", PythonPath(), "' " PATCHBAY_SOURCE_DIR "/tests/workers/sources/", name, " ", arguments);
  if (std::system(command.c_str()) == 0) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "it failed: " << command;
}

}  // namespace patchbay::workers
