// NIfTI, NRRD and MetaImage files made here: their values are read, and their sizes are checked.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <dcmtk/config/osconfig.h>
#include <dcmtk/dcmdata/dctk.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <zlib.h>

#include "tests/deflated.h"
#include "tests/workers/sources/slide_fixtures.h"
#include "tests/workers/sources/volumes/volume_fixtures.h"
#include "workers/sources/volumes/byte_stream.h"
#include "workers/sources/volumes/dicom_writer.h"
#include "workers/sources/volumes/nifti.h"
#include "workers/sources/volumes/raw_voxels.h"
#include "workers/sources/volumes/text_header.h"

namespace patchbay::workers {
namespace {

using testing::HasSubstr;

/// A NIfTI-1 of 3 x 4 x 5 (z, y, x) int16 voxels 0, 1, 2, ... with sform 2 x 3 x 4 mm, RAS.
class CraftedNifti {
 public:
  CraftedNifti() : bytes_(352 + 2 * 60) {
    Put<std::int32_t>(0, 348);
    const std::int16_t dim[8] = {3, 5, 4, 3, 1, 1, 1, 1};
    for (std::size_t i = 0; i < 8; ++i) Put<std::int16_t>(40 + 2 * i, dim[i]);
    Put<std::int16_t>(70, 4);
    Put<std::int16_t>(72, 16);
    Put<float>(108, 352);
    Put<std::uint8_t>(123, 2);
    Put<std::int16_t>(254, 1);
    SetSform({4, 0, 0, -10, 0, 3, 0, -20, 0, 0, 2, 30});
    std::memcpy(bytes_.data() + 344, "n+1", 4);
    for (std::int16_t i = 0; i < 60; ++i)
      Put<std::int16_t>(352 + 2 * static_cast<std::size_t>(i), i);
  }
  template <typename T>
  CraftedNifti& Put(std::size_t at, T value) {
    std::memcpy(bytes_.data() + at, &value, sizeof(T));
    return *this;
  }
  CraftedNifti& SetSform(const std::array<float, 12>& rows) {
    for (std::size_t i = 0; i < 12; ++i) Put<float>(280 + 4 * i, rows[i]);
    return *this;
  }
  /// Turns the bytes of each field that is read, and of each voxel.
  CraftedNifti& Swap() {
    struct Run {
      std::size_t at, bytes, count;
    };
    for (const Run& run : {Run{0, 4, 1}, Run{40, 2, 8}, Run{70, 2, 2}, Run{76, 4, 8},
                           Run{108, 4, 3}, Run{252, 2, 2}, Run{256, 4, 18}, Run{352, 2, 60}}) {
      for (std::size_t i = 0; i < run.count; ++i) {
        char* field = bytes_.data() + run.at + i * run.bytes;
        std::reverse(field, field + run.bytes);
      }
    }
    return *this;
  }
  CraftedNifti& Cut(std::size_t size) {
    bytes_.resize(size);
    return *this;
  }
  std::string Write(const std::string& path) const {
    std::ofstream(path, std::ios::binary)
        .write(bytes_.data(), static_cast<std::streamsize>(bytes_.size()));
    return path;
  }

