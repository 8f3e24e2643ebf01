// Hostile metadata: refusals with their status codes, and limits.
#include "runtime/format/zarr/metadata.h"

#include "runtime/format/zarr/ngff.h"
#include "runtime/format/zarr/shard_list.h"
#include "tests/runtime/format/zarr/zarr_fixture.h"

namespace patchbay::zarr {
namespace {

Json GoodV3() {
  return Json::parse(R"({"zarr_format":3,"node_type":"array","shape":[3,100,100],
    "data_type":"uint8","chunk_grid":{"name":"regular","configuration":{"chunk_shape":[3,64,64]}},
    "chunk_key_encoding":{"name":"default"},"fill_value":0,"codecs":[{"name":"sharding_indexed",
    "configuration":{"chunk_shape":[3,16,16],"codecs":[{"name":"bytes"},{"name":"crc32c"}],
    "index_codecs":[{"name":"bytes","configuration":{"endian":"little"}},{"name":"crc32c"}]}}]})");
}

Json GoodV2() {
  return Json::parse(R"({"zarr_format":2,"shape":[100,100],"chunks":[10,10],"dtype":"<i2",
    "compressor":null,"filters":null,"order":"C","fill_value":0})");
}

absl::StatusCode V3(const char* pointer, Json value) {
  Json document = GoodV3();
  document[Json::json_pointer(pointer)] = std::move(value);
  return ParseArrayV3(document, "s").status().code();
}

absl::StatusCode V2(const char* key, Json value) {
  Json document = GoodV2();
  document[key] = std::move(value);
  return ParseArrayV2(document, Json::object(), "s").status().code();
}

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kUnsupported = absl::StatusCode::kUnimplemented;
constexpr auto kFine = absl::StatusCode::kOk;

TEST(Metadata, AcceptsTheGoodDocumentsTheRefusalsStartFrom) {
  EXPECT_TRUE(ParseArrayV3(GoodV3(), "s").ok()) << ParseArrayV3(GoodV3(), "s").status();
  EXPECT_TRUE(ParseArrayV2(GoodV2(), Json::object(), "s").ok());
}

TEST(Metadata, RefusesSizesBeyondTheLimits) {
  EXPECT_EQ(V3("/shape", {3, 100}), kInvalid);
  EXPECT_EQ(V3("/shape", {3, 100, -1}), kInvalid);
  EXPECT_EQ(V3("/shape", {3, 100, 1.5}), kInvalid);
  EXPECT_EQ(V3("/shape", {3, 100, std::uint64_t{1} << 63}), kInvalid);
  EXPECT_EQ(V3("/shape", {1, 1, 1, 1, 1, 1, 1}), kUnsupported);
  EXPECT_EQ(V3("/chunk_grid/configuration/chunk_shape", {3, 0, 64}), kInvalid);
  EXPECT_EQ(V3("/codecs/0/configuration/chunk_shape", {3, 16, 17}), kInvalid);
  const std::int64_t huge = std::int64_t{1} << 40;
  EXPECT_EQ(V3("/chunk_grid/configuration/chunk_shape", {3, huge, huge}), kInvalid);
  EXPECT_EQ(V2("chunks", {huge, huge}), kInvalid);
  EXPECT_EQ(V2("chunks", {1 << 16, 1 << 16}), kInvalid);
  EXPECT_EQ(V2("shape", {huge, huge}), kFine) << "a huge array of small chunks is fine";
}

