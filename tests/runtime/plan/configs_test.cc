// Everything in configs/ runs, and its page lists every key there is.
#include <filesystem>

#include <gtest/gtest.h>

#include "ops/chain/chain.h"
#include "runtime/base/file.h"
#include "runtime/base/hash.h"
#include "runtime/base/strings.h"
#include "runtime/plan/plan.h"

namespace patchbay::plan {
namespace {

TEST(Configs, EveryRunConfigParsesPlansAndCompiles) {
  int found = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(PATCHBAY_CONFIGS)) {
    const bool is_class_table = entry.path().parent_path().filename() == "classes";
    if (entry.path().extension() != ".yaml" || is_class_table) continue;
    ++found;
    SCOPED_TRACE(entry.path().filename());
    auto config = ReadRunConfig(entry.path());
    ASSERT_TRUE(config.ok()) << config.status();
    config->numerics = config->numerics.value_or(Numerics::kCpu);
    const auto plan =
        Plan::Build(*config, {{Sha256Of("slide"), "aperio", Flat(2967, 2220), 3, DType::kUint8}});
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_TRUE(Plan::Parse(plan->Text()).ok());
    ops::ChainOptions options;
    options.preprocess = config->preprocess;
    options.augment = config->augment;
    options.patch = config->patch;
    options.dtype = config->dtype;
    EXPECT_TRUE(ops::Chain::Compile(options).ok());
  }
  EXPECT_GE(found, 4);
}

TEST(Configs, ThePagesListEveryKeyAsTheCodeHasIt) {
  std::string pages;
  for (const auto& entry : std::filesystem::directory_iterator(PATCHBAY_CONFIGS)) {
    if (entry.path().extension() != ".md") continue;
    const auto page = ReadFile(entry.path(), 1 << 20);
    ASSERT_TRUE(page.ok()) << page.status();
    pages += *page;
  }
  const std::string run = config::DocumentKeys(RunConfigKeys());
  const std::string ops =
      config::DocumentKeys({.name = "ops", .type = config::KeyType::kMap, .members = OpKeys()});
  EXPECT_NE(pages.find(run), std::string::npos) << "a page should hold\n" << run;
  EXPECT_NE(pages.find(ops), std::string::npos) << "a page should hold\n" << ops;
}

}  // namespace
}  // namespace patchbay::plan