 private:
  std::vector<char> bytes_;
};

TEST(CraftedNifti, RasBecomesLpsAndVoxelsKeepTheirPlaces) {
  TemporaryFolder folder;
  const auto volume = ReadCanonical(CraftedNifti().Write(folder.File("a.nii")));
  ASSERT_TRUE(volume.ok()) << volume.status();
  EXPECT_EQ(volume->size, Extent(3, 4, 5));
  // x to the right and y to anterior are both turned round.
  EXPECT_EQ(ValueOf(*volume, 0), 19);
  EXPECT_EQ(volume->affine.x.x, 4);
  EXPECT_EQ(volume->affine.origin.x, 10 - 4 * 4);
  EXPECT_EQ(RasOf(volume->affine)[0][0], -4);
  EXPECT_EQ(RasOf(volume->affine)[0][3], -10 + 4 * 4);
}

TEST(CraftedNifti, OfTheOtherByteOrderIsTheSameVolume) {
  TemporaryFolder folder;
  const auto here = ReadCanonical(CraftedNifti().Write(folder.File("here.nii")));
  const auto other = ReadCanonical(CraftedNifti().Swap().Write(folder.File("other.nii")));
  ASSERT_TRUE(here.ok()) << here.status();
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(other->voxels, here->voxels);
  EXPECT_EQ(LpsOf(other->affine), LpsOf(here->affine));
}

TEST(CraftedNifti, NoFlippedBitOfACompressedVolumeBecomesAnotherVolume) {
  TemporaryFolder folder;
  const std::string raw =
      *ReadFile(Folders::OfThisUser(), CraftedNifti().Write(folder.File("a.nii")), 1 << 20);
  const std::string path = folder.File("a.nii.gz");
  for (const int level : {0, 9}) {  // stored as it is, where only the checksum sees it; and packed
    const std::string whole = Deflate(raw, 31, level);
    ASSERT_TRUE(WriteFileDurably(Folders::OfThisUser(), path, AsBytes(whole)).ok());
    const auto volume = ReadCanonical(path);
    ASSERT_TRUE(volume.ok()) << volume.status();
    int refused = 0, bits = 0;
    for (std::size_t at = 10; at < whole.size(); ++at) {
      for (int bit = 0; bit < 8; bit += 3) {
        std::string flipped = whole;
        flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
        ASSERT_TRUE(std::ofstream(path, std::ios::binary) << flipped << std::flush);
        const auto other = ReadCanonical(path);
        ASSERT_TRUE(!other.ok() || other->voxels == volume->voxels) << at << " " << bit;
        refused += other.ok() ? 0 : 1;
        ++bits;
      }
    }
    EXPECT_GE(refused, bits - 4) << "padding between blocks alone holds nothing";
    for (std::size_t cut = 1; cut <= 8; ++cut) {
      ASSERT_TRUE(std::ofstream(path, std::ios::binary)
                  << whole.substr(0, whole.size() - cut) << std::flush);
      EXPECT_FALSE(ReadCanonical(path).ok()) << "without the last " << cut << " bytes";
    }
  }
}

TEST(CraftedNifti, SlopesAndUnitsCount) {
  TemporaryFolder folder;
  const auto scaled = ReadCanonical(
      CraftedNifti().Put<float>(112, 2).Put<float>(116, -1024).Write(folder.File("a.nii")));
  ASSERT_TRUE(scaled.ok()) << scaled.status();
  EXPECT_EQ(RangeOf(*scaled).max, 2 * 59 - 1024);
  EXPECT_EQ(scaled->dtype, DType::kInt16);
  const auto half = ReadCanonical(CraftedNifti().Put<float>(112, 0.5f).Write(folder.File("b.nii")));
  ASSERT_TRUE(half.ok());
  EXPECT_EQ(half->dtype, DType::kFloat32);
  const auto metres =
      ReadCanonical(CraftedNifti().Put<std::uint8_t>(123, 1).Write(folder.File("c.nii")));
  ASSERT_TRUE(metres.ok());
  EXPECT_EQ(metres->affine.x.x, 4000);
}

TEST(CraftedNifti, GeometryIsTheSformsThenTheQformsThenTheSides) {
  TemporaryFolder folder;
  // Steps of 4, 3, 2 mm; a third of a turn about (1, 1, 1), which takes x to y, y to z and z to x.
  CraftedNifti file;
  const float pixdim[] = {1, 4, 3, 2}, quaternion[] = {0.5f, 0.5f, 0.5f}, offset[] = {-10, -20, 30};
  for (std::size_t i = 0; i < 4; ++i) file.Put<float>(76 + 4 * i, pixdim[i]);
  for (std::size_t i = 0; i < 3; ++i) file.Put<float>(256 + 4 * i, quaternion[i]);
  for (std::size_t i = 0; i < 3; ++i) file.Put<float>(268 + 4 * i, offset[i]);
  const auto ras = [&](GeometryPolicy policy = GeometryPolicy::kRefuse) {
    ReadVolumeOptions options;
    options.geometry = policy;
    options.is_canonical = false;
    const std::string path = file.Write(folder.File("a.nii"));
    const auto volume =
        ReadVolume(Folders::OfThisUser(), VolumeFormat::kNifti, {path}, options, nullptr);
    EXPECT_TRUE(volume.ok()) << volume.status();
    return volume.ok() ? RasOf(volume->affine) : Matrix4{};
  };
  const auto expect = [](const Matrix4& found, const Matrix4& expected, const char* what) {
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t j = 0; j < 4; ++j) {
        EXPECT_NEAR(found[i][j], expected[i][j], 1e-5) << what << " " << i << " " << j;
      }
    }
  };
  file.Put<std::int16_t>(252, 1);
  expect(ras(), {{{4, 0, 0, -10}, {0, 3, 0, -20}, {0, 0, 2, 30}}}, "sform first");
  file.Put<std::int16_t>(254, 0);
  expect(ras(), {{{0, 0, 2, -10}, {4, 0, 0, -20}, {0, 3, 0, 30}}}, "qform");
  file.Put<float>(76, -1);  // the third axis the other way
  expect(ras(), {{{0, 0, -2, -10}, {4, 0, 0, -20}, {0, 3, 0, 30}}}, "qform, left-handed");
  file.Put<std::int16_t>(252, 0);
  expect(ras(GeometryPolicy::kAccept), {{{4, 0, 0, 0}, {0, 3, 0, 0}, {0, 0, 2, 0}}}, "pixdim");
}

