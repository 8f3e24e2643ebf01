// A finished store that lost, gained or exchanged files: verify says which.
#include <algorithm>
#include <functional>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "runtime/format/zarr/shard_list.h"
#include "runtime/format/zarr/store_metadata.h"
#include "runtime/format/zarr/verify.h"
#include "tests/runtime/format/zarr/zarr_fixture.h"

namespace patchbay::zarr {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

/// Shard grids of 3 x 4 and 2 x 2; shard (1, 2) of level 0 and (1, 1) of level 1 are background.
ImageStoreSpec Spec() {
  ImageStoreSpec spec;
  spec.settings.chunk = Flat(64, 64);
  spec.settings.shard = Flat(128, 128);
  spec.settings.codec_level = 1;
  spec.levels = {Flat(301, 490), Flat(151, 245)};
  spec.attributes = {{"source_kind", "aperio"}};
  return spec;
}

std::vector<TestImage> Images(std::uint64_t seed = 3) {
  const ImageStoreSpec spec = Spec();
  std::vector<TestImage> out;
  for (const Extent& l : spec.levels) {
    out.push_back(MakeImage(DType::kUint8, l.y, l.x, 3, seed));
  }
  for (std::int64_t y = 128; y < 256; ++y) {
    const std::int64_t at = (y * out[0].width + 256) * 3;
    std::fill_n(out[0].bytes.begin() + at, 128 * 3, std::byte{255});
  }
  return out;
}

class LostFiles : public testing::Test {
 protected:
  void SetUp() override { roots_ = WriteStore(store_, Spec(), Images()); }

  VerifyReport Verify(const VerifyOptions& options = {}) const {
    const auto report = VerifyStore(Folders::OfThisUser(), store_, options);
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() ? *report : VerifyReport();
  }
  std::string At(const std::string& name) const { return store_ + "/" + name; }
  Json Root() const { return *ParseJson(ReadText(At("zarr.json")), "root"); }
  void WriteRoot(const Json& root) const { WriteText(At("zarr.json"), root.dump(2)); }

