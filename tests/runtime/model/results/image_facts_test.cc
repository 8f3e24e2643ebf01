// Facts of images as JSON: round trip, and refusals.
#include "runtime/model/results/image_facts.h"

#include <functional>

#include <gtest/gtest.h>

#include "runtime/format/json/json_forms.h"

namespace patchbay::results {
namespace {

ImageFacts Slide() {
  ImageFacts facts;
  facts.levels = {{1, 701, 900}, {1, 351, 450}, {1, 88, 112}};
  std::vector<double> downsamples;
  for (const Extent& level : facts.levels) {
    downsamples.push_back(
        (701.0 / static_cast<double>(level.y) + 900.0 / static_cast<double>(level.x)) / 2);
  }
  facts.SetDownsamples(downsamples);
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

TEST(ImageFacts, AVolumesFirstLevelHasADownsampleOfOne) {
  EXPECT_EQ(Volume().Downsamples(), (std::vector<double>{1, 2, 8}));
  EXPECT_EQ(Slide().Downsamples().front(), 1);
}

TEST(ImageFacts, ComeBackFromTheirText) {
  ImageFacts corrected = Slide(), unstated = Slide(), unknown = Slide(), scanner = Slide();
  corrected.mpp_corrected = unstated.mpp_corrected = true;
  corrected.stated_mpp = 0.5;
  unknown.mpp.reset();
  scanner.SetDownsamples({1, 2, 8.001});
  ImageFacts channels = Volume();
  channels.channels = {{"t1", Modality{"MR", "arbitrary"}}, {"β", std::nullopt}};
  for (const ImageFacts& facts :
       {Slide(), Volume(), corrected, unstated, unknown, scanner, channels}) {
    const auto read = FromJson<ImageFacts>(JsonOf(facts), "facts");
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, facts);
  }
  EXPECT_FALSE(JsonOf(Slide()).contains("downsamples")) << "the sizes say them";
  EXPECT_FALSE(JsonOf(Volume()).contains("channels"));
  EXPECT_EQ(JsonOf(scanner)["downsamples"][2], 8.001);
}

TEST(ImageFacts, RefusesWhatIsNoFact) {
  const auto error = [](const std::function<void(Json&)>& change, Json value = JsonOf(Volume())) {
    change(value);
    return std::string(MessageOf(FromJson<ImageFacts>(value, "facts").status()));
  };
  const auto set = [&](const char* key, const Json& to) {
    return error([&](Json& value) { value[key] = to; });
  };
  EXPECT_EQ(error([](Json& value) { value = Json::array(); }), "facts: expected an object");
  EXPECT_EQ(error([](Json& value) { value.erase("levels"); }), "facts: key 'levels': missing");
  for (const Json& wrong :
       {Json::array(), Json{{1, 2, 3, 4}}, Json{{5}}, Json{{5, 5}}, Json{{1, 0, 5}},
        Json{{1, 5, 2.5}}, Json{{1, 5, std::int64_t{1} << 32}}, Json(3), Json(65, {1, 5, 5})}) {
    EXPECT_EQ(set("levels", wrong).find("facts: key 'levels"), 0u) << wrong;
  }
  EXPECT_EQ(set("downsamples", {1, 2}), "facts: downsamples: expected one per level");
  EXPECT_EQ(set("downsamples", {1, 2, "4"}), "facts: key 'downsamples[2]': expected a number");
  for (const Json& wrong : {Json(0), Json(-1), Json("0.5"), Json{0.5}}) {
    EXPECT_EQ(set("mpp", wrong).find("facts: key 'mpp': expected a number"), 0u) << wrong;
  }
  EXPECT_EQ(set("stated_mpp", "0.5"), "facts: key 'stated_mpp': expected a number");
  EXPECT_EQ(set("spacing_mm", {1, 2}), "facts: key 'spacing_mm': expected a list of 3");
  EXPECT_EQ(set("affine", {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}}),
            "facts: key 'affine': expected a list of 4");
  EXPECT_EQ(set("affine", {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {0, 0, 0}}),
            "facts: key 'affine[0]': expected a list of 4");
}

}  // namespace
}  // namespace patchbay::results
