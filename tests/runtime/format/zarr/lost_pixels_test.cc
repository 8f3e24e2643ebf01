// Reading pixels of a store that lost files: an error that names the file, never background.
#include "runtime/format/zarr/shard_list.h"
#include "tests/runtime/format/zarr/zarr_fixture.h"
#include "workers/sources/zarr_source.h"

namespace patchbay::workers {
namespace {

namespace fs = std::filesystem;
using testing::EndsWith;
using testing::HasSubstr;
using zarr::ReadText;
using zarr::WriteText;

/// Shard grids of 3 x 3 and 2 x 2; shard (1, 2) of level 0 and (1, 1) of level 1 are background and
/// have no file.
class LostPixels : public testing::Test {
 protected:
  void SetUp() override {
    zarr::ImageStoreSpec spec;
    spec.settings.chunk = Flat(64, 64);
    spec.settings.shard = Flat(128, 128);
    spec.settings.codec_level = 1;
    spec.levels = {Flat(301, 370), Flat(151, 185)};
    std::vector<zarr::TestImage> images = {zarr::MakeImage(DType::kUint8, 301, 370, 3, 1),
                                           zarr::MakeImage(DType::kUint8, 151, 185, 3, 2)};
    for (std::int64_t y = 128; y < 256; ++y) {
      const std::int64_t at = (y * 370 + 256) * 3;
      std::fill_n(images[0].bytes.begin() + at, 114 * 3, std::byte{255});
    }
    WriteStore(store_, spec, images);
    ASSERT_FALSE(fs::exists(At("0/c/0/1/2")));
  }

  std::string At(const std::string& name) const { return store_ + "/" + name; }

  /// The pixels of the zarr shard at (row, column) of a level, or why they cannot be read.
  static StatusOr<std::vector<std::byte>> Read(const ImageSource& image, int level,
                                               std::int64_t row, std::int64_t column) {
    EncodedPatch patch;
    PB_RETURN_IF_ERROR(image.Fetch(level, Box2D(row * 128, column * 128, 96, 96), patch));
    std::vector<std::byte> out(96 * 96 * 3);
    const auto view = ContiguousView<3>(out.data(), DType::kUint8, {96, 96, 3});
    PB_RETURN_IF_ERROR(image.Decode(patch, view, 0, *image.MakeScratch()));
    return out;
  }

  void WithoutList() const {
    Json root = *ParseJson(ReadText(At("zarr.json")), "root");
    ASSERT_EQ(root["attributes"]["patchbay"].erase("shards"), 1u);
    WriteText(At("zarr.json"), root.dump());
  }

  const zarr::TempFolder folder_;
  const std::string store_ = folder_ / "s";
};

TEST_F(LostPixels, ALostFileIsAnErrorThatNamesItAndTheRestIsRead) {
  const auto image = OpenZarrImage(Folders::OfThisUser(), store_);
  ASSERT_TRUE(image.ok()) << image.status();
  fs::remove(At("0/c/0/2/1"));
  fs::remove_all(At("1/c/0/1"));
  for (const auto& [level, row, column] : {std::array{0, 2, 1}, {1, 1, 0}}) {
    for (int twice = 0; twice < 2; ++twice) {
      const auto read = Read(**image, level, row, column);
      EXPECT_TRUE(absl::IsDataLoss(read.status())) << read.status();
      EXPECT_THAT(MessageOf(read.status()),
                  EndsWith(StrCat(store_, "/", level, "/c/0/", row, "/", column,
                                  ": missing, although the store lists this file")));
    }
  }
  EXPECT_TRUE(Read(**image, 0, 2, 0).ok());
  EXPECT_TRUE(Read(**image, 1, 0, 0).ok());
}

TEST_F(LostPixels, AShardInThePlaceOfAnotherIsRefusedAndNamed) {
  fs::copy_file(At("0/c/0/0/0"), At("0/c/0/1/1"), fs::copy_options::overwrite_existing);
  const auto image = OpenZarrImage(Folders::OfThisUser(), store_);
  ASSERT_TRUE(image.ok()) << image.status();
  for (int twice = 0; twice < 2; ++twice) {
    const auto read = Read(**image, 0, 1, 1);
    EXPECT_TRUE(absl::IsDataLoss(read.status())) << read.status();
    EXPECT_THAT(MessageOf(read.status()), HasSubstr(store_ + "/0/c/0/1/1"));
    EXPECT_THAT(MessageOf(read.status()), HasSubstr("another shard than the store lists here"));
  }
  EXPECT_TRUE(Read(**image, 0, 0, 0).ok());
  WithoutList();
  const auto unlisted = OpenZarrImage(Folders::OfThisUser(), store_);
  EXPECT_TRUE(Read(**unlisted, 0, 1, 1).ok());
}

TEST(ExchangedShards, AreToldApartEvenWhereTheirIndexesAreEqual) {
  zarr::ImageStoreSpec spec;
  spec.settings.chunk = Flat(64, 64);
  spec.settings.shard = Flat(128, 128);
  spec.levels = {Flat(128, 256)};
  zarr::TestImage noise{DType::kUint8, 128, 256, 3, {}};
  for (std::uint64_t i = 0; i < 128 * 256 * 3; ++i) {
    noise.bytes.push_back(static_cast<std::byte>(zarr::Mix(i)));
  }
  const zarr::TempFolder folder;
  WriteStore(folder / "s", spec, {noise});
  const std::string left = folder / "s/0/c/0/0/0", right = folder / "s/0/c/0/0/1";
  const std::string a = ReadText(left), b = ReadText(right);
  ASSERT_NE(a, b);
  ASSERT_EQ(a.substr(a.size() - 68), b.substr(b.size() - 68));
  WriteText(left, b);
  WriteText(right, a);
  const auto image = OpenZarrImage(Folders::OfThisUser(), folder / "s");
  ASSERT_TRUE(image.ok()) << image.status();
  for (const std::int64_t x : {0, 128}) {
    EncodedPatch patch;
    EXPECT_TRUE(absl::IsDataLoss((*image)->Fetch(0, Box2D(0, x, 96, 96), patch)));
  }
}

TEST_F(LostPixels, AShardWrittenWithoutAFileIsBackground) {
  const auto image = OpenZarrImage(Folders::OfThisUser(), store_);
  ASSERT_TRUE(image.ok()) << image.status();
  const auto read = Read(**image, 0, 1, 2);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, std::vector<std::byte>(96 * 96 * 3, std::byte{255}));
}

TEST_F(LostPixels, AStoreWithoutAListKeepsTheRuleOfTheFormat) {
  WithoutList();
  fs::remove_all(At("0/c"));
  const auto image = OpenZarrImage(Folders::OfThisUser(), store_);
  ASSERT_TRUE(image.ok()) << image.status();
  const auto read = Read(**image, 0, 0, 0);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, std::vector<std::byte>(96 * 96 * 3, std::byte{255}));
}

