// Keys that metadata may leave out, and fill values between two values of their type.
#include <cstring>

#include "runtime/format/zarr/metadata.h"
#include "runtime/format/zarr/ngff.h"
#include "tests/runtime/format/zarr/zarr_fixture.h"

namespace patchbay::zarr {
namespace {

Json Sharded() {
  return Json::parse(R"({"zarr_format":3,"node_type":"array","shape":[6,100,70],
    "data_type":"uint16","chunk_grid":{"name":"regular","configuration":{"chunk_shape":[2,64,32]}},
    "chunk_key_encoding":{"name":"default"},"fill_value":0,"codecs":[{"name":"sharding_indexed",
    "configuration":{"chunk_shape":[1,16,32],"codecs":[{"name":"bytes"}],
    "index_codecs":[{"name":"bytes"}]}}]})");
}

/// With members of these JSON pointers set.
ArrayMetadata ParsedV3(const std::vector<std::pair<const char*, Json>>& members = {}) {
  Json document = Sharded();
  for (const auto& [pointer, value] : members) document[Json::json_pointer(pointer)] = value;
  const auto array = ParseArrayV3(document, "s");
  EXPECT_TRUE(array.ok()) << array.status();
  return array.value_or(ArrayMetadata());
}

ArrayMetadata ParsedV2(const Json& members = Json::object()) {
  Json document = Json::parse(R"({"zarr_format":2,"shape":[100,70],"chunks":[10,20],"dtype":"<i2",
    "compressor":null,"filters":null,"order":"C","fill_value":0})");
  document.update(members);
  const auto array = ParseArrayV2(document, Json::object(), "s");
  EXPECT_TRUE(array.ok()) << array.status();
  return array.value_or(ArrayMetadata());
}

TEST(AbsentKeys, OfAShardedArrayAreThoseOfTheSpecification) {
  EXPECT_TRUE(ParsedV3().index_at_end);
  EXPECT_TRUE(ParsedV3({{"/codecs/0/configuration/index_location", "end"}}).index_at_end);
  EXPECT_FALSE(ParsedV3({{"/codecs/0/configuration/index_location", "start"}}).index_at_end);
  EXPECT_FALSE(ParsedV3().index_big_endian);
  EXPECT_TRUE(
      ParsedV3({{"/codecs/0/configuration/index_codecs/0/configuration", {{"endian", "big"}}}})
          .index_big_endian);
  EXPECT_FALSE(ParsedV3().chain.big_endian);
  EXPECT_TRUE(ParsedV3({{"/codecs/0/configuration/codecs/0/configuration", {{"endian", "big"}}}})
                  .chain.big_endian);
  EXPECT_FALSE(ParsedV3().index_checksum);
  EXPECT_TRUE(ParsedV3({{"/codecs/0/configuration/index_codecs/1", "crc32c"}}).index_checksum);
}

TEST(AbsentKeys, OfKeysOfChunksGoByTheirStyle) {
  EXPECT_EQ(ParsedV3().separator, '/');
  EXPECT_EQ(ParsedV3({{"/chunk_key_encoding/configuration", Json::object()}}).separator, '/');
  EXPECT_EQ(ParsedV3({{"/chunk_key_encoding/configuration", {{"separator", "."}}}}).separator, '.');
  EXPECT_EQ(ParsedV3({{"/chunk_key_encoding/name", "v2"}}).separator, '.');
  EXPECT_EQ(
      ParsedV3({{"/chunk_key_encoding", {{"name", "v2"}, {"configuration", {{"separator", "/"}}}}}})
          .separator,
      '/');
  EXPECT_EQ(ParsedV2().separator, '.');
  EXPECT_EQ(ParsedV2({{"dimension_separator", nullptr}}).separator, '.');
  EXPECT_EQ(ParsedV2({{"dimension_separator", "/"}}).separator, '/');
}

