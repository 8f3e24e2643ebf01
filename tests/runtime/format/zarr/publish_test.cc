// The files on disk, and their order, when a store gets its name. This program has its own fsync
// and renameat2, which record their calls, fail on request, and otherwise do the work.
#include "runtime/format/zarr/publish.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

struct Calls {
  std::mutex mu;
  bool is_noting = false;          ///< guarded by mu
  std::vector<std::string> made;   ///< guarded by mu: the path that was synced, or "rename"
  std::size_t fail_at = SIZE_MAX;  ///< guarded by mu: the call that ends with EIO
};

Calls& TheCalls() {
  static Calls calls;
  return calls;
}

/// False when the call is to fail.
bool Note(const std::string& what) {
  Calls& calls = TheCalls();
  const std::lock_guard lock(calls.mu);
  if (!calls.is_noting) return true;
  calls.made.push_back(what);
  if (calls.made.size() - 1 != calls.fail_at) return true;
  errno = EIO;
  return false;
}

}  // namespace

extern "C" int fsync(int fd) {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), error);
  return Note(path.string()) ? static_cast<int>(syscall(SYS_fsync, fd)) : -1;
}

extern "C" int renameat2(int from_folder, const char* from, int to_folder, const char* to,
                         unsigned flags) noexcept {
  if (!Note("rename")) return -1;
  return static_cast<int>(syscall(SYS_renameat2, from_folder, from, to_folder, to, flags));
}

namespace patchbay::zarr {
namespace {

namespace fs = std::filesystem;

class Publishing : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::canonical(fs::temp_directory_path()) / "publish-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { fs::remove_all(root_); }

  /// A staged store of two folders in a folder of its own.
  void Stage() const {
    fs::remove_all(root_ / "out");
    fs::create_directories(Staged() / "0/c");
    for (const char* file : {"zarr.json", "0/zarr.json", "0/c/0", "0/c/1"}) {
      std::ofstream(Staged() / file) << file;
    }
  }
  fs::path Staged() const { return root_ / "out/.work/store"; }
  fs::path Target() const { return root_ / "out/store"; }

  /// Publishes it; the calls that were made.
  std::vector<std::string> Publish(Status& status, std::size_t fail_at = SIZE_MAX) const {
    Calls& calls = TheCalls();
    {
      const std::lock_guard lock(calls.mu);
      calls.made.clear();
      calls.fail_at = fail_at;
      calls.is_noting = true;
    }
    status = PublishStore(Folders::OfThisUser(), Staged(), Target(), [] {});
    const std::lock_guard lock(calls.mu);
    calls.is_noting = false;
    return calls.made;
  }

  fs::path root_;
};

TEST_F(Publishing, EveryFileThenEveryFolderThenTheNameThenBothParentsAreOnDisk) {
  Stage();
  Status status;
  const std::vector<std::string> calls = Publish(status);
  ASSERT_TRUE(status.ok()) << status;
  const auto at = [&](const fs::path& path) {
    return std::find(calls.begin(), calls.end(), path.string()) - calls.begin();
  };
  const auto rename = at("rename");
  for (const char* folder : {".", "0", "0/c"}) {
    const fs::path path = folder == std::string(".") ? Staged() : Staged() / folder;
    EXPECT_LT(at(path), rename) << path;
    for (const char* file : {"zarr.json", "0/zarr.json", "0/c/0", "0/c/1"}) {
      EXPECT_LT(at(Staged() / file), at(path)) << file << " " << path;
    }
  }
  ASSERT_EQ(calls.size(), 10u);
  EXPECT_EQ(std::vector(calls.begin() + rename + 1, calls.end()),
            (std::vector<std::string>{root_ / "out", root_ / "out/.work"}));
}

TEST_F(Publishing, WhateverFailsIsSaidAndBeforeTheNameNothingHasIt) {
  for (std::size_t i = 0; i < 10; ++i) {
    Stage();
    Status status;
    const std::vector<std::string> calls = Publish(status, i);
    EXPECT_FALSE(status.ok()) << i;
    const bool was_named =
        std::find(calls.begin(), calls.end(), "rename") != calls.end() && calls[i] != "rename";
    EXPECT_EQ(fs::exists(Target()), was_named) << i;
    EXPECT_EQ(fs::exists(Staged()), !was_named) << i;
  }
}

TEST_F(Publishing, ANameThatIsTakenStaysWhoseItIs) {
  Stage();
  fs::create_directory(Target());
  Status status;
  EXPECT_TRUE(Publish(status).empty());
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(fs::is_empty(Target()));
}

TEST_F(Publishing, OnlyFilesAndFoldersAreStores) {
  Stage();
  fs::create_symlink("/etc", Staged() / "0/link");
  Status status;
  Publish(status);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_FALSE(fs::exists(Target()));
}

}  // namespace
}  // namespace patchbay::zarr