TEST(Metadata, TellsUnsupportedFromMalformed) {
  EXPECT_EQ(V3("/data_type", "complex64"), kUnsupported);
  EXPECT_EQ(V3("/data_type", Json::object()), kUnsupported);
  EXPECT_EQ(V3("/chunk_grid/name", "rectilinear"), kUnsupported);
  EXPECT_EQ(V3("/chunk_key_encoding/name", "hashed"), kUnsupported);
  EXPECT_EQ(V3("/chunk_key_encoding/configuration", {{"separator", "_"}}), kInvalid);
  EXPECT_EQ(V3("/codecs", Json::array()), kInvalid);
  EXPECT_EQ(V3("/codecs", "bytes"), kInvalid);
  EXPECT_EQ(V3("/codecs/0/name", "imagecodecs_jpeg"), kUnsupported);
  EXPECT_EQ(V3("/codecs/0/configuration/codecs/0/name", "sharding_indexed"), kUnsupported);
  EXPECT_EQ(V3("/codecs/0/configuration/codecs/0/name", "transpose"), kInvalid);
  EXPECT_EQ(V3("/codecs/0/configuration/index_codecs/1/name", "zstd"), kUnsupported);
  EXPECT_EQ(V3("/codecs/0/configuration/index_location", "middle"), kInvalid);
  EXPECT_EQ(V3("/storage_transformers", {{{"name", "x"}}}), kUnsupported);
  EXPECT_EQ(V3("/unknown", {{"must_understand", true}}), kUnsupported);
  EXPECT_EQ(V3("/unknown", {{"must_understand", false}}), kFine);
  EXPECT_EQ(V3("/node_type", "group"), kInvalid);
  EXPECT_EQ(V3("/zarr_format", 4), kUnsupported);
  EXPECT_EQ(V2("dtype", "<U7"), kUnsupported);
  EXPECT_EQ(V2("dtype", "<M8[ns]"), kUnsupported);
  EXPECT_EQ(V2("dtype", {{"a", "<i2"}}), kUnsupported);
  EXPECT_EQ(V2("order", "K"), kInvalid);
  EXPECT_EQ(V2("dimension_separator", "-"), kInvalid);
  EXPECT_EQ(V2("compressor", {{"id", "lzma"}}), kUnsupported);
  EXPECT_EQ(V2("compressor", 5), kInvalid);
  EXPECT_EQ(V2("filters", {{{"id", "vlen-utf8"}}}), kUnsupported);
}

TEST(Metadata, NamesStoreAndCodecInARefusal) {
  Json document = GoodV3();
  document["codecs"][0]["configuration"]["codecs"][1]["name"] = "mystery";
  const Status status = ParseArrayV3(document, "folder/slide.zarr/0").status();
  EXPECT_EQ(MessageOf(status),
            "read metadata: folder/slide.zarr/0: codec mystery is not supported");
}

TEST(Metadata, NamesBothVersionsInARefusal) {
  Json document = GoodV3();
  document["zarr_format"] = 4;
  EXPECT_EQ(
      MessageOf(ParseArrayV3(document, "s/0").status()),
      "read metadata: s/0: zarr_format in zarr.json: version 4, this program knows 3; have the "
      "program that made it write Zarr 2 or 3");
  const TempFolder folder;
  const std::string text = R"({"zarr_format":4,"node_type":"group"})";
  WriteText(folder / "zarr.json", text);
  const Status group = ReadGroupMetadata(Folders::OfThisUser(), folder.path()).status();
  EXPECT_TRUE(absl::IsUnimplemented(group)) << group;
  EXPECT_NE(MessageOf(group).find("version 4, this program knows 3; "), std::string_view::npos);
  const Json later = Json::parse(R"({"ome":{"version":"0.6","multiscales":[{}]}})");
  EXPECT_EQ(MessageOf(ParseMultiscales(later, "s").status()),
            "read multiscales: s: OME-NGFF version 0.6, this program knows 0.4 and 0.5; have the "
            "program that made it write one of these");
}

TEST(Metadata, RefusesFillValuesThatAreNoneOfTheType) {
  EXPECT_EQ(V3("/fill_value", 256), kInvalid);
  EXPECT_EQ(V3("/fill_value", -1), kInvalid);
  EXPECT_EQ(V3("/fill_value", "NaN"), kInvalid);
  EXPECT_EQ(V3("/fill_value", nullptr), kInvalid);
  EXPECT_EQ(V2("fill_value", nullptr), kFine);
  EXPECT_EQ(V2("fill_value", 40000), kInvalid);
  EXPECT_EQ(V2("fill_value", -32768), kFine);
}