TEST(AbsentKeys, OfFiltersAreThoseOfNumcodecs) {
  const auto filter = [](const Json& codec) {
    const ArrayMetadata array = ParsedV2({{"filters", Json::array({codec})}});
    EXPECT_EQ(array.chain.codecs.size(), 1u) << codec;
    return array.chain.codecs.empty() ? Codec() : array.chain.codecs[0];
  };
  EXPECT_EQ(filter({{"id", "shuffle"}}).element_bytes, 4);
  EXPECT_EQ(filter({{"id", "shuffle"}, {"elementsize", 2}}).element_bytes, 2);
  EXPECT_FALSE(filter({{"id", "crc32c"}}).checksum_first);
  EXPECT_TRUE(filter({{"id", "crc32c"}, {"location", "start"}}).checksum_first);
  EXPECT_TRUE(filter({{"id", "adler32"}}).checksum_first);
  EXPECT_FALSE(filter({{"id", "adler32"}, {"location", "end"}}).checksum_first);
  EXPECT_EQ(filter({{"id", "delta"}, {"dtype", "<i2"}}).kind, CodecKind::kDelta);
}

TEST(AbsentKeys, OrderOfTheAxesIsAsItIsSaid) {
  EXPECT_EQ(ParsedV2().chain.order, (std::vector<int>{0, 1}));
  EXPECT_EQ(ParsedV2({{"order", "F"}}).chain.order, (std::vector<int>{1, 0}));
  EXPECT_EQ(ParsedV3().chain.order, (std::vector<int>{0, 1, 2}));
  const Json turned = {{{"name", "transpose"}, {"configuration", {{"order", {1, 2, 0}}}}},
                       {{"name", "transpose"}, {"configuration", {{"order", {2, 0, 1}}}}},
                       {{"name", "bytes"}}};
  EXPECT_EQ(ParsedV3({{"/codecs/0/configuration/codecs", turned}}).chain.order,
            (std::vector<int>{0, 1, 2}))
      << "one turn undoes the other";
  const Json once = Json::array({turned[0], turned[2]});
  EXPECT_EQ(ParsedV3({{"/codecs/0/configuration/codecs", once}}).chain.order,
            (std::vector<int>{1, 2, 0}));
}

TEST(AbsentKeys, OfMultiscalesAreAPlainPyramid) {
  const auto parsed = ParseMultiscales(
      Json::parse(R"({"multiscales":[{"axes":[{"name":"y"},"x"],"datasets":[{"path":"0"},
        {"path":"1","coordinateTransformations":[{"type":"translation","translation":[1,2]},
        {"type":"scale","scale":[3,5]},{"type":"identity"}]}]}]})"),
      "s");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->version, "0.4");
  EXPECT_EQ(parsed->axes[0].unit, "");
  EXPECT_EQ(parsed->axes[1].name, "x");
  EXPECT_EQ(parsed->levels[0].scale, (std::vector<double>{1, 1}));
  EXPECT_EQ(parsed->levels[0].translation, (std::vector<double>{0, 0}));
  EXPECT_EQ(parsed->levels[1].scale, (std::vector<double>{3, 5}));
  EXPECT_EQ(parsed->levels[1].translation, (std::vector<double>{3, 10})) << "moved, then scaled";
}

TEST(FillValues, BetweenTwoOfTheirTypeAreTheEvenOne) {
  const auto bits = [](const char* type, double value) {
    Json document = Sharded();
    document["data_type"] = type;
    document["fill_value"] = value;
    const auto array = ParseArrayV3(document, "s");
    EXPECT_TRUE(array.ok()) << array.status();
    std::uint16_t found = 0;
    if (array.ok()) std::memcpy(&found, array->fill.data(), sizeof found);
    return found;
  };
  EXPECT_EQ(bits("float16", 1 + 0x1p-11), 0x3c00);
  EXPECT_EQ(bits("float16", 1 + 3 * 0x1p-11), 0x3c02);
  EXPECT_EQ(bits("float16", -1 - 3 * 0x1p-11), 0xbc02);
  EXPECT_EQ(bits("bfloat16", 1 + 0x1p-8), 0x3f80);
  EXPECT_EQ(bits("bfloat16", 1 + 3 * 0x1p-8), 0x3f82);
  EXPECT_EQ(bits("bfloat16", -1 - 3 * 0x1p-8), 0xbf82);
}

}  // namespace
}  // namespace patchbay::zarr
