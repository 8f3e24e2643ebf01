// Everything in configs/ runs, and its page lists every key there is.
#include <algorithm>
#include <filesystem>
#include <sstream>

#include <gtest/gtest.h>

#include "ops/chain/chain.h"
#include "runtime/core/hash.h"
#include "runtime/core/strings.h"
#include "runtime/model/ops/stain_references.h"
#include "runtime/model/plan/plan.h"
#include "runtime/model/plan/plausibility.h"
#include "runtime/os/file.h"
#include "tests/contract/known_ops.h"

namespace patchbay::plan {
namespace {

/// The classes that the config draws.
LabelClasses ClassesOf(const RunConfig& config) {
  LabelClasses classes;
  const auto add = [&](const std::string& name) {
    classes.push_back({name, static_cast<int>(classes.size())});
  };
  for (const auto& [name, weight] : config.class_weights) add(name);
  if (config.foreground) std::ranges::for_each(config.foreground->classes, add);
  return classes;
}

/// A slide or a volume that meets the config's requirements.
PlannedImage ImageFor(const RunConfig& config) {
  PlannedImage image{Sha256Of("slide"), "aperio", Flat(2967, 2220), 3, DType::kUint8};
  if (config.has_depth) {
    image = {Sha256Of("volume"), "zarr", {200, 400, 400}, 1, DType::kInt16};
  }
  image.groups.resize(config.weight_by.size());
  if (!config.labels.set.empty()) {
    image.labels = ImageLabels{Sha256Of("labels"), ClassesOf(config)};
  }
  if (config.tissue_fraction) image.indexes.push_back(Sha256Of("tissue"));
  if (!config.class_weights.empty()) image.indexes.push_back(Sha256Of("classes"));
  if (config.foreground) {
    image.indexes.assign(config.foreground->by_component ? 2 : 1, Sha256Of("classes"));
    image.places.resize(1 + config.foreground->classes.size(), {1'000, 1});
  } else if (NeedsPlaces(config)) {
    image.places.resize(std::max<std::size_t>(1, config.class_weights.size()), {1'000, 16});
  }
  if (!config.mpp.empty()) {
    const std::vector<Extent> levels = {image.size, Flat(1483, 1110)};
    const auto views = ChooseViews(MagnificationOf(config), levels, SpacingOfMpp(0.499, 0.499));
    EXPECT_TRUE(views.ok()) << views.status();
    image.views = views.value_or(std::vector<PlannedView>());
  }
  if (config.spacing) {
    const Spacing mm = {AxisSpacing{0.9, LengthUnit::kMillimeter},
                        AxisSpacing{0.7, LengthUnit::kMillimeter},
                        AxisSpacing{0.7, LengthUnit::kMillimeter}};
    const auto chosen =
        ChooseSpacing(WantedSpacingOf(config), std::vector{VolumeLevel{image.size, {}}}, mm);
    EXPECT_TRUE(chosen.ok()) << chosen.status();
    image.views = {chosen->view};
    image.volume = VolumeFacts{chosen->spacing, chosen->step};
  } else if (config.has_depth) {
    image.volume.emplace();
  }
  if (FindStainReferences(config)) {
    image.macenko = DefaultMacenko();
  }
  return image;
}

void ExpectRuns(RunConfig config) {
  config.numerics = config.numerics.value_or(Numerics::kCpu);
  const auto plan = Plan::Build(config, {ImageFor(config)});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(ParsePlan(plan->Text()).ok());
  ops::ChainOptions options;
  options.preprocess = config.preprocess;
  options.augment = config.augment;
  options.patch = config.patch;
  options.dtype = config.dtype;
  options.channels = plan->channels();
  options.kind = PatchKindOf(config);
  options.source_dtype = plan->images().front().dtype;
  EXPECT_TRUE(ops::Chain::Compile(options).ok());
  EXPECT_TRUE(CheckBatchType(config).ok()) << CheckBatchType(config);
  EXPECT_TRUE(CheckNormalize(config, options.source_dtype).ok());
}

TEST(Configs, EveryRunConfigParsesPlansAndCompiles) {
  int found = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(PATCHBAY_CONFIGS)) {
    const bool is_class_table = entry.path().parent_path().filename() == "classes";
    if (entry.path().extension() != ".yaml" || is_class_table) continue;
    ++found;
    SCOPED_TRACE(entry.path().filename());
    const auto config = ReadRunConfig(Folders::OfThisUser(), entry.path());
    ASSERT_TRUE(config.ok()) << config.status();
    std::vector<std::string> splits = {""};
    if (!config->split_column.empty()) splits = {"", "train", "val"};
    for (const std::string& split : splits) {
      SCOPED_TRACE(split);
      const auto of_split = ForSplit(*config, split);
      ASSERT_TRUE(of_split.ok()) << of_split.status();
      ExpectRuns(*of_split);
    }
  }
  EXPECT_GE(found, 5);
}

TEST(Configs, ThePagesListEveryKeyAsTheCodeHasIt) {
  std::string pages;
  for (const auto& entry : std::filesystem::directory_iterator(PATCHBAY_CONFIGS)) {
    if (entry.path().extension() != ".md") continue;
    const auto page = ReadFile(Folders::OfThisUser(), entry.path(), 1 << 20);
    ASSERT_TRUE(page.ok()) << page.status();
    pages += *page;
  }
  const std::string run = config::DocumentKeys(RunConfigKeys());
  const std::string ops = config::DocumentKeys(
      {.name = "ops", .type = config::KeyType::kMap, .members = ops::Table().Keys()});
  EXPECT_NE(pages.find(run), std::string::npos) << "a page should hold\n" << run;
  EXPECT_NE(pages.find(ops), std::string::npos) << "a page should hold\n" << ops;
}

/// Columns of the table's rows, the header first.
std::vector<std::vector<std::string>> RowsOfTable(const std::string& page) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("| ", 0) != 0 || line.rfind("| ---", 0) == 0) continue;
    auto& columns = rows.emplace_back();
    std::istringstream parts(line.substr(2));
    for (std::string part; std::getline(parts, part, '|');) {
      const std::size_t end = part.find_last_not_of(' ');
      const std::size_t begin = std::min(part.find_first_not_of(' '), end);
      columns.push_back(end == std::string::npos ? "" : part.substr(begin, end + 1 - begin));
    }
  }
  return rows;
}

TEST(Configs, EachOpHasAPageWithItsDevices) {
  const std::string folder = PATCHBAY_CONFIGS "/../ops/";
  for (const OpRow& op : ops::Table().rows()) {
    const config::Key& key = op.keys;
    SCOPED_TRACE(key.name);
    const auto page =
        ReadFile(Folders::OfThisUser(), StrCat(folder, key.name, "/", key.name, ".md"), 1 << 20);
    ASSERT_TRUE(page.ok()) << page.status();
    const auto rows = RowsOfTable(*page);
    ASSERT_EQ(rows.size(), 2u);  // the last is the row of values
    ASSERT_EQ(rows[1].size(), 4u);
    for (const std::string& column : rows[1]) EXPECT_NE(column, "");
    EXPECT_EQ(rows[1][1], "CPU, CUDA");
    EXPECT_EQ(rows[1][0].rfind("rgb", 0) == 0, !op.IsPerChannel()) << rows[1][0];
    EXPECT_EQ(rows[1][0] == "volumes", op.axes == OpAxes::kVolume) << rows[1][0];
  }
}

TEST(Configs, EveryKeyPrintedWithItsDefaultSaysNothingNew) {
  std::string yaml = config::YamlOfKeys(RunConfigKeys());
  for (const auto& [key, value] :
       {std::pair{"\ndataset:", " slides"}, {"\n  size:", " [64, 64]"}}) {
    const std::size_t at = yaml.find(key);
    ASSERT_NE(at, std::string::npos) << yaml;
    yaml.insert(at + std::string(key).size(), value);
  }
  const auto printed = ParseRunConfig(yaml, "printed");
  ASSERT_TRUE(printed.ok()) << printed.status() << yaml;
  const auto least = ParseRunConfig("dataset: slides\npatch: {size: [64, 64]}\n", "least");
  ASSERT_TRUE(least.ok()) << least.status();
  EXPECT_EQ(ToJson(*printed), ToJson(*least));
}

}  // namespace
}  // namespace patchbay::plan
