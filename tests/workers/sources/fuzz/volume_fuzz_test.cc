// Seeded damage to good volumes, of every format and transfer syntax that is written here, and of
// the public ones where they are.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "runtime/os/file.h"
#include "tests/workers/sources/fuzz/damage.h"
#include "tests/workers/sources/slide_fixtures.h"
#include "tests/workers/sources/volumes/volume_fixtures.h"
#include "workers/sources/volumes/dicom_writer.h"
#include "workers/sources/volumes/mask_file.h"
#include "workers/sources/volumes/structure_set.h"

namespace patchbay::workers {
namespace {

struct GoodVolume {
  std::string ending, bytes;
};

constexpr std::size_t kMostBytes = 1 << 20;

WrittenFile EnhancedCt(const std::string& syntax, int frames) {
  WrittenFile file;
  file.transfer_syntax = syntax;
  file.texts = {{{0x0008, 0x0016}, "1.2.840.10008.5.1.4.1.1.2.1"},
                {{0x0008, 0x0060}, "CT"},
                {{0x0018, 0x0060}, "120"},
                {{0x0020, 0x000e}, "1.2.3"}};
  for (int i = 0; i < frames; ++i) {
    WrittenSlice slice;
    slice.rows = slice.columns = 16;
    slice.position = {0, 0, 2.0 * i};
    for (int v = 0; v < 256; ++v) slice.values.push_back(static_cast<std::uint16_t>(v * 7 + i));
    file.frames.push_back(slice);
  }
  return file;
}

void AddFile(const std::string& path, const std::string& ending, std::vector<GoodVolume>& good) {
  auto bytes = ReadFile(Folders::OfThisUser(), path, kMostBytes);
  if (bytes.ok()) good.push_back({ending, *std::move(bytes)});
}

std::vector<GoodVolume> GoodVolumes(const TemporaryFolder& folder) {
  std::vector<GoodVolume> good;
  for (const char* syntax :
       {"1.2.840.10008.1.2", "1.2.840.10008.1.2.1", "1.2.840.10008.1.2.2", "1.2.840.10008.1.2.1.99",
        "1.2.840.10008.1.2.4.70", "1.2.840.10008.1.2.4.80", "1.2.840.10008.1.2.5"}) {
    const std::string path = folder.File(StrCat(syntax, ".dcm"));
    EXPECT_TRUE(WriteDicom(Folders::OfThisUser(), path, EnhancedCt(syntax, 4)).ok()) << syntax;
    AddFile(path, ".dcm", good);
  }
  const Extent size{4, 5, 6};
  const std::vector<std::uint8_t> mask(120, 3);
  EXPECT_TRUE(
      WriteNiftiMask(Folders::OfThisUser(), folder.File("a.nii"), {size, Affine{}, mask}).ok());
  AddFile(folder.File("a.nii"), ".nii", good);
  const std::string voxels(240, '\1');
  good.push_back({".nrrd", StrCat("NRRD0005\ntype: short\ndimension: 3\nspace: left-posterior-",
                                  "superior\nsizes: 6 5 4\nspace directions: (1,0,0) (0,1,0) ",
                                  "(0,0,1)\nendian: little\nencoding: raw\nspace origin: (1,2,3)\n",
                                  "\n", voxels)});
  good.push_back({".mha", StrCat("ObjectType = Image\nNDims = 3\nBinaryData = True\n",
                                 "BinaryDataByteOrderMSB = False\nCompressedData = False\n",
                                 "TransformMatrix = 1 0 0 0 1 0 0 0 1\nOffset = 1 2 3\n",
                                 "ElementSpacing = 4 3 2\nDimSize = 6 5 4\nElementType = ",
                                 "MET_SHORT\nElementDataFile = LOCAL\n", voxels)});
  if (std::getenv("PATCHBAY_TEST_DATA") == nullptr) return good;
  std::error_code error;
  const std::string public_files = Data("ct/transfer-syntaxes");
  for (std::filesystem::directory_iterator it(public_files, error), end; !error && it != end;
       it.increment(error)) {
    if (it->path().extension() == ".dcm") AddFile(it->path(), ".dcm", good);
  }
  return good;
}

/// An error is a status about the file, never Internal.
void ReadAll(const std::string& path) {
  const auto found = FindVolumes(Folders::OfThisUser(), path, AnyPath, nullptr);
  ASSERT_TRUE(found.ok()) << found.status();
  for (const FoundVolume& one : found->volumes) {
    ReadVolumeOptions options;
    options.geometry = GeometryPolicy::kAccept;
    const auto volume = ReadVolume(Folders::OfThisUser(), one.format, one.files, options, nullptr);
    if (volume.ok()) {
      EXPECT_EQ(volume->voxels.size(),
                static_cast<std::size_t>(volume->size.Pixels()) * SizeOf(volume->dtype));
    } else {
      ASSERT_NE(volume.status().code(), absl::StatusCode::kInternal) << volume.status();
    }
  }
}

void Write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

TEST(VolumeFuzz, GoodVolumesAreRead) {
  TemporaryFolder folder;
  for (const GoodVolume& good : GoodVolumes(folder)) {
    if (good.ending == ".dcm" && good.bytes.size() > 20'000) continue;  // single slices
    const std::string path = folder.File("good" + good.ending);
    Write(path, good.bytes);
    const auto volume = ReadCanonical(path, GeometryPolicy::kAccept);
    EXPECT_TRUE(volume.ok()) << good.ending << volume.status();
  }
}

TEST(VolumeFuzz, DamagedFilesNeverBreakTheReaders) {
  const std::uint64_t seed = FromEnvironment("PATCHBAY_FUZZ_SEED", 20240607);
  const std::uint64_t runs = FromEnvironment("PATCHBAY_FUZZ_RUNS", 1500);
  TemporaryFolder folder;
  const std::vector<GoodVolume> all = GoodVolumes(folder);
  for (std::uint64_t run = 0; run < runs; ++run) {
    SCOPED_TRACE(StrCat("seed ", seed, " run ", run));
    Dice dice(seed + 3, run);
    const GoodVolume& good = all[dice.Below(all.size())];
    std::string bytes = good.bytes;
    const std::size_t header = std::min<std::size_t>(bytes.size(), 2500);
    Damage(bytes, dice, 0, dice.Below(4) == 0 ? bytes.size() : header);
    const std::string path = folder.File("damaged" + good.ending);
    Write(path, bytes);
    ReadAll(path);
    if (testing::Test::HasFatalFailure()) return;
  }
}

/// An element of explicit little endian.
std::string Element(unsigned group, unsigned element, const char* vr, std::string value) {
  if (value.size() % 2 != 0) value += vr == std::string_view("UI") ? '\0' : ' ';
  const auto word = [](std::size_t n, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i) text += static_cast<char>(n >> (8 * i) & 0xFF);
    return text;
  };
  const bool is_long = vr == std::string_view("SQ");
  return word(group, 2) + word(element, 2) + vr +
         (is_long ? word(0, 2) + word(value.size(), 4) : word(value.size(), 2)) + value;
}

std::string Item(const std::string& value) {
  std::string text = Element(0xfffe, 0xe000, "SQ", value);
  return text.erase(4, 4);  // an item has no VR
}

/// Three structures on slices 2 mm apart: a square with a hole, a point and an open line.
std::string Structures() {
  std::string names, drawn;
  const char* const kinds[] = {"CLOSED_PLANAR", "POINT", "OPEN_PLANAR"};
  for (int i = 0; i < 3; ++i) {
    const std::string number = std::to_string(i + 1);
    names +=
        Item(Element(0x3006, 0x0022, "IS", number) + Element(0x3006, 0x0026, "LO", "s" + number));
    std::string contours;
    for (const std::string z : {"0", "2", "4"}) {
      for (const int side : {1, 3}) {
        const std::string low = std::to_string(5 - side), high = std::to_string(5 + side);
        std::string points;
        for (const std::string& at :
             {low + "\\" + low, high + "\\" + low, high + "\\" + high, low + "\\" + high}) {
          points += (points.empty() ? "" : "\\") + at + "\\" + z;
        }
        contours +=
            Item(Element(0x3006, 0x0042, "CS", kinds[i]) + Element(0x3006, 0x0046, "IS", "4") +
                 Element(0x3006, 0x0050, "DS", points));
      }
    }
    drawn += Item(Element(0x3006, 0x0040, "SQ", contours) + Element(0x3006, 0x0084, "IS", number));
  }
  const std::string meta = Element(0x0002, 0x0010, "UI", "1.2.840.10008.1.2.1");
  return std::string(128, '\0') + "DICM" + meta +
         Element(0x0008, 0x0016, "UI", "1.2.840.10008.5.1.4.1.1.481.3") +
         Element(0x0008, 0x0060, "CS", "RTSTRUCT") + Element(0x0020, 0x0052, "UI", "1.2.9") +
         Element(0x3006, 0x0020, "SQ", names) + Element(0x3006, 0x0039, "SQ", drawn);
}

StatusOr<LabelVolume> ReadStructures(const std::string& path) {
  Affine affine;
  affine.z = {0, 0, 2};
  return ReadStructureSet(Folders::OfThisUser(), path, {3, 10, 10}, affine, nullptr);
}

TEST(VolumeFuzz, DamagedStructureSetsNeverBreakTheReader) {
  const std::uint64_t seed = FromEnvironment("PATCHBAY_FUZZ_SEED", 20240608);
  const std::uint64_t runs = FromEnvironment("PATCHBAY_FUZZ_RUNS", 500);
  TemporaryFolder folder;
  const std::string path = folder.File("structures.dcm"), good = Structures();
  Write(path, good);
  const auto read = ReadStructures(path);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->left_out,
            (std::map<std::string, std::uint64_t>{{"OPEN_PLANAR", 6}, {"POINT", 6}}));
  std::uint64_t taken = 0;
  for (std::uint64_t run = 0; run < runs; ++run) {
    SCOPED_TRACE(StrCat("seed ", seed, " run ", run));
    Dice dice(seed, run);
    std::string bytes = good;
    Damage(bytes, dice, 132, bytes.size());
    Write(path, bytes);
    if (!IsStructureSet(Folders::OfThisUser(), path)) continue;
    const auto damaged = ReadStructures(path);
    if (!damaged.ok()) {
      ASSERT_NE(damaged.status().code(), absl::StatusCode::kInternal) << damaged.status();
      continue;
    }
    ++taken;
    constexpr std::int64_t kMostPainted = 1 << 20;
    if (damaged->size.Pixels() > kMostPainted) continue;
    std::vector<std::uint8_t> voxels(static_cast<std::size_t>(damaged->size.Pixels()));
    for (std::size_t segment = 0; segment < damaged->segments.size(); ++segment) {
      ASSERT_TRUE(damaged->paint(segment, 1, voxels).ok());
    }
  }
  EXPECT_GT(taken, runs / 20);  // the damage gets behind the first checks
}

/// Files that broke a reader once, or could: pieces that a random change rarely hits.
TEST(VolumeFuzz, FilesThatBrokeReadersAreRefused) {
  TemporaryFolder folder;
  const std::string path = folder.File("bad.dcm");
  WrittenFile file = EnhancedCt("1.2.840.10008.1.2.1", 4);
  for (const auto& [element, text] :
       std::vector<std::pair<std::pair<unsigned, unsigned>, std::string>>{
           {{0x0028, 0x0008}, "2147483647"},  // frames that are not there
           {{0x0028, 0x0008}, "-1"},
           {{0x0020, 0x0032}, "1e308\\1e308\\1e308"},  // places whose distance overflows
           {{0x0028, 0x0030}, "1e-300\\1e-300"},
           {{0x0028, 0x1053}, "1e300"},  // values that no type holds
           {{0x0020, 0x0037}, "0\\0\\0\\0\\0\\0"}}) {
    file.texts[element] = text;
    EXPECT_TRUE(WriteDicom(Folders::OfThisUser(), path, file).ok());
    ReadAll(path);
    file.texts.erase(element);
  }
  // Nothing but a preamble, or the head of a compressed file, and noise.
  Write(path, std::string(128, '\0') + "DICM" + std::string(4096, '\xFF'));
  ReadAll(path);
  Write(folder.File("bad.nii.gz"),
        std::string("\x1f\x8b\x08\0\0\0\0\0", 8) + std::string(600, '\xAA'));
  ReadAll(folder.File("bad.nii.gz"));
}

}  // namespace
}  // namespace patchbay::workers
