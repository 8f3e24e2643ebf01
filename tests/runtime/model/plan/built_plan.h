// Plans of tests, each read back from its text, and refusals of configs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/core/strings.h"
#include "runtime/model/plan/plan.h"

namespace patchbay::plan {

/// The plan, of which ParsePlan makes the same.
inline Plan BuiltPlan(const RunConfig& config, std::vector<PlannedImage> images) {
  auto plan = Plan::Build(config, std::move(images));
  EXPECT_TRUE(plan.ok()) << plan.status();
  const auto again = ParsePlan(plan->Text());
  EXPECT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->digest(), plan->digest());
  return *std::move(plan);
}

/// The refusal of a config with these lines beside a dataset and a size of patches.
inline std::string RefusalOfConfig(const std::string& rest) {
  return std::string(MessageOf(
      ParseRunConfig(StrCat("dataset: t.csv\npatch: {size: [10, 10]}\n", rest), "run.yaml")
          .status()));
}

}  // namespace patchbay::plan
