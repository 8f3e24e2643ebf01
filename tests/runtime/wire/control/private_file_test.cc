// Files and folders with secrets: their owner, kind and mode.
#include <filesystem>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/core/hash.h"
#include "runtime/os/file.h"
#include "runtime/wire/control/keys.h"
#include "tests/runtime/wire/control/scratch_folder.h"

namespace patchbay::control {
namespace {

std::string FileOf(const ScratchFolder& folder, std::size_t size_bytes) {
  const std::string path = folder.Path("secret");
  EXPECT_TRUE(
      WriteFileDurably(Folders::OfThisUser(), path, AsBytes(std::string(size_bytes, 'k')), 0600)
          .ok());
  return path;
}

void ExpectRefused(const Status& status, absl::StatusCode code, std::string_view words) {
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_NE(MessageOf(status).find(words), std::string_view::npos) << status;
}

TEST(PrivateFile, OfTheLargestSizeIsReadAndOneByteMoreIsNot) {
  const ScratchFolder folder;
  const auto read = ReadPrivateFile(FileOf(folder, kMaxKeyFileBytes));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->size(), kMaxKeyFileBytes);
  ExpectRefused(ReadPrivateFile(FileOf(folder, kMaxKeyFileBytes + 1)).status(),
                absl::StatusCode::kInvalidArgument, "too large for a key");
}

TEST(PrivateFile, ThatIsAFolderOrAPipeIsNoFile) {
  const ScratchFolder folder;
  const std::string pipe = folder.Path("pipe"), below = folder.Path("below");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  ASSERT_EQ(mkdir(below.c_str(), 0700), 0);
  for (const std::string& path : {pipe, below}) {
    ExpectRefused(ReadPrivateFile(path).status(), absl::StatusCode::kInvalidArgument,
                  "not a regular file");
  }
}

TEST(PrivateFile, OfAnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const ScratchFolder folder;
  const std::string path = FileOf(folder, 10);
  ASSERT_EQ(chown(path.c_str(), 12345, 12345), 0);
  ExpectRefused(ReadPrivateFile(path).status(), absl::StatusCode::kPermissionDenied,
                "belongs to another user");
}

TEST(PrivateFile, ThatRootHandsOutMayBeReadByTheGroupAndByNobodyElse) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  constexpr unsigned kOther = 12345;
  const ScratchFolder folder;
  const std::string path = FileOf(folder, 10);
  ASSERT_EQ(chmod(folder.Path("").c_str(), 0711), 0);
  ASSERT_EQ(chown(path.c_str(), 0, kOther), 0);
  for (const mode_t mode : {0440, 0640, 0444, 0460, 0450}) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    EXPECT_FALSE(ReadPrivateFile(path).ok()) << "root's own, " << mode;
    ASSERT_EQ(setegid(kOther), 0);
    ASSERT_EQ(seteuid(kOther), 0);
    EXPECT_EQ(ReadPrivateFile(path).ok(), mode == 0440 || mode == 0640) << mode;
    ASSERT_EQ(seteuid(0), 0);
    ASSERT_EQ(setegid(0), 0);
  }
}

TEST(PrivateFolder, IsAFolderThatNobodyElseMayEnter) {
  const ScratchFolder folder;
  const std::string path = folder.Path("home");
  ASSERT_EQ(mkdir(path.c_str(), 0700), 0);
  EXPECT_TRUE(CheckPrivateFolder(path).ok());
  for (const mode_t mode : {0710, 0720, 0740, 0701, 0702, 0704}) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    ExpectRefused(CheckPrivateFolder(path), absl::StatusCode::kPermissionDenied, "chmod 700");
  }
  ExpectRefused(CheckPrivateFolder(FileOf(folder, 1)), absl::StatusCode::kInvalidArgument,
                "not a folder");
}

}  // namespace
}  // namespace patchbay::control
