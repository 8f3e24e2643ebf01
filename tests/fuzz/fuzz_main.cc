// libFuzzer's entry: PATCHBAY_FUZZ_TARGET names the parser. With PATCHBAY_FUZZ_SEEDS its seeds are
// written into that folder, and nothing else is done.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include <unistd.h>

#include "tests/fuzz/fuzz_target.h"

namespace {

/// libFuzzer takes an ordinary exit for a finding.
[[noreturn]] void End(int code) {
  std::fflush(nullptr);
  _exit(code);
}

const patchbay::fuzz::FuzzTarget& Chosen() {
  static const patchbay::fuzz::FuzzTarget chosen = [] {
    const char* name = std::getenv("PATCHBAY_FUZZ_TARGET");
    for (const auto& target : patchbay::fuzz::AllTargets()) {
      if (name != nullptr && target.name == name) return target;
      if (name == nullptr) std::printf("%s\n", std::string(target.name).c_str());
    }
    End(name == nullptr ? 0 : 2);
  }();
  return chosen;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const auto& target = Chosen();
  const char* folder = std::getenv("PATCHBAY_FUZZ_SEEDS");
  if (folder == nullptr) return 0;
  std::size_t n = 0;
  for (const std::string& seed : target.seeds()) {
    std::ofstream(std::string(folder) + "/seed-" + std::to_string(n++), std::ios::binary) << seed;
  }
  End(0);
}

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* bytes, std::size_t size) {
  Chosen().read({reinterpret_cast<const std::byte*>(bytes), size});
  return 0;
}
