// Facts of images as they travel: what comes back, and what is refused.
#include "runtime/model/results/image_facts.h"

#include <functional>

#include <gtest/gtest.h>

namespace patchbay::results {
namespace {

ImageFacts Slide() {
  ImageFacts facts;
  facts.levels = {{1, 701, 900}, {1, 351, 450}, {1, 88, 112}};
  for (const Extent& level : facts.levels) {
    facts.downsamples.push_back(
        (701.0 / static_cast<double>(level.y) + 900.0 / static_cast<double>(level.x)) / 2);
  }
  facts.mpp = 0.2526;
  return facts;
}

ImageFacts Volume() {
  ImageFacts facts;
  facts.levels = {{12, 101, 90}, {6, 51, 45}, {1, 13, 12}};
  facts.downsamples = {1, 2, 8};
  facts.spacing_mm = {5, 0.7, 0.8};
  facts.affine = {{{-0.8, 0, 0, 11.5}, {0, -0.7, 0, 3}, {0, 0, 5, -200.25}, {0, 0, 0, 1}}};
  return facts;
}

TEST(ImageFacts, ComeBackFromTheirText) {
  ImageFacts corrected = Slide(), unstated = Slide(), unknown = Slide(), scanner = Slide();
  corrected.mpp_corrected = unstated.mpp_corrected = true;
  corrected.stated_mpp = 0.5;
  unknown.mpp.reset();
  scanner.downsamples[2] = 8.001;
  for (const ImageFacts& facts : {Slide(), Volume(), corrected, unstated, unknown, scanner}) {
    const auto read = ImageFactsFromJson(ToJson(facts));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, facts);
  }
  EXPECT_FALSE(ToJson(Slide()).contains("downsamples")) << "the sizes say them";
  EXPECT_EQ(ToJson(scanner)["downsamples"][2], 8.001);
}

TEST(ImageFacts, RefusesWhatIsNoFact) {
  const auto error = [](const std::function<void(Json&)>& change, Json value = ToJson(Volume())) {
    change(value);
    return std::string(MessageOf(ImageFactsFromJson(value).status()));
  };
  const auto set = [&](const char* key, const Json& to) {
    return error([&](Json& value) { value[key] = to; });
  };
  const std::string read = "read facts of an image: ";
  EXPECT_EQ(error([](Json& value) { value = Json::array(); }), read + "levels");
  EXPECT_EQ(error([](Json& value) { value.erase("levels"); }), read + "levels");
  for (const Json& wrong : {Json::array(), Json{{1, 2, 3, 4}}, Json{{5}}, Json{{0, 5}},
                            Json{{5, 2.5}}, Json{{5, std::int64_t{1} << 32}}, Json(3)}) {
    EXPECT_EQ(set("levels", wrong), read + "levels") << wrong;
  }
  EXPECT_EQ(set("levels", Json(65, {5, 5})), read + "levels");
  EXPECT_EQ(set("downsamples", {1, 2}), read + "downsamples");
  EXPECT_EQ(set("downsamples", {1, 2, "4"}), read + "downsamples");
  for (const Json& wrong : {Json(0), Json(-1), Json("0.5"), Json(), Json{0.5}}) {
    EXPECT_EQ(set("mpp", wrong), read + "mpp") << wrong;
  }
  EXPECT_EQ(set("stated_mpp", "0.5"), read + "stated_mpp");
  EXPECT_EQ(set("spacing_mm", {1, 2}), read + "spacing_mm");
  EXPECT_EQ(set("affine", {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}}), read + "affine");
  EXPECT_EQ(set("affine", {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {0, 0, 0}}), read + "affine");
}

}  // namespace
}  // namespace patchbay::results
