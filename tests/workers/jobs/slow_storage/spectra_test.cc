// Spectra of many images on slow storage.
#include "tests/workers/jobs/slow_storage/slow_job.h"
#include "tests/workers/jobs/spectra/fixtures.h"

namespace patchbay::workers {
namespace {

using SlowSpectra = SlowJob;

TEST_F(SlowSpectra, OfManySlidesWithTheirCoefficientsKeepTheirLeases) {
  std::vector<std::string> names;
  for (int i = 0; i < kMany; ++i) {
    names.push_back(StrCat(i, ".tif"));
    const auto seed = static_cast<std::uint32_t>(i + 1);
    ASSERT_TRUE(WriteTiff(Path(names.back()), {PatternImage(128, 200, 64, 3, seed)}).ok());
  }
  const Json settings = {{"frame", 32}, {"hop", 32}, {"coefficients", true}};
  Run("spectra.plan", settings, Manifest(names));
  ExpectLeasesHold(kSpectraOps);
}

TEST_F(SlowSpectra, OfManyTilesKeepTheirLeases) {
  ASSERT_TRUE(WriteTiff(Path("a.tif"), {PatternImage(700, 300, 16)}).ok());
  const Json settings = {{"frame", 64}, {"hop", 64}, {"strip", 64}};
  Run("spectra.plan", settings, Manifest({"a.tif"}));
  ExpectLeasesHold(kSpectraOps);
}

}  // namespace
}  // namespace patchbay::workers
