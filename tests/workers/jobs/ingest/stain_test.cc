// The stain fit that ingest stores of a slide does not depend on shard size or on the order of
// tasks; planning uses it.
#include "ops/all_ops.h"
#include "ops/stain_normalize/fit_stains.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/verify.h"
#include "runtime/model/ops/stain_fit.h"
#include "tests/workers/jobs/ingest/small_ingest.h"
#include "workers/access/planned_images.h"
#include "workers/access/stamps.h"
#include "workers/jobs/ingest/ingest_staging.h"
#include "workers/jobs/plan/image_row.h"
#include "workers/jobs/plan/plan_tasks.h"
#include "workers/jobs/plan/table_rows.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {
namespace {

class IngestStain : public SmallIngest {
 protected:
  /// The path of the store that a slide becomes.
  std::string Ingested(const std::string& slide, const Json& settings, unsigned order) {
    out_ = Path(StrCat("out", folders_++));
    JobRunner job(Manifest({slide}), order);
    job.Submit("ingest.plan", settings);
    job.Run();
    for (const Status& failure : job.Failures()) ADD_FAILURE() << Describe(failure);
    return StrCat(out_, "/",
                  job.ResultOf("ingest.summary")["stores"][0]["name"].get<std::string>());
  }

  StatusOr<TaskOutput> Open(const std::string& path, Json payload) {
    TaskSignals signals;
    TaskContext context{Folders::OfThisUser(), ops::Table()};
    context.signals = &signals;
    context.rights = PathRights::All();
    context.allowed = AllowedFoldersOf(context.rights, context.state_folder);
    payload["first"] = 0;
    payload["count"] = 1;
    payload["level"] = 0;
    payload["label_sets"] = Json::array();
    payload["on_bad_image"] = "fail";
    context.payload = std::move(payload);
    context.inputs = {DumpJson(JsonOf(ImageList::Of({path})))};
    return RunStreamOpen(context);
  }

