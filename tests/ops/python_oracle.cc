#include "tests/ops/python_oracle.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include <gtest/gtest.h>
#include <stdlib.h>

#include "runtime/core/strings.h"
#include "runtime/os/file.h"

namespace patchbay::ops {
namespace {

constexpr std::size_t kLargestAnswer = std::size_t{1} << 30;

/// The first Python that has the modules, or "". They are looked for, not imported, which takes
/// some of them a second.
std::string PythonWith(std::string_view modules) {
  std::vector<std::string> candidates = {PATCHBAY_DEFAULT_PYTHON, "/usr/bin/python3"};
  if (const char* given = std::getenv("PATCHBAY_PYTHON"))
    candidates.insert(candidates.begin(), given);
  for (const std::string& python : candidates) {
    const std::string command = StrCat(
        "'", python,
        "' -c 'import sys; from importlib.util import find_spec as f; sys.exit(not all(map(f, \"",
        modules, "\".split(\", \"))))' >/dev/null 2>&1");
    if (std::filesystem::exists(python) && std::system(command.c_str()) == 0) return python;
  }
  return "";
}

}  // namespace

PythonOracle::PythonOracle(std::string script, std::string_view modules)
    : script_(std::move(script)), python_(PythonWith(modules)) {
  if (python_.empty()) missing_ = StrCat("no Python with ", modules, " (PATCHBAY_PYTHON)");
  std::string pattern = (std::filesystem::temp_directory_path() / "patchbay-ops-XXXXXX").string();
  if (::mkdtemp(pattern.data()) != nullptr) folder_ = pattern;
}

PythonOracle::~PythonOracle() {
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

void PythonOracle::Ask(const Json& request) const {
  ASSERT_FALSE(folder_.empty()) << "no folder can be made";
  std::ofstream(PathOf("request.json")) << DumpJson(request);
  const std::string command = StrCat("'", python_, "' '", script_, "' '", PathOf("request.json"),
                                     "' '", folder_, "' >'", PathOf("log"), "' 2>&1");
  ASSERT_EQ(std::system(command.c_str()), 0) << Read("log");
}

std::string PythonOracle::PathOf(std::string_view name) const { return StrCat(folder_, "/", name); }

std::string PythonOracle::Read(std::string_view name) const {
  auto bytes = ReadFile(Folders::OfThisUser(), PathOf(name), kLargestAnswer);
  EXPECT_TRUE(bytes.ok()) << name;
  return bytes.ok() ? *std::move(bytes) : std::string();
}

Json PythonOracle::ReadJson(std::string_view name) const {
  auto document = ParseJson(Read(name), name);
  EXPECT_TRUE(document.ok()) << document.status();
  return document.ok() ? *std::move(document) : Json();
}

}  // namespace patchbay::ops
