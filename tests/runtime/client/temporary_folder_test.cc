#include "runtime/client/temporary_folder.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/core/strings.h"

namespace patchbay::client {
namespace {

TEST(TemporaryFolder, OfCommandsThatWereKilledAreRemovedByTheNextOneAndThoseInUseAreNot) {
  std::string parent = StrCat(::testing::TempDir(), "parent-XXXXXX");
  ASSERT_NE(mkdtemp(parent.data()), nullptr);
  const pid_t killed = fork();
  if (killed == 0) {
    const auto folder = TemporaryFolder::Create(parent);
    if (folder.ok()) std::ofstream(folder->path() + "/log") << "a line";
    raise(SIGKILL);
  }
  ASSERT_EQ(waitpid(killed, nullptr, 0), killed);
  // Another was killed before it had a lock.
  std::filesystem::create_directory(StrCat(parent, "/patchbay-", getuid(), "-unlocked"));
  const auto folders = [&] {
    return std::distance(std::filesystem::directory_iterator(parent), {});
  };
  ASSERT_EQ(folders(), 2);
  const auto first = TemporaryFolder::Create(parent);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(folders(), 1);
  const auto second = TemporaryFolder::Create(parent);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(folders(), 2);
  EXPECT_EQ(FoldersInUse(parent).size(), 2u);
  std::filesystem::remove_all(parent);
}

}  // namespace
}  // namespace patchbay::client