TEST(CraftedNifti, WhatIsWrongIsSaid) {
  TemporaryFolder folder;
  int n = 0;
  const auto refusal = [&](const CraftedNifti& file) {
    const auto volume = ReadCanonical(file.Write(folder.File(StrCat(++n, ".nii"))));
    EXPECT_FALSE(volume.ok()) << n;
    return std::string(volume.status().message());
  };
  EXPECT_THAT(refusal(CraftedNifti().SetSform({4, 1, 0, 0, 0, 3, 0, 0, 0, 0, 2, 0})),
              HasSubstr("skewed"));
  EXPECT_THAT(refusal(CraftedNifti().Put<std::int16_t>(254, 0)),
              HasSubstr("neither sform nor qform"));
  EXPECT_THAT(refusal(CraftedNifti().SetSform({0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 2, 0})),
              HasSubstr("no length"));
  EXPECT_THAT(refusal(CraftedNifti().Cut(400)), HasSubstr("ends before"));
  EXPECT_THAT(refusal(CraftedNifti().Cut(100)), HasSubstr("not a NIfTI"));
  for (const std::size_t bytes : {0u, 1u, 2u}) {
    const std::string path = CraftedNifti().Cut(bytes).Write(folder.File("tiny.nii"));
    const auto header = ReadNiftiHeader(Folders::OfThisUser(), path, GeometryPolicy::kRefuse);
    EXPECT_THAT(std::string(header.status().message()), HasSubstr("not a NIfTI")) << bytes;
  }
  EXPECT_THAT(refusal(CraftedNifti().Put<std::int16_t>(70, 128)), HasSubstr("type 128"));
  EXPECT_THAT(refusal(CraftedNifti().Put<std::int16_t>(40, 4).Put<std::int16_t>(48, 7)),
              HasSubstr("axis 4 of 7"));
  EXPECT_THAT(refusal(CraftedNifti().Put<std::int16_t>(42, 30000).Put<std::int16_t>(44, 30000)),
              HasSubstr("voxels; sides"));
  EXPECT_THAT(refusal(CraftedNifti().Put<std::int16_t>(42, 16000).Put<std::int16_t>(44, 16000)),
              HasSubstr("ends before"));
  EXPECT_THAT(refusal(CraftedNifti().Put<std::int16_t>(42, -5)), HasSubstr("voxels; sides"));
  EXPECT_THAT(refusal(CraftedNifti().Put<float>(108, 3e9f)), HasSubstr("voxels at byte"));
  EXPECT_THAT(refusal(CraftedNifti().Put<float>(112, std::numeric_limits<float>::infinity())),
              HasSubstr("scale"));
  EXPECT_THAT(refusal(CraftedNifti().Put<std::int16_t>(40, 0)), HasSubstr("0 axes"));
  EXPECT_THAT(refusal(CraftedNifti().Put<std::int16_t>(40, 8)), HasSubstr("8 axes"));
  EXPECT_THAT(refusal(CraftedNifti().Put<std::int16_t>(40, 4).Put<std::int16_t>(48, 2)),
              HasSubstr("axis 4 of 2"));
  EXPECT_THAT(refusal(CraftedNifti().SetSform({4, 0.0045f, 0, 0, 0, 3, 0, 0, 0, 0, 2, 0})),
              HasSubstr("skewed"));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(refusal(CraftedNifti().SetSform({4, 0, 0, nan, 0, 3, 0, 0, 0, 0, 2, 0})),
              HasSubstr("not a number"));
  CraftedNifti turned;
  turned.Put<std::int16_t>(254, 0).Put<std::int16_t>(252, 1).Put<float>(256, 0.8f);
  EXPECT_THAT(refusal(turned.Put<float>(260, 0.8f)), HasSubstr("longer than 1"));
  CraftedNifti second;  // NIfTI-2, whose header is longer
  second.Cut(800).Put<std::int32_t>(0, 540).Put<std::int32_t>(4, 0x00322b6e);
  second.Put<std::int16_t>(12, 4).Put<std::int64_t>(168, 539);
  for (std::size_t i = 0; i < 8; ++i) {
    second.Put<std::int64_t>(16 + 8 * i, std::array{3, 5, 4, 3, 1, 1, 1, 1}[i]);
  }
  EXPECT_THAT(refusal(second), HasSubstr("voxels at byte 539"));
}

TEST(CraftedNifti, WhatIsNoRegularFileIsCalledThat) {
  const TemporaryFolder folder;
  ASSERT_EQ(mkfifo(folder.File("pipe.nii").c_str(), 0600), 0);
  for (const std::string& path : {folder.File("pipe.nii"), folder.path()}) {
    const auto opened =
        ByteStream::Open(Folders::OfThisUser(), path, 0, ByteStream::Packing::kNone);
    EXPECT_THAT(std::string(opened.status().message()), HasSubstr("not a regular file")) << path;
  }
}

TEST(CraftedNifti, VoxelsAreInt16WhereverThatHoldsThem) {
  TemporaryFolder folder;
  const auto type_of = [&](const CraftedNifti& file) {
    const auto volume = ReadCanonical(file.Write(folder.File("a.nii")));
    EXPECT_TRUE(volume.ok()) << volume.status();
    return volume.ok() ? volume->dtype : DType::kUint8;
  };
  const auto unsigned_with = [](std::uint16_t value) {
    return CraftedNifti().Put<std::int16_t>(70, 512).Put<std::uint16_t>(352, value);
  };
  EXPECT_EQ(type_of(unsigned_with(32767)), DType::kInt16);
  EXPECT_EQ(type_of(unsigned_with(32768)), DType::kFloat32);
  CraftedNifti zeros;
  for (std::size_t i = 0; i < 60; ++i) zeros.Put<std::int16_t>(352 + 2 * i, 0);
  EXPECT_EQ(type_of(zeros.Put<float>(112, 2)), DType::kInt16);
  EXPECT_EQ(type_of(zeros.Put<float>(112, 2e6f)), DType::kFloat32) << "a scale that is no HU's";
}

TEST(CraftedNifti, ReadingReportsEverySliceAndStopsWhenToldTo) {
  TemporaryFolder folder;
  const std::string path = CraftedNifti().Write(folder.File("a.nii"));
  int slices = 0;
  const auto read = [&](int stop_at) {
    slices = 0;
    return ReadVolume(Folders::OfThisUser(), VolumeFormat::kNifti, {path}, {}, [&]() -> Status {
      return ++slices == stop_at ? absl::CancelledError("told to") : absl::OkStatus();
    });
  };
  EXPECT_TRUE(read(0).ok());
  EXPECT_GE(slices, 3);
  EXPECT_TRUE(absl::IsCancelled(read(2).status()));
  EXPECT_EQ(slices, 2);
}

