// Every seed and every input that once was a finding, in the ordinary build.
#include <filesystem>

#include <gtest/gtest.h>

#include "runtime/core/hash.h"
#include "runtime/os/file.h"
#include "tests/fuzz/fuzz_target.h"

namespace patchbay::fuzz {
namespace {

std::vector<std::string> InputsOf(const FuzzTarget& target) {
  std::vector<std::string> inputs;
  const auto folder = std::filesystem::path(PATCHBAY_FUZZ_INPUTS) / target.name;
  if (!std::filesystem::exists(folder)) return inputs;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    auto bytes = ReadFile(Folders::OfThisUser(), entry.path().string(), 1 << 20);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    if (bytes.ok()) inputs.push_back(*std::move(bytes));
  }
  return inputs;
}

TEST(FuzzInputs, SeedsAreTaken) {
  for (const FuzzTarget& target : AllTargets()) {
    std::size_t n = 0;
    for (const std::string& seed : target.seeds()) {
      EXPECT_TRUE(target.read(AsBytes(seed))) << target.name << " seed " << n;
      ++n;
    }
  }
}

TEST(FuzzInputs, StoredInputsAreReadOrRefused) {
  std::size_t taken = 0;
  for (const FuzzTarget& target : AllTargets()) {
    for (const std::string& input : InputsOf(target)) taken += target.read(AsBytes(input)) ? 1 : 0;
  }
  EXPECT_GE(taken, 2u) << "the codestreams of inputs/jpeg2000";
}

TEST(FuzzInputs, ACutSeedIsNeverTakenForMoreThanItHolds) {
  for (const FuzzTarget& target : AllTargets()) {
    for (const std::string& seed : target.seeds()) {
      for (std::size_t size = 0; size < seed.size(); size += 1 + seed.size() / 50) {
        (void)target.read(AsBytes(seed).first(size));
      }
    }
  }
}

}  // namespace
}  // namespace patchbay::fuzz
