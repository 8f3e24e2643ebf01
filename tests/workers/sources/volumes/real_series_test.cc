// Real series, against values that others computed: hashes of all voxels, means of organs.
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/core/hash.h"
#include "runtime/core/status.h"
#include "tests/workers/sources/volumes/volume_fixtures.h"

namespace patchbay::workers {
namespace {

using testing::HasSubstr;

std::string Sha(const Volume& volume) { return Sha256Of(std::span(volume.voxels)).Hex(); }

TEST(RealSeries, TcgaAbdomenHasThePublishedVoxels) {
  SKIP_WITHOUT_DATA();
  const auto series = SeriesBelow(Data("ct/tcga-34-2605-abdomen-5mm"));
  ASSERT_EQ(series.size(), 1u);
  const Judgement judgement = Judge(series[0]);
  EXPECT_EQ(judgement.verdict, Verdict::kUniform) << ToString(series[0], judgement);
  EXPECT_NEAR(judgement.step_mm, 5, 1e-9);
  const auto volume = ReadDicomVolume(Folders::OfThisUser(), series[0], judgement,
                                      GeometryPolicy::kRefuse, nullptr);
  ASSERT_TRUE(volume.ok()) << Describe(volume.status());
  EXPECT_EQ(volume->dtype, DType::kInt16);
  EXPECT_EQ(Sha(*volume), "ed9ada488562ed525a866360c87bda7377027c236aef6997696fd84ae98c8bd5");
  const ValueRange range = RangeOf(*volume);
  EXPECT_EQ(range.min, -2048);
  EXPECT_EQ(range.max, 3071);
  EXPECT_NEAR(range.mean, -942.5544, 1e-4);
  EXPECT_EQ(OrientationOf(volume->affine), "LPS");
  const Vec3 first = volume->affine.At(0, 0, 0), last = volume->affine.At(0, 0, 35);
  EXPECT_DOUBLE_EQ(first.z, -267.25);
  EXPECT_DOUBLE_EQ(last.z, -92.25);
  EXPECT_DOUBLE_EQ(first.x, -200);
  EXPECT_DOUBLE_EQ(volume->affine.At(511, 0, 0).x, -200 + 511 * 0.78125);
}

TEST(RealSeries, TotalSegmentatorOrgansLieUnderTheirLabels) {
  SKIP_WITHOUT_DATA();
  const auto volume = ReadCanonical(Data("ct/totalsegmentator-body-j2k/dicom"));
  ASSERT_TRUE(volume.ok()) << Describe(volume.status());
  const auto labels = ReadCanonical(Data("ct/totalsegmentator-body-j2k/example_seg_dicom.nii.gz"));
  ASSERT_TRUE(labels.ok()) << Describe(labels.status());
  // In canonical order both lie on one grid, whatever the files' own axes are.
  ASSERT_EQ(labels->size, volume->size);
  for (const auto& [i, j, k] : {std::array{0, 0, 0}, std::array{511, 511, 19}}) {
    const Vec3 apart = volume->affine.At(i, j, k) - labels->affine.At(i, j, k);
    EXPECT_LT(Norm(apart), 0.01);
  }
  const LabelMean liver = MeanUnder(*volume, *labels, 5), spleen = MeanUnder(*volume, *labels, 1);
  EXPECT_EQ(liver.voxels, 366708);
  EXPECT_NEAR(liver.mean, 89.3, 0.05);
  EXPECT_EQ(spleen.voxels, 130634);
  EXPECT_NEAR(spleen.mean, 79.6, 0.05);
  EXPECT_DOUBLE_EQ(volume->affine.At(0, 0, 0).z, -804.5);
  EXPECT_DOUBLE_EQ(volume->affine.At(0, 0, 19).z, -766.5);
}

TEST(RealSeries, GantryTiltIsFoundAndItsSlicesKeepTheirVoxels) {
  SKIP_WITHOUT_DATA();
  const auto series = SeriesBelow(Data("ct/gantry-tilt-phantom"));
  ASSERT_EQ(series.size(), 1u);
  const Judgement judgement = Judge(series[0]);
  EXPECT_EQ(judgement.verdict, Verdict::kTilted);
  EXPECT_NEAR(judgement.tilt_deg, -18.5, 0.01);
  const auto refused = ReadDicomVolume(Folders::OfThisUser(), series[0], judgement,
                                       GeometryPolicy::kRefuse, nullptr);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Describe(refused.status()), HasSubstr("tilted"));
  const auto volume = ReadDicomVolume(Folders::OfThisUser(), series[0], judgement,
                                      GeometryPolicy::kAccept, nullptr);
  ASSERT_TRUE(volume.ok()) << Describe(volume.status());
  EXPECT_EQ(Sha(*volume), "164673263f2001df7bb78fea314c26a7229363bfca20d4cc29a093ab8abed5a3");
  EXPECT_NEAR(volume->affine.At(0, 0, 7).z, 807.345191756896, 1e-9);
  const auto even = ReadDicomVolume(Folders::OfThisUser(), series[0], judgement,
                                    GeometryPolicy::kResample, nullptr);
  ASSERT_TRUE(even.ok()) << Describe(even.status());
  EXPECT_LT(SkewOf(even->affine), 1e-9);
  EXPECT_GT(even->size.y, 512);
}

TEST(RealSeries, MissingSliceIsAGap) {
  SKIP_WITHOUT_DATA();
  const auto series = SeriesBelow(Data("ct/missing-slice-4slice"));
  ASSERT_EQ(series.size(), 1u);
  const Judgement judgement = Judge(series[0]);
  EXPECT_EQ(judgement.verdict, Verdict::kGap);
  EXPECT_THAT(ToString(series[0], judgement), HasSubstr("IM-0001-0010-0001.dcm"));
  EXPECT_THAT(judgement.reason, HasSubstr("1 before 38.107"));
  EXPECT_EQ(judgement.reason.find("IM-"), std::string::npos);
}

TEST(RealSeries, EveryTransferSyntaxGivesItsPixels) {
  SKIP_WITHOUT_DATA();
  // Two copies of one slice would be duplicates: each file is read by itself, as stored values.
  const std::string lossless = "1bee432808f49770bbc30d904e3e744082b0ba41704d4943e7de5bcb3e3d72f9";
  int exact = 0, lossy = 0;
  std::set<std::string> twelve_bit;
  for (const auto& entry : std::filesystem::directory_iterator(Data("ct/transfer-syntaxes"))) {
    const std::string name = entry.path().filename().string();
    const auto stored = StoredValues(entry.path().string());
    ASSERT_TRUE(stored.ok()) << name << ": " << Describe(stored.status());
    ASSERT_EQ(stored->size(), 512u * 512u) << name;
    std::vector<std::int16_t> words(stored->begin(), stored->end());
    const std::string sha = Sha256Of(std::as_bytes(std::span(words))).Hex();
    if (sha == lossless) ++exact;
    if (sha != lossless) ++lossy;
    for (const char* syntax : {".51.", ".53.", ".55."}) {
      if (name.find(syntax) != std::string::npos) twelve_bit.insert(sha);
    }
  }
  EXPECT_EQ(exact, 9);
  EXPECT_EQ(lossy, 6);
  EXPECT_EQ(twelve_bit.size(), 1u);
}

TEST(RealSeries, SegDcmqiSlicesHaveThePublishedVoxels) {
  SKIP_WITHOUT_DATA();
  const auto series = SeriesBelow(Data("ct/seg-dcmqi"));  // its segmentation is no volume
  ASSERT_EQ(series.size(), 1u);
  const auto volume = ReadDicomVolume(Folders::OfThisUser(), series[0], Judge(series[0]),
                                      GeometryPolicy::kRefuse, nullptr);
  ASSERT_TRUE(volume.ok()) << Describe(volume.status());
  EXPECT_EQ(Sha(*volume), "88a56a4a51d188f7981153abbc7a35565be3ae84283c41ae75478464071b4863");
}

TEST(RealSeries, JpegTwoThousandWithTheWrongSignFollowsPixelRepresentation) {
  SKIP_WITHOUT_DATA();
  const auto stored = StoredValues(Data("ct/single/J2K_pixelrep_mismatch.dcm"));
  ASSERT_TRUE(stored.ok()) << Describe(stored.status());
  EXPECT_EQ(stored->front(), -2000);
  EXPECT_EQ(*std::min_element(stored->begin(), stored->end()), -2000);
}

TEST(RealSeries, SingleSlicesAreNoVolumes) {
  SKIP_WITHOUT_DATA();
  for (const char* name : {"ct/single/CT_small.dcm", "ct/single/explicit_VR-UN.dcm"}) {
    const auto series = SeriesBelow(Data(name));
    ASSERT_EQ(series.size(), 1u) << name;
    EXPECT_EQ(Judge(series[0]).verdict, Verdict::kNotAVolume) << name;
  }
}

TEST(RealSeries, MrThatCallsItselfCtIsRefused) {
  SKIP_WITHOUT_DATA();
  const auto volume = ReadCanonical(Data("mr/torchio-mr-17slices"));
  EXPECT_EQ(volume.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Describe(volume.status()), HasSubstr("not-ct"));
}

TEST(RealSeries, PerfusionMapIsNotCt) {
  SKIP_WITHOUT_DATA();
  const auto series = SeriesBelow(Data("ct/multiframe/eCT_Supplemental.dcm"));
  ASSERT_EQ(series.size(), 1u);
  ASSERT_EQ(series[0].files[0].frames.size(), 2u);
  const Judgement judgement = Judge(series[0]);
  EXPECT_NE(judgement.verdict, Verdict::kUniform);
  const auto stored = StoredValues(Data("ct/multiframe/eCT_Supplemental.dcm"));
  ASSERT_TRUE(stored.ok()) << Describe(stored.status());
  std::vector<std::uint16_t> words(stored->begin(), stored->end());
  EXPECT_EQ(Sha256Of(std::as_bytes(std::span(words))).Hex(),
            "b6b202c4af4494a26933ffa7834f9ab6b8a5b4b623f105751e84829abbcdd302");
}

TEST(RealSeries, HostileFilesGiveNoVolume) {
  SKIP_WITHOUT_DATA();
  for (const auto& entry : std::filesystem::directory_iterator(Data("hostile/dicom"))) {
    const auto volume = ReadCanonical(entry.path().string());
    EXPECT_FALSE(volume.ok()) << entry.path();
    EXPECT_EQ(Describe(volume.status()).find("Internal"), std::string::npos);
  }
}

TEST(RealNifti, TotalSegmentatorExamplesHaveThePublishedMeans) {
  SKIP_WITHOUT_DATA();
  const auto ct = ReadCanonical(Data("nifti/totalsegmentator/example_ct.nii.gz"));
  ASSERT_TRUE(ct.ok()) << Describe(ct.status());
  EXPECT_NEAR(RangeOf(*ct).mean, -360.020385, 1e-6);
  EXPECT_EQ(ct->size, Extent(112, 101, 122));
  EXPECT_EQ(ct->dtype, DType::kInt16);
  EXPECT_EQ(OrientationOf(ct->affine), "LPS");
  const auto small = ReadCanonical(Data("nifti/totalsegmentator/example_ct_sm.nii.gz"));
  const auto seg = ReadCanonical(Data("nifti/totalsegmentator/example_seg.nii.gz"));
  ASSERT_TRUE(small.ok() && seg.ok());
  const LabelMean liver = MeanUnder(*small, *seg, 5), spleen = MeanUnder(*small, *seg, 1);
  EXPECT_EQ(liver.voxels, 38634);
  EXPECT_NEAR(liver.mean, 45.3, 0.05);
  EXPECT_EQ(spleen.voxels, 9452);
  EXPECT_NEAR(spleen.mean, 32.8, 0.05);
}

TEST(RealNifti, ByteOrderVersionAndObliqueAxesAreRead) {
  SKIP_WITHOUT_DATA();
  const auto big = ReadCanonical(Data("nifti/variants/big.nii.gz"), GeometryPolicy::kAccept);
  const auto little = ReadCanonical(Data("nifti/variants/little.nii.gz"), GeometryPolicy::kAccept);
  ASSERT_TRUE(big.ok()) << Describe(big.status());
  ASSERT_TRUE(little.ok()) << Describe(little.status());
  EXPECT_EQ(big->voxels, little->voxels);
  const auto second = ReadCanonical(Data("nifti/variants/avg152T1_LR_nifti2.nii.gz"));
  ASSERT_TRUE(second.ok()) << Describe(second.status());
  EXPECT_EQ(second->size, Extent(91, 109, 91));
  const auto oblique = ReadCanonical(Data("nifti/CT_pitch.nii.gz"));
  ASSERT_TRUE(oblique.ok()) << Describe(oblique.status());
  EXPECT_GT(std::abs(oblique->affine.z.y), 0.1);
  EXPECT_LT(SkewOf(oblique->affine), 1e-3);
}

TEST(RealNifti, SeveralVolumesAndForeignBytesAreRefused) {
  SKIP_WITHOUT_DATA();
  const auto five = ReadCanonical(Data("nifti/variants/5D_small.nii"));
  EXPECT_EQ(five.status().code(), absl::StatusCode::kUnimplemented) << Describe(five.status());
  // A fourth axis of one is none; the voxels begin behind the header's extension.
  const auto four = ReadCanonical(Data("nifti/variants/with_extension.nii.gz"));
  ASSERT_TRUE(four.ok()) << Describe(four.status());
  EXPECT_EQ(four->size, Extent(151, 191, 161));
  EXPECT_EQ(RangeOf(*four).max, 1);
  EXPECT_FALSE(ReadCanonical(Data("hostile/nifti/not-nifti.nii")).ok());
}

}  // namespace
}  // namespace patchbay::workers