TEST(CraftedNifti, AFileThatIsTooShortIsSeenByItsHeaderAlone) {
  TemporaryFolder folder;
  const std::string path = CraftedNifti().Cut(352 + 119).Write(folder.File("a.nii"));
  const auto header = ReadNiftiHeader(Folders::OfThisUser(), path, GeometryPolicy::kRefuse);
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_TRUE(absl::IsDataLoss(CheckRawVoxels(Folders::OfThisUser(), path, header->raw)));
  CraftedNifti().Write(path);
  EXPECT_TRUE(CheckRawVoxels(Folders::OfThisUser(), path, header->raw).ok());
}

TEST(CraftedNifti, AFileThatGoesOnFarBeyondItsVoxelsIsRefusedWithBothSizes) {
  TemporaryFolder folder;
  const std::string path = CraftedNifti().Write(folder.File("a.nii"));
  const auto header = ReadNiftiHeader(Folders::OfThisUser(), path, GeometryPolicy::kRefuse);
  ASSERT_TRUE(header.ok()) << header.status();
  std::filesystem::resize_file(path, 1 << 20);
  EXPECT_TRUE(CheckRawVoxels(Folders::OfThisUser(), path, header->raw).ok());
  std::filesystem::resize_file(path, std::uint64_t{1} << 30);  // a hole
  const Status refused = CheckRawVoxels(Folders::OfThisUser(), path, header->raw);
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(MessageOf(refused),
              HasSubstr("the file has 1073741824 bytes (1.0 GiB), its headers"));
}

std::string WriteText(const TemporaryFolder& folder, const std::string& name, std::string header,
                      std::size_t voxels = 60) {
  for (std::size_t i = 0; i < voxels; ++i) header += {static_cast<char>(i), '\0'};
  std::ofstream(folder.File(name), std::ios::binary) << header;
  return folder.File(name);
}

constexpr char kNrrd[] =
    "NRRD0005\n# made here\ntype: short\ndimension: 3\nspace: left-posterior-superior\nsizes: 5 4 "
    "3\n"
    "space directions: (4,0,0) (0,3,0) (0,0,2)\nendian: little\nencoding: raw\n"
    "space origin: (1,2,3)\n\n";
constexpr char kMha[] =
    "ObjectType = Image\nNDims = 3\nBinaryData = True\nBinaryDataByteOrderMSB = False\n"
    "CompressedData = False\nTransformMatrix = 1 0 0 0 1 0 0 0 1\nOffset = 1 2 3\n"
    "ElementSpacing = 4 3 2\nDimSize = 5 4 3\nElementType = MET_SHORT\nElementDataFile = LOCAL\n";

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(FindVolumes, WhatMayNotBeReadHidesNothingElse) {
  TemporaryFolder folder;
  CraftedNifti().Write(folder.File("good.nii"));
  CraftedNifti().Write(folder.File("secret.nii"));
  std::ofstream(folder.File("._good.nii")) << "left by another system";
  std::ofstream(folder.File("notes.txt")) << "no volume";
  const auto may_read = [](const std::string& path) -> StatusOr<std::string> {
    if (path.find("secret") != std::string::npos) return absl::PermissionDeniedError(path);
    return path;
  };
  const auto found = FindVolumes(Folders::OfThisUser(), folder.path(), may_read, nullptr);
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->volumes.size(), 1u);
  EXPECT_EQ(found->volumes[0].name, folder.File("good.nii"));
  EXPECT_EQ(found->unreadable, std::vector<std::string>{folder.File("secret.nii")});
}

TEST(CraftedText, NrrdAndMetaImageAreOneVolume) {
  TemporaryFolder folder;
  const auto nrrd = ReadCanonical(WriteText(folder, "a.nrrd", kNrrd));
  const auto mha = ReadCanonical(WriteText(folder, "a.mha", kMha));
  ASSERT_TRUE(nrrd.ok()) << nrrd.status();
  ASSERT_TRUE(mha.ok()) << mha.status();
  EXPECT_EQ(nrrd->voxels, mha->voxels);
  EXPECT_EQ(LpsOf(nrrd->affine), LpsOf(mha->affine));
  EXPECT_EQ(nrrd->affine.origin.z, 3);
  EXPECT_EQ(ValueOf(*nrrd, 21), 21);
}

TEST(CraftedText, ASegmentOfAnNrrdThatNamesNoLayerIsOnTheFirst) {
  TemporaryFolder folder;
  const auto segmented = [&](const std::string& layer) {
    const std::string own =
        StrCat("(1,2,3)\nSegment0_Name:=tumour\nSegment0_LabelValue:=3\n", layer);
    return ReadSegmentedNrrd(Folders::OfThisUser(),
                             WriteText(folder, "a.seg.nrrd", Replaced(kNrrd, "(1,2,3)\n", own)),
                             nullptr);
  };
  for (const char* layer : {"", "Segment0_Layer:=0\n"}) {
    const auto read = segmented(layer);
    ASSERT_TRUE(read.ok()) << read.status();
    ASSERT_EQ(read->segments.size(), 1u);
    EXPECT_EQ(read->segments[0].name, "tumour");
    EXPECT_EQ(read->segments[0].layer, 0u);
    EXPECT_EQ(read->segments[0].value, 3);
  }
  EXPECT_TRUE(absl::IsInvalidArgument(segmented("Segment0_Layer:=1\n").status()));
}

