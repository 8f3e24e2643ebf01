// Runs a script that computes expected results with public Python packages, in a folder that is
// removed after the test.
#pragma once

#include <string>
#include <string_view>

#include "runtime/format/json/json.h"

namespace patchbay::ops {

class PythonOracle {
 public:
  /// `script`: its path; it is run as `SCRIPT FOLDER/request.json FOLDER` and leaves its answers as
  /// files in the folder. `modules`: what it imports, as in "numpy, scipy".
  PythonOracle(std::string script, std::string_view modules);
  ~PythonOracle();
  PythonOracle(const PythonOracle&) = delete;
  PythonOracle& operator=(const PythonOracle&) = delete;

  /// Why it cannot be asked on this machine, to skip the test with; empty where it can. It looks
  /// for a Python that has the modules at PATCHBAY_PYTHON, in the project's environment and in the
  /// system.
  const std::string& missing() const { return missing_; }

  /// Fails the test, with the script's output, unless the script succeeds.
  void Ask(const Json& request) const;

  std::string PathOf(std::string_view name) const;
  /// A whole file of the answer; empty, and the test fails, where the script left none.
  std::string Read(std::string_view name) const;
  /// A whole JSON document of the answer; null, and the test fails, where it is none.
  Json ReadJson(std::string_view name) const;

 private:
  std::string script_, python_, missing_, folder_;
};

}  // namespace patchbay::ops
