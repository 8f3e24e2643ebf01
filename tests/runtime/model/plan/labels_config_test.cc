#include "runtime/model/plan/labels_config.h"

#include <gtest/gtest.h>

#include "runtime/model/plan/image_columns.h"
#include "runtime/model/plan/run_config.h"
#include "tests/contract/known_ops.h"

namespace patchbay::plan {
namespace {

const LabelClasses kClasses = {{"benign", 0}, {"gleason_3", 2}, {"gleason_4", 3}};

std::array<std::uint32_t, 256> Pixels(std::uint32_t benign, std::uint32_t three, std::uint32_t four,
                                      std::uint32_t ignored) {
  std::array<std::uint32_t, 256> pixels{};
  pixels[0] = benign, pixels[2] = three, pixels[3] = four, pixels[255] = ignored;
  return pixels;
}

TEST(LabelRules, MajorityIsTheCommonestThatIsNotIgnored) {
  LabelsConfig config{.set = "s", .rule = LabelRule::kMajority, .min_fraction = 0.2};
  EXPECT_EQ(ClassOfPatch(config, kClasses, Pixels(5, 10, 5, 80)), 2);
  EXPECT_EQ(ClassOfPatch(config, kClasses, Pixels(5, 10, 4, 81)), 255);  // too little is known
  EXPECT_EQ(ClassOfPatch(config, kClasses, Pixels(0, 20, 20, 60)), 2);   // the smaller value
  config.min_fraction = 0;
  EXPECT_EQ(ClassOfPatch(config, kClasses, Pixels(0, 0, 0, 100)), 255);
  EXPECT_EQ(ClassOfPatch(config, kClasses, Pixels(0, 0, 1, 99)), 3);
}

TEST(LabelRules, AnyIsTheFirstOfTheTableThatIsThere) {
  LabelsConfig config{.set = "s", .rule = LabelRule::kAny, .min_fraction = 0.1};
  EXPECT_EQ(ClassOfPatch(config, kClasses, Pixels(9, 10, 50, 31)), 2);
  config.classes = {"gleason_4"};
  EXPECT_EQ(ClassOfPatch(config, kClasses, Pixels(40, 10, 50, 0)), 3);
  EXPECT_EQ(ClassOfPatch(config, kClasses, Pixels(90, 10, 0, 0)), 255);
  EXPECT_TRUE(CheckLabels(config, kClasses).ok());
  config.classes = {"gleason_5"};
  EXPECT_NE(std::string(MessageOf(CheckLabels(config, kClasses))).find("did you mean"),
            std::string::npos);
}

TEST(LabelKeys, AreReadAndComeBack) {
  constexpr char kBase[] = "dataset: d\npatch: {size: [8, 8]}\n";
  const auto config = ParseRunConfig(
      std::string(kBase) + "labels: {set: g, mask: true, label: {rule: any, classes: [a, b]}}",
      "r");
  ASSERT_TRUE(config.ok()) << config.status();
  const auto again = RunConfigFromJson(ToJson(*config));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->labels, config->labels);
  EXPECT_EQ(again->labels.rule, LabelRule::kAny);
  const auto column = ParseRunConfig(std::string(kBase) + "labels: {label: {column: isup}}", "r");
  ASSERT_TRUE(column.ok()) << column.status();
  EXPECT_EQ(column->labels.column, "isup");
  EXPECT_EQ(RunConfigFromJson(ToJson(*column))->labels, column->labels);
  const auto several =
      ParseRunConfig(std::string(kBase) + "labels: {set: [g, h, i], mask: true}", "r");
  ASSERT_TRUE(several.ok()) << several.status();
  EXPECT_EQ(several->labels.set, "g");
  EXPECT_EQ(several->labels.Sets(), (std::vector<std::string>{"g", "h", "i"}));
  EXPECT_EQ(RunConfigFromJson(ToJson(*several))->labels, several->labels);
  EXPECT_EQ(ToJson(config->labels)["set"], "g");  // the text of one set has no list
  for (const auto& [text, says] : std::vector<std::pair<std::string, std::string>>{
           {"labels: {mask: true}", "name the label set"},
           {"labels: {set: [g, h, g], mask: true}", "set: 'g' is named twice"},
           {"labels: {set: [g, ''], mask: true}", "set: a name is empty"},
           {"labels: {set: [], mask: true}", "labels.set"},
           {"labels: {set: [a, b, c, d, e, f, g, h, i], mask: true}", "labels.set"},
           {"labels: {set: [g, h], label: {rule: any}}",
            "'h' is read for a mask alone, and there is none: mask: true adds them; classes are "
            "those of the first set, 'g'"},
           {"labels: {set: [g, h], mask: true}\n"
            "augment: [{python: {file: a.py, function: f}}]",
            "own functions take the mask of one set"},
           {"labels: {set: g}", "nothing reads it"},
           {"labels: {mask: true, label: {column: c}}", "name the label set"},
           {"labels: {set: g, label: {column: c, rule: any}}", "exclude each other"},
           {"labels: {set: g, mask: true, label: {min_fraction: 0.5}}", "min_fraction"},
           {"labels: {set: g, label: {rule: center, classes: [a]}}", "needs rule: any"},
           {"labels: {set: g, label: {rule: most}}", "label.rule"}}) {
    const auto refused = ParseRunConfig(kBase + text, "r");
    ASSERT_FALSE(refused.ok()) << text;
    EXPECT_NE(std::string(MessageOf(refused.status())).find(says), std::string::npos)
        << refused.status();
  }
}

TEST(LabelClasses, ComeBackFromAPlanAndNothingElseDoes) {
  EXPECT_EQ(DumpJson(JsonOf(kClasses)), R"([["benign",0],["gleason_3",2],["gleason_4",3]])");
  EXPECT_EQ(FromJson<LabelClasses>(JsonOf(kClasses), "test").value(), kClasses);
  EXPECT_TRUE(FromJson<LabelClasses>(Json::array({{"a", 254}}), "test").ok());
  for (const char* wrong :
       {"3", R"([["a", 255]])", R"([["a", -1]])", R"([["a"]])", R"([[1, 1]])", R"([["a", 1.0]])"}) {
    EXPECT_FALSE(FromJson<LabelClasses>(ParseJson(wrong, "t").value(), "test").ok()) << wrong;
  }
}

TEST(LabelClasses, PlanHasAsManyAsValuesAtMost) {
  RunConfig config;
  config.labels.set = "set";
  Json classes = Json::array();
  for (int i = 0; i < 255; ++i) classes.push_back({StrCat("c", i), i});
  std::vector<PlannedImage> none;
  EXPECT_TRUE(LabelsFromJson(config, {{"classes", classes}, {"sets", Json::array()}}, none).ok());
  classes.push_back({"more", 0});
  EXPECT_FALSE(LabelsFromJson(config, {{"classes", classes}, {"sets", Json::array()}}, none).ok());
}

TEST(LabelSets, FurtherOnesAreMasksOfTheirOwn) {
  const RunConfig config = *ParseRunConfig(
      "dataset: d\nnumerics: cpu\npatch: {size: [4, 8, 8]}\nbatch: {global_size: 2}\n"
      "labels: {set: [liver, lesions], mask: true, label: {rule: any}}",
      "r");
  PlannedImage image{Sha256Of("v"), "zarr", {20, 40, 40}, 1, DType::kInt16};
  image.labels = ImageLabels{Sha256Of("liver"), {{"liver", 1}}};
  image.further_labels = {{Sha256Of("lesions"), {{"cyst", 1}, {"tumour", 2}}}};
  const auto plan = Plan::Build(config, {image, image});
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::vector<std::string> arrays;
  for (const ArrayLayout& array : plan->layout().arrays) arrays.push_back(array.name);
  EXPECT_EQ(arrays, (std::vector<std::string>{"image", "mask", "mask_1", "label"}));
  EXPECT_EQ(plan->layout().arrays[2].shape, (std::vector<std::int64_t>{4, 8, 8}));
  EXPECT_EQ(ParsePlan(plan->Text())->images(), plan->images());

  PlannedImage other = image;
  other.further_labels[0].digest = Sha256Of("redrawn");
  EXPECT_NE(Plan::Build(config, {image, other})->digest(), plan->digest());
  other.further_labels[0].classes.pop_back();
  EXPECT_NE(std::string(Plan::Build(config, {image, other}).status().message())
                .find("its label set 'lesions' has other classes"),
            std::string::npos);
  other.further_labels.clear();
  EXPECT_NE(std::string(Plan::Build(config, {image, other}).status().message())
                .find("it has no label set 'lesions'"),
            std::string::npos);

  // One set: the text has no word of others.
  RunConfig one = config;
  one.labels.further_sets.clear();
  const auto alone = Plan::Build(one, {image});
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_EQ(alone->Text().find("further"), std::string::npos);
  EXPECT_NE(alone->Text().find(R"("set":"liver")"), std::string::npos);
  EXPECT_EQ(ParsePlan(alone->Text())->images().front().further_labels.size(), 0U);
}

TEST(LabelSets, ABatchHasRoomForSoManyMasksAndImages) {
  const auto parsed = [](const char* mpp) {
    return ParseRunConfig(StrCat("dataset: d\npatch: {size: [8, 8], mpp: ", mpp,
                                 "}\nbatch: {meta: true}\n"
                                 "labels: {set: [a, b, c, d, e, f], mask: true}\n"),
                          "r");
  };
  EXPECT_TRUE(parsed("[0.5, 1, 2, 4]").ok()) << parsed("[0.5, 1, 2, 4]").status();
  EXPECT_NE(std::string(MessageOf(parsed("[0.5, 1, 2, 4, 8]").status()))
                .find("key 'labels.set': 6 masks and 5 images: a batch has at most 10 of both"),
            std::string::npos);
}

TEST(LabelSets, MasksAreFoundByTheirArrays) {
  for (std::size_t set = 0; set < kMaxLabelSets; ++set) {
    EXPECT_EQ(SetOfMaskArray(MaskArrayOf(set)), set);
  }
  for (const char* other : {"label", "mask_", "mask_0", "mask_8", "mask_01", "image", "mas"}) {
    EXPECT_EQ(SetOfMaskArray(other), std::nullopt) << other;
  }
}

TEST(Labels, ColumnsExcludeEachOtherAndNeedTheirTable) {
  const auto error = [](const std::string& rest) {
    return std::string(MessageOf(
        ParseRunConfig(StrCat("dataset: t.csv\npatch: {size: [64, 64]}\n", rest), "run.yaml")
            .status()));
  };
  EXPECT_EQ(error("sampling: {positions: p.csv}\n"
                  "labels: {label: {positions_column: grade}}\n"),
            "");
  EXPECT_NE(error("labels: {label: {positions_column: grade}}\n")
                .find("key 'labels.label.positions_column': sampling.positions is not a table"),
            std::string::npos);
  EXPECT_NE(error("sampling: {positions: p.csv}\n"
                  "labels: {label: {positions_column: grade, column: isup}}\n")
                .find("label.column and label.positions_column exclude each other"),
            std::string::npos);
}

}  // namespace
}  // namespace patchbay::plan
