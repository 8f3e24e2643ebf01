// The summaries of jobs, from their workers to their commands.
#include <gtest/gtest.h>

#include "runtime/model/results/ingest_summary.h"
#include "runtime/model/results/label_agreement.h"
#include "runtime/model/results/label_reports.h"
#include "runtime/model/results/scan_rows.h"
#include "runtime/model/results/spectra_summary.h"
#include "runtime/model/results/volume_report.h"
#include "tests/described.h"

namespace patchbay::test {

/// Its members depend on each other.
template <>
Modality SampleStruct<Modality>() {
  return {"MR", "arbitrary"};
}

}  // namespace patchbay::test

namespace patchbay::results {
namespace {

TEST(Summaries, EveryFieldComesBack) {
  test::ExpectEveryFieldComesBack<IngestSummary>();
  test::ExpectEveryFieldComesBack<IngestedStore>();
  test::ExpectEveryFieldComesBack<SpectraSummary>();
  test::ExpectEveryFieldComesBack<MeasuredSlide>();
  test::ExpectEveryFieldComesBack<ScanRow>();
  test::ExpectEveryFieldComesBack<ScanRows>();
  test::ExpectEveryFieldComesBack<VolumeReport>();
  test::ExpectEveryFieldComesBack<LabelReport>();
  test::ExpectEveryFieldComesBack<ClassPixels>();
  test::ExpectEveryFieldComesBack<TissueReport>();
  test::ExpectEveryFieldComesBack<SlideLabelReport>();
  test::ExpectEveryFieldComesBack<DrawnLabelReport>();
  test::ExpectEveryFieldComesBack<ClassVoxels>();
  test::ExpectEveryFieldComesBack<VolumeLabelReport>();
  test::ExpectEveryFieldComesBack<VolumesReport>();
  test::ExpectEveryFieldComesBack<PairCounts>();
  test::ExpectEveryFieldComesBack<StoreAgreement>();
}

}  // namespace
}  // namespace patchbay::results
