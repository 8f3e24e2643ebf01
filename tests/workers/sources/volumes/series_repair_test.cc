// Repairs by consent, over slices made here: the effect of each rule, its refusals, and that it
// leaves alone what does not need it.
#include "workers/sources/volumes/series_repair.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workers/sources/slide_fixtures.h"
#include "tests/workers/sources/volumes/stacked_series.h"
#include "tests/workers/sources/volumes/volume_fixtures.h"
#include "workers/sources/volumes/dicom_writer.h"

namespace patchbay::workers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kCapture[] = "1.2.840.10008.5.1.4.1.1.7.2";

const Repairs kAll = *ParseRepairs(
    "frame-of-reference,kernel,copies,localizer,split,rescale,secondary-capture,monochrome1,"
    "burned-in");

RepairedSeries Repaired(DicomSeries series, const Repairs& rules) {
  auto repaired = RepairSeries(Folders::OfThisUser(), std::move(series), rules, nullptr);
  EXPECT_TRUE(repaired.ok()) << repaired.status();
  return repaired.ok() ? *std::move(repaired) : RepairedSeries{};
}

/// The rules that acted, with what they say.
std::vector<std::string> Done(const DicomSeries& series) {
  std::vector<std::string> done;
  for (const RepairDone& one : series.repairs) {
    done.push_back(StrCat(NameOf(one.rule), ": ", one.what));
  }
  return done;
}

template <typename Change>
DicomSeries Changed(std::size_t slices, Change change) {
  DicomSeries series = Stack(slices);
  for (std::size_t i = 0; i < slices; ++i) change(series.files[i], i);
  return series;
}

/// Two stacks at the same places; `change` tells them apart: the first half from the second.
template <typename Change>
DicomSeries TwoStacks(Change change) {
  return Changed(8, [&](DicomFile& file, std::size_t i) {
    file.frames[0].position->z = kStepMm * static_cast<double>(i % 4);
    change(file, i / 4);
  });
}

/// Refused as it is and under every other rule, taken under this one; `says` is what is recorded.
void ExpectRepairedBy(Repair rule, const DicomSeries& series, std::string_view says) {
  SCOPED_TRACE(NameOf(rule));
  Repairs others = kAll;
  others.erase(rule);
  EXPECT_NE(Judge(series).verdict, Verdict::kUniform);
  EXPECT_NE(Judge(Repaired(series, others).whole).verdict, Verdict::kUniform);
  const RepairedSeries taken = Repaired(series, {rule});
  EXPECT_EQ(Judge(taken.whole).verdict, Verdict::kUniform) << Judge(taken.whole).reason;
  EXPECT_EQ(taken.Count(), 1u);
  EXPECT_THAT(Done(taken.whole), ElementsAre(StrCat(NameOf(rule), ": ", says)));
}

TEST(SeriesRepair, ASeriesThatNeedsNothingIsLeftAsItIs) {
  const RepairedSeries plain = Repaired(Stack(6), kAll);
  EXPECT_THAT(Done(plain.whole), IsEmpty());
  EXPECT_EQ(plain.Count(), 1u);
  EXPECT_EQ(plain.whole.files.size(), 6u);
  EXPECT_FALSE(plain.whole.has_one_frame);
  // Frames of reference that geometry settles by itself, as LIDC-IDRI has them.
  const DicomSeries own_frames = Changed(
      6, [](DicomFile& file, std::size_t i) { file.frame_of_reference = StrCat("1.2.5.", i); });
  EXPECT_THAT(Done(Repaired(own_frames, kAll).whole), IsEmpty());
}

TEST(SeriesRepair, SeveralFramesOfReferenceAreTakenForOne) {
  ExpectRepairedBy(
      Repair::kFrameOfReference,
      Changed(6,
              [](DicomFile& f, std::size_t i) { f.frame_of_reference = StrCat("1.2.5.", i / 3); }),
      "2 frames of reference are taken for one");
}

TEST(SeriesRepair, SeveralKernelsAreTakenForOne) {
  ExpectRepairedBy(Repair::kKernel,
                   Changed(6, [](DicomFile& f, std::size_t i) { f.kernel = i == 2 ? "" : "SOFT"; }),
                   "2 reconstruction kernels, or none");
  const DicomSeries both = Changed(6, [](DicomFile& f, std::size_t i) {
    f.kernel = i == 2 ? "SHARP" : "SOFT";
    f.frame_of_reference = StrCat("1.2.5.", i / 3);
  });
  EXPECT_EQ(Judge(Repaired(both, {Repair::kKernel}).whole).verdict, Verdict::kMixed);
  const DicomSeries taken = Repaired(both, {Repair::kKernel, Repair::kFrameOfReference}).whole;
  EXPECT_EQ(Judge(taken).verdict, Verdict::kUniform);
  EXPECT_EQ(taken.repairs.size(), 2u);
}