TEST(CraftedText, WhatIsWrongIsSaid) {
  TemporaryFolder folder;
  int n = 0;
  const auto refusal = [&](const char* text, const std::string& from, const std::string& to) {
    const std::string ending = text == kNrrd ? ".nrrd" : ".mha";
    const auto volume =
        ReadCanonical(WriteText(folder, StrCat(++n, ending), Replaced(text, from, to)));
    EXPECT_FALSE(volume.ok()) << from;
    return std::string(volume.status().message());
  };
  for (const char* skip : {"byte skip: 2", "line skip: 1"}) {
    EXPECT_THAT(refusal(kNrrd, "encoding: raw", StrCat("encoding: raw\n", skip)),
                HasSubstr("is not supported"));
  }
  EXPECT_THAT(refusal(kNrrd, "space origin: (1,2,3)\n\n", ""), HasSubstr("does not end"));
  EXPECT_THAT(refusal(kNrrd, "dimension: 3", "dimension: 4"), HasSubstr("three axes"));
  EXPECT_THAT(refusal(kNrrd, "sizes: 5 4 3", "sizes: 5 4 9999"), HasSubstr("ends before"));
  EXPECT_THAT(refusal(kNrrd, "sizes: 5 4 3", "sizes: 5 4 1e9"), HasSubstr("side of"));
  EXPECT_THAT(refusal(kNrrd, "(4,0,0) (0,3,0)", "(4,1,0) (0,3,0)"),
              HasSubstr("axes are not perpendicular"));
  EXPECT_THAT(refusal(kNrrd, "space: left-posterior-superior", "content: x"),
              HasSubstr("left and right"));
  EXPECT_THAT(refusal(kNrrd, "encoding: raw", "encoding: bzip2"), HasSubstr("is not supported"));
  EXPECT_THAT(refusal(kNrrd, "encoding: raw", "encoding: gzip"), HasSubstr("damaged"));
  EXPECT_THAT(refusal(kNrrd, "endian: little\n", ""), HasSubstr("byte order"));
  EXPECT_THAT(refusal(kMha, "NDims = 3", "NDims = 4"), HasSubstr("three axes"));
  EXPECT_THAT(refusal(kMha, "TransformMatrix = 1 0 0 0 1 0 0 0 1\n", ""),
              HasSubstr("left and right"));
  EXPECT_THAT(refusal(kMha, "MET_SHORT", "MET_LONG_LONG"), HasSubstr("integers of 8 to 32 bits"));
}

/// The header that names a data file instead of holding the voxels, without a blank line at its
/// end.
std::string Detached(const std::string& header, const std::string& named) {
  if (header == kMha) return Replaced(header, "LOCAL", named);
  return Replaced(header, "space origin: (1,2,3)\n\n",
                  StrCat("space origin: (1,2,3)\ndata file: ", named));
}

/// The 60 voxels, `before` bytes in front of them, and `after` behind.
std::string VoxelBytes(std::size_t before = 0, std::size_t after = 0) {
  std::string bytes(before, 'x');
  for (std::size_t i = 0; i < 60; ++i) bytes += {static_cast<char>(i), '\0'};
  return bytes + std::string(after, 'y');
}

class DetachedVoxels : public testing::Test {
 protected:
  void Put(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_.File(name), std::ios::binary) << bytes;
  }
  /// The volume of this header beside "v.raw" of these bytes.
  StatusOr<Volume> Read(const std::string& header, const std::string& bytes) {
    Put("v.raw", bytes);
    Put(header.starts_with("NRRD") ? "v.nhdr" : "v.mhd", header);
    auto volume = ReadCanonical(folder_.path());
    std::filesystem::remove(folder_.File("v.nhdr"));
    std::filesystem::remove(folder_.File("v.mhd"));
    return volume;
  }
  std::string Refusal(const std::string& header, const std::string& bytes = VoxelBytes()) {
    const auto volume = Read(header, bytes);
    EXPECT_FALSE(volume.ok()) << header;
    return std::string(MessageOf(volume.status()));
  }

  TemporaryFolder folder_;
};

TEST_F(DetachedVoxels, AreThoseOfTheAttachedVolume) {
  const TemporaryFolder whole;
  const auto attached = ReadCanonical(WriteText(whole, "a.mha", kMha));
  ASSERT_TRUE(attached.ok()) << attached.status();
  const std::string nrrd = Detached(kNrrd, "v.raw"), meta = Detached(kMha, "v.raw");
  const std::string skipping = Replaced(meta, "NDims", "HeaderSize = 7\nNDims");
  const std::string from_end = Replaced(meta, "NDims", "HeaderSize = -1\nNDims");
  const std::string zipped = Replaced(meta, "CompressedData = False", "CompressedData = True");
  const std::string gzipped = Replaced(nrrd, "encoding: raw", "encoding: gzip");
  const std::string packed = Deflate(VoxelBytes(), 15);
  const std::pair<std::string, std::string> all[] = {
      {nrrd, VoxelBytes()},
      {nrrd + "\nbyte skip: 5\n", VoxelBytes(5)},
      {nrrd + "\nbyte skip: -1\n", VoxelBytes(9)},
      {gzipped, packed},
      {gzipped + "\nbyte skip: 3\n", Deflate(VoxelBytes(3), 15)},
      {meta, VoxelBytes()},
      {skipping, VoxelBytes(7)},
      {from_end, VoxelBytes(11)},
      {zipped, packed}};
  for (const auto& [header, bytes] : all) {
    const auto volume = Read(header, bytes);
    ASSERT_TRUE(volume.ok()) << header << volume.status();
    EXPECT_EQ(volume->voxels, attached->voxels) << header;
    EXPECT_EQ(LpsOf(volume->affine), LpsOf(attached->affine)) << header;
  }
}

