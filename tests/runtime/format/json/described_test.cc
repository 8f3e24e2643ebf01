// JSON of structs that list their fields.
#include "runtime/format/json/described.h"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/format/json/json_forms.h"
#include "tests/described.h"

namespace patchbay {
namespace {

using patchbay::PrintTo;

struct Place {
  std::int32_t y = 0, x = 0;

  bool operator==(const Place&) const = default;
  static constexpr auto Fields() {
    return AsArray(Field("y", &Place::y), Field("x", &Place::x).Within(0, 100));
  }
};

struct Row {
  std::string path;
  std::uint8_t level = 2;
  bool is_bad = false;
  double mpp = 0.5;
  std::optional<double> stated = std::nullopt;
  Digest digest = {};
  DType dtype = DType::kUint8;
  Extent size = {};
  std::vector<Place> places = {};
  std::array<double, 2> pair = {};
  std::map<std::string, std::vector<std::int64_t>> sets = {};
  Json attributes = {};

  Status Check() const {
    return level == 9 ? absl::InvalidArgumentError("no level 9") : absl::OkStatus();
  }
  static constexpr auto Fields() {
    return AsObject(Field("path", &Row::path).Required(), Field("level", &Row::level),
                    Field("is_bad", &Row::is_bad), Field("mpp", &Row::mpp).Within(0.1, 50),
                    Field("stated", &Row::stated).Within(0.1, 50), Field("digest", &Row::digest),
                    Field("dtype", &Row::dtype), Field("size", &Row::size),
                    Field("places", &Row::places).Counted(0, 3), Field("pair", &Row::pair),
                    Field("sets", &Row::sets), Field("attributes", &Row::attributes));
  }
};

std::string Refused(const char* text) {
  return std::string(MessageOf(FromJson<Row>(Json::parse(text), "row").status()));
}

TEST(Described, EveryFieldComesBack) {
  test::ExpectEveryFieldComesBack<Row>();
  test::ExpectEveryFieldComesBack<Place>();
}

TEST(Described, ValuesAtTheirDefaultAreLeftOutUnlessRequired) {
  EXPECT_EQ(DumpJson(JsonOf(Row{})), R"({"path":""})");
  Row row{.path = "a", .level = 3, .places = {{1, 2}}};
  EXPECT_EQ(DumpJson(JsonOf(row)), R"({"level":3,"path":"a","places":[[1,2]]})");
  EXPECT_EQ(testing::PrintToString(row), DumpJson(JsonOf(row)));
}

TEST(Described, ErrorsNameKeyAndPlace) {
  EXPECT_EQ(Refused("{}"), "row: key 'path': missing");
  EXPECT_EQ(Refused("[]"), "row: expected an object");
  EXPECT_EQ(Refused(R"({"path": 1})"), "row: key 'path': expected text");
  EXPECT_EQ(Refused(R"({"path": "", "lvl": 1})"), "row: key 'lvl': unknown key");
  EXPECT_EQ(Refused(R"({"path": "", "level": 256})"),
            "row: key 'level': expected a number in 0..255");
  EXPECT_EQ(Refused(R"({"path": "", "level": -1})"),
            "row: key 'level': expected a number in 0..255");
  EXPECT_EQ(Refused(R"({"path": "", "level": 1.5})"), "row: key 'level': expected a whole number");
  EXPECT_EQ(Refused(R"({"path": "", "mpp": 0})"), "row: key 'mpp': expected a number in 0.1..50");
  EXPECT_EQ(Refused(R"({"path": "", "stated": 51})"),
            "row: key 'stated': expected a number in 0.1..50");
  EXPECT_EQ(Refused(R"({"path": "", "dtype": "uint9"})"),
            "row: key 'dtype': expected one of its names");
  EXPECT_EQ(Refused(R"({"path": "", "digest": 5})"), "row: key 'digest': expected a digest");
  EXPECT_EQ(Refused(R"({"path": "", "places": [[1, 2], [1]]})"),
            "row: key 'places[1]': expected a list of 2");
  EXPECT_EQ(Refused(R"({"path": "", "places": [[1, 2], [1, 101]]})"),
            "row: key 'places[1].x': expected a number in 0..100");
  EXPECT_EQ(Refused(R"({"path": "", "sets": {"a": [1, "b"]}})"),
            "row: key 'sets.a[1]': expected a whole number");
  EXPECT_EQ(Refused(R"({"path": "", "is_bad": 1})"), "row: key 'is_bad': expected true or false");
}

TEST(Described, RulesOfListsAndOfTheWholeStructHold) {
  EXPECT_EQ(Refused(R"({"path": "", "places": [[1, 2], [1, 2], [1, 2], [1, 2]]})"),
            "row: key 'places': expected a list of 0 to 3");
  EXPECT_EQ(Refused(R"({"path": "", "level": 9})"), "row: no level 9");
}

TEST(Described, NullIsNoValueOfAnOptionalOne) {
  const StatusOr<Row> row = FromJson<Row>(Json::parse(R"({"path": "a", "stated": null})"), "row");
  ASSERT_TRUE(row.ok()) << row.status();
  EXPECT_EQ(row->stated, std::nullopt);
}

}  // namespace
}  // namespace patchbay