TEST(SeriesRepair, LocalizersAreLeftOutAmongOtherSlices) {
  ExpectRepairedBy(Repair::kLocalizer,
                   Changed(6,
                           [](DicomFile& f, std::size_t i) {
                             if (i == 0) {
                               f.frames[0].image_type = "ORIGINAL\\PRIMARY\\LOCALIZER";
                             }
                           }),
                   "1 image left out: localisers, screen captures or dose reports");
  // Nothing else would be left.
  const DicomSeries only = Changed(6, [](DicomFile& f, std::size_t) {
    f.frames[0].image_type = "ORIGINAL\\PRIMARY\\LOCALIZER";
  });
  EXPECT_THAT(Done(Repaired(only, kAll).whole), IsEmpty());
  EXPECT_EQ(Judge(Repaired(only, kAll).whole).verdict, Verdict::kNotAVolume);
}

TEST(SeriesRepair, SecondaryCapturesAreTakenOrLeftOut) {
  ExpectRepairedBy(Repair::kSecondaryCapture,
                   Changed(6, [](DicomFile& f, std::size_t) { f.sop_class = kCapture; }),
                   "secondary captures");
  const DicomSeries one =
      Changed(6, [](DicomFile& f, std::size_t i) { f.sop_class = i == 5 ? kCapture : ""; });
  EXPECT_THAT(Done(Repaired(one, {Repair::kSecondaryCapture}).whole),
              ElementsAre("secondary-capture: 1 of 6 files: secondary captures"));
  EXPECT_THAT(Done(Repaired(one, {Repair::kLocalizer}).whole),
              ElementsAre(HasSubstr("localizer: 1 image left out")));
}

TEST(SeriesRepair, BurnedInAnnotationIsTakenAndAPlainNoIsNot) {
  ExpectRepairedBy(Repair::kBurnedIn,
                   Changed(6, [](DicomFile& f, std::size_t) { f.burned_in = "YES"; }),
                   "annotation may be burned in");
  const DicomSeries no = Changed(6, [](DicomFile& f, std::size_t) { f.burned_in = "NO"; });
  EXPECT_THAT(Done(Repaired(no, {Repair::kBurnedIn}).whole), IsEmpty());
}

TEST(SeriesRepair, Monochrome1IsInvertedWithItsPadding) {
  const auto dark = [](DicomFile& f, std::size_t) {
    f.photometric = "MONOCHROME1";
    f.bits_stored = 12;
    f.high_bit = 11;
    f.padding = 0;
    f.padding_limit = 10;
  };
  ExpectRepairedBy(Repair::kMonochrome1, Changed(6, dark), "stored values inverted");
  const DicomFile file = Repaired(Changed(6, dark), {Repair::kMonochrome1}).whole.files[3];
  EXPECT_TRUE(file.is_inverted);
  EXPECT_EQ(file.padding, 4095);
  EXPECT_EQ(file.padding_limit, 4085);
  EXPECT_EQ(file.facts.value("unit", ""), "arbitrary");
  EXPECT_EQ(InvertedValue(file, 4095), 0);
  DicomFile with_sign = file;
  with_sign.is_signed = true;
  EXPECT_EQ(InvertedValue(with_sign, -2048), 2047);
  const DicomSeries wide = Changed(6, [](DicomFile& f, std::size_t) {
    f.photometric = "MONOCHROME1";
    f.bits_stored = 32;
  });
  EXPECT_THAT(Done(Repaired(wide, kAll).whole), IsEmpty());
}

TEST(SeriesRepair, CtWithoutHounsfieldUnitsIsInArbitraryOnes) {
  ExpectRepairedBy(Repair::kRescale,
                   Changed(6, [](DicomFile& f, std::size_t) { f.rescale_type = "US"; }),
                   "values in arbitrary units: a rescale type that is not HU");
  ExpectRepairedBy(Repair::kRescale,
                   Changed(6, [](DicomFile& f, std::size_t) { f.frames[0].has_rescale = false; }),
                   "values in arbitrary units: no rescale slope and intercept");
  const DicomSeries bright = Changed(6, [](DicomFile& f, std::size_t) {
    f.has_tube_voltage = false;
    f.bits_stored = 12;
    f.high_bit = 11;
    f.frames[0].intercept = 0;
  });
  ExpectRepairedBy(Repair::kRescale, bright,
                   "values in arbitrary units: no tube voltage, and no value of air");
  EXPECT_EQ(Repaired(bright, {Repair::kRescale}).whole.files[0].facts.value("unit", ""),
            "arbitrary");
  // Voxels may yet tell that it is no CT; of MR there is nothing to take.
  EXPECT_TRUE(Repaired(Stack(6), {Repair::kRescale}).whole.may_be_arbitrary);
  const DicomSeries mr = Changed(6, [](DicomFile& f, std::size_t) {
    f.modality = "MR";
    f.rescale_type = "US";
  });
  EXPECT_FALSE(Repaired(mr, {Repair::kRescale}).whole.may_be_arbitrary);
  EXPECT_THAT(Done(Repaired(mr, {Repair::kRescale}).whole), IsEmpty());
}