  int folders_ = 0;
};

plan::StainFit FitOfPixels(const std::string& store) {
  const auto image = OpenImage(Folders::OfThisUser(), store);
  EXPECT_TRUE(image.ok()) << image.status();
  const Extent size = (*image)->layout().levels[0].size;
  std::vector<std::byte> pixels(static_cast<std::size_t>(size.Pixels() * 3));
  const TensorView view = ContiguousView<3>(pixels.data(), DType::kUint8, {size.y, size.x, 3});
  EncodedPatch encoded;
  EXPECT_TRUE((*image)->Fetch(0, Box2D(0, 0, size.y, size.x), encoded).ok());
  EXPECT_TRUE((*image)->Decode(encoded, view, 255, *(*image)->MakeScratch()).ok());
  ops::StainCounter counter;
  EXPECT_TRUE(counter.Add(view).ok());
  return ops::Rounded(ops::FitStains(counter.Take()));
}

TEST_F(IngestStain, FitIsThatOfAllPixelsHoweverTheStoreIsCutAndMade) {
  MakeSlide("a.svs", 1300, 1);
  const std::string store = Ingested("a.svs", settings_, 1);
  const auto fit = FromJson<plan::StainFit>(
      RecordedAttribute(Folders::OfThisUser(), store, "stain"), "stain fit");
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_EQ(*fit, FitOfPixels(store));
  EXPECT_EQ(fit->pixels, 1300u * 1200u);
  EXPECT_EQ(fit->macenko.fallback, plan::StainFallback::kNone);
  Json other = settings_;
  other["shard"] = 1024;
  for (unsigned order = 2; order < 4; ++order) {
    const std::string again = Ingested("a.svs", order == 2 ? settings_ : other, order);
    EXPECT_EQ(RecordedAttribute(Folders::OfThisUser(), again, "stain"),
              RecordedAttribute(Folders::OfThisUser(), store, "stain"));
    EXPECT_EQ(RecordedAttribute(Folders::OfThisUser(), again, "pixel_digest"),
              RecordedAttribute(Folders::OfThisUser(), store, "pixel_digest"));
    const auto report = zarr::VerifyStore(Folders::OfThisUser(), again);
    ASSERT_TRUE(report.ok());
    EXPECT_TRUE(report->Clean());
  }
}

TEST_F(IngestStain, PlanningTakesTheStoresFitAndRefusesWhatHasNone) {
  MakeSlide("a.svs", 600, 2);
  const std::string store = Ingested("a.svs", settings_, 1);
  const auto opened = Open(store, {{"stain", "preprocess[0].stain_normalize"}});
  ASSERT_TRUE(opened.ok()) << opened.status();
  const auto rows = FromJson<std::vector<ImageRow>>(*ParseJson(opened->result, "rows"), "rows");
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(*(*rows)[0].image.macenko,
            FromJson<plan::StainFit>(RecordedAttribute(Folders::OfThisUser(), store, "stain"),
                                     "stain fit")
                ->macenko);
  const Status slide = Open(Path("a.svs"), {{"stain", "preprocess[0].stain_normalize"}}).status();
  EXPECT_NE(slide.message().find("patchbay ingest"), std::string::npos) << slide;
  EXPECT_TRUE(Open(Path("a.svs"), Json::object()).ok());
}

TEST_F(IngestStain, PlanningChoosesLevelsByTheStoresResolution) {
  MakeSlide("a.svs", 1300, 3);
  const std::string store = Ingested("a.svs", settings_, 1);
  const auto mpp = (*OpenImage(Folders::OfThisUser(), store))->layout().spacing.MeanMpp();
  ASSERT_TRUE(mpp.has_value());
  plan::Magnification asked{{*mpp * 2, *mpp * 3}, 0.05, false, Flat(64, 64)};
  const auto opened = Open(store, {{"magnification", JsonOf(asked)}});
  ASSERT_TRUE(opened.ok()) << opened.status();
  const auto rows = FromJson<std::vector<ImageRow>>(*ParseJson(opened->result, "rows"), "rows");
  ASSERT_TRUE(rows.ok());
  const plan::PlannedImage& image = (*rows)[0].image;
  ASSERT_EQ(image.views.size(), 2u);
  // A patch spans as many pixels of the finest level as the config asks for, whatever level it is
  // read from.
  for (std::size_t i = 0; i < 2; ++i) {
    const plan::PlannedView& view = image.views[i];
    EXPECT_EQ(static_cast<double>(view.source.y) * view.downsample_y, i == 0 ? 128 : 192) << i;
    EXPECT_EQ(static_cast<double>(view.source.x) * view.downsample_x, i == 0 ? 128 : 192) << i;
  }
  EXPECT_EQ(image.size, image.views[0].size);
  asked.mpp = {*mpp / 2};
  const Status finer = Open(store, {{"magnification", JsonOf(asked)}}).status();
  EXPECT_NE(finer.message().find("key 'patch.mpp'"), std::string::npos) << finer;
}

TEST_F(IngestStain, LostHistogramOfAShardIsMadeAgain) {
  MakeSlide("a.svs", 1300, 4);
  JobRunner first(Manifest({"a.svs"}), 1);
  first.Submit("ingest.plan", settings_);
  first.stop_after = 9;
  first.Run();
  std::size_t removed = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(out_)) {
    if (entry.path().extension() != ".colours" || removed++ % 2 != 0) continue;
    std::filesystem::remove(entry.path());
  }
  EXPECT_GT(removed, 2u);
  JobRunner second(Manifest({"a.svs"}), 1);
  second.Submit("ingest.plan", settings_);
  second.Run();
  for (const Status& failure : second.Failures()) ADD_FAILURE() << Describe(failure);
  const std::string store =
      StrCat(out_, "/", second.ResultOf("ingest.summary")["stores"][0]["name"].get<std::string>());
  EXPECT_EQ(*FromJson<plan::StainFit>(RecordedAttribute(Folders::OfThisUser(), store, "stain"),
                                      "stain fit"),
            FitOfPixels(store));
}

}  // namespace
}  // namespace patchbay::workers
