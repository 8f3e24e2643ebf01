#include "runtime/model/results/map_results.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "runtime/core/hash.h"
#include "runtime/core/strings.h"
#include "runtime/model/plan/class_table.h"
#include "runtime/os/file.h"
#include "tests/described.h"

namespace patchbay::results {
namespace {

using testing::HasSubstr;

const MapOutput kArgmax{"map", {"Gleason 3", "tumour"}, "argmax"};
const MapOutput kThresholds{"map", {"tumour"}, Json::array({0.5})};

TEST(MapResults, EveryFieldComesBack) {
  test::ExpectEveryFieldComesBack<MapOutput>();
  test::ExpectEveryFieldComesBack<MapResults>();
  test::ExpectEveryFieldComesBack<MapImage>();
}

TEST(MapResults, ClassesOfAMapAreAClassTable) {
  const auto table = plan::ClassTableFromJson(ClassTableOf(kArgmax), "test");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_FALSE(table->exhaustive);
  EXPECT_EQ(table->Find("gleason_3")->value, 0);
  EXPECT_EQ(plan::MeaningOf(*table, "Gleason 3").index, 0u);
  EXPECT_EQ(table->Find("tumour")->value, 1);
  EXPECT_EQ(table->classes.size(), 2u);
}

TEST(MapResults, NamesThatNoTableHasAndNamesOfTwoClassesAreValues) {
  const std::string first = "\u80bf\u7624", second = "\u95f4\u8d28";
  const auto table = plan::ClassTableFromJson(
      ClassTableOf({"map", {first, second, "A b", "A_b"}, "argmax"}), "test");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->Find("class_0")->value, 0);
  EXPECT_EQ(plan::MeaningOf(*table, second).index, 1u);
  EXPECT_EQ(table->Find("a_b")->value, 2);
  EXPECT_EQ(table->Find("class_3")->value, 3);
  const auto none =
      plan::ClassTableFromJson(ClassTableOf({"map", {"None"}, Json::array({0.5})}), "test");
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_EQ(none->Find("none")->value, 0);
  EXPECT_EQ(none->Find("class_1")->value, 1);
}

TEST(MapResults, NoneOfThemAndBackgroundAreTheBackground) {
  for (const auto& [output, background, values] :
       {std::tuple(kThresholds, "none", 3u),
        std::tuple(MapOutput{"map", {"Background", "a"}, "argmax"}, "background", 3u)}) {
    const auto table = plan::ClassTableFromJson(ClassTableOf(output), "test");
    ASSERT_TRUE(table.ok()) << table.status();
    EXPECT_TRUE(table->exhaustive);
    EXPECT_EQ(table->background, background);
    EXPECT_EQ(table->Find(background)->value, 0);
    EXPECT_EQ(table->Find("not_covered")->value, plan::kIgnoreClass);
    EXPECT_EQ(table->classes.size(), values);
  }
}

TEST(MapResults, TheOutputIsTheOnlyOneOrNamed) {
  MapResults results{"ab",
                     {{"p", kArgmax}, {"s", {"score", {"a"}, {}}}, {"m", {"map", {"a"}, {}}}}};
  EXPECT_EQ(*OutputWithClasses(results, ""), "p");
  EXPECT_EQ(*OutputWithClasses(results, "p"), "p");
  EXPECT_THAT(MessageOf(OutputWithClasses(results, "m").status()), HasSubstr("name one of p"));
  results.outputs["q"] = kThresholds;
  EXPECT_THAT(MessageOf(OutputWithClasses(results, "").status()), HasSubstr("name one of p, q"));
  EXPECT_EQ(*OutputWithClasses(results, "q"), "q");
  EXPECT_THAT(MessageOf(OutputWithClasses({}, "").status()), HasSubstr("declare class_map"));
  results.outputs["q"].classes.assign(253, "a");
  EXPECT_EQ(*OutputWithClasses(results, "q"), "q");
  results.outputs["q"].classes.assign(254, "a");
  EXPECT_THAT(MessageOf(OutputWithClasses(results, "q").status()),
              HasSubstr("outputs.q: 254 classes with thresholds: a label set has at most 253"));
}

TEST(MapResults, DocumentsAreAsHostileAsAnyFile) {
  std::string folder = (std::filesystem::temp_directory_path() / "patchbay-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const Folders& allowed = Folders::OfThisUser();
  const auto write = [&](const char* name, std::string_view text) {
    ASSERT_TRUE(ReplaceFile(allowed, StrCat(folder, "/", name), AsBytes(text)).ok());
  };
  EXPECT_TRUE(absl::IsNotFound(ReadMapResults(allowed, folder).status()));
  for (const char* text :
       {"", "[]", "{}", R"({"name":"a","outputs":[]})", R"({"name":1,"outputs":{}})",
        R"({"name":"a","outputs":{"p":{"classes":[1]}}})",
        R"({"name":"a","outputs":{"../p":{"kind":"map"}}})", R"({"name":"a","outputs":{"":{}}})"}) {
    write(kMapFile, text);
    EXPECT_TRUE(absl::IsInvalidArgument(ReadMapResults(allowed, folder).status())) << text;
  }
  write(kMapFile, StrCat(R"({"outputs":{},"name":")", std::string(65, 'a'), R"("})"));
  EXPECT_TRUE(absl::IsInvalidArgument(ReadMapResults(allowed, folder).status()));
  write(kMapFile, R"({"format":1,"name":"a","outputs":{"p":{"kind":"map","blend":"center"}}})");
  EXPECT_EQ(ReadMapResults(allowed, folder)->outputs.at("p").kind, "map");
  write(kMapImageFile, R"({"index":3,"path":"/a.svs","pixel_digest":null})");
  EXPECT_FALSE(ReadMapImage(allowed, folder)->pixel_digest.has_value());
  std::filesystem::create_directory_symlink(folder, folder + "-link");
  EXPECT_THAT(MessageOf(ReadMapImage(allowed, folder + "-link").status()), HasSubstr("a link"));
  for (const char* name : {kMapFile, kMapImageFile}) {
    std::filesystem::rename(StrCat(folder, "/", name), StrCat(folder, "/other"));
    std::filesystem::create_symlink("other", StrCat(folder, "/", name));
    const Status status = name == kMapFile ? ReadMapResults(allowed, folder).status()
                                           : ReadMapImage(allowed, folder).status();
    EXPECT_THAT(MessageOf(status), HasSubstr(StrCat(name, ": a link")));
  }
  std::filesystem::remove(folder + "-link");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace patchbay::results
