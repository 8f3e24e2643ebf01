// spectra.json as a hostile file.
#include "runtime/model/results/spectra_document.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "runtime/core/hash.h"
#include "runtime/format/json/described.h"
#include "runtime/os/file.h"
#include "tests/runtime/model/results/spectra_documents.h"

namespace patchbay::results {
namespace {

using testing::HasSubstr;

std::string Refusal(const Json& document) {
  const auto parsed = ParseSpectraDocument(document, "a.json");
  EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << parsed.status();
  return std::string(MessageOf(parsed.status()));
}

TEST(SpectraDocument, GivesWhatTheFileSays) {
  const auto document = ParseSpectraDocument(MadeDocument(3), "a.json");
  ASSERT_TRUE(document.ok()) << document.status();
  EXPECT_EQ(document->definition.frame, kDocumentFrame);
  ASSERT_EQ(document->slides.size(), 3u);
  EXPECT_EQ(document->slides[2].id, "0000000000000002");
  EXPECT_DOUBLE_EQ(document->slides[2].mean_db, 40.2);
  EXPECT_EQ(document->slides[2].histogram.Total(), 10u * 64 * 64);
  EXPECT_DOUBLE_EQ(document->slides[0].percentiles.p50, 40);
  ASSERT_TRUE(document->cohort.has_value());
  EXPECT_EQ(document->cohort->frames, 30);
  EXPECT_EQ(*document->cohort->mpp, 0.5);
  EXPECT_EQ(document->cohort->radial.power.size(), 32u);
  EXPECT_TRUE(document->cohort->Channels().empty());
}

TEST(SpectraDocument, SlidesAreSortedByIdWhateverTheFileDoes) {
  Json json = MadeDocument(3);
  std::swap(json["slides"][0], json["slides"][2]);
  const auto document = ParseSpectraDocument(json, "a.json");
  ASSERT_TRUE(document.ok()) << document.status();
  EXPECT_EQ(document->slides[0].id, "0000000000000000");
}

TEST(SpectraDocument, TheOriginOfASlideThatDoesNotSayIsItself) {
  Json json = MadeDocument(2);
  json["slides"][1]["origin"] = "0123456789abcdef";
  const auto document = ParseSpectraDocument(json, "a.json");
  ASSERT_TRUE(document.ok()) << document.status();
  EXPECT_EQ(document->slides[0].origin, document->slides[0].id);
  EXPECT_EQ(document->slides[1].origin, "0123456789abcdef");
  for (const Json& wrong : {Json(7), Json(), Json(std::string(10'000, 'x'))}) {
    json["slides"][1]["origin"] = wrong;
    EXPECT_THAT(Refusal(json), HasSubstr("origin"));
  }
}

TEST(SpectraDocument, ChannelsAreReadWhereTheyAreMeasured) {
  DocumentOptions options;
  options.rgb = true;
  const auto document = ParseSpectraDocument(MadeDocument(1, 0, options), "a.json");
  ASSERT_TRUE(document.ok()) << document.status();
  ASSERT_EQ(document->cohort->Channels().size(), 3u);
  EXPECT_DOUBLE_EQ(document->cohort->Channels()[0]->mean_db, 39);
  Json without = MadeDocument(1, 0, options);
  without["slides"][0]["channels"].erase("green");
  EXPECT_THAT(Refusal(without), HasSubstr("green"));
}

TEST(SpectraDocument, IsWrittenAsItIsReadAndSkipsKeysThatItDoesNotKnow) {
  DocumentOptions options;
  options.rgb = true;
  Json whole = MadeDocument(2, 0.1, options);
  for (Json& slide : whole["slides"]) slide["origin"] = slide["id"];
  Json more = whole;
  more["new"] = more["slides"][1]["new"] = more["cohort"]["radial"]["new"] = 1;
  const auto document = ParseSpectraDocument(more, "a.json");
  ASSERT_TRUE(document.ok()) << document.status();
  EXPECT_EQ(DumpJson(JsonOf(*document)), DumpJson(whole));
}

TEST(SpectraDocument, WithoutSlidesThereIsNoCohort) {
  const auto document = ParseSpectraDocument(MadeDocument(0), "a.json");
  ASSERT_TRUE(document.ok()) << document.status();
  EXPECT_FALSE(document->cohort.has_value());
}

TEST(SpectraDocument, EveryMemberThatIsMissingIsNamed) {
  const Json whole = MadeDocument(2);
  for (const char* around : {"", "/definition", "/slides/1", "/slides/1/histogram",
                             "/slides/1/radial", "/slides/1/percentiles", "/cohort"}) {
    const Json::json_pointer at(around);
    for (const auto& [key, value] : whole[at].items()) {
      Json broken = whole;
      broken[at].erase(key);
      EXPECT_THAT(Refusal(broken), HasSubstr(key)) << around << "/" << key;
    }
  }
}

TEST(SpectraDocument, AValueThatIsNoDocumentIsRefused) {
  for (const Json& other : {Json(), Json::array(), Json("a")}) Refusal(other);
}

struct Wrong {
  const char* at;
  Json value;
  const char* says;
};

TEST(SpectraDocument, WrongTypesAndImpossibleNumbersAreRefusedByName) {
  const Json huge = std::vector<int>(kMaxSpectraBins + 1, 0);
  const std::vector<Wrong> wrongs = {
      {"/version", 2, "version 2, this program knows 1; run `patchbay spectra` again"},
      {"/version", "1", "version"},
      {"/definition", Json::array(), "definition"},
      {"/definition/frame", -256, "definition.frame': expected a number in 32..4096"},
      {"/definition/frame", 1 << 20, "frame"},
      {"/definition/frame", 64.5, "frame"},
      {"/definition/window", 7, "definition.window': expected text"},
      {"/definition/window", "re\nct", "window: not printable"},
      {"/definition/window", std::string(100, 'x'), "window"},
      {"/definition/tissue_only", 0, "tissue_only"},
      {"/slides", Json::object(), "slides': expected a list"},
      {"/slides/0", "slide", "slides[0]': expected an object"},
      {"/slides/0/id", "", "id"},
      {"/slides/0/id", "a\x1b[2Jb", "id: not printable"},
      {"/slides/0/id", std::string(257, 'x'), "id"},
      {"/slides/0/id", "0000000000000001", "is listed twice"},
      {"/slides/0/frames", 0, "slides[0].frames': expected a number in 1.."},
      {"/slides/0/frames", -1, "slides[0].frames': expected a number in 1.."},
      {"/slides/0/frames", 11, "they sum to"},
      {"/slides/0/frames", std::int64_t{1} << 62, "frames"},
      {"/slides/0/frames", "10", "frames"},
      {"/slides/0/mean_db", "40", "mean_db"},
      {"/slides/0/mean_db", 1e9, "mean_db"},
      {"/slides/0/std_db", -1, "slides[0].std_db': expected a number in 0..1000"},
      {"/slides/0/mpp", 0, "slides[0].mpp': expected a number in 1e-06..1000000"},
      {"/slides/0/mpp", "0.5", "mpp"},
      {"/slides/0/percentiles/p50", nullptr, "p50"},
      {"/slides/0/histogram/counts", "many", "counts': expected a list"},
      {"/slides/0/histogram/counts", Json::array(), "they sum to 0"},
      {"/slides/0/histogram/counts", huge, "expected a list of 0 to 4096"},
      {"/slides/0/histogram/counts/3", -1, "counts[3]"},
      {"/slides/0/histogram/counts/3", 1.5, "counts[3]': expected a whole number"},
      {"/slides/0/histogram/counts/3", UINT64_MAX, "they sum to"},
      {"/slides/0/histogram/counts/3", INT64_MAX, "they sum to"},
      {"/slides/0/histogram/bin_db", 0, "bin_db': expected a number in 0.001..1000"},
      {"/slides/0/histogram/bin_db", -0.25, "bin_db"},
      {"/slides/0/histogram/bin_db", 0.5, "not the cohort's bins"},
      {"/cohort/histogram/low_db", -10, "not the cohort's bins"},
      {"/definition/frame", 16, "definition.frame': expected a number in 32..4096"},
      {"/slides/0/radial/unit", "cycles/mm", "neither cycles/um nor cycles/pixel"},
      {"/slides/0/radial/power", Json::array({1, 2}), "2 rings, not 32"},
      {"/slides/0/radial/power/0", -1, "power"},
      {"/slides/0/radial/power/0", "1", "power"},
      {"/slides/0/radial/power/0", 1e300, "power"},
      {"/slides/0/radial/frequency_step", 0, "frequency_step"},
      {"/slides/0/outlier", true, "it does not go with outlier_reasons"},
      {"/slides/0/outlier_reasons", Json::array({1}), "outlier"},
      {"/cohort", nullptr, "cohort: must be null if"},
      {"/cohort/frames", 19, "cohort: histogram"},
      {"/failed", 3, "failed': expected a list"},
  };
  const Json whole = MadeDocument(2);
  ASSERT_TRUE(ParseSpectraDocument(whole, "a.json").ok());
  for (const Wrong& wrong : wrongs) {
    Json broken = whole;
    broken[Json::json_pointer(wrong.at)] = wrong.value;
    const std::string said = Refusal(broken);
    EXPECT_THAT(said, HasSubstr(wrong.says)) << wrong.at;
    EXPECT_EQ(said.rfind("a.json: ", 0), 0u) << said;
  }
}

TEST(SpectraDocument, AFileThatIsNoJsonOrNotThereIsRefused) {
  std::string folder = (std::filesystem::temp_directory_path() / "patchbay-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  EXPECT_EQ(ReadSpectraDocument(Folders::OfThisUser(), folder + "/none.json").status().code(),
            absl::StatusCode::kNotFound);
  for (const char* text : {"", "{", "[]", "3", "{\"version\": 1e999}", "\xff\xfe"}) {
    ASSERT_TRUE(
        WriteFileDurably(Folders::OfThisUser(), folder + "/a.json", AsBytes(std::string_view(text)))
            .ok());
    EXPECT_EQ(ReadSpectraDocument(Folders::OfThisUser(), folder + "/a.json").status().code(),
              absl::StatusCode::kInvalidArgument)
        << text;
  }
  const std::string csv = folder + "/a.csv";
  ASSERT_TRUE(
      WriteFileDurably(Folders::OfThisUser(), csv, AsBytes(std::string_view("slide,score\n")))
          .ok());
  EXPECT_EQ(MessageOf(ReadSpectraDocument(Folders::OfThisUser(), csv).status()),
            StrCat(csv, ": not a result of `patchbay spectra`: not JSON (line 1, column 1)"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace patchbay::results