TEST(SeriesRepair, ASeriesOfPhasesIsSplitByTheAttributeThatTellsThemApart) {
  const auto by = [](const char* name, const char* first, const char* second) {
    return TwoStacks([=](DicomFile& f, std::size_t phase) {
      f.frames[0].phase[name] = phase == 0 ? first : second;
    });
  };
  const DicomSeries numbered = by("AcquisitionNumber", "10", "9");
  EXPECT_EQ(Judge(numbered).verdict, Verdict::kDuplicate);
  EXPECT_EQ(Repaired(numbered, {Repair::kKernel}).Count(), 1u);
  const RepairedSeries split = Repaired(numbered, {Repair::kSplit});
  ASSERT_EQ(split.Count(), 2u);
  EXPECT_THAT(split.parts.values, ElementsAre("9", "10"));  // as numbers
  const DicomSeries first = RepairedSeries(split).Part(1), second = RepairedSeries(split).Part(2);
  EXPECT_THAT(Done(first), ElementsAre("split: part 1 of 2, by AcquisitionNumber 9"));
  EXPECT_EQ(second.repairs[0].part, 2);
  EXPECT_EQ(Judge(first).verdict, Verdict::kUniform);
  ASSERT_EQ(first.files.size(), 4u);
  EXPECT_EQ(first.files[0].path, numbered.files[4].path);
  EXPECT_EQ(second.files[0].path, numbered.files[0].path);
  EXPECT_NE(DigestOfPart(Digest{}, 1), DigestOfPart(Digest{}, 2));
  EXPECT_EQ(DigestOfPart(Digest{}, 0), Digest{});
  // A time of day is in no record.
  EXPECT_THAT(Done(Repaired(by("AcquisitionTime", "0915", "0916"), {Repair::kSplit}).Part(1)),
              ElementsAre("split: part 1 of 2, by AcquisitionTime"));
  EXPECT_EQ(Repaired(TwoStacks([](DicomFile& f, std::size_t phase) {
                       f.frame_of_reference = StrCat("1.2.", phase);
                       f.kernel = phase == 0 ? "SOFT" : "SHARP";
                     }),
                     {Repair::kSplit})
                .parts.by,
            "FrameOfReferenceUID");
}

TEST(SeriesRepair, NothingIsSplitThatDoesNotBecomeVolumes) {
  // One phase has a single slice.
  DicomSeries uneven = Stack(5);
  Slice(uneven, 4).position->z = 0;
  for (std::size_t i = 0; i < 5; ++i) Slice(uneven, i).phase["EchoTime"] = i == 4 ? "20" : "10";
  EXPECT_EQ(Repaired(uneven, {Repair::kSplit}).Count(), 1u);
  // Phases that still have two slices at a place.
  const DicomSeries four = Changed(8, [](DicomFile& f, std::size_t i) {
    f.frames[0].position->z = kStepMm * static_cast<double>(i % 2);
    f.frames[0].phase["EchoTime"] = i / 4 == 0 ? "10" : "20";
  });
  const RepairedSeries kept = Repaired(four, {Repair::kSplit});
  EXPECT_EQ(kept.Count(), 1u);
  EXPECT_EQ(Judge(kept.whole).verdict, Verdict::kDuplicate);
}

TEST(SeriesRepair, CopiesAreSlicesWithThePixelsOfAnotherAtItsPlace) {
  const TemporaryFolder folder;
  const auto write = [&](const std::string& name, int place, std::uint16_t value,
                         double intercept = -1024) {
    WrittenSlice slice;
    slice.rows = slice.columns = 4;
    slice.values.assign(16, 7);
    slice.values[5] = value;
    slice.position = {0, 0, 2.0 * place};
    slice.intercept = intercept;
    WrittenFile file;
    file.frames = {slice};
    file.texts = {{{0x0008, 0x0016}, "1.2.840.10008.5.1.4.1.1.2"},
                  {{0x0008, 0x0060}, "CT"},
                  {{0x0018, 0x0060}, "120"},
                  {{0x0020, 0x000e}, "1.2.3"}};
    ASSERT_TRUE(WriteDicom(Folders::OfThisUser(), folder.File(name), file).ok());
  };
  for (const int place : {0, 1, 2}) write(StrCat("a", place, ".dcm"), place, 100);
  write("copy.dcm", 1, 100);
  ASSERT_EQ(SeriesBelow(folder.File("")).size(), 1u);
  ExpectRepairedBy(Repair::kCopies, SeriesBelow(folder.File(""))[0],
                   "1 slice left out: at the place and with the pixels of another");
  for (const bool is_pixel : {true, false}) {  // another pixel, or other units: no copy
    write("copy.dcm", 1, is_pixel ? 101 : 100, is_pixel ? -1024 : 0);
    const RepairedSeries kept = Repaired(SeriesBelow(folder.File(""))[0], {Repair::kCopies});
    EXPECT_EQ(kept.whole.files.size(), 4u);
    EXPECT_EQ(Judge(kept.whole).verdict, Verdict::kDuplicate);
  }
}

}  // namespace
}  // namespace patchbay::workers
