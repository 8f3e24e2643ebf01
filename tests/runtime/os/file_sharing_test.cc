// Group and mode of published files: which files get them, and which stay as they are.
#include "runtime/os/file_sharing.h"

#include <filesystem>
#include <fstream>

#include <grp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/core/hash.h"
#include "runtime/core/strings.h"

namespace patchbay {
namespace {

namespace fs = std::filesystem;

class FileSharingTest : public testing::Test {
 protected:
  FileSharingTest() {
    fs::create_directories(root_ / "store/0");
    Make("store/zarr.json");
    Make("store/0/c");
  }
  ~FileSharingTest() override { fs::remove_all(root_); }

  void Make(const char* name) const {
    std::ofstream(root_ / name) << "x";
    ASSERT_EQ(chmod((root_ / name).c_str(), 0600), 0);
  }
  struct stat Of(const std::string& name) const {
    struct stat st {};
    EXPECT_EQ(lstat((root_ / name).c_str(), &st), 0) << name;
    return st;
  }
  unsigned ModeOf(const std::string& name) const { return Of(name).st_mode & 07777u; }
  Status Share(const std::string& name) const {
    return ShareFiles(Folders::OfThisProcess(), (root_ / name).string(), sharing_);
  }

  const fs::path root_ =
      fs::canonical(fs::temp_directory_path()) / StrCat("sharing_", Hex64(RandomU64()));
  /// Root gives files to a group that is none of its own.
  const FileSharing sharing_{geteuid() == 0 ? 12'345u : getegid(), 0640};
};

TEST_F(FileSharingTest, AFolderAndAllItHoldsGetGroupAndMode) {
  ASSERT_TRUE(Share("store").ok());
  for (const char* name : {"store", "store/0", "store/zarr.json", "store/0/c"}) {
    EXPECT_EQ(Of(name).st_gid, sharing_.group) << name;
    EXPECT_EQ(ModeOf(name), S_ISDIR(Of(name).st_mode) ? 02750u : 0640u) << name;
  }
}

TEST_F(FileSharingTest, WithoutRightsOrAFileNothingChanges) {
  EXPECT_TRUE(ShareFiles(Folders::OfThisProcess(), root_ / "store", std::nullopt).ok());
  EXPECT_EQ(ModeOf("store/zarr.json"), 0600u);
  EXPECT_TRUE(Share("nothere").ok());
}

TEST_F(FileSharingTest, InASetgidFolderTheGroupStays) {
  const gid_t group = Of("store/0").st_gid;
  ASSERT_EQ(chmod((root_ / "store").c_str(), 02755), 0);
  ASSERT_TRUE(Share("store/0").ok());
  EXPECT_EQ(Of("store/0/c").st_gid, group);
  EXPECT_EQ(ModeOf("store/0/c"), 0640u);
}

TEST_F(FileSharingTest, FilesWithASecondNameAndOfOtherAccountsStayAsTheyAre) {
  fs::create_hard_link(root_ / "store/zarr.json", root_ / "second");
  Make("store/other");
  const bool is_root = geteuid() == 0;
  if (is_root) ASSERT_EQ(chown((root_ / "store/other").c_str(), 12'346, getegid()), 0);
  ASSERT_TRUE(Share("store").ok());
  EXPECT_EQ(ModeOf("store/zarr.json"), 0600u);
  if (is_root) EXPECT_EQ(ModeOf("store/other"), 0600u);
  EXPECT_EQ(ModeOf("store/0/c"), 0640u);
}

TEST_F(FileSharingTest, ALinkIsAnErrorAndItsTargetStays) {
  Make("target");
  fs::create_symlink(root_ / "target", root_ / "store/link");
  EXPECT_FALSE(Share("store/link").ok());
  EXPECT_FALSE(Share("store").ok());
  EXPECT_EQ(ModeOf("target"), 0600u);
}

TEST(FileSharing, AGroupIsFoundByNameAndOneThatIsNotThereIsRefused) {
  const struct group* const own = getgrgid(getegid());
  if (own == nullptr) GTEST_SKIP() << "this process's group has no name";
  const auto sharing = FileSharing::Of(own->gr_name, 0660);
  ASSERT_TRUE(sharing.ok()) << sharing.status();
  EXPECT_EQ(sharing->group, getegid());
  EXPECT_EQ(sharing->mode, 0660u);
  const Status refused = FileSharing::Of("no-such-group", 0640).status();
  EXPECT_TRUE(absl::IsNotFound(refused));
  EXPECT_EQ(MessageOf(refused), "no-such-group: no such group on this machine");
}

TEST(FileSharing, ComesBackFromItsTextAndFromNoOther) {
  const auto back = FileSharing::FromText(FileSharing{1004, 0640}.Text());
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->group, 1004u);
  EXPECT_EQ(back->mode, 0640u);
  EXPECT_EQ(back->Text(), "1004:640");
  for (const char* bad : {"", "1004", "1004:", ":640", "-1:640", "1004:648", "1004:6400", "a:640",
                          "1004:640 ", "99999999999:640"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(FileSharing::FromText(bad).status())) << bad;
  }
}

}  // namespace
}  // namespace patchbay