TEST(Metadata, ReadsHexAndNamedFloats) {
  Json document = GoodV3();
  document["data_type"] = "float32";
  document["codecs"][0]["configuration"]["codecs"][0]["configuration"] = {{"endian", "big"}};
  const auto fill = [&](Json value) {
    document["fill_value"] = std::move(value);
    const auto array = ParseArrayV3(document, "s");
    std::uint32_t bits = 0;
    if (array.ok()) std::memcpy(&bits, array->fill.data(), sizeof bits);
    return array.ok() ? bits : 0xdeadbeef;
  };
  EXPECT_EQ(fill("0x7fc00001"), 0x7fc00001u);
  EXPECT_EQ(fill("Infinity"), 0x7f800000u);
  EXPECT_EQ(fill("-Infinity"), 0xff800000u);
  EXPECT_EQ(fill(1.5), 0x3fc00000u);
  EXPECT_EQ(fill("0x7fc0"), 0xdeadbeefu);
  EXPECT_EQ(fill("0x7fc0000g"), 0xdeadbeefu);
}

TEST(Metadata, RefusesAZipStoreByNameAndAnEmptyFolderAsNoStore) {
  const TempFolder folder;
  EXPECT_TRUE(absl::IsNotFound(Array::Open(Folders::OfThisUser(), folder.path()).status()));
  WriteText(folder / "s.zip", std::string("PK\3\4rest"));
  const Status zip = ReadArrayMetadata(Folders::OfThisUser(), folder / "s.zip").status();
  EXPECT_TRUE(absl::IsUnimplemented(zip)) << zip;
  EXPECT_THAT(std::string(MessageOf(zip)), testing::HasSubstr("zip stores are not supported"));
  EXPECT_TRUE(
      absl::IsUnimplemented(ReadMultiscales(Folders::OfThisUser(), folder / "s.zip").status()));
}

TEST(Metadata, AListOfShardsIsForArraysOfThreeOrFourAxesAlone) {
  const Json level = {{"digest", std::string(64, '0')}, {"files", Json::array({"-"})}};
  const Json attributes = {{"patchbay", {{"shards", Json::array({level})}}}};
  for (const std::size_t rank : {2u, 3u, 4u, 5u}) {
    const TempFolder folder;
    Json document = GoodV3();
    const std::vector<int> sides(rank, 16);
    document["shape"] = sides;
    document["chunk_grid"]["configuration"]["chunk_shape"] = sides;
    document["codecs"][0]["configuration"]["chunk_shape"] = sides;
    WriteText(folder / "zarr.json", DumpJson(document));
    StatusOr<Array> array = Array::Open(Folders::OfThisUser(), folder.path());
    ASSERT_TRUE(array.ok()) << array.status();
    std::vector<Array> levels;
    levels.push_back(*std::move(array));
    const Status listed = ExpectListedFiles(attributes, levels);
    EXPECT_EQ(listed.ok(), rank == 3 || rank == 4) << rank << ": " << listed;
  }
}

TEST(Metadata, MultiscalesPathsMayNotLeaveTheStore) {
  for (const char* path : {"../other", "/etc", "a/../../b", ""}) {
    const Json attributes = {{"ome",
                              {{"version", "0.5"},
                               {"multiscales",
                                {{{"axes", {{{"name", "y"}}, {{"name", "x"}}}},
                                  {"datasets", Json::array({Json{{"path", path}}})}}}}}}};
    EXPECT_TRUE(absl::IsInvalidArgument(ParseMultiscales(attributes, "s").status())) << path;
  }
}

}  // namespace
}  // namespace patchbay::zarr