TEST_F(DetachedVoxels, OfTheOtherByteOrderAndOfOtherSidesAreTheSame) {
  const std::string meta = Detached(kMha, "v.raw");
  const auto volume = Read(meta, VoxelBytes());
  ASSERT_TRUE(volume.ok()) << volume.status();
  std::string swapped = VoxelBytes();
  for (std::size_t i = 0; i < swapped.size(); i += 2) std::swap(swapped[i], swapped[i + 1]);
  const auto big = Read(Replaced(meta, "ByteOrderMSB = False", "ByteOrderMSB = True"), swapped);
  ASSERT_TRUE(big.ok()) << big.status();
  EXPECT_EQ(big->voxels, volume->voxels);
  // The matrix decides; the letters of AnatomicalOrientation repeat it, and ITK does not read them.
  const auto named =
      Read(Replaced(meta, "NDims", "AnatomicalOrientation = LPS\nNDims"), VoxelBytes());
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_EQ(LpsOf(named->affine), LpsOf(volume->affine));
  // The same voxels in RAS: a mirrored grid, whose canonical axes are flipped back.
  const auto ras =
      Read(Replaced(Detached(kNrrd, "v.raw"), "left-posterior", "right-anterior"), VoxelBytes());
  ASSERT_TRUE(ras.ok()) << ras.status();
  EXPECT_EQ(ras->affine.origin.x, -1 - 4 * 4);
  EXPECT_EQ(ras->affine.origin.y, -2 - 3 * 3);
  EXPECT_EQ(ValueOf(*ras, 0), 19);
}

TEST_F(DetachedVoxels, AsSimpleItkWritesThemLieWhereItSays) {
  // SimpleITK 2.5.7: WriteImage, and TransformIndexToPhysicalPoint((4, 3, 2)), where the voxel
  // is 59.
  constexpr char kMeta[] =
      "ObjectType = Image\nNDims = 3\nBinaryData = True\nBinaryDataByteOrderMSB = False\n"
      "CompressedData = False\nTransformMatrix = -0.29552020666133955 0.95533648912560598 0 0 0 -1 "
      "-0.95533648912560598 -0.29552020666133955 0\nOffset = -12.5 33.25 -400\n"
      "CenterOfRotation = 0 0 0\nAnatomicalOrientation = ASL\nElementSpacing = 0.75 0.5 2.5\n"
      "DimSize = 5 4 3\nElementType = MET_SHORT\nElementDataFile = v.raw\n";
  constexpr char kNhdr[] =
      "NRRD0004\n# Complete NRRD file format specification at:\ntype: short\ndimension: 3\n"
      "space: left-posterior-superior\nsizes: 5 4 3\nspace directions: "
      "(-0.22164015499600465,0.71650236684420454,0) (0,0,-0.5) "
      "(-2.3883412228140148,-0.73880051665334889,0)\nkinds: domain domain domain\nendian: little\n"
      "encoding: raw\nspace origin: (-12.5,33.25,-400)\ndata file: v.raw\n";
  for (const char* header : {kMeta, kNhdr}) {
    const auto volume = Read(header, VoxelBytes());
    ASSERT_TRUE(volume.ok()) << volume.status();
    std::size_t i = 0;
    while (ValueOf(*volume, i) != 59) ++i;
    const Point at = CellAt(volume->size, static_cast<std::int64_t>(i));
    const Affine& a = volume->affine;
    const Vec3 place = a.origin + a.x * static_cast<double>(at.x) +
                       a.y * static_cast<double>(at.y) + a.z * static_cast<double>(at.z);
    EXPECT_NEAR(place.x, -18.16324306561205, 1e-9);
    EXPECT_NEAR(place.y, 34.63840843407012, 1e-9);
    EXPECT_NEAR(place.z, -401.5, 1e-9);
  }
}

TEST_F(DetachedVoxels, AreFilesOfTheVolumeAndLieBesideTheHeader) {
  Put("v.raw", VoxelBytes());
  Put("v.mhd", Detached(kMha, "v.raw"));
  const FoundVolumes found = FoundBelow(folder_.path());
  ASSERT_EQ(found.volumes.size(), 1u);
  EXPECT_EQ(found.volumes[0].files,
            (std::vector<std::string>{folder_.File("v.mhd"), folder_.File("v.raw")}));
  EXPECT_EQ(found.volumes[0].voxel_bytes, 240u);
  std::filesystem::remove(folder_.File("v.mhd"));
  for (const char* text : {kNrrd, kMha}) {
    for (const char* named :
         {"/etc/passwd", "../v.raw", "./v.raw", "sub/../v.raw", "..", "..\\v.raw"}) {
      EXPECT_THAT(Refusal(Detached(text, named)), HasSubstr("names its data file with a folder"));
    }
    for (const char* named : {"LIST", "LIST 2D", "v%03d.raw 1 3 1"}) {
      EXPECT_THAT(Refusal(Detached(text, named)), HasSubstr("voxels in several files"));
    }
    EXPECT_THAT(Refusal(Detached(text, "w.raw")), HasSubstr("is not beside it"));
  }
}

