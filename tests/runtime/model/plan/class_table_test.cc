#include "runtime/model/plan/class_table.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "runtime/os/file.h"
#include "tests/described.h"

namespace patchbay::plan {
namespace {

constexpr char kClassTable[] = R"(
classes:
  - {name: benign, value: 0, aliases: [Normal, benign gland], from: {radboud: [1, 2], karolinska: 1}}
  - {name: tumour, value: 3, aliases: Tumor, from: {radboud: 3, karolinska: 2}}
  - {name: exclude, value: 255}
region_of_interest: roi
skip: [note]
)";

TEST(ClassTable, IsReadAndComesBackFromJson) {
  const auto table = ParseClassTable(kClassTable, "t.yaml");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->background, "benign");  // the class of value 0
  const auto again = ClassTableFromJson(JsonOf(*table), "table");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, *table);
  EXPECT_EQ(MeaningOf(*table, " TUMOR ").index, 1u);
  EXPECT_EQ(MeaningOf(*table, "ROI").meaning, NameMeaning::kRegionOfInterest);
  EXPECT_EQ(MeaningOf(*table, "note").meaning, NameMeaning::kSkipped);
  EXPECT_EQ(MeaningOf(*table, "stroma").meaning, NameMeaning::kUnknown);
}

TEST(ClassTable, EveryFieldComesBackAndStaysInItsRange) {
  test::ExpectEveryFieldComesBack<LabelClass>();
  test::ExpectEveryFieldComesBack<ClassTable>();
  const auto refusal = [](std::string_view classes) {
    const auto json = ParseJson(StrCat("{\"classes\": [", classes, "]}"), "test");
    return std::string(MessageOf(ClassTableFromJson(*json, "table").status()));
  };
  EXPECT_EQ(refusal(R"({"name": "a", "value": 256})"),
            "table: key 'classes[0].value': expected a number in 0..255");
  EXPECT_EQ(refusal(R"({"name": "a", "value": 1, "from": {"s": [256]}})"),
            "table: key 'classes[0].from.s[0]': expected a number in 0..255");
  EXPECT_EQ(refusal(R"({"name": "a", "value": 1, "from": {"s": [0, -1]}})"),
            "table: key 'classes[0].from.s[1]': expected a number in 0..255");
  EXPECT_EQ(refusal(R"({"value": 1})"), "table: key 'classes[0].name': missing");
}

/// A label set's attributes, and so the digest of its store, hold this text.
TEST(ClassTable, TextInStoresStaysAsItIs) {
  const auto table = ParseClassTable(kClassTable, "t.yaml");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(DumpJson(JsonOf(*table)),
            R"({"background":"benign","classes":[{"aliases":["Normal","benign gland"],)"
            R"("from":{"karolinska":[1],"radboud":[1,2]},"name":"benign","value":0},)"
            R"({"aliases":["Tumor"],"from":{"karolinska":[2],"radboud":[3]},"name":"tumour",)"
            R"("value":3},{"name":"exclude","value":255}],"region_of_interest":["roi"],)"
            R"("skip":["note"]})");
}

TEST(ClassTable, MaskValuesAreThoseOfTheSite) {
  const auto table = ParseClassTable(kClassTable, "t.yaml");
  ASSERT_TRUE(table.ok());
  const auto radboud = MaskValues(*table, "radboud"), karolinska = MaskValues(*table, "karolinska");
  ASSERT_TRUE(radboud.ok() && karolinska.ok());
  EXPECT_EQ((*radboud)[2], 0);
  EXPECT_EQ((*radboud)[3], 3);
  EXPECT_EQ((*karolinska)[2], 3);
  EXPECT_EQ((*karolinska)[3], std::nullopt);
  EXPECT_EQ((*radboud)[255], 255);
  EXPECT_FALSE(MaskValues(*table, "").ok());
  EXPECT_FALSE(MaskValues(*table, "nijmegen").ok());
  const auto plain = ParseClassTable("classes: [{name: a, value: 7}]", "t.yaml");
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ((*MaskValues(*plain, "anywhere"))[7], 7);
  EXPECT_EQ((*MaskValues(*plain, ""))[0], std::nullopt);
  EXPECT_EQ((*MaskValues(*plain, ""))[255], std::nullopt) << "nobody says that 255 is ignored";
  const auto foreground = ParseClassTable("classes: [{name: a, value: 7, from: 255}]", "t.yaml");
  ASSERT_TRUE(foreground.ok());
  EXPECT_EQ((*MaskValues(*foreground, ""))[255], 7);
}

TEST(ClassTable, WhatIsWrongIsSaidWithItsLine) {
  for (const auto& [text, says] : std::vector<std::pair<std::string, std::string>>{
           {"", "classes"},
           {"classes: 3", "t.yaml:1: key 'classes'"},
           {"classes: []", "expected 1 to"},
           {"classes: [a]", "a class is a map"},
           {"classes: [{name: a}]", "value"},
           {"classes: [{name: a, value: 256}]", "value"},
           {"classes: [{name: A, value: 1}]", "lower-case"},
           {"classes: [{name: a, value: 1, colour: red}]", "colour"},
           {"classes: [{name: a, value: 1}, {name: b, value: 1}]", "another class's"},
           {"classes: [{name: a, value: 1}, {name: b, value: 2, aliases: A}]", "listed twice"},
           {"classes: [{name: a, value: 1, from: x}]", "from"},
           {"classes: [{name: a, value: 1, from: 2}, {name: b, value: 2, from: 2}]", "is both"},
           {"classes: [{name: a, value: 1}]\nexhaustive: true", "background"},
           {"classes: [{name: a, value: 1}]\nexhaustive: true\nbackground: b", "not a class"},
           {"classes: [{name: a, value: 1}]\nbackground: a", "needs exhaustive"},
           {"classes: [{name: a, value: 1}]\nexhaustiv: true", "did you mean"},
           {"classes: [{name: a, value: 0}]\nexhaustive: true\nregion_of_interest: r",
            "exclude"}}) {
    const auto table = ParseClassTable(text, "t.yaml");
    ASSERT_FALSE(table.ok()) << text;
    EXPECT_NE(std::string(MessageOf(table.status())).find(says), std::string::npos)
        << text << "\n"
        << table.status();
    EXPECT_EQ(std::string(MessageOf(table.status())).rfind("t.yaml", 0), 0u) << table.status();
  }
}

TEST(ClassTable, TheShippedTablesAreSound) {
  int tables = 0;
  for (const auto& entry : std::filesystem::directory_iterator(PATCHBAY_CONFIGS "/classes")) {
    if (entry.path().extension() != ".yaml") continue;
    const auto text = ReadFile(Folders::OfThisUser(), entry.path().string(), 1 << 20);
    ASSERT_TRUE(text.ok());
    const auto table = ParseClassTable(*text, entry.path().filename().string());
    EXPECT_TRUE(table.ok()) << table.status();
    ++tables;
  }
  EXPECT_EQ(tables, 3);
}

}  // namespace
}  // namespace patchbay::plan