TEST_F(LostPixels, ALostLevelIsNamed) {
  fs::remove_all(At("1"));
  const auto image = OpenZarrImage(Folders::OfThisUser(), store_);
  EXPECT_TRUE(absl::IsDataLoss(image.status())) << image.status();
  EXPECT_THAT(MessageOf(image.status()), HasSubstr("/s/1: missing, although"));
}

TEST_F(LostPixels, AListOfAnotherStoreIsRefused) {
  const Json good = *ParseJson(ReadText(At("zarr.json")), "root");
  const auto refused = [&](const std::function<void(Json&)>& change) {
    Json root = good;
    change(root["attributes"]["patchbay"]["shards"]);
    WriteText(At("zarr.json"), root.dump());
    const auto image = OpenZarrImage(Folders::OfThisUser(), store_);
    EXPECT_TRUE(absl::IsDataLoss(image.status())) << image.status();
    EXPECT_THAT(MessageOf(image.status()), HasSubstr("/s/zarr.json: attributes.patchbay.shards"));
  };
  refused([](Json& list) { list = 7; });
  refused([](Json& list) { list.erase(1); });
  refused([](Json& list) { list[0]["files"].erase(0); });
  refused([](Json& list) { list[1]["files"][0] = "-"; });
  refused([](Json& list) { list[1]["digest"] = 1; });
  WriteText(At("zarr.json"), good.dump());
  Json level = *ParseJson(ReadText(At("1/zarr.json")), "level");
  level["shape"][2] = 385;
  WriteText(At("1/zarr.json"), level.dump());
  EXPECT_TRUE(absl::IsDataLoss(OpenZarrImage(Folders::OfThisUser(), store_).status()));
}

TEST_F(LostPixels, SealsAreOnePerShard) {
  auto array = zarr::Array::Open(Folders::OfThisUser(), At("0"));
  ASSERT_TRUE(array.ok()) << array.status();
  std::size_t shards = 1;
  for (int i = 0; i < array->metadata().rank(); ++i) {
    shards *= static_cast<std::size_t>(array->metadata().ShardGrid(i));
  }
  const auto expect = [&](std::size_t marks) {
    return array->ExpectFiles(std::vector<bool>(shards, true),
                              std::vector<zarr::ShardMarks>(marks));
  };
  EXPECT_TRUE(absl::IsInvalidArgument(expect(shards - 1)));
  EXPECT_TRUE(absl::IsInvalidArgument(expect(shards + 1)));
  EXPECT_EQ(expect(shards), absl::OkStatus());
}

TEST(ExpectFiles, IsOneEntryPerShardAndHoldsForUnshardedArraysToo) {
  const zarr::TempFolder folder;
  WriteText(folder / "a/.zarray",
            R"({"zarr_format": 2, "shape": [4, 2], "chunks": [2, 2], "dtype": "|u1",
                "compressor": null, "filters": null, "fill_value": 9, "order": "C"})");
  WriteText(folder / "a/0.0", "abcd");
  auto array = zarr::Array::Open(Folders::OfThisUser(), folder / "a");
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_TRUE(absl::IsInvalidArgument(array->ExpectFiles({true})));
  EXPECT_TRUE(absl::IsInvalidArgument(array->ExpectFiles({true, false, false})));
  const auto all = ReadAll(*array);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ((*all)[7], std::byte{9});
  EXPECT_TRUE(absl::IsInvalidArgument(array->ExpectFiles({true, false}, {{1, 1}, {2, 2}})));
  ASSERT_TRUE(array->ExpectFiles({true, false}).ok());
  EXPECT_EQ(*ReadAll(*array), *all);
  ASSERT_TRUE(array->ExpectFiles({false, true}).ok());
  const Status lost = ReadAll(*array).status();
  EXPECT_TRUE(absl::IsDataLoss(lost)) << lost;
  EXPECT_THAT(MessageOf(lost), HasSubstr("/a/1.0: missing"));
}

}  // namespace
}  // namespace patchbay::workers
