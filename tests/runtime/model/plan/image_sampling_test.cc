#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/model/plan/image_columns.h"

namespace patchbay::plan {
namespace {

std::vector<PlannedImage> TwoSampledImages() {
  std::vector<PlannedImage> images(2);
  images[0].groups = {0, 4'294'967'295u};
  images[0].indexes = {Sha256Of("tissue"), Sha256Of("classes")};
  images[0].places = {{3, 256}, {0, 1}};
  images[1].groups = {1, 2};
  images[1].indexes = {Sha256Of("others"), Sha256Of("classes")};
  return images;
}

RunConfig Sampled() {
  RunConfig config;
  config.tissue_fraction = 0.5;
  config.weight_by = {"site", "patient_id"};
  return config;
}

TEST(ImageSampling, ComesBackFromAPlansText) {
  const std::vector<PlannedImage> images = TwoSampledImages();
  const Json text = SampledToJson(Sampled(), images);
  std::vector<PlannedImage> read(2);
  ASSERT_TRUE(SampledFromJson(text, read).ok());
  for (std::size_t i = 0; i < images.size(); ++i) {
    EXPECT_EQ(read[i].groups, images[i].groups);
    EXPECT_EQ(read[i].indexes, images[i].indexes);
    ASSERT_EQ(read[i].places.size(), images[i].places.size());
    for (std::size_t p = 0; p < images[i].places.size(); ++p) {
      EXPECT_EQ(read[i].places[p].places, images[i].places[p].places);
      EXPECT_EQ(read[i].places[p].pixels_each, images[i].places[p].pixels_each);
    }
  }
  EXPECT_EQ(SampledToJson(RunConfig(), images), Json::object());
  std::vector<PlannedImage> none(2);
  EXPECT_TRUE(SampledFromJson(Json::object(), none).ok());
}

TEST(ImageSampling, TextsThatNoPlanHasAreRefusedByNameAndImage) {
  const Json good = SampledToJson(Sampled(), TwoSampledImages());
  const auto says = [&](const std::string& pointer, const Json& value) {
    Json bad = good;
    bad[Json::json_pointer(pointer)] = value;
    std::vector<PlannedImage> read(2);
    return std::string(SampledFromJson(bad, read).message());
  };
  for (const auto& [pointer, value, text] : std::vector<std::tuple<std::string, Json, std::string>>{
           {"/groups", 3, "plan: groups: expected one value per image"},
           {"/groups", {{1, 2}}, "plan: groups: expected one value per image"},
           {"/groups/1", "x", "plan: image 1: groups: expected a list"},
           {"/groups/1/0", -1, "plan: image 1: groups: key '[0]': expected a number in 0.."},
           {"/groups/1/0", 4'294'967'296u,
            "plan: image 1: groups: key '[0]': expected a number in 0.."},
           {"/places/indexes/0/1", 7, "plan: image 0: indexes: key '[1]': expected a digest"},
           {"/places/indexes/0/1", "abc", "plan: image 0: indexes: key '[1]': "},
           {"/places/counts/0/0", {3}, "plan: image 0: counts: key '[0]': expected a list of 2"},
           {"/places/counts/0/0",
            {3, -1},
            "plan: image 0: counts: key '[0].pixels_each': expected"},
       }) {
    EXPECT_EQ(says(pointer, value).substr(0, text.size()), text) << pointer;
  }
}

}  // namespace
}  // namespace patchbay::plan
