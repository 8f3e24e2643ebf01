// Verdicts over slices made here: which slices count as equal, and the numbers in the reasons.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/core/strings.h"
#include "tests/workers/sources/volumes/stacked_series.h"

namespace patchbay::workers {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

DicomSeries StackOfFrames(std::size_t slices) {
  DicomSeries series = Stack(slices);
  for (std::size_t i = 0; i < slices; ++i) {
    series.files[i].frame_of_reference = StrCat("1.2.5.", i);
  }
  return series;
}

/// The verdict on a stack of which every file was changed.
template <typename Change>
Judgement JudgeChanged(Change change) {
  DicomSeries series = Stack(6);
  for (DicomFile& file : series.files) change(file);
  return Judge(series);
}

TEST(JudgeSeries, PixelsThatTheHeaderSaysAreNotReadAreNoVolume) {
  const auto refused = [](auto change, std::string_view reason) {
    const Judgement judgement = JudgeChanged(change);
    EXPECT_EQ(judgement.verdict, Verdict::kNotAVolume);
    EXPECT_THAT(judgement.reason, HasSubstr(std::string(reason)));
    EXPECT_EQ(judgement.at_fault.size(), 6u);
  };
  refused([](DicomFile& f) { f.samples = 3, f.photometric = "RGB"; }, "3 samples a pixel, RGB; ");
  refused([](DicomFile& f) { f.photometric = "MONOCHROME1"; }, "pixels: MONOCHROME1; ");
  refused([](DicomFile& f) { f.photometric = "JOHN"; }, "pixels: not MONOCHROME2; ");
  refused([](DicomFile& f) { f.photometric = ""; }, "no photometric interpretation");
  refused([](DicomFile& f) { f.bits_allocated = 32; }, "32 bits allocated");
  refused([](DicomFile& f) { f.high_bit = 3; }, "high bit 3");
  refused([](DicomFile& f) { f.transfer_syntax = "1.2.840.10008.1.2.4.201"; }, "transfer syntax");
  DicomSeries one = Stack(6);
  one.files[2].photometric = "MONOCHROME1";
  EXPECT_EQ(Judge(one).verdict, Verdict::kMixed);
  EXPECT_THAT(Judge(one).reason, HasSubstr("1 of 6 files: "));
}

TEST(JudgeSeries, WithoutATubeVoltageSomeValueMustBeAir) {
  const auto verdict = [](int bits, bool is_signed, double slope, double intercept) {
    return JudgeChanged([&](DicomFile& f) {
             f.has_tube_voltage = false;
             f.bits_stored = bits;
             f.high_bit = bits - 1;
             f.is_signed = is_signed;
             f.frames[0].slope = slope;
             f.frames[0].intercept = intercept;
           })
        .verdict;
  };
  EXPECT_EQ(verdict(12, false, 1, -1024), Verdict::kUniform);
  EXPECT_EQ(verdict(12, false, 1, -200), Verdict::kUniform);
  EXPECT_EQ(verdict(12, false, 1, -199), Verdict::kNotCt);
  EXPECT_EQ(verdict(12, false, -1, 0), Verdict::kUniform);
  EXPECT_EQ(verdict(12, true, 1, 0), Verdict::kUniform);
  EXPECT_EQ(verdict(8, true, 1, 0), Verdict::kNotCt);
  EXPECT_EQ(verdict(8, false, -1, 55), Verdict::kUniform);
  EXPECT_EQ(verdict(8, false, -1, 56), Verdict::kNotCt);
  EXPECT_EQ(JudgeChanged([](DicomFile& f) { f.frames[0].intercept = 0; }).verdict,
            Verdict::kUniform)
      << "the voltage says that it is CT";
}

TEST(JudgeSeries, AFrameOfReferenceForEverySliceOfOneGridIsAWarning) {
  const Judgement judgement = Judge(StackOfFrames(28));
  EXPECT_EQ(judgement.verdict, Verdict::kUniform) << judgement.reason;
  EXPECT_THAT(judgement.warning, HasSubstr("every slice has a frame of reference of its own"));
  EXPECT_EQ(judgement.reason, judgement.warning);
  EXPECT_THAT(judgement.at_fault, IsEmpty());
  EXPECT_EQ(judgement.order.size(), 28u);
  EXPECT_THAT(Judge(Stack(28)).warning + Judge(Stack(28)).reason, IsEmpty());
}

TEST(JudgeSeries, TheGridOfSuchASeriesIsHeldToAHundredthOfAMillimetre) {
  const auto judged = [](auto change) {
    DicomSeries series = StackOfFrames(12);
    change(Slice(series, 5));
    const Judgement judgement = Judge(series);
    // With a frame of reference in common each of these is of equal steps.
    DicomSeries common = Stack(12);
    change(Slice(common, 5));
    EXPECT_EQ(Judge(common).verdict, Verdict::kUniform);
    if (judgement.verdict == Verdict::kMixed) {
      EXPECT_THAT(judgement.reason, HasSubstr("1 of 12 slices lies more than 0.01 mm off"));
      EXPECT_EQ(judgement.at_fault.size(), 1u);
      EXPECT_EQ(judgement.at_fault[0].file, 5u);
    }
    return judgement.verdict;
  };
  EXPECT_EQ(judged([](DicomFrame& s) { s.position->z += 0.009; }), Verdict::kUniform);
  EXPECT_EQ(judged([](DicomFrame& s) { s.position->z += 0.011; }), Verdict::kMixed);
  EXPECT_EQ(judged([](DicomFrame& s) { s.position->y += 0.011; }), Verdict::kMixed);
  // At the far corner: 499 columns of 2e-5 mm are 0.01 mm, 399 rows of 3e-5 mm are 0.012 mm.
  EXPECT_EQ(judged([](DicomFrame& s) { s.column_step += 1.9e-5; }), Verdict::kUniform);
  EXPECT_EQ(judged([](DicomFrame& s) { s.column_step += 2.1e-5; }), Verdict::kMixed);
  EXPECT_EQ(judged([](DicomFrame& s) { s.row_step += 3e-5; }), Verdict::kMixed);
  // 279 mm turned by 5e-5 are 0.014 mm.
  EXPECT_EQ(judged([](DicomFrame& s) { s.column = Vec3{0, 1, 5e-5}; }), Verdict::kMixed);
}

TEST(JudgeSeries, MissingAndTiltedSlicesOfSuchASeriesKeepTheirVerdict) {
  DicomSeries gap = StackOfFrames(12);
  gap.files.erase(gap.files.begin() + 5, gap.files.begin() + 7);
  const Judgement missing = Judge(gap);
  EXPECT_EQ(missing.verdict, Verdict::kGap);
  EXPECT_THAT(missing.reason, HasSubstr("slices missing: 2 before 17.5"));
  EXPECT_THAT(missing.reason, HasSubstr(missing.warning));
  EXPECT_FALSE(missing.warning.empty());
  DicomSeries tilted = StackOfFrames(12);
  for (std::size_t i = 0; i < 12; ++i) Slice(tilted, i).position->y += static_cast<double>(i);
  EXPECT_EQ(Judge(tilted).verdict, Verdict::kTilted);
  DicomSeries uneven = StackOfFrames(12);
  Slice(uneven, 11).position->z += 1;
  EXPECT_EQ(Judge(uneven).verdict, Verdict::kMixed);
  DicomSeries twice = StackOfFrames(12);
  Slice(twice, 3).position = Slice(twice, 4).position;
  EXPECT_EQ(Judge(twice).verdict, Verdict::kDuplicate);
}

TEST(JudgeSeries, FramesOfReferenceThatSomeSlicesShareOrLackAreMixed) {
  DicomSeries halves = Stack(12);
  for (std::size_t i = 6; i < 12; ++i) halves.files[i].frame_of_reference = "1.2.9";
  EXPECT_EQ(Judge(halves).verdict, Verdict::kMixed);
  EXPECT_EQ(Judge(halves).reason, "6 of 12 slices differ in frame of reference");
  DicomSeries pair = StackOfFrames(12);
  pair.files[7].frame_of_reference = pair.files[2].frame_of_reference;
  EXPECT_EQ(Judge(pair).reason, "10 of 12 slices differ in frame of reference");
  DicomSeries lacking = StackOfFrames(12);
  lacking.files[3].frame_of_reference = "";
  EXPECT_EQ(Judge(lacking).reason, "11 of 12 slices differ in frame of reference");
}

TEST(JudgeSeries, TheSentenceCountsTheSlicesOfEachDifference) {
  DicomSeries one = Stack(12);
  one.files[4].kernel = "";
  EXPECT_EQ(Judge(one).reason, "1 of 12 slices differs in reconstruction kernel");
  EXPECT_EQ(Judge(one).at_fault.size(), 1u);
  DicomSeries three = Stack(12);
  three.files[1].kernel = "BONE";
  three.files[6].kernel = "LUNG";
  three.files[9].rows = 200;
  EXPECT_EQ(Judge(three).reason, "2 of 12 slices differ in reconstruction kernel, 1 in size");
  EXPECT_EQ(Judge(three).at_fault.size(), 3u);
  // More kinds than are told apart: all are counted.
  DicomSeries many = Stack(200);
  for (std::size_t i = 0; i < 190; ++i) many.files[i].kernel = StrCat("K", i);
  EXPECT_EQ(Judge(many).reason, "190 of 200 slices differ in reconstruction kernel");
  EXPECT_EQ(Judge(many).at_fault.size(), 190u);
}

}  // namespace
}  // namespace patchbay::workers
