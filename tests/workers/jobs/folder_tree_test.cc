#include "workers/jobs/task/folder_tree.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "ops/all_ops.h"
#include "runtime/core/hash.h"

namespace patchbay::workers {
namespace {

namespace fs = std::filesystem;

class FolderTreeTest : public testing::Test {
 protected:
  void SetUp() override {
    context_.signals = &signals_;
    fs::create_directories(folder_ / "a/b");
    for (int i = 0; i < kFiles; ++i) std::ofstream(folder_ / "a/b" / std::to_string(i)) << "four";
  }
  void TearDown() override { fs::remove_all(folder_); }

  static constexpr int kFiles = 40;
  fs::path folder_ =
      fs::canonical(fs::temp_directory_path()) / ("folder_tree_" + Hex64(RandomU64()));
  TaskSignals signals_;
  TaskContext context_{Folders::OfThisUser(), ops::Table()};
};

TEST_F(FolderTreeTest, EveryEntryIsAStepOfProgress) {
  EXPECT_EQ(BytesBelow(context_, folder_.string()), 4u * kFiles);
  EXPECT_EQ(signals_.progress, 2u + kFiles) << "a, b and the files";
  EXPECT_TRUE(RemoveTree(context_, (folder_ / "a").string()).ok());
  EXPECT_EQ(signals_.progress, 2u * (2 + kFiles));
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(FolderTreeTest, LinksGoAndWhatTheyPointToStays) {
  fs::create_directory(folder_ / "c");
  fs::create_directory_symlink(folder_ / "a", folder_ / "c/folder");
  fs::create_symlink(folder_ / "a/b/0", folder_ / "c/file");
  EXPECT_TRUE(RemoveTree(context_, (folder_ / "c").string()).ok());
  EXPECT_FALSE(fs::exists(folder_ / "c"));
  EXPECT_EQ(BytesBelow(context_, folder_.string()), 4u * kFiles);
}

TEST_F(FolderTreeTest, WhatIsNotThereIsRemovedAndWhatCannotBeIsNamed) {
  EXPECT_TRUE(RemoveTree(context_, (folder_ / "none").string()).ok());
  EXPECT_EQ(BytesBelow(context_, (folder_ / "none").string()), 0u);
  const Status refused = RemoveTree(context_, "/proc/self/status");
  EXPECT_FALSE(refused.ok());
  EXPECT_NE(MessageOf(refused).find("/proc/self/status"), std::string_view::npos) << refused;
}

}  // namespace
}  // namespace patchbay::workers
