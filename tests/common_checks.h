// For the precompiled headers of tests alone: checks that hundreds of tests make. Their templates
// are instantiated once, here, and not in every file: a sixth of the time that the tests take to
// compile.
#pragma once
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace patchbay::common_checks {

inline void OfJson() {
  const std::string text = "a";
  nlohmann::json value = {{"a", 1}, {"b", 1.5}, {"c", true}, {"d", text}, {"e", {"a", "b"}}};
  EXPECT_EQ(value, value);
  EXPECT_NE(value, value);
  EXPECT_EQ(value["a"], 1);
  EXPECT_EQ(value["b"], 1.5);
  EXPECT_EQ(value["c"], true);
  EXPECT_EQ(value["d"], "a");
  EXPECT_EQ(value["d"], text);
}

inline void OfText() {
  const std::string text = "a";
  const std::vector<std::string> texts = {text, "b"};
  EXPECT_EQ(text, text);
  EXPECT_EQ(text, "a");
  EXPECT_NE(text, text);
  EXPECT_EQ(texts, texts);
  EXPECT_THAT(text, testing::HasSubstr("a"));
  EXPECT_THAT(texts, testing::ElementsAre("a", "b"));
  EXPECT_THAT(texts, testing::Contains("a"));
}

inline void OfNumbers() {
  const std::vector<double> doubles = {1};
  const std::vector<float> floats = {1};
  const std::vector<std::int64_t> integers = {1};
  const std::vector<std::uint8_t> bytes = {1};
  EXPECT_EQ(1, 1);
  EXPECT_EQ(1.0, 1.0);
  EXPECT_EQ(true, true);
  EXPECT_EQ(std::size_t{1}, 1u);
  EXPECT_EQ(std::size_t{1}, std::size_t{1});
  EXPECT_EQ(std::int64_t{1}, 1);
  EXPECT_EQ(doubles, doubles);
  EXPECT_EQ(floats, floats);
  EXPECT_EQ(integers, integers);
  EXPECT_EQ(bytes, bytes);
}

}  // namespace patchbay::common_checks
