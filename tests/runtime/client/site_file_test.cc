// A site's file: its values, and refusals with file, line and key.
#include "runtime/client/site_file.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <grp.h>
#include <unistd.h>

#include "runtime/core/hash.h"
#include "runtime/core/strings.h"

namespace patchbay::client {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class SiteFileTest : public ::testing::Test {
 protected:
  SiteFileTest() {
    fs::create_directories(folder_);
    environment_.site_file = folder_ / "site.yaml";
  }
  ~SiteFileTest() override { fs::remove_all(folder_); }

  StatusOr<Site> Read(const std::string& text) const {
    std::ofstream(environment_.site_file) << text;
    return ReadSite(environment_);
  }
  std::string Refusal(const std::string& text) const {
    return std::string(Read(text).status().message());
  }

  const fs::path folder_ = fs::temp_directory_path() / StrCat("site_", Hex64(RandomU64()));
  Environment environment_;
};

TEST_F(SiteFileTest, WithoutAFileThereIsNoSite) {
  const auto site = ReadSite(Environment());
  ASSERT_TRUE(site.ok()) << site.status();
  EXPECT_EQ(site->file + site->pseudonym_key + site->group, "");
  EXPECT_EQ(*SharingOf(*site), std::nullopt);
  EXPECT_THAT(ReadSite(environment_).status().message(), HasSubstr("site.yaml"));
}

TEST_F(SiteFileTest, HasAKeyBesideItOrElsewhereAndAGroup) {
  const auto beside = Read("pseudonym_key: names.key\n");
  ASSERT_TRUE(beside.ok()) << beside.status();
  EXPECT_EQ(beside->pseudonym_key, (folder_ / "names.key").string());
  EXPECT_EQ(*SharingOf(*beside), std::nullopt);
  const auto both = Read("pseudonym_key: /keys/names.key\nfiles:\n  group: pathology\n");
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ(both->pseudonym_key, "/keys/names.key");
  EXPECT_EQ(both->group, "pathology");
  EXPECT_EQ(both->mode, 0640u) << "the default";
  EXPECT_EQ(both->group_line, 3);
  EXPECT_EQ(Read("files: {group: a, mode: '0660'}\n")->mode, 0660u);
}

TEST_F(SiteFileTest, FaultsAreNamedWithLineAndKey) {
  EXPECT_THAT(Refusal("pseudonym_keys: x\n"),
              HasSubstr("site.yaml:1: unknown key 'pseudonym_keys'"));
  EXPECT_THAT(Refusal("files: {mode: '0640'}\n"), HasSubstr("files.group"));
  EXPECT_THAT(Refusal("files:\n  group: a\n  mode: '0777'\n"),
              HasSubstr("site.yaml:3: key 'files.mode'"));
  EXPECT_THAT(Refusal("- files\n"), HasSubstr("site.yaml"));
}

TEST_F(SiteFileTest, AGroupThatIsNotThereIsNamedWithItsLine) {
  const auto site = Read("files:\n  group: no-such-group\n");
  ASSERT_TRUE(site.ok()) << site.status();
  const Status refused = SharingOf(*site).status();
  EXPECT_TRUE(absl::IsNotFound(refused)) << refused;
  EXPECT_THAT(refused.message(),
              HasSubstr("site.yaml:2: key 'files.group': no-such-group: no such group"));
}

TEST_F(SiteFileTest, TheGroupOfThisProcessIsShared) {
  const struct group* const own = getgrgid(getegid());
  if (own == nullptr) GTEST_SKIP() << "this process's group has no name";
  const auto sharing = SharingOf(*Read(StrCat("files: {group: ", own->gr_name, "}\n")));
  ASSERT_TRUE(sharing.ok() && sharing->has_value()) << sharing.status();
  EXPECT_EQ((*sharing)->group, getegid());
  EXPECT_EQ((*sharing)->mode, 0640u);
}

}  // namespace
}  // namespace patchbay::client
