// Ingests of slides and of volumes on slow storage.
#include <filesystem>

#include "tests/workers/jobs/slow_storage/slow_job.h"
#include "tests/workers/jobs/spectra/fixtures.h"
#include "workers/jobs/synth/synth.h"

namespace patchbay::workers {
namespace {

class SlowIngest : public SlowJob {
 protected:
  void MakeSeries(const std::string& name, std::int64_t slices, std::uint64_t seed) const {
    std::filesystem::create_directories(std::filesystem::path(Path(name)).parent_path());
    SynthCtOptions options;
    options.size = {slices, 32, 32};
    options.seed = seed;
    ASSERT_TRUE(SynthCt(Folders::OfThisUser(), Path(name), options).ok());
  }
};

TEST_F(SlowIngest, OfManySlidesAndTheirTissueKeepsItsLeases) {
  std::vector<std::string> names;
  for (int i = 0; i < kMany; ++i) {
    names.push_back(StrCat(i, ".tif"));
    const auto seed = static_cast<std::uint32_t>(i + 1);
    ASSERT_TRUE(WriteTiff(Path(names.back()), {PatternImage(200, 150, 128, 3, seed)}).ok());
  }
  settings_["tissue"] = "clam";
  Run("ingest.plan", settings_, Manifest(names));
  ExpectLeasesHold(kIngestOps);
}

TEST_F(SlowIngest, MeasuringManySourcesKeepsItsLease) {
  std::vector<std::string> names = {"long"};
  MakeSeries("long", kVeryMany, 1);
  for (int i = 0; i < kMany; ++i) {
    names.push_back(StrCat(i, ".tif"));
    ASSERT_TRUE(WriteTiff(Path(names.back()), {PatternImage(200, 150, 128, 3, 1)}).ok());
  }
  settings_["codec"] = "auto";
  Run("ingest.measure", settings_, Manifest(names));
  ExpectLeasesHold(kMeasureOps);
}

TEST_F(SlowIngest, ConversionsOfManyStoresKeepTheirLeases) {
  ASSERT_TRUE(WriteTiff(Path("a.tif"), {PatternImage(200, 300)}).ok());
  settings_["shard"] = 128;
  JobRunner ingest(Manifest({"a.tif"}), 1);
  ingest.Submit("ingest.plan", settings_);
  ingest.Run();
  const Json stores = Copies(Store());
  Run("convert.plan", {{"to", "lz4"}, {"codec_level", 5}},
      {{"sources", stores}, {"out", Path("converted")}});
  ExpectLeasesHold(kConvertOps);
  for (const char* to : {"ngff-0.4", "svs"}) {
    Run("convert.plan", {{"to", to}, {"codec_level", 5}},
        {{"sources", Json::array({stores[0]})}, {"out", Path(to)}});
    ExpectLeasesHold(kConvertOps);
  }
}

TEST_F(SlowIngest, OfManyShardsKeepsItsLeases) {
  ASSERT_TRUE(WriteTiff(Path("a.tif"), {PatternImage(900, 700)}).ok());  // levels are built
  settings_["shard"] = 256;
  Run("ingest.plan", settings_, Manifest({"a.tif"}));
  Ops ops = kIngestOps;
  ops.erase("labels.import");
  ExpectLeasesHold(ops);
}

TEST_F(SlowIngest, OfVolumesKeepsItsLeases) {
  MakeSeries("long", kVeryMany, 1);
  for (int i = 0; i < kMany; ++i)
    MakeSeries(StrCat("many/", i), 8, static_cast<std::uint64_t>(i + 1));
  settings_["volume_chunk"] = 32;
  Run("ingest.plan", settings_, Manifest({"long", "many"}));
  ExpectLeasesHold(kVolumeOps);
}

}  // namespace
}  // namespace patchbay::workers
