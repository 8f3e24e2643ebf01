// tissue_mask against OpenCV, on slides, a marked thumbnail and noise.
#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "ops/tissue/tissue_mask.h"
#include "runtime/core/tensor_view.h"
#include "tests/ops/python_oracle.h"

namespace patchbay::ops {
namespace {

struct TissueCase {
  std::size_t image = 0;
  TissueMaskOptions options;
  std::int64_t close_radius = 0, min_area = 0, max_hole = 0;  ///< pixels

  Json Request() const {
    Json request = ToJson(options);
    request["image"] = image;
    request["close_radius"] = close_radius;
    request["min_area"] = min_area;
    request["max_hole"] = max_hole;
    return request;
  }
};

std::vector<TissueCase> TissueCases(std::size_t image) {
  std::vector<TissueCase> cases;
  for (const TissueChannel channel : {TissueChannel::kSat, TissueChannel::kGrey}) {
    const int fixed = channel == TissueChannel::kSat ? 15 : 210;
    for (const int k : {1, 3, 5, 7, 11, 15}) {
      for (const std::optional<int> threshold : {std::optional<int>(), std::optional<int>(fixed)}) {
        const TissueMaskOptions options{
            .channel = channel, .median_k = k, .fixed_threshold = threshold, .border = k != 5};
        cases.push_back({image, options});
        cases.push_back({image, options, k / 3, 16 * k, 8 * k});
        cases.push_back({image, options, k / 3, 16 * k, 8 * k});
        cases.back().options.black = 9 * k;
      }
    }
  }
  return cases;
}

/// Runs the oracle and compares every mask, pixel by pixel.
void ExpectOpencvAgrees(const Json& images, std::int64_t* tissue_pixels) {
  const PythonOracle oracle(PATCHBAY_TISSUE_ORACLE, "numpy, cv2");
  if (!oracle.missing().empty()) GTEST_SKIP() << oracle.missing();
  std::vector<TissueCase> cases;
  Json request = {{"images", images}, {"cases", Json::array()}};
  for (std::size_t i = 0; i < images.size(); ++i) {
    for (const TissueCase& c : TissueCases(i)) cases.push_back(c);
  }
  for (const TissueCase& c : cases) request["cases"].push_back(c.Request());
  oracle.Ask(request);
  const Json answer = oracle.ReadJson("answer.json");
  ASSERT_FALSE(answer.is_null());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const TissueCase& c = cases[i];
    const Json& shape = answer["shapes"][c.image];
    std::string pixels = oracle.Read(StrCat("image", c.image, ".raw"));
    const std::string expected = oracle.Read(StrCat("mask", i, ".raw"));
    const TensorView view =
        ContiguousView<3>(reinterpret_cast<std::byte*>(pixels.data()), DType::kUint8,
                          {shape[0].get<std::int64_t>(), shape[1].get<std::int64_t>(), 3});
    TissueMaskOptions options = c.options;  // microns of a thumbnail of 1 micron a pixel
    options.close_um = 2.0 * static_cast<double>(c.close_radius);
    options.min_area_um2 = static_cast<double>(c.min_area);
    options.max_hole_um2 = static_cast<double>(c.max_hole);
    const auto mask = MakeTissueMask(view, 1.0, options);
    ASSERT_TRUE(mask.ok()) << mask.status();
    *tissue_pixels += mask->tissue_pixels;
    ASSERT_EQ(mask->pixels.size(), expected.size());
    std::size_t different = 0;
    for (std::size_t p = 0; p < expected.size(); ++p) {
      different += mask->pixels[p] != static_cast<std::uint8_t>(expected[p]);
    }
    EXPECT_EQ(different, 0u) << DumpJson(c.Request()) << " image " << DumpJson(images[c.image])
                             << " threshold " << mask->threshold << " OpenCV "
                             << DumpJson(answer["opencv"]);
  }
}

TEST(TissueOracle, OpencvAgreesOnNoiseOfEveryShape) {
  std::int64_t tissue = 0;
  ExpectOpencvAgrees(Json::array({Json{{"noise", {120, 200, 1}}}, Json{{"noise", {33, 31, 2}}},
                                  Json{{"noise", {1, 90, 3}}}, Json{{"noise", {90, 1, 4}}},
                                  Json{{"noise", {257, 64, 5}}}}),
                     &tissue);
  if (::testing::Test::IsSkipped()) return;
  EXPECT_GT(tissue, 100'000);
}

TEST(TissueOracle, OpencvAgreesOnTissueAndPenMarks) {
  const char* data = std::getenv("PATCHBAY_TEST_DATA");
  const std::string root = data == nullptr ? "" : data;
  Json images = Json::array();
  // Pages of the slides: the second image of an SVS is its thumbnail; pages 2 and 5 of the pyramid
  // are coarse levels.
  for (const auto& [path, page] :
       std::vector<std::pair<std::string, int>>{{"stain/histolab/pen-red-thumb.png", 0},
                                                {"stain/histolab/source-medium.png", 0},
                                                {"stain/torchstain/source.png", 0},
                                                {"wsi/CMU-1-Small-Region.svs", 1},
                                                {"wsi/CropBreastSlide-pyramid.tiff", 2},
                                                {"wsi/CropBreastSlide-pyramid.tiff", 5}}) {
    const std::string file = StrCat(root, "/", path);
    if (!std::filesystem::exists(file)) GTEST_SKIP() << "no test data at PATCHBAY_TEST_DATA";
    images.push_back(Json{{"path", file}, {"page", page}});
  }
  std::int64_t tissue = 0;
  ExpectOpencvAgrees(images, &tissue);
  if (::testing::Test::IsSkipped()) return;
  EXPECT_GT(tissue, 1'000'000);
}

}  // namespace
}  // namespace patchbay::ops
