// NIfTI, NRRD and MetaImage files made here: what they say is read, what they promise is checked.
#include <cstring>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "tests/workers/sources/slide_fixtures.h"
#include "tests/workers/sources/volumes/volume_fixtures.h"

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
  const auto found = FindVolumes(folder.path(), may_read, nullptr);
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
  EXPECT_THAT(refusal(kNrrd, "encoding: raw", "encoding: raw\ndata file: /etc/passwd"),
              HasSubstr("attached"));
  EXPECT_THAT(refusal(kNrrd, "dimension: 3", "dimension: 4"), HasSubstr("three axes"));
  EXPECT_THAT(refusal(kNrrd, "sizes: 5 4 3", "sizes: 5 4 9999"), HasSubstr("ends before"));
  EXPECT_THAT(refusal(kNrrd, "sizes: 5 4 3", "sizes: 5 4 1e9"), HasSubstr("side of"));
  EXPECT_THAT(refusal(kNrrd, "(4,0,0) (0,3,0)", "(4,1,0) (0,3,0)"), HasSubstr("skewed"));
  EXPECT_THAT(refusal(kNrrd, "space: left-posterior-superior", "content: x"),
              HasSubstr("left and right"));
  EXPECT_THAT(refusal(kNrrd, "encoding: raw", "encoding: bzip2"),
              HasSubstr("neither raw nor gzip"));
  EXPECT_THAT(refusal(kNrrd, "encoding: raw", "encoding: gzip"), HasSubstr("damaged"));
  EXPECT_THAT(refusal(kNrrd, "endian: little\n", ""), HasSubstr("byte order"));
  EXPECT_THAT(refusal(kMha, "LOCAL", "/etc/passwd"), HasSubstr("same file"));
  EXPECT_THAT(refusal(kMha, "NDims = 3", "NDims = 4"), HasSubstr("three axes"));
  EXPECT_THAT(refusal(kMha, "TransformMatrix = 1 0 0 0 1 0 0 0 1\n", ""),
              HasSubstr("left and right"));
  EXPECT_THAT(refusal(kMha, "MET_SHORT", "MET_LONG_LONG"), HasSubstr("type that is not read"));
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
  const auto good = ReadDicomFile(path);
  ASSERT_TRUE(good.ok()) << good.status();
  EXPECT_EQ(good->modality, "CT");
  std::ofstream(path, std::ios::binary) << DeflatedDicom(1100);
  EXPECT_LT(std::filesystem::file_size(path), std::size_t{4} << 20);
  EXPECT_THAT(std::string(ReadDicomFile(path).status().message()),
              HasSubstr("inflates to more than 1024 MiB"));
}

TEST(CraftedDicom, SequencesNestedWithoutEndAreRefusedNotFollowed) {
  TemporaryFolder folder;
  const std::string path = folder.File("nested.dcm");
  const auto read = [&](std::size_t depth) {
    std::ofstream(path, std::ios::binary) << NestedDicom(depth);
    return ReadDicomFile(path);
  };
  for (const std::size_t depth : {1, 12, 48}) EXPECT_TRUE(read(depth).ok()) << depth;
  for (const std::size_t depth : {5'000, 200'000}) {
    EXPECT_THAT(std::string(read(depth).status().message()), HasSubstr("nested too deep")) << depth;
  }
}

}  // namespace
}  // namespace patchbay::workers