TEST_F(DetachedVoxels, OfAnotherSizeThanTheHeaderSaysAreRefused) {
  const std::string meta = Detached(kMha, "v.raw"), nrrd = Detached(kNrrd, "v.raw");
  const std::string zipped = Replaced(meta, "CompressedData = False", "CompressedData = True");
  for (const std::string& header : {meta, nrrd}) {
    EXPECT_THAT(Refusal(header, VoxelBytes(0, 1)),
                HasSubstr("has 121 bytes, and its header accounts for 120"));
    EXPECT_THAT(Refusal(header, VoxelBytes().substr(1)), HasSubstr("ends before its voxels do"));
  }
  EXPECT_THAT(Refusal(Replaced(meta, "MET_SHORT", "MET_UCHAR")), HasSubstr("accounts for 60"));
  EXPECT_THAT(Refusal(Replaced(meta, "MET_SHORT", "MET_FLOAT")), HasSubstr("ends before"));
  EXPECT_THAT(Refusal(zipped, Deflate(VoxelBytes(0, 1), 15)),
              HasSubstr("more bytes follow its voxels"));
  EXPECT_THAT(Refusal(zipped, Deflate(VoxelBytes(), 15).substr(0, 40)),
              HasSubstr("ends before its voxels do"));
  EXPECT_THAT(Refusal(zipped, VoxelBytes()), HasSubstr("damaged"));
  for (const char* skip : {"-2", "1.5", "x", "1e300"}) {
    EXPECT_THAT(Refusal(Replaced(meta, "NDims", StrCat("HeaderSize = ", skip, "\nNDims"))),
                HasSubstr("not a whole number"));
  }
  EXPECT_THAT(Refusal(Replaced(zipped, "NDims", "HeaderSize = -1\nNDims")),
              HasSubstr("not a whole number"));
  EXPECT_THAT(Refusal(Replaced(meta, "NDims", "HeaderSize = 900\nNDims")),
              HasSubstr("ends before"));
}

/// Explicit little endian, one element: sequences of one item each, `depth` of them, all of which
/// end, and the last of which holds a text.
std::string NestedDicom(std::size_t depth) {
  const auto text = [](unsigned group, unsigned element, const char* vr, std::string value) {
    if (value.size() % 2 != 0) value += '\0';
    std::string bytes;
    for (const unsigned word : {group, element}) {
      bytes += {static_cast<char>(word & 255), static_cast<char>(word >> 8)};
    }
    return bytes + vr + static_cast<char>(value.size()) + '\0' + value;
  };
  const std::string open("\x40\x00\x30\xA7SQ\0\0\xFF\xFF\xFF\xFF\xFE\xFF\x00\xE0\xFF\xFF\xFF\xFF",
                         20);
  const std::string close("\xFE\xFF\x0D\xE0\0\0\0\0\xFE\xFF\xDD\xE0\0\0\0\0", 16);
  const std::string syntax = text(0x0002, 0x0010, "UI", "1.2.840.10008.1.2.1");
  std::string bytes(128, '\0');
  bytes += "DICM";
  bytes += text(0x0002, 0x0000, "UL", {static_cast<char>(syntax.size()), '\0', '\0', '\0'});
  bytes += syntax;
  bytes += text(0x0008, 0x0060, "CS", "CT");
  for (std::size_t i = 0; i < depth; ++i) bytes += open;
  bytes += text(0x0040, 0xA043, "SH", "x");
  for (std::size_t i = 0; i < depth; ++i) bytes += close;
  return bytes;
}

