// FindImages: the images below named paths, and unreadable entries.
#include "workers/jobs/task/find_images.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ops/all_ops.h"
#include "runtime/core/hash.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/model/jobs/job_manifest.h"
#include "workers/sources/tiff_writer.h"

namespace patchbay::workers {
namespace {

namespace fs = std::filesystem;

class FindImagesTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::canonical(fs::temp_directory_path()) / ("find_images_" + Hex64(RandomU64()));
    fs::create_directories(root_);
    context_.rights = PathRights::All();
    context_.allowed = AllowedFoldersOf(context_.rights, context_.state_folder);
    context_.signals = &signals_;
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string At(const std::string& name) const { return (root_ / name).string(); }
  std::string File(const std::string& name) const {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << "x";
    return At(name);
  }
  StatusOr<std::vector<std::string>> Find(const std::vector<std::string>& names,
                                          bool stores = true) {
    std::vector<std::string> named;
    for (const std::string& name : names) named.push_back(At(name));
    return FindImages(context_, named, {.stores = stores, .keep_unreadable = keep_unreadable_});
  }
  using Paths = std::vector<std::string>;

  bool keep_unreadable_ = true;
  fs::path root_;
  TaskSignals signals_;
  TaskContext context_{Folders::OfThisUser(), ops::Table()};
};

TEST_F(FindImagesTest, MasksOfAFolderAreSkippedAndThoseThatAreNamedAreNot) {
  File("d/a.svs");
  for (const char* name : {"d/m.tif", "d/sub/n.TIFF"}) {
    fs::create_directories((root_ / name).parent_path());
    const std::vector<std::uint8_t> rows(24, 3);
    StatusOr<MaskTiff> mask = MaskTiff::Create(context_.allowed, At(name), Flat(4, 6));
    ASSERT_TRUE(mask.ok() && mask->AddBand(rows).ok() && mask->Commit().ok());
  }
  const auto find = [&](const Paths& named, bool masks, FilesByKind& skipped_files) {
    return FindImages(context_, named, {.masks = masks, .skipped_files = &skipped_files}).value();
  };
  FilesByKind none, both, one;
  EXPECT_EQ(find({At("d")}, true, none).size(), 3u);
  EXPECT_EQ(none, FilesByKind());
  EXPECT_EQ(find({At("d")}, false, both), Paths{At("d/a.svs")});
  EXPECT_EQ(both, (FilesByKind{{"mask", 2}}));
  EXPECT_EQ(find({At("d/m.tif"), At("d")}, false, one), (Paths{At("d/m.tif"), At("d/a.svs")}));
  EXPECT_EQ(one, (FilesByKind{{"mask", 1}}));
}

TEST_F(FindImagesTest, WhatIsSkippedIsCountedByKindAndKindsNameNobody) {
  File("d/a.svs");
  for (const char* name :
       {"d/b.JPG", "d/sub/c.jpg", "d/e.dcm", "d/f", "d/g.Doe", "d/.hidden.jpg"}) {
    File(name);
  }
  FilesByKind skipped_files;
  ASSERT_TRUE(FindImages(context_, {At("d")}, {.skipped_files = &skipped_files}).ok());
  EXPECT_EQ(skipped_files, (FilesByKind{{"dcm", 1}, {"jpg", 2}, {"other", 2}}));
}

TEST_F(FindImagesTest, ALinkBesideItsImageIsSkippedAsALinkWhicheverIsMetFirst) {
  File("d/b.svs");
  File("elsewhere/e.svs");
  fs::create_symlink(At("d/b.svs"), At("d/a_link.svs"));  // met before it
  fs::create_symlink("b.svs", At("d/c_link.svs"));        // and after it
  fs::create_symlink(At("elsewhere/e.svs"), At("d/only_by_link.svs"));
  FilesByKind skipped_files;
  const auto found = FindImages(context_, {At("d")}, {.skipped_files = &skipped_files});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(*found, (Paths{At("d/b.svs"), At("elsewhere/e.svs")}));
  EXPECT_EQ(skipped_files, (FilesByKind{{"link", 2}}));
}

TEST_F(FindImagesTest, WhatIsNoFileIsSkippedAsWhatItIsWhateverItsName) {
  File("d/a.svs");
  ASSERT_EQ(mkfifo(At("d/b.svs").c_str(), 0600), 0);
  fs::create_symlink(At("gone.svs"), At("d/c.svs"));
  fs::create_symlink("/dev/null", At("d/d.txt"));
  FilesByKind skipped_files;
  ASSERT_TRUE(FindImages(context_, {At("d")}, {.skipped_files = &skipped_files}).ok());
  EXPECT_EQ(skipped_files, (FilesByKind{{"FIFO", 1}, {"dangling link", 1}, {"device", 1}}));
}

TEST_F(FindImagesTest, AnImageThatIsNamedAndInANamedFolderIsNoLink) {
  File("d/a.svs");
  FilesByKind skipped_files;
  ASSERT_TRUE(
      FindImages(context_, {At("d/a.svs"), At("d")}, {.skipped_files = &skipped_files}).ok());
  EXPECT_EQ(skipped_files, FilesByKind());
}

TEST_F(FindImagesTest, TablesOfJobsAreNotSkippedWhereStoresAreWanted) {
  const std::vector<std::string> tables = {"manifest.csv", "failed.csv", "verdicts.csv"};
  for (const std::string& name : tables) File("d/" + name);
  File("d/other.csv");
  File("d/a.svs");
  FilesByKind skipped_files;
  ASSERT_TRUE(FindImages(context_, {At("d")}, {.skipped_files = &skipped_files}).ok());
  EXPECT_EQ(skipped_files, (FilesByKind{{"csv", 1}}));
  skipped_files.clear();
  ASSERT_TRUE(
      FindImages(context_, {At("d")}, {.stores = false, .skipped_files = &skipped_files}).ok());
  EXPECT_EQ(skipped_files, (FilesByKind{{"csv", 4}}));
}

TEST_F(FindImagesTest, AFolderWithoutImagesSaysWhatIsInIt) {
  File("d/a.jpg");
  File("d/below/b.jpg");
  const auto found = FindImages(context_, {At("d")});
  EXPECT_EQ(found.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(found.status().message().find(" in this folder (skipped: 2 .jpg)"), std::string::npos)
      << found.status();
  const auto names_ingest = [](const Status& refused) {
    return MessageOf(refused).find("`patchbay ingest`") != std::string_view::npos;
  };
  EXPECT_TRUE(names_ingest(found.status())) << "a volume of .jpg slices may be meant";
  EXPECT_FALSE(names_ingest(Find({"d"}, false).status())) << "where stores are made";
  fs::create_directory(root_ / "empty");
  EXPECT_FALSE(names_ingest(Find({"empty"}).status()));
}

TEST_F(FindImagesTest, AFolderThatLinksLeadBackToIsSearchedOnce) {
  const std::string a = File("d/sub/a.svs"), b = File("d/b.svs");
  fs::create_directory_symlink("..", root_ / "d/sub/loop");
  fs::create_directory_symlink(".", root_ / "d/self");
  fs::create_directory_symlink("sub", root_ / "d/again");
  const auto found = Find({"d"});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->size(), 2u);
  EXPECT_NE(std::find(found->begin(), found->end(), a), found->end());
  EXPECT_NE(std::find(found->begin(), found->end(), b), found->end());
}

TEST_F(FindImagesTest, AFolderThatIsNamedTwiceIsNotAnEmptyOne) {
  const Paths slide = {File("d/a.svs")};
  EXPECT_EQ(*Find({"d", "d"}), slide);
  EXPECT_EQ(*Find({"d/a.svs", "d"}), slide);
  fs::create_directory(root_ / "empty");
  EXPECT_EQ(Find({"d", "empty"}).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(FindImagesTest, ALinkToItselfIsFoundAndFailsAlone) {
  const std::string good = File("d/good.svs");
  fs::create_symlink("loop.svs", root_ / "d/loop.svs");
  EXPECT_EQ(*Find({"d"}), (Paths{good, At("d/loop.svs")}));
}

TEST_F(FindImagesTest, ALinkOutOfTheKeysFoldersIsFoundAndFailsAlone) {
  const std::string good = File("d/good.svs"), secret = File("secret/s.svs");
  fs::create_symlink(secret, root_ / "d/way-out.svs");
  context_.rights.read = {At("d")};
  context_.allowed = AllowedFoldersOf(context_.rights, context_.state_folder);
  EXPECT_EQ(*Find({"d"}), (Paths{good, At("d/way-out.svs")}));
  EXPECT_EQ(context_.MayRead(At("d/way-out.svs")).status().code(),
            absl::StatusCode::kPermissionDenied);
  keep_unreadable_ = false;
  EXPECT_EQ(Find({"d"}).status().code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(FindImagesTest, AFolderThatMayNotBeReadIsFoundAndFailsAlone) {
  const std::string good = File("d/good.svs");
  File("d/locked/a.svs");
  ASSERT_EQ(chmod(At("d/locked").c_str(), 0), 0);
  constexpr uid_t kNobody = 65534;
  const uid_t user = geteuid();  // root, who reads every folder, becomes somebody who does not
  ASSERT_EQ(chmod(root_.c_str(), 0755), 0);
  ASSERT_EQ(seteuid(user == 0 ? kNobody : user), 0);
  const auto found = Find({"d"}, false);
  ASSERT_EQ(seteuid(user), 0);
  ASSERT_EQ(chmod(At("d/locked").c_str(), 0700), 0);
  EXPECT_EQ(*found, (Paths{good, At("d/locked")}));
}

TEST_F(FindImagesTest, FoldersThatAreNestedWithoutEndAreRefused) {
  std::string deep = "d";
  for (int i = 0; i < kMaxFolderDepth; ++i) deep += "/d";
  File(deep + "/a.svs");
  EXPECT_EQ(Find({"d"}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(FindImagesTest, NamesThatAreNotUtf8AreFoundAsTheyAre) {
  const std::string path = File("d/b\xff.svs");
  EXPECT_EQ(*Find({"d"}), Paths{path});
  const Json manifest = *ParseJson(DumpJson({{"images", *Find({"d"})}}), "manifest");
  EXPECT_EQ(FromJson<JobManifest>(manifest, "manifest")->images, Paths{path});
}

}  // namespace
}  // namespace patchbay::workers
