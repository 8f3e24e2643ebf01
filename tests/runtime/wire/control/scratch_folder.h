// A folder for one test, gone with it.
#pragma once

#include <filesystem>
#include <string>

#include <stdlib.h>

#include "runtime/core/strings.h"

namespace patchbay::control {

class ScratchFolder {
 public:
  ScratchFolder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "patchbay-test-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  std::string Path(const std::string& name) const { return StrCat(path_, "/", name); }

 private:
  std::string path_;
};

}  // namespace patchbay::control