/// A deflated data set of `mebibytes` of private zeros: a kilobyte each.
std::string DeflatedDicom(std::size_t mebibytes) {
  const auto deflated = [](const std::string& raw, int flush) {
    z_stream stream{};
    deflateInit2(&stream, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
    std::string out(raw.size() / 500 + 100, '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(raw.data()));
    stream.avail_in = static_cast<uInt>(raw.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    deflate(&stream, flush);
    out.resize(out.size() - stream.avail_out);
    deflateEnd(&stream);
    return out;
  };
  const std::string modality("\x08\0\x60\0CS\x02\0CT", 10);
  const std::string mebibyte =
      std::string("\x09\0\x10\x10OB\0\0\0\0\x10\0", 12) + std::string(std::size_t{1} << 20, '\0');
  const std::string syntax(
      "\x02\0\x10\0UI\x16\0"
      "1.2.840.10008.1.2.1.99",
      30);
  std::string bytes(128, '\0');
  bytes += "DICM" + std::string("\x02\0\0\0UL\x04\0\x1e\0\0\0", 12) + syntax;
  bytes += deflated(modality, Z_FULL_FLUSH);
  const std::string part = deflated(mebibyte, Z_FULL_FLUSH);
  for (std::size_t i = 0; i < mebibytes; ++i) bytes += part;
  return bytes + deflated("", Z_FINISH);
}

TEST(CraftedDicom, DeflatedDataIsMeasuredBeforeItIsInflated) {
  TemporaryFolder folder;
  const std::string path = folder.File("deflated.dcm");
  std::ofstream(path, std::ios::binary) << DeflatedDicom(3);
  const auto good = ReadDicomFile(Folders::OfThisUser(), path);
  ASSERT_TRUE(good.ok()) << good.status();
  EXPECT_EQ(good->modality, "CT");
  std::ofstream(path, std::ios::binary) << DeflatedDicom(1100);
  EXPECT_LT(std::filesystem::file_size(path), std::size_t{4} << 20);
  EXPECT_THAT(std::string(ReadDicomFile(Folders::OfThisUser(), path).status().message()),
              HasSubstr("inflates to more than 1024 MiB"));
}

TEST(CraftedDicom, AFileThatGoesOnFarBeyondItsPixelsIsRefusedWithBothSizes) {
  TemporaryFolder folder;
  const std::string path = folder.File("a.dcm");
  WrittenFile file;
  file.frames = {WrittenSlice{4, 4, std::vector<std::uint16_t>(16, 1000), {}}};
  ASSERT_TRUE(WriteDicom(Folders::OfThisUser(), path, file).ok());
  std::filesystem::resize_file(path, 1 << 20);
  EXPECT_TRUE(ReadDicomFile(Folders::OfThisUser(), path).ok());
  std::filesystem::resize_file(path, std::uint64_t{1} << 30);  // a hole
  EXPECT_THAT(std::string(ReadDicomFile(Folders::OfThisUser(), path).status().message()),
              HasSubstr("the file has 1073741824 bytes (1.0 GiB), its headers name the first 32 "));
}

TEST(CraftedDicom, SequencesNestedWithoutEndAreRefusedNotFollowed) {
  TemporaryFolder folder;
  const std::string path = folder.File("nested.dcm");
  const auto read = [&](std::size_t depth) {
    std::ofstream(path, std::ios::binary) << NestedDicom(depth);
    return ReadDicomFile(Folders::OfThisUser(), path);
  };
  for (const std::size_t depth : {1, 12, 48}) EXPECT_TRUE(read(depth).ok()) << depth;
  for (const std::size_t depth : {5'000, 200'000}) {
    EXPECT_THAT(std::string(read(depth).status().message()), HasSubstr("nested too deep")) << depth;
  }
}

/// Stored values of 16 bits that stand for no measurement.
struct Padding {
  std::uint16_t value = 0;
  std::optional<std::uint16_t> limit;
};

Status PutPadding(const std::string& path, const Padding& padding, bool is_signed) {
  DcmFileFormat format;
  if (format.loadFile(OFFilename(path.c_str())).bad()) return absl::InternalError(path);
  const auto put = [&](Uint16 element, std::uint16_t value) {
    const DcmTag tag(0x0028, element, DcmVR(is_signed ? EVR_SS : EVR_US));
    DcmItem& item = *format.getDataset();
    return (is_signed ? item.putAndInsertSint16(tag, static_cast<Sint16>(value))
                      : item.putAndInsertUint16(tag, value))
        .good();
  };
  const bool is_put = put(0x0120, padding.value) && (!padding.limit || put(0x0121, *padding.limit));
  const OFCondition saved = format.saveFile(OFFilename(path.c_str()), EXS_LittleEndianExplicit);
  return is_put && saved.good() ? absl::OkStatus() : absl::InternalError(path);
}

/// Two slices of 4 x 4 voxels of 1000, but for the first ones of each.
StatusOr<Volume> Padded(const std::vector<std::uint16_t>& first, double intercept,
                        const Padding& padding, bool is_signed = false) {
  TemporaryFolder folder;
  for (int k = 0; k < 2; ++k) {
    WrittenSlice slice;
    slice.rows = slice.columns = 4;
    slice.values.assign(16, 1000);
    std::copy(first.begin(), first.end(), slice.values.begin());
    slice.position = {0, 0, 2.0 * k};
    slice.intercept = intercept;
    WrittenFile file;
    file.is_signed = is_signed;
    file.frames = {slice};
    file.texts = {{{0x0008, 0x0016}, "1.2.840.10008.5.1.4.1.1.2"},
                  {{0x0008, 0x0060}, "CT"},
                  {{0x0008, 0x0008}, "ORIGINAL\\PRIMARY\\AXIAL"},
                  {{0x0018, 0x0060}, "120"},
                  {{0x0020, 0x000d}, "1.2.3"},
                  {{0x0020, 0x000e}, "1.2.3.4"}};
    const std::string path = folder.File(StrCat(k, ".dcm"));
    PB_RETURN_IF_ERROR(WriteDicom(Folders::OfThisUser(), path, file));
    PB_RETURN_IF_ERROR(PutPadding(path, padding, is_signed));
  }
  return ReadCanonical(folder.path());
}

TEST(CraftedDicom, PaddingIsAValueOrARangeThatInt16MayNotHold) {
  const auto log = [](const Volume& volume) {
    for (const Json& step : volume.log) {
      if (step["step"] == "stored values to HU") return step;
    }
    return Json();
  };
  const auto one = Padded({0, 0, 24, 0}, -1024, {0, {}});
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(one->dtype, DType::kInt16);
  EXPECT_EQ(ValueOf(*one, 0), -1024);  // the value that slope and intercept give it
  EXPECT_EQ(log(*one)["padding_voxels"], 6);
  const auto range = Padded({63536, 63540, 63541, 1000}, -1024, {63536, 63540});
  ASSERT_TRUE(range.ok()) << range.status();
  EXPECT_EQ(range->dtype, DType::kFloat32) << "63541 is no padding, and no int16";
  EXPECT_EQ(log(*range)["padding_voxels"], 4);
  EXPECT_EQ(ValueOf(*range, 2), 63541 - 1024);
  const auto beyond = Padded({63536, 63536, 1000, 0}, -1024, {63536, {}});
  ASSERT_TRUE(beyond.ok()) << beyond.status();
  EXPECT_EQ(beyond->dtype, DType::kInt16);
  EXPECT_EQ(ValueOf(*beyond, 0), -32768);
  EXPECT_EQ(ValueOf(*beyond, 2), -24);
  EXPECT_EQ(log(*beyond)["padding_without_an_int16_value"], 4);
  const auto signed_one = Padded({63536, 1000, 1000, 1000}, 0, {63536, {}}, true);
  ASSERT_TRUE(signed_one.ok()) << signed_one.status();
  EXPECT_EQ(ValueOf(*signed_one, 0), -2000);
  EXPECT_EQ(log(*signed_one)["padding_voxels"], 2);
}

}  // namespace
}  // namespace patchbay::workers
