// The measurements for `--codec auto`.
#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/model/jobs/codec_choice.h"
#include "tests/workers/jobs/ingest/small_ingest.h"
#include "tests/workers/sources/pattern_image.h"

namespace patchbay::workers {
namespace {

class IngestMeasure : public SmallIngest {
 protected:
  JobRunner Run(const std::string& op, const std::vector<std::string>& names) {
    settings_["codec"] = "auto";
    JobRunner job(Manifest(names), 1);
    job.Submit(op, settings_);
    job.Run();
    return job;
  }

  CodecMeasures Measured(const std::vector<std::string>& names) {
    JobRunner job = Run("ingest.measure", names);
    for (const Status& failure : job.Failures()) ADD_FAILURE() << Describe(failure);
    const auto measures = FromJson<CodecMeasures>(job.ResultOf("ingest.measure"), "measurements");
    EXPECT_TRUE(measures.ok()) << measures.status();
    EXPECT_FALSE(std::filesystem::exists(out_)) << "nothing is made";
    return measures.value_or(CodecMeasures());
  }

  std::uint64_t BytesOf(const std::string& name) const {
    return std::filesystem::file_size(Path(name));
  }
};

TEST_F(IngestMeasure, ASlideOfJpegTilesHasAllCodecs) {
  MakeSlide("a.svs", 1500, 1);
  MakeSlide("b.svs", 700, 2);
  const CodecMeasures measures = Measured({"a.svs", "b.svs"});
  EXPECT_EQ(measures.sources, 2u);
  EXPECT_EQ(measures.source_bytes, BytesOf("a.svs") + BytesOf("b.svs"));
  EXPECT_EQ(measures.kinds, std::vector<std::string>{"aperio"});
  EXPECT_EQ(measures.no_keep, "");
  EXPECT_NEAR(measures.patches, (1500 * 1400 + 700 * 600) / (512.0 * 512), 1e-6);
  EXPECT_GT(measures.free_bytes, 0u);
  EXPECT_GT(measures.source_read_rate * measures.read_rate * measures.write_rate, 0);
  EXPECT_TRUE(measures.is_one_disk);
  ASSERT_EQ(measures.costs.size(), 3u);
  EXPECT_EQ(measures.costs[0].codec, "keep");
  EXPECT_EQ(measures.costs[0].stored_bytes, static_cast<double>(measures.source_bytes));
  EXPECT_EQ(measures.costs[1].codec, "lz4");
  EXPECT_EQ(measures.costs[2].codec, "zstd");
  EXPECT_GT(measures.costs[1].stored_bytes, measures.costs[2].stored_bytes);
  for (const CodecCost& cost : measures.costs) {
    EXPECT_GT(cost.ingest_core_s, 0) << cost.codec;
    EXPECT_GT(cost.pass_core_s, 0) << cost.codec;
    EXPECT_GT(cost.pass_bytes, cost.stored_bytes) << cost.codec << ": chunks are read in parts";
  }
}

/// The store that an ingest makes is of the predicted size.
TEST_F(IngestMeasure, SizesAreThoseOfTheStores) {
  MakeSlide("a.svs", 1500, 1);
  const CodecMeasures measures = Measured({"a.svs"});
  settings_["codec"] = "lz4";
  JobRunner job(Manifest({"a.svs"}), 1);
  job.Submit("ingest.plan", settings_);
  job.Run();
  const double stored = job.ResultOf("ingest.summary")["stores"][0]["stored_bytes"];
  EXPECT_NEAR(measures.costs[1].stored_bytes / stored, 1, 0.2);
}

TEST_F(IngestMeasure, OneSourceWithoutTilesAndNoneIsKept) {
  MakeSlide("a.svs", 700, 1);
  ASSERT_TRUE(WriteTiff(Path("b.tif"), {PatternImage(200, 150)}).ok());
  SynthCtOptions options;
  options.size = {20, 40, 40};
  ASSERT_TRUE(SynthCt(Folders::OfThisUser(), Path("ct"), options).ok());
  const CodecMeasures slides = Measured({"a.svs", "b.tif"});
  EXPECT_EQ(slides.no_keep.substr(0, 15), "b.tif: --codec ") << slides.no_keep;
  ASSERT_EQ(slides.costs.size(), 2u);
  EXPECT_EQ(slides.costs[0].codec, "lz4");

  const CodecMeasures volume = Measured({"ct"});
  EXPECT_TRUE(volume.no_keep.ends_with("a volume has no tiles")) << volume.no_keep;
  EXPECT_EQ(volume.kinds, std::vector<std::string>{"volume:dicom"});
  ASSERT_EQ(volume.costs.size(), 2u);
  EXPECT_GT(volume.costs[0].stored_bytes, volume.costs[1].stored_bytes);
  EXPECT_GT(volume.costs[1].pass_core_s, 0);
}

TEST_F(IngestMeasure, WithoutAReadableSourceThereIsNothingToMeasure) {
  ASSERT_TRUE(
      ReplaceFile(Folders::OfThisUser(), Path("a.svs"), AsBytes(std::string_view("no"))).ok());
  JobRunner job = Run("ingest.measure", {"a.svs"});
  ASSERT_EQ(job.Failures().size(), 1u);
  EXPECT_NE(Describe(job.Failures()[0]).find("no source can be read to be measured"),
            std::string::npos)
      << Describe(job.Failures()[0]);
}

TEST_F(IngestMeasure, AJobTakesNoAuto) {
  MakeSlide("a.svs", 700, 1);
  JobRunner job = Run("ingest.plan", {"a.svs"});
  ASSERT_EQ(job.Failures().size(), 1u);
  EXPECT_NE(Describe(job.Failures()[0]).find("the command settles `auto`"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(out_));
}

}  // namespace
}  // namespace patchbay::workers
