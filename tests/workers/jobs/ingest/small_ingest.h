// Small ingests in a folder of their own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <stdlib.h>

#include "runtime/format/json/json.h"
#include "runtime/os/folders.h"
#include "tests/workers/jobs/job_runner.h"
#include "workers/jobs/synth/synth.h"

namespace patchbay::workers {

class SmallIngest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name =
        (std::filesystem::canonical(std::filesystem::temp_directory_path()) / "ingest-XXXXXX")
            .string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    out_ = Path("out");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }

  void MakeSlide(const std::string& name, std::int64_t side, std::uint64_t seed) const {
    SynthSlideOptions options;
    options.width = side;
    options.height = side - 100;
    options.seed = seed;
    ASSERT_TRUE(SynthSlide(Folders::OfThisUser(), Path(name), options).ok());
  }

  Json Manifest(const std::vector<std::string>& names) const {
    Json sources = Json::array();
    for (const std::string& name : names) sources.push_back(Path(name));
    return {{"sources", sources}, {"out", out_}, {"pseudonym_key", "00ff"}};
  }

  static std::vector<std::string> Below(const std::string& folder) {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  Json settings_ = {{"chunk", 128}, {"shard", 512}, {"codec", "lz4"}, {"codec_level", 1}};
  std::string folder_, out_;
};

}  // namespace patchbay::workers
