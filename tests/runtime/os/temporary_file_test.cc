#include "runtime/os/temporary_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  EXPECT_TRUE(one->path.starts_with(path + ".") && one->path.ends_with(".part")) << one->path;
  for (const auto* file : {&*one, &*other})
    EXPECT_TRUE(RemoveFile(Folders::OfThisUser(), file->path).ok());
}

TEST(TemporaryFile, IsNotNamedByErrors) {
  const std::string path = StrCat(testing::TempDir(), "no such folder/a");
  const auto file = CreateBeside(Folders::OfThisUser(), path, ".part");
  ASSERT_TRUE(absl::IsNotFound(file.status()));
  EXPECT_EQ(MessageOf(file.status()), StrCat("write: ", path, ": there is no such folder"));
  const std::string too_long = StrCat(testing::TempDir(), std::string(250, 'a'));
  EXPECT_EQ(MessageOf(CreateBeside(Folders::OfThisUser(), too_long, ".part").status()),
            StrCat("write: ", too_long, ": File name too long"));
}

}  // namespace
}  // namespace patchbay
