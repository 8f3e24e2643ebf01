// Datasets of tiles: which folders are some, which files are in their lists, and what is at fault.
#include "runtime/model/source/tile_list.h"

#include <filesystem>
#include <fstream>
#include <initializer_list>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/wire/control/scratch_folder.h"

namespace patchbay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Tiles : public testing::Test {
 protected:
  Tiles() { std::filesystem::create_directory(folder_.Path("set")); }

  std::string PathOf(const std::string& file) const { return folder_.Path("set/" + file); }
  void Write(std::initializer_list<const char*> files) {
    for (const char* file : files) {
      const std::filesystem::path path = std::filesystem::path(PathOf(file));
      std::filesystem::create_directories(path.parent_path());
      std::ofstream(path) << "x";
    }
  }
  TileList List(OtherImages others = OtherImages::kAreSkipped) {
    auto list = ListTiles(Folders::OfThisUser(), folder_.Path("set"), others);
    EXPECT_TRUE(list.ok()) << list.status();
    return list.ok() ? *std::move(list) : TileList{};
  }
  std::string Fault() { return std::string(List().fault.message()); }

  control::ScratchFolder folder_;
};

TEST_F(Tiles, AreListedClassByClassWithNestedFolders) {
  Write({"b/2.png", "b/1.JPG", "a/deep/3.jpeg", "a/.hidden.png", "a/notes.txt", ".cache/4.png",
         "readme.txt"});
  const TileList list = List();
  EXPECT_THAT(list.files, ElementsAre("a/deep/3.jpeg", "b/1.JPG", "b/2.png"));
  EXPECT_EQ(ClassOfTile(list.files[0]), "a");
  EXPECT_EQ(list.skipped, (FilesByKind{{"txt", 2}}));
  EXPECT_TRUE(list.fault.ok()) << list.fault;
  EXPECT_EQ(List(OtherImages::kEndTheList).files, list.files) << "notes are no images";
}

TEST_F(Tiles, OfAFolderWithoutPicturesInSubfoldersAreNone) {
  EXPECT_THAT(List().files, IsEmpty());
  Write({"1.png", "b/notes.txt"});
  EXPECT_THAT(List().files, IsEmpty());
}

TEST_F(Tiles, AreNoneBesideWhatMayBeASlideWhereThatIsAsked) {
  for (const char* other : {"a/s.svs", "s.tiff", "b/deep/0001.dcm", "c/IM0001"}) {
    Write({"a/1.png", "b/2.png", other});
    EXPECT_THAT(List().files, ElementsAre("a/1.png", "b/2.png")) << other;
    const TileList none = List(OtherImages::kEndTheList);
    EXPECT_THAT(none.files, IsEmpty()) << other;
    EXPECT_TRUE(none.fault.ok()) << none.fault;
    std::filesystem::remove(PathOf(other));
    std::filesystem::remove(PathOf("c"));
  }
}

TEST_F(Tiles, OfNoOneClassAreAtFault) {
  Write({"a/1.png", "tum/2.png"});
  EXPECT_EQ(Fault(), "");
  Write({"3.png"});
  EXPECT_THAT(Fault(), HasSubstr("3.png: a picture beside the folders of classes"));
  std::filesystem::remove(PathOf("3.png"));
  Write({"empty/notes.txt"});
  EXPECT_THAT(Fault(), HasSubstr("/empty: no PNG or JPEG picture"));
  std::filesystem::remove_all(PathOf("empty"));
  Write({"TUM/2.png"});
  EXPECT_THAT(Fault(), HasSubstr("/tum: a class beside 'TUM'"));
  std::filesystem::remove_all(PathOf("TUM"));
  std::filesystem::create_directory_symlink(PathOf("a"), PathOf("tum/loop"));
  EXPECT_THAT(Fault(), HasSubstr("/tum/loop: a link to a folder"));
  std::filesystem::remove(PathOf("tum/loop"));
  Write({"a/line\nbreak.png"});
  EXPECT_THAT(Fault(), HasSubstr("control characters in its name"));
}

}  // namespace
}  // namespace patchbay
