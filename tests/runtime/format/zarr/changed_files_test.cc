// Stores whose files change while they are open: a read returns one content, or an error.
#include "runtime/format/zarr/store_files.h"
#include "tests/runtime/format/zarr/zarr_fixture.h"
#include "workers/sources/zarr_source.h"

namespace patchbay::workers {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using zarr::AwaitNextTick;
using zarr::OverwriteInPlace;
using zarr::ReadText;
using zarr::WriteText;

/// Noise: every chunk has the same encoded length, so that the index of one image fits another's
/// chunks, and crc32c holds of each.
zarr::TestImage Noise(std::uint64_t seed) {
  zarr::TestImage noise{DType::kUint8, 128, 256, 3, {}};
  for (std::uint64_t i = 0; i < 128 * 256 * 3; ++i) {
    noise.bytes.push_back(static_cast<std::byte>(zarr::Mix(i + (seed << 32))));
  }
  return noise;
}

class ChangedFiles : public testing::Test {
 protected:
  void SetUp() override {
    zarr::ImageStoreSpec spec;
    spec.settings.chunk = Flat(64, 64);
    spec.settings.shard = Flat(128, 128);
    spec.levels = {Flat(128, 256)};
    WriteStore(folder_ / "x", spec, {Noise(1)});
    WriteStore(folder_ / "y", spec, {Noise(2)});
    ASSERT_EQ(fs::file_size(folder_ / "x/0/c/0/0/0"), fs::file_size(folder_ / "y/0/c/0/0/0"));
    fs::copy(folder_ / "x", store_, fs::copy_options::recursive);
  }

  std::string Shard(const std::string& store, int column) const {
    return StrCat(folder_ / store, "/0/c/0/0/", column);
  }
  void Overwrite(const std::string& from, int column) const {
    OverwriteInPlace(Shard("s", column), ReadText(Shard(from, column)));
  }
  /// As another writer's: without a digest and a list.
  void Strip() const {
    Json root = *ParseJson(ReadText(store_ + "/zarr.json"), "root");
    root["attributes"].erase("patchbay");
    WriteText(store_ + "/zarr.json", root.dump());
  }
  static StatusOr<std::unique_ptr<ImageSource>> Open(const std::string& path) {
    PB_ASSIGN_OR_RETURN(auto image, OpenZarrImage(Folders::OfThisUser(), path,
                                                  ReadCaches::Of({.open_files_max = 4})));
    if (ReadText(path + "/zarr.json").find("pixel_digest") != std::string::npos) return image;
    PB_ASSIGN_OR_RETURN(zarr::StoreFiles files,
                        zarr::StoreFiles::List(Folders::OfThisUser(), path));
    const std::size_t bytes = image->MemoryBytes();
    image->Expect(std::make_shared<const zarr::StoreFiles>(std::move(files)));
    EXPECT_GT(image->MemoryBytes(), bytes);
    return image;
  }
  static StatusOr<std::vector<std::byte>> Read(const ImageSource& image, std::int64_t x) {
    EncodedPatch patch;
    PB_RETURN_IF_ERROR(image.Fetch(0, Box2D(3, x, 100, 100), patch));
    std::vector<std::byte> out(100 * 100 * 3);
    const auto view = ContiguousView<3>(out.data(), DType::kUint8, {100, 100, 3});
    PB_RETURN_IF_ERROR(image.Decode(patch, view, 0, *image.MakeScratch()));
    return out;
  }
  static void ExpectChanged(const Status& status, const std::string& cause) {
    EXPECT_TRUE(absl::IsAborted(status)) << status;
    EXPECT_THAT(MessageOf(status), HasSubstr("0/c/0/0/0"));
    EXPECT_THAT(MessageOf(status), HasSubstr(cause));
  }