  const TempFolder folder_;
  const std::string store_ = folder_ / "s";
  StoreRoots roots_;
};

TEST_F(LostFiles, AStoreThatLostNoneIsCleanAndItsBackgroundShardsAreNotMissed) {
  EXPECT_FALSE(fs::exists(At("0/c/0/1/2")));
  EXPECT_FALSE(fs::exists(At("1/c/0/1/1")));
  const VerifyReport report = Verify();
  EXPECT_TRUE(report.Clean()) << testing::PrintToString(report.bad);
  EXPECT_EQ(report.computed, roots_);
  ASSERT_EQ(report.levels.size(), 2u);
  EXPECT_EQ(report.levels[0].listed, 11);
  EXPECT_EQ(report.levels[0].found, 11);
  EXPECT_EQ(report.levels[1].path, "1");
  EXPECT_EQ(report.levels[1].listed, 3);
  EXPECT_EQ(report.shards, 14);
}

TEST_F(LostFiles, EveryLostFileIsNamedWithAnyNumberOfThreads) {
  for (const char* name : {"0/c/0/0/1", "0/c/0/2/3", "1/c/0/1/0"}) fs::remove(At(name));
  for (const int threads : {1, 2, 8}) {
    const VerifyReport report = Verify({.threads = threads});
    EXPECT_FALSE(report.Clean());
    EXPECT_EQ(report.faults, 3u);
    EXPECT_THAT(report.bad,
                ElementsAre("0/c/0/0/1: missing", "0/c/0/2/3: missing", "1/c/0/1/0: missing"));
    EXPECT_THAT(report.levels[0].missing, ElementsAre("0/c/0/0/1", "0/c/0/2/3"));
    EXPECT_THAT(report.levels[1].missing, ElementsAre("1/c/0/1/0"));
    EXPECT_EQ(report.levels[0].found, 9);
    EXPECT_THAT(report.levels[0].surplus, IsEmpty());
  }
}

TEST_F(LostFiles, ALostFolderIsEveryFileInItAndAFileInItsPlaceIsNamedToo) {
  fs::remove_all(At("0/c/0/1"));
  EXPECT_THAT(Verify().bad,
              ElementsAre("0/c/0/1/0: missing", "0/c/0/1/1: missing", "0/c/0/1/3: missing"));
  WriteText(At("0/c/0/1"), "x");
  EXPECT_THAT(Verify().bad, ElementsAre("0/c/0/1/0: missing", "0/c/0/1/1: missing",
                                        "0/c/0/1/3: missing", "0/c/0/1: not a file of this store"));
  fs::remove_all(At("1/c"));
  EXPECT_EQ(Verify().levels[1].missing_count, 3);
}

TEST_F(LostFiles, AFileThatTheStoreWasWrittenWithoutIsNamed) {
  fs::copy_file(At("0/c/0/0/0"), At("0/c/0/1/2"));
  const VerifyReport report = Verify();
  EXPECT_THAT(report.bad,
              ElementsAre("0/c/0/1/2: surplus: the store was written without this file"));
  EXPECT_THAT(report.levels[0].surplus, ElementsAre("0/c/0/1/2"));
  EXPECT_EQ(report.levels[0].surplus_count, 1);
  EXPECT_THAT(report.levels[0].missing, IsEmpty());
}

TEST_F(LostFiles, AFileOfAnotherStoreOrPlaceIsNamedThoughItReadsWell) {
  WriteStore(folder_ / "other", Spec(), Images(4));
  fs::copy_file(folder_ / "other/0/c/0/0/1", At("0/c/0/0/1"), fs::copy_options::overwrite_existing);
  fs::rename(At("0/c/0/2/1"), At("x"));
  fs::rename(At("0/c/0/2/2"), At("0/c/0/2/1"));
  fs::rename(At("x"), At("0/c/0/2/2"));
  const VerifyReport report = Verify();
  ASSERT_EQ(report.faults, 3u) << testing::PrintToString(report.bad);
  for (const std::size_t i : {0, 1, 2}) {
    EXPECT_THAT(report.bad[i],
                testing::MatchesRegex("0/c/0/[02]/[12]: another file than was written: its SHA-256 "
                                      "begins with [0-9a-f]+, [0-9a-f]+ recorded"));
  }
  EXPECT_THAT(report.bad[0], StartsWith("0/c/0/0/1: "));
}

TEST_F(LostFiles, ASparseFileOfATebibyteIsNamedAndNotRead) {
  std::error_code error;
  fs::resize_file(At("0/c/0/0/1"), std::uintmax_t{1} << 40, error);
  if (error) GTEST_SKIP() << "no such files here: " << error.message();
  EXPECT_THAT(Verify().bad, ElementsAre(StartsWith("0/c/0/0/1: 1099511627776 bytes, and a shard of "
                                                   "this array has ")));
  fs::resize_file(At("zarr.json"), std::uintmax_t{1} << 40);
  EXPECT_TRUE(absl::IsInvalidArgument(VerifyStore(Folders::OfThisUser(), store_).status()));
}

TEST_F(LostFiles, NamesAreLimitedAndAllAreCounted) {
  fs::remove_all(At("0/c"));
  const VerifyReport report = Verify({.max_listed = 2});
  EXPECT_EQ(report.faults, 11u);
  EXPECT_THAT(report.bad, ElementsAre("0/c/0/0/0: missing", "0/c/0/0/1: missing"));
  EXPECT_THAT(report.levels[0].missing, ElementsAre("0/c/0/0/0", "0/c/0/0/1"));
  EXPECT_EQ(report.levels[0].missing_count, 11);
}

TEST_F(LostFiles, TheReportAsJsonNamesThemLevelByLevel) {
  fs::remove(At("1/c/0/0/1"));
  fs::copy_file(At("0/c/0/0/0"), At("0/c/0/1/2"));
  const Json json = ToJson(Verify());
  EXPECT_EQ(json["clean"], false);
  EXPECT_EQ(json["faults"], 2);
  EXPECT_TRUE(json["digest"].is_null());
  EXPECT_EQ(json["recorded_digest"], roots_.bytes.Hex());
  EXPECT_EQ(json["levels"], Json::parse(R"([
      {"path": "0", "listed": 11, "found": 12, "missing": [], "missing_count": 0,
       "surplus": ["0/c/0/1/2"], "surplus_count": 1},
      {"path": "1", "listed": 3, "found": 2, "missing": ["1/c/0/0/1"], "missing_count": 1,
       "surplus": [], "surplus_count": 0}])"));
}

TEST_F(LostFiles, AnAlteredListIsSeen) {
  const Json root = Root();
  const auto altered = [&](const char* level_file, const std::string& from, const char* to) {
    Json bad = root;
    auto& row = bad["attributes"]["patchbay"]["shards"][0]["files"][1].get_ref<std::string&>();
    row.replace(row.find(from), from.size(), to);
    WriteRoot(bad);
    const VerifyReport report = Verify();
    EXPECT_FALSE(report.Clean());
    EXPECT_EQ(report.faults, 2u) << testing::PrintToString(report.bad);
    EXPECT_THAT(report.bad[0], StartsWith("zarr.json: metadata was changed"));
    EXPECT_THAT(report.bad[1], StartsWith(level_file));
  };
  const std::string row = root["attributes"]["patchbay"]["shards"][0]["files"][1];
  altered("0/c/0/1/0: surplus", row.substr(0, 16), "-");
  altered("0/c/0/1/0: another", row.substr(0, 8), "00000000");
  altered("0/c/0/1/2: missing", " - ", " 0a1b2c3d00000000 ");
  // Together with the file it no longer names: the fault remains, and says what to think of it.
  Json bad = root;
  bad["attributes"]["patchbay"]["shards"][0]["files"][1].get_ref<std::string&>().replace(0, 16,
                                                                                         "-");
  WriteRoot(bad);
  fs::remove(At("0/c/0/1/0"));
  const VerifyReport report = Verify();
  EXPECT_EQ(report.faults, 1u);
  EXPECT_THAT(report.bad[0], HasSubstr("what it says of missing and surplus shard files"));
  // Without the list, as a store that never had one: the digest is another.
  bad["attributes"]["patchbay"].erase("shards");
  WriteRoot(bad);
  EXPECT_THAT(Verify().bad, ElementsAre(HasSubstr("a shard's file is missing")));
}

TEST_F(LostFiles, AnotherAttributeThatWasChangedDoesNotHideALostFile) {
  Json root = Root();
  root["attributes"]["patchbay"]["source_kind"] = "aperia";
  WriteRoot(root);
  fs::remove(At("0/c/0/1/0"));
  EXPECT_THAT(Verify().bad,
              ElementsAre(StartsWith("zarr.json: metadata was changed"), "0/c/0/1/0: missing"));
}

TEST_F(LostFiles, ForgedLevelAndPixelDigestsAreSeenThoughEveryFileIsTheRightOne) {
  const Json good = Root();
  Json root = good;
  Json& patchbay = root["attributes"]["patchbay"];
  patchbay["shards"][1]["digest"] = std::string(64, '7');
  MetadataDocuments documents = {{"zarr.json", root}};
  for (const char* name : {"0/zarr.json", "1/zarr.json"}) {
    documents[name] = *ParseJson(ReadText(At(name)), name);
  }
  patchbay["digest"] =
      BytesRoot(documents, {roots_.levels[0].digest, *Digest::FromHex(std::string(64, '7'))}).Hex();
  WriteRoot(root);
  EXPECT_THAT(Verify().bad, ElementsAre(StartsWith("1: a shard's file is another")));
  root = good;
  root["attributes"]["patchbay"]["pixel_digest"] = std::string(64, '7');
  WriteRoot(root);
  EXPECT_THAT(Verify().bad, ElementsAre(StartsWith("zarr.json: pixel_digest 7777")));
  root = good;
  root["attributes"]["patchbay"].erase("pixel_digest");
  WriteRoot(root);
  EXPECT_THAT(Verify().bad, ElementsAre(HasSubstr("pixel_digest is missing")));
}

TEST_F(LostFiles, AListThatIsNoneForTheseLevelsIsRefusedByNameAndTheRestIsStillChecked) {
  const ImageStoreSpec spec = Spec();
  const Json good = Root();
  const auto listed = ShardListIn(good, spec.settings, spec.levels);
  ASSERT_TRUE(listed.ok()) << listed.status();
  EXPECT_EQ(*listed, roots_.levels);
  const std::pair<const char*, std::function<void(Json&)>> kBad[] = {
      {"not a list of 2 levels", [](Json& list) { list = 7; }},
      {"not a list of 2 levels", [](Json& list) { list = Json::object(); }},
      {"not a list of 2 levels", [](Json& list) { list.erase(1); }},
      {"not a list of 2 levels", [](Json& list) { list.push_back(list[0]); }},
      {"key '[0]': expected an object", [](Json& list) { list[0] = nullptr; }},
      {"key '[1].digest': missing", [](Json& list) { list[1].erase("digest"); }},
      {"key '[1].more': unknown key", [](Json& list) { list[1]["more"] = 1; }},
      {"key '[0].digest': ", [](Json& list) { list[0]["digest"] = 5; }},
      {"key '[0].digest': ", [](Json& list) { list[0]["digest"] = "abc"; }},
      {"key '[0].files': expected a list", [](Json& list) { list[0]["files"] = "x"; }},
      {"level 0: files is not a list of 3", [](Json& list) { list[0]["files"].erase(0); }},
      {"level 0: files is not a list of 3", [](Json& list) { list[0]["files"].push_back("-"); }},
      {"key '[0].files[2]': expected text", [](Json& list) { list[0]["files"][2] = 1; }},
      {"row 2 is not 4 words", [](Json& list) { list[0]["files"][2] = ""; }},
      {"row 2 is not 4 words", [](Json& list) { list[0]["files"][2] = "- - -"; }},
      {"row 2 is not 4 words", [](Json& list) { list[0]["files"][2] = "- - - - -"; }},
      {"row 2 is not 4 words", [](Json& list) { list[0]["files"][2] = "- - - - "; }},
      {"row 2 is not 4 words", [](Json& list) { list[0]["files"][2] = "-  - -"; }},
      {"row 2 is not 4 words", [](Json& list) { list[0]["files"][2] = "- - - 012345670123456"; }},
      {"row 2 is not 4 words", [](Json& list) { list[0]["files"][2] = "- - - 01234567012345678"; }},
      {"row 2 is not 4 words", [](Json& list) { list[0]["files"][2] = "- - - 012345670123456G"; }},
      {"row 2 is not 4 words", [](Json& list) { list[0]["files"][2] = "- - - 01234567+1234567"; }},
  };
  for (const auto& [cause, change] : kBad) {
    Json root = good;
    change(root["attributes"]["patchbay"]["shards"]);
    EXPECT_TRUE(absl::IsInvalidArgument(ShardListIn(root, spec.settings, spec.levels).status()));
    WriteRoot(root);
    const VerifyReport report = Verify();
    ASSERT_EQ(report.faults, 1u) << cause;
    EXPECT_THAT(report.bad[0], StartsWith("zarr.json: attributes.patchbay.shards: ")) << cause;
    EXPECT_THAT(report.bad[0], HasSubstr(cause));
    EXPECT_EQ(report.chunks, 5 * 8 + 3 * 4);
    EXPECT_FALSE(report.levels[0].listed.has_value());
  }
}

TEST_F(LostFiles, AStoreWithoutAListVerifiesByItsDigestsAlone) {
  const ImageStoreSpec spec = Spec();
  std::vector<Digest> nodes;
  for (const LevelFiles& level : roots_.levels) nodes.push_back(level.digest);
  const StoreRoots before{BytesRoot(*BuildMetadata(spec), nodes), roots_.pixels, {}};
  ASSERT_TRUE(WriteStoreMetadata(Folders::OfThisUser(), store_, spec, before).ok());
  EXPECT_FALSE(Root()["attributes"]["patchbay"].contains("shards"));
  EXPECT_TRUE(Verify().Clean());
  EXPECT_TRUE(ToJson(Verify())["levels"][0]["listed"].is_null());
  fs::remove(At("0/c/0/1/0"));
  const VerifyReport report = Verify();
  EXPECT_THAT(report.bad, ElementsAre(HasSubstr("a shard's file is missing")));
  EXPECT_THAT(report.levels[0].missing, IsEmpty());
}

TEST_F(LostFiles, WhatIsNoFileUnderAShardsNameIsSaidAndNeverWaitedFor) {
  const std::string kept = folder_ / "kept";
  fs::rename(At("0/c/0/1/0"), kept);
  const auto expect = [&](const char* fault) {
    const VerifyReport report = Verify();
    EXPECT_THAT(report.bad, ElementsAre(fault));
    EXPECT_THAT(report.levels[0].missing, IsEmpty());
    fs::remove_all(At("0/c/0/1/0"));
  };
  fs::create_directory(At("0/c/0/1/0"));
  expect("0/c/0/1/0: a folder, not a file");
  fs::create_symlink(kept, At("0/c/0/1/0"));
  expect("0/c/0/1/0: a symbolic link, not a file");
  fs::create_symlink(folder_ / "nowhere", At("0/c/0/1/0"));
  expect("0/c/0/1/0: a symbolic link, not a file");
  ASSERT_EQ(mkfifo(At("0/c/0/1/0").c_str(), 0600), 0);
  expect("0/c/0/1/0: a pipe, not a file");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  At("0/c/0/1/0").copy(address.sun_path, sizeof address.sun_path - 1);
  const UniqueFd bound(socket(AF_UNIX, SOCK_STREAM, 0));
  ASSERT_EQ(bind(bound.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  expect("0/c/0/1/0: a device or socket, not a file");
}

TEST_F(LostFiles, ATruncatedFileIsNamedHoweverShort) {
  const std::string good = ReadText(At("0/c/0/1/0"));
  for (const std::size_t size :
       {good.size() - 1, good.size() / 2, std::size_t{10}, std::size_t{0}}) {
    WriteText(At("0/c/0/1/0"), good.substr(0, size));
    const VerifyReport report = Verify();
    EXPECT_THAT(report.bad, ElementsAre(StartsWith("0/c/0/1/0: "))) << size;
    EXPECT_THAT(report.bad[0], HasSubstr("index")) << size;
    EXPECT_EQ(report.levels[0].found, 11);
  }
}

TEST_F(LostFiles, AnAlteredChunkIsNamedOnceByItsChunkAlone) {
  std::string bytes = ReadText(At("0/c/0/1/0"));
  bytes[40] = static_cast<char>(bytes[40] ^ 1);
  WriteText(At("0/c/0/1/0"), bytes);
  EXPECT_THAT(Verify().bad, ElementsAre(HasSubstr("0/c/0/1/0: chunk (0,2,0): crc32c mismatch")));
}

TEST_F(LostFiles, MetadataThatIsMissingOrNoFileIsNamed) {
  const auto refused = [&] { return VerifyStore(Folders::OfThisUser(), store_).status(); };
  fs::rename(At("1/zarr.json"), folder_ / "kept");
  EXPECT_TRUE(absl::IsNotFound(refused()));
  EXPECT_THAT(std::string(MessageOf(refused())), HasSubstr("s/1/zarr.json: missing"));
  ASSERT_EQ(mkfifo(At("1/zarr.json").c_str(), 0600), 0);
  EXPECT_THAT(std::string(MessageOf(refused())), HasSubstr("s/1/zarr.json: a pipe, not a file"));
  fs::remove(At("1/zarr.json"));
  fs::create_directory(At("1/zarr.json"));
  EXPECT_THAT(std::string(MessageOf(refused())), HasSubstr("s/1/zarr.json: "));
  fs::remove(At("1/zarr.json"));
  fs::create_symlink(folder_ / "kept", At("1/zarr.json"));
  EXPECT_THAT(Verify().bad, ElementsAre("1/zarr.json: a symbolic link, not a file"));
  fs::remove(At("zarr.json"));
  EXPECT_TRUE(absl::IsNotFound(refused()));
  ASSERT_EQ(mkfifo(At("zarr.json").c_str(), 0600), 0);
  EXPECT_THAT(std::string(MessageOf(refused())), HasSubstr("s/zarr.json: not a regular file"));
}

TEST_F(LostFiles, WhatIsNotOfTheStoreIsNamedWhereverItLies) {
  WriteText(At("notes.txt"), "x");
  WriteText(At("0/c/0/9/9"), "x");
  WriteText(At("1/deep/er/x"), "x");
  ASSERT_EQ(mkfifo(At("0/pipe").c_str(), 0600), 0);
  fs::create_symlink("/", At("away"));
  fs::create_directories(At("empty/folder"));
  EXPECT_THAT(Verify().bad, ElementsAre("0/c/0/9/9: not a file of this store",
                                        "0/pipe: a pipe, not a file of this store",
                                        "1/deep/er/x: not a file of this store",
                                        "away: a symbolic link, not a file of this store",
                                        "notes.txt: not a file of this store"));
  const VerifyReport few = Verify({.max_listed = 1});
  EXPECT_THAT(few.bad, ElementsAre("0/c/0/9/9: not a file of this store"));
  EXPECT_EQ(few.faults, 5u);
}

TEST(ShardList, ASmallerListThanItsLimitIsWrittenAndALargerIsNot) {
  ImageStoreSettings s;
  s.chunk = s.shard = Flat(16, 16);
  EXPECT_TRUE(ListsShards(s, {Flat(256 * 16, 256 * 16)}));
  EXPECT_FALSE(ListsShards(s, {Flat(256 * 16, 256 * 16), Flat(1, 1)}));
  EXPECT_FALSE(ListsShards(s, {Flat(256 * 16 + 1, 256 * 16)}));
  EXPECT_FALSE(ListsShards(s, {Flat(std::int64_t{1} << 31, std::int64_t{1} << 31)}));
  Json root = {{"attributes", {{"patchbay", Json::object()}}}};
  EXPECT_TRUE(PutShardList(s, {Flat(16, 16)}, {}, root).ok());
  EXPECT_TRUE(root["attributes"]["patchbay"].empty());
  EXPECT_TRUE(
      absl::IsInvalidArgument(PutShardList(s, {Flat(16, 17)}, {{{}, {ListedShard{}}}}, root)));
  EXPECT_TRUE(absl::IsInvalidArgument(PutShardList(s, {Flat(16, 16)}, {{}, {}}, root)));
  const std::vector<std::optional<ListedShard>> shards = {ListedShard{0, 0x1a2b}, std::nullopt,
                                                          ListedShard{~0u, 0xff000000}};
  ASSERT_TRUE(PutShardList(s, {Flat(16, 48)}, {{{}, shards}}, root).ok());
  EXPECT_EQ(root["attributes"]["patchbay"]["shards"][0]["files"],
            Json({"0000000000001a2b - ffffffffff000000"}));
  EXPECT_EQ((*ShardListIn(root, s, {Flat(16, 48)}))[0].shards, shards);
}

}  // namespace
}  // namespace patchbay::zarr
