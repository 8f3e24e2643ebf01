#include "runtime/os/temporary_file.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/core/hash.h"
#include "runtime/core/strings.h"
#include "runtime/os/file_names.h"

namespace patchbay {
namespace {

TEST(TemporaryFile, LiesBesideTheFileThatItBecomes) {
  const std::string path = StrCat(testing::TempDir(), "temporary_file");
  const auto one = CreateBeside(Folders::OfThisUser(), path, ".part"),
             other = CreateBeside(Folders::OfThisUser(), path, ".part");
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_NE(one->path, other->path);
  EXPECT_EQ(one->path, path + ".part");
  EXPECT_TRUE(other->path.starts_with(path + ".") && other->path.ends_with(".part"));
  for (const auto* file : {&*one, &*other})
    EXPECT_TRUE(RemoveFile(Folders::OfThisUser(), file->path).ok());
}

TEST(TemporaryFile, OfAProcessThatWasKilledIsReplacedByTheNextOne) {
  const std::string path = StrCat(testing::TempDir(), "left_file");
  const pid_t writer = fork();
  if (writer == 0) {
    const auto file = CreateBeside(Folders::OfThisUser(), path, ".part", 0644);
    _exit(file.ok() && WriteAt(file->fd.get(), 0, AsBytes("half of it"), path).ok() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(writer, &status, 0), writer);
  ASSERT_EQ(status, 0);
  ASSERT_EQ(std::filesystem::file_size(path + ".part"), 10u);
  const auto next = CreateBeside(Folders::OfThisUser(), path, ".part", 0600);
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(next->path, path + ".part");
  EXPECT_EQ(std::filesystem::file_size(next->path), 0u);
  EXPECT_EQ(std::filesystem::status(next->path).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  EXPECT_TRUE(RemoveFile(Folders::OfThisUser(), next->path).ok());
}

TEST(PartialFolder, GoesUnlessItIsRenamed) {
  const std::string path = StrCat(testing::TempDir(), "above/partial_folder");
  const std::string partial = path + ".partial";
  {
    const auto folder = PartialFolder::Make(Folders::OfThisUser(), path);
    ASSERT_TRUE(folder.ok()) << folder.status();
    EXPECT_EQ(folder->path(), partial);
    std::ofstream(partial + "/file") << "half of it";
  }
  EXPECT_FALSE(std::filesystem::exists(partial));
  {
    const auto folder = PartialFolder::Make(Folders::OfThisUser(), path);
    ASSERT_TRUE(folder.ok()) << folder.status();
    std::ofstream(partial + "/file") << "all of it";
    ASSERT_TRUE(RenameFile(Folders::OfThisUser(), partial, path).ok());
    std::filesystem::create_directory(partial);  // by the next one
  }
  EXPECT_TRUE(std::filesystem::exists(partial)) << "it is another's";
  EXPECT_TRUE(std::filesystem::exists(path + "/file"));
  std::filesystem::remove_all(testing::TempDir() + "above");
}

TEST(PartialFolder, IsMadeByOneAtATime) {
  const std::string path = StrCat(testing::TempDir(), "contended_folder");
  const auto one = PartialFolder::Make(Folders::OfThisUser(), path);
  ASSERT_TRUE(one.ok()) << one.status();
  std::ofstream(one->path() + "/file") << "half of it";
  EXPECT_TRUE(absl::IsAlreadyExists(PartialFolder::Make(Folders::OfThisUser(), path).status()));
  EXPECT_TRUE(std::filesystem::exists(one->path() + "/file"));
}

TEST(PartialFolder, OfAProcessThatWasKilledIsReplacedByTheNextOne) {
  const std::string path = StrCat(testing::TempDir(), "left_folder");
  const pid_t writer = fork();
  if (writer == 0) {
    const auto folder = PartialFolder::Make(Folders::OfThisUser(), path);
    std::ofstream(path + ".partial/file") << "half of it";
    _exit(folder.ok() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(writer, &status, 0), writer);
  ASSERT_EQ(status, 0);
  ASSERT_TRUE(std::filesystem::exists(path + ".partial/file"));
  const auto next = PartialFolder::Make(Folders::OfThisUser(), path);
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(next->path(), path + ".partial");
  EXPECT_TRUE(std::filesystem::is_empty(next->path()));
}

TEST(TemporaryFile, LeavesAloneWhatWasPlantedUnderItsName) {
  const std::string path = StrCat(testing::TempDir(), "planted_file");
  const std::string elsewhere = StrCat(testing::TempDir(), "elsewhere");
  std::ofstream(elsewhere) << "another's";
  for (const auto plant : {symlink, link}) {
    ASSERT_EQ(plant(elsewhere.c_str(), (path + ".part").c_str()), 0);
    const auto file = CreateBeside(Folders::OfThisUser(), path, ".part");
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_NE(file->path, path + ".part");
    EXPECT_EQ(std::filesystem::file_size(elsewhere), 9u);
    for (const std::string& name : {file->path, path + ".part"})
      EXPECT_TRUE(RemoveFile(Folders::OfThisUser(), name).ok());
  }
  EXPECT_TRUE(RemoveFile(Folders::OfThisUser(), elsewhere).ok());
}

TEST(TemporaryFile, IsNotNamedByErrors) {
  const std::string path = StrCat(testing::TempDir(), "no such folder/a");
  const auto file = CreateBeside(Folders::OfThisUser(), path, ".part");
  ASSERT_TRUE(absl::IsNotFound(file.status()));
  EXPECT_EQ(MessageOf(file.status()), StrCat("write: ", path, ": there is no such folder"));
  const std::string too_long = StrCat(testing::TempDir(), std::string(252, 'a'));
  EXPECT_EQ(MessageOf(CreateBeside(Folders::OfThisUser(), too_long, ".part").status()),
            StrCat("write: ", too_long, ": File name too long"));
}

}  // namespace
}  // namespace patchbay