  const zarr::TempFolder folder_;
  const std::string store_ = folder_ / "s";
};

TEST_F(ChangedFiles, AShardThatIsOverwrittenByAnothersIsNotReadAndARestoredOneIs) {
  const auto image = Open(store_);
  ASSERT_TRUE(image.ok()) << image.status();
  const auto planned = Read(**image, 0);
  ASSERT_TRUE(planned.ok()) << planned.status();
  Overwrite("y", 0);
  for (int twice = 0; twice < 2; ++twice) {
    ExpectChanged(Read(**image, 0).status(), "another than the store lists");
  }
  EXPECT_TRUE(Read(**image, 128).ok()) << "nothing happened to this shard";
  Overwrite("x", 0);
  const auto restored = Read(**image, 0);
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(*restored, *planned);
}

/// As a writer leaves it who has come to the middle: other chunks, and the index with its seal of
/// before.
TEST_F(ChangedFiles, AShardThatIsHalfOverwrittenIsNotRead) {
  const auto image = Open(store_);
  ASSERT_TRUE(image.ok()) << image.status();
  ASSERT_TRUE(Read(**image, 0).ok());
  const std::string x = ReadText(Shard("x", 0)), y = ReadText(Shard("y", 0));
  OverwriteInPlace(Shard("s", 0), y.substr(0, y.size() - 100) + x.substr(x.size() - 100));
  for (int twice = 0; twice < 2; ++twice) {
    ExpectChanged(Read(**image, 0).status(), "another than the store lists");
  }
}

TEST_F(ChangedFiles, AShardOfTheSameBytesIsReadOn) {
  const auto image = Open(store_);
  ASSERT_TRUE(image.ok()) << image.status();
  const auto planned = Read(**image, 0);
  ASSERT_TRUE(planned.ok()) << planned.status();
  AwaitNextTick(Shard("s", 0));
  fs::permissions(Shard("s", 0), fs::perms::owner_read);
  EXPECT_EQ(*Read(**image, 0), *planned) << "chmod";
  fs::permissions(Shard("s", 0), fs::perms::owner_all);
  AwaitNextTick(Shard("s", 0));
  fs::create_hard_link(Shard("s", 0), folder_ / "backup");
  EXPECT_EQ(*Read(**image, 0), *planned) << "a hard link";
  Overwrite("x", 0);
  EXPECT_EQ(*Read(**image, 0), *planned) << "written again";
  AwaitNextTick(Shard("s", 0));
  fs::copy_file(Shard("x", 0), folder_ / "t");
  fs::rename(folder_ / "t", Shard("s", 0));
  EXPECT_EQ(*Read(**image, 0), *planned) << "replaced by a copy";
}

TEST_F(ChangedFiles, AShardThatIsRemovedIsMissing) {
  const auto image = Open(store_);
  ASSERT_TRUE(image.ok()) << image.status();
  ASSERT_TRUE(Read(**image, 0).ok());
  AwaitNextTick(Shard("s", 0));
  fs::remove(Shard("s", 0));
  const Status lost = Read(**image, 0).status();
  EXPECT_TRUE(absl::IsDataLoss(lost)) << lost;
  EXPECT_THAT(MessageOf(lost), HasSubstr("missing, although the store lists this file"));
}

TEST_F(ChangedFiles, AFileOfAnotherWritersStoreIsReadAsItWasWhenTheStoreWasOpened) {
  Strip();
  const auto image = Open(store_);
  ASSERT_TRUE(image.ok()) << image.status();
  ASSERT_TRUE(Read(**image, 0).ok());
  Overwrite("y", 0);
  ExpectChanged(Read(**image, 0).status(), "it was written or replaced while it was in use");
  Overwrite("x", 0);
  ExpectChanged(Read(**image, 0).status(), "since the store was opened");
  const auto anew = Open(store_);
  ASSERT_TRUE(anew.ok()) << anew.status();
  const auto read = Read(**anew, 0);
  ASSERT_TRUE(read.ok()) << read.status();
}

TEST_F(ChangedFiles, AFileThatWasNotReadBeforeIsLookedAtAsWell) {
  Strip();
  for (const char* change : {"written", "gone"}) {
    const auto image = Open(store_);
    ASSERT_TRUE(image.ok()) << image.status();
    if (change == std::string("written")) Overwrite("y", 0);
    if (change == std::string("gone")) fs::remove(Shard("s", 0));
    ExpectChanged(Read(**image, 0).status(), change);
    EXPECT_TRUE(Read(**image, 128).ok());
  }
  const auto image = Open(store_);
  ASSERT_TRUE(image.ok()) << image.status();
  fs::copy_file(Shard("x", 0), Shard("s", 0));
  ExpectChanged(Read(**image, 0).status(), "added since the store was opened");
}

TEST_F(ChangedFiles, AChangedTimeOfChangeAloneIsNamedAsSuch) {
  Strip();
  const auto image = Open(store_);
  ASSERT_TRUE(image.ok()) << image.status();
  ASSERT_TRUE(Read(**image, 0).ok());
  AwaitNextTick(Shard("s", 0));
  fs::permissions(Shard("s", 0), fs::perms::owner_read);
  ExpectChanged(Read(**image, 0).status(), "its permissions, owner or hard links changed");
}

TEST_F(ChangedFiles, AnIndexIsNotUsedForAnotherFileThatTookItsPlaceWhileItWasClosed) {
  Strip();
  const auto image =
      OpenZarrImage(Folders::OfThisUser(), store_, ReadCaches::Of({.open_files_max = 1}));
  ASSERT_TRUE(image.ok()) << image.status();
  ASSERT_TRUE(Read(**image, 0).ok());
  ASSERT_TRUE(Read(**image, 128).ok());
  fs::rename(Shard("y", 0), Shard("s", 0));
  ExpectChanged(Read(**image, 0).status(), "shard changed since its index was read");
}

TEST_F(ChangedFiles, StampsShowWhatTheLevelsAreMadeOfAndNothingElse) {
  Strip();
  const auto stamp = [&] { return zarr::StoreFiles::List(Folders::OfThisUser(), store_)->Stamp(); };
  const std::string before = stamp();
  EXPECT_EQ(before.size(), 32u);
  WriteText(store_ + "/labels/zarr.json", "{}");
  WriteText(store_ + "/labels/set.0123456789abcdef/0/c/0/0/0", "x");
  WriteText(store_ + "/notes.txt", "x");
  EXPECT_EQ(stamp(), before) << "no pixel of the image lies there";
  fs::permissions(Shard("s", 0), fs::perms::owner_read);
  EXPECT_EQ(stamp(), before) << "other nodes see other times of change";
  fs::permissions(Shard("s", 0), fs::perms::owner_all);
  Overwrite("x", 0);
  const std::string written = stamp();
  EXPECT_NE(written, before);
  WriteText(store_ + "/0/c/0/1/0", "x");
  const std::string added = stamp();
  EXPECT_NE(added, written);
  fs::remove(store_ + "/0/c/0/1/0");
  EXPECT_EQ(stamp(), written);
  fs::resize_file(store_ + "/0/zarr.json", fs::file_size(store_ + "/0/zarr.json") + 1);
  EXPECT_NE(stamp(), written) << "metadata of a level";
}

TEST_F(ChangedFiles, AStoreThatLinksToItselfIsListed) {
  Strip();
  fs::create_directory_symlink(store_, store_ + "/0/c/loop");
  EXPECT_TRUE(zarr::StoreFiles::List(Folders::OfThisUser(), store_).ok());
}

}  // namespace
}  // namespace patchbay::workers
