// Where a key may read and write, and the ways around it that are closed.
#include "workers/access/path_rights.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "runtime/core/hash.h"

namespace patchbay::workers {
namespace {

namespace fs = std::filesystem;

/// A folder of its own with allowed/, allowed-not/ and secret/.
class PathRightsTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::canonical(fs::temp_directory_path()) / ("path_rights_" + Hex64(RandomU64()));
    for (const char* name : {"allowed/inner", "allowed-not", "secret"}) {
      fs::create_directories(root_ / name);
    }
    std::ofstream(root_ / "secret/slide.svs") << "x";
    std::ofstream(root_ / "allowed/slide.svs") << "x";
    rights_.read = {(root_ / "allowed").string()};
    rights_.write = {(root_ / "allowed/inner").string()};
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string At(const std::string& name) const { return (root_ / name).string(); }
  absl::StatusCode Read(const std::string& name) const {
    return PathAllowed(rights_, Access::kRead, At(name)).status().code();
  }
  absl::StatusCode Write(const std::string& name) const {
    return PathAllowed(rights_, Access::kWrite, At(name)).status().code();
  }

  fs::path root_;
  PathRights rights_;
};

constexpr absl::StatusCode kAllowed = absl::StatusCode::kOk;
constexpr absl::StatusCode kDenied = absl::StatusCode::kPermissionDenied;
constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

TEST_F(PathRightsTest, AllowsWhatLiesBelowAFolderOfTheKey) {
  EXPECT_EQ(Read("allowed"), kAllowed);
  EXPECT_EQ(Read("allowed/slide.svs"), kAllowed);
  EXPECT_EQ(Read("allowed/not/there/yet"), kAllowed);
  EXPECT_EQ(Write("allowed/inner/new/store"), kAllowed);
}

TEST_F(PathRightsTest, RefusesWhatLiesOutside) {
  EXPECT_EQ(Read("secret/slide.svs"), kDenied);
  EXPECT_EQ(Read("allowed-not"), kDenied);
  EXPECT_EQ(Read(""), kDenied);
}

TEST_F(PathRightsTest, ReadingDoesNotAllowWriting) {
  EXPECT_EQ(Write("allowed/slide.svs"), kDenied);
  rights_.write = {};
  EXPECT_EQ(Write("allowed/inner/x"), kDenied);
}

TEST_F(PathRightsTest, RefusesAWayOutThroughDots) {
  EXPECT_EQ(Read("allowed/../secret/slide.svs"), kDenied);
  EXPECT_EQ(Read("allowed/nowhere/../../secret/slide.svs"), kInvalid);
}

TEST_F(PathRightsTest, RefusesALinkThatLeadsOut) {
  fs::create_symlink(root_ / "secret", root_ / "allowed/link");
  EXPECT_EQ(Read("allowed/link/slide.svs"), kDenied);
  fs::create_symlink(root_ / "secret/slide.svs", root_ / "allowed/link.svs");
  EXPECT_EQ(Read("allowed/link.svs"), kDenied);
}

TEST_F(PathRightsTest, RefusesALinkToWhatDoesNotExist) {
  fs::create_symlink(root_ / "secret/new", root_ / "allowed/inner/new");
  EXPECT_EQ(Write("allowed/inner/new"), kInvalid);
  EXPECT_EQ(Write("allowed/inner/new/below"), kInvalid);
}

TEST_F(PathRightsTest, AFolderOfTheKeyMayItselfBeALink) {
  fs::create_symlink(root_ / "allowed", root_ / "alias");
  rights_.read = {At("alias")};
  EXPECT_EQ(Read("alias/slide.svs"), kAllowed);
  EXPECT_EQ(Read("allowed/slide.svs"), kAllowed);
  EXPECT_EQ(Read("secret/slide.svs"), kDenied);
}

TEST_F(PathRightsTest, ReturnsThePathToUse) {
  const auto path = PathAllowed(rights_, Access::kRead, At("allowed/inner/../slide.svs"));
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(*path, At("allowed/slide.svs"));
}

TEST_F(PathRightsTest, RefusesRelativePathsAndNulBytes) {
  EXPECT_EQ(CanonicalPath("allowed").status().code(), kInvalid);
  EXPECT_EQ(CanonicalPath("").status().code(), kInvalid);
  EXPECT_EQ(CanonicalPath(std::string("/tmp/a\0b", 8)).status().code(), kInvalid);
}

TEST_F(PathRightsTest, NamesThePathAndTheFoldersItRefuses) {
  const Status status = PathAllowed(rights_, Access::kRead, At("secret")).status();
  EXPECT_NE(MessageOf(status).find(At("secret")), std::string::npos);
  EXPECT_NE(MessageOf(status).find(At("allowed")), std::string::npos);
}

TEST(PathRights, TheRootAllowsEverythingAndNothingAllowsNothing) {
  EXPECT_TRUE(PathAllowed(PathRights::All(), Access::kWrite, "/tmp/x").ok());
  EXPECT_FALSE(PathAllowed(PathRights{}, Access::kRead, "/").ok());
}

}  // namespace
}  // namespace patchbay::workers
