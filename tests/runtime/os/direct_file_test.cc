// Files written without the page cache hold exactly the given bytes, on every available file
// system.
#include "runtime/os/direct_file.h"

#include <csignal>
#include <filesystem>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/core/hash.h"
#include "runtime/os/file.h"

namespace patchbay {
namespace {

/// A new folder below `parent`, removed with its content.
class Folder {
 public:
  explicit Folder(const std::string& parent)
      : path_(StrCat(parent, "/direct-", Hex64(RandomU64()))) {
    std::filesystem::create_directory(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string File(std::string_view name) const { return StrCat(path_, "/", name); }

 private:
  const std::string path_;
};

std::string Noise(std::size_t size) {
  std::mt19937 random(static_cast<unsigned>(size));
  std::string bytes(size, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  return bytes;
}

/// The disk, and memory, which has had direct I/O only since Linux 6.6.
class AnyFileSystem : public testing::TestWithParam<std::string> {};

TEST_P(AnyFileSystem, HoldsEveryByteAtAnySize) {
  const Folder folder(GetParam());
  constexpr std::size_t kOneMiB = 1 << 20;
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{4096}, kOneMiB - 1, kOneMiB, kOneMiB + 1,
        4 * kOneMiB, 4 * kOneMiB + 4095, 9 * kOneMiB + 4097}) {
    const std::string path = folder.File(StrCat(size)), bytes = Noise(size);
    ASSERT_TRUE(CreateFileDirectly(Folders::OfThisUser(), path, AsBytes(bytes), 0600).ok()) << size;
    const auto read = ReadFile(Folders::OfThisUser(), path, 1 << 30);
    ASSERT_TRUE(read.ok()) << size;
    EXPECT_TRUE(*read == bytes) << size;
    struct stat st {};
    ASSERT_EQ(stat(path.c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 0777, 0600u);
  }
}

TEST_P(AnyFileSystem, KeepsThePagesThatAreWanted) {
  const Folder folder(GetParam());
  const std::string path = folder.File("wanted"), bytes = Noise(5 << 20);
  ASSERT_TRUE(
      CreateFileDirectly(Folders::OfThisUser(), path, AsBytes(bytes), 0600, Pages::kKept).ok());
  EXPECT_TRUE(*ReadFile(Folders::OfThisUser(), path, 1 << 30) == bytes);
}

TEST_P(AnyFileSystem, TakesBytesFromAnyAddress) {
  const Folder folder(GetParam());
  const std::string bytes = Noise((2 << 20) + 7);
  const std::string path = folder.File("odd");
  ASSERT_TRUE(CreateFileDirectly(Folders::OfThisUser(), path, AsBytes(bytes).subspan(7)).ok());
  EXPECT_TRUE(*ReadFile(Folders::OfThisUser(), path, 1 << 30) == bytes.substr(7));
}

TEST_P(AnyFileSystem, LeavesAFileThatIsThereAlone) {
  const Folder folder(GetParam());
  const std::string path = folder.File("taken");
  ASSERT_TRUE(CreateFileDirectly(Folders::OfThisUser(), path, AsBytes(std::string("mine"))).ok());
  const Status again = CreateFileDirectly(Folders::OfThisUser(), path, AsBytes(Noise(2 << 20)));
  EXPECT_TRUE(absl::IsAlreadyExists(again)) << again;
  EXPECT_EQ(*ReadFile(Folders::OfThisUser(), path, 100), "mine");
}

INSTANTIATE_TEST_SUITE_P(FileSystems, AnyFileSystem,
                         testing::Values(std::filesystem::temp_directory_path().string(),
                                         "/dev/shm"),
                         [](const auto& test) {
                           return test.param == "/dev/shm" ? "Memory" : "Disk";
                         });

/// Ends the process: 0 when the write was refused with the file's name.
[[noreturn]] void WriteBeyondLimit(const std::string& path) {
  signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{2 << 20, 2 << 20};
  setrlimit(RLIMIT_FSIZE, &limit);
  const Status status = CreateFileDirectly(Folders::OfThisUser(), path, AsBytes(Noise(6 << 20)));
  const bool names_it = std::string(status.message()).find(path) != std::string::npos;
  _exit(!status.ok() && names_it ? 0 : 1);
}

TEST(CreateFileDirectly, NamesTheFileThatGrowsBeyondALimit) {
  const Folder folder(std::filesystem::temp_directory_path());
  EXPECT_EXIT(WriteBeyondLimit(folder.File("large")), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace patchbay
