// Every struct that lists its fields comes back from its JSON, field by field. A lint
// (tests/lint/fields.py) looks for structs that are missing here.
#include <gtest/gtest.h>

#include "runtime/format/json/json_forms.h"
#include "runtime/model/jobs/lock_request.h"
#include "runtime/model/jobs/stream_request.h"
#include "runtime/model/ops/stain_evidence.h"
#include "runtime/model/plan/class_table.h"
#include "runtime/model/plan/image_volumes.h"
#include "runtime/model/plan/planned_manifest.h"
#include "runtime/model/plan/run_lock.h"
#include "runtime/model/plan/value_statistics.h"
#include "runtime/model/results/ingest_summary.h"
#include "runtime/model/results/skipped_images.h"
#include "runtime/model/results/spectra_document.h"
#include "runtime/model/results/spectra_summary.h"
#include "runtime/os/pid_stamp.h"
#include "tests/described.h"
#include "workers/jobs/ingest/check.h"
#include "workers/jobs/ingest/ingest_slide.h"
#include "workers/jobs/ingest/ingest_staging.h"
#include "workers/jobs/plan/open_request.h"
#include "workers/jobs/plan/table_rows.h"
#include "workers/jobs/spectra/spectra_staging.h"
#include "workers/jobs/spectra/strip.h"

namespace patchbay::test {

template <>
plan::ImageIcc SampleForm(const plan::ImageIcc&) {
  return {{}, plan::IccFallback::kNoProfile};
}
template <>
plan::MacenkoFit SampleForm(const plan::MacenkoFit&) {
  return plan::DefaultMacenko();
}
template <>
plan::ReinhardFit SampleForm(const plan::ReinhardFit&) {
  return plan::DefaultReinhard();
}
template <>
plan::VolumeFacts SampleForm(const plan::VolumeFacts&) {
  plan::VolumeFacts facts;
  facts.spacing = {3, 2, 1};
  facts.std = 5;
  facts.further = {{7, 2}};
  return facts;
}
template <>
plan::Magnification SampleForm(const plan::Magnification&) {
  return {{0.5}, 0.1, true, Flat(3, 5)};
}
template <>
std::vector<plan::PlannedView> SampleForm(const std::vector<plan::PlannedView>&) {
  return {{1, Flat(9, 8), Flat(3, 5), 2, 2, 1}};
}
template <>
std::vector<plan::PlanePoint> SampleForm(const std::vector<plan::PlanePoint>&) {
  return {{3, 5}};
}
template <>
plan::PlaceLabels SampleForm(const plan::PlaceLabels&) {
  return {{7}};
}
template <>
std::vector<plan::ListedRun> SampleForm(const std::vector<plan::ListedRun>&) {
  return {{0, 2}};
}

template <typename Struct>
class EveryField : public testing::Test {};

using OfModel = testing::Types<
    Subject, PidStamp, plan::FactsNeeded, plan::FoundImage, plan::FoundImages, plan::ImageLabels,
    plan::LabelClass, plan::LockDifference, plan::LockRequest, plan::LockedImage, plan::LockedKeys,
    plan::Moments, plan::NamedValue, plan::PerAxis, plan::PlaceCount, plan::PlannedImage,
    plan::PlannedManifest, plan::PlannedRow, plan::PlannedTable, plan::RowPins, plan::StainEvidence,
    plan::StainFit, plan::StreamManifest, plan::StreamStart, plan::ValuesNeeded, plan::ValueWindow,
    plan::VolumeNeeds, plan::WantedSpacing, plan::FloatStatistics>;
using OfResults =
    testing::Types<results::IngestSummary, results::IngestedStore, results::MeasuredCohort,
                   results::MeasuredSlide, results::SkippedImage, results::SkippedImages,
                   results::SpectraChannels, results::SpectraDefinition, results::SpectraDuplicate,
                   results::SpectraFailure, results::SpectraFigures, results::SpectraHistogram,
                   results::SpectraPercentiles, results::SpectraRadial, results::SpectraRemainder,
                   results::SpectraSummary, results::UnmeasuredSlide>;
using OfWorkers = testing::Types<
    workers::CheckedShard, workers::CheckedShards, workers::DamagedTile, workers::ImageList,
    workers::MadeShards, workers::OpenRequest, workers::RecordText, workers::ShardPayload,
    workers::SlideFailure, workers::SlideName, workers::SlideOutcome, workers::SlideRecord,
    workers::SpectraPayload, workers::StripRecord, zarr::ShardPlace, zarr::ShardRecord>;

TYPED_TEST_SUITE_P(EveryField);
TYPED_TEST_P(EveryField, ComesBack) { ExpectEveryFieldComesBack<TypeParam>(); }
REGISTER_TYPED_TEST_SUITE_P(EveryField, ComesBack);
INSTANTIATE_TYPED_TEST_SUITE_P(Model, EveryField, OfModel);
INSTANTIATE_TYPED_TEST_SUITE_P(Results, EveryField, OfResults);
INSTANTIATE_TYPED_TEST_SUITE_P(Workers, EveryField, OfWorkers);

}  // namespace patchbay::test
