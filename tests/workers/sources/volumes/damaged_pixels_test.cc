// Compressed DICOM frames made here, then damaged: detectable damage is refused and never read as
// data.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>

#include <dcmtk/config/osconfig.h>
#include <dcmtk/dcmdata/dcpixseq.h>
#include <dcmtk/dcmdata/dcpxitem.h>
#include <dcmtk/dcmdata/dcrleerg.h>
#include <dcmtk/dcmdata/dcrlerp.h>
#include <dcmtk/dcmdata/dctk.h>
#include <dcmtk/dcmjpeg/djencode.h>
#include <dcmtk/dcmjpeg/djrplol.h>
#include <dcmtk/dcmjpeg/djrploss.h>
#include <dcmtk/dcmjpls/djencode.h>
#include <dcmtk/dcmjpls/djrparam.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <jpeglib.h>

#include "tests/workers/sources/jpeg2000_writer.h"
#include "tests/workers/sources/slide_fixtures.h"
#include "tests/workers/sources/volumes/volume_fixtures.h"
#include "workers/sources/volumes/dicom_library.h"
#include "workers/sources/volumes/dicom_pixels.h"

namespace patchbay::workers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kSide = 24;

using Values = std::vector<std::int32_t>;

/// A bright disc with noise, in the dark, of up to 12 bits.
std::vector<Uint16> Discs(int frames, int bits) {
  std::mt19937 random(3);
  std::vector<Uint16> values;
  for (int k = 0; k < frames; ++k) {
    for (int i = 0; i < kSide * kSide; ++i) {
      const int x = i % kSide - 12 + k, y = i / kSide - 12;
      const int value = x * x + y * y < 90 ? 1000 + static_cast<int>(random() % 40) : 24;
      values.push_back(static_cast<Uint16>(bits == 8 ? value / 8 : value));
    }
  }
  return values;
}

/// A file of grey frames, as DCMTK compresses them, whose fragments are then changed.
class CompressedDicom {
 public:
  explicit CompressedDicom(E_TransferSyntax syntax, int frames = 1) : syntax_(syntax) {
    StartEncoders();
    const int bits = syntax == EXS_JPEGProcess1 ? 8 : 12;
    DcmDataset& item = *format_.getDataset();
    Put(0x0008, 0x0016, "1.2.840.10008.5.1.4.1.1.2");
    Put(0x0008, 0x0060, "CT");
    Put(0x0028, 0x0004, "MONOCHROME2");
    if (frames > 1) Put(0x0028, 0x0008, std::to_string(frames));
    PutWord(0x0002, 1);
    for (const unsigned side : {0x0010u, 0x0011u}) PutWord(side, kSide);
    PutWord(0x0100, bits == 8 ? 8 : 16);
    PutWord(0x0101, bits);
    PutWord(0x0102, bits - 1);
    PutWord(0x0103, 0);
    const auto values = Discs(frames, bits);
    const std::vector<Uint8> bytes(values.begin(), values.end());
    if (bits == 8) item.putAndInsertUint8Array(DCM_PixelData, bytes.data(), bytes.size());
    if (bits != 8) item.putAndInsertUint16Array(DCM_PixelData, values.data(), values.size());
    if (DcmXfer(syntax).isEncapsulated() && syntax != EXS_JPEG2000LosslessOnly) Compress();
  }

  /// The items of the encapsulated pixel data: the offset table, then the fragments.
  std::vector<std::string> items;

  CompressedDicom& PutWord(unsigned element, int value) {
    format_.getDataset()->putAndInsertUint16(DcmTag(0x0028, static_cast<Uint16>(element)),
                                             static_cast<Uint16>(value));
    return *this;
  }

  std::string Write(const TemporaryFolder& folder) {
    if (DcmXfer(syntax_).isEncapsulated()) PutItems();
    const std::string path = folder.File("a.dcm");
    EXPECT_TRUE(format_.saveFile(OFFilename(path.c_str()), syntax_).good());
    return path;
  }

  StatusOr<Values> Read() {
    const TemporaryFolder folder;
    return StoredValues(Write(folder));
  }
  /// With the one fragment as `change` leaves it: why it is refused; "" where it is not.
  std::string Refusal(const std::function<void(std::string&)>& change) {
    const std::vector<std::string> whole = items;
    change(items.back());
    const auto read = Read();
    items = whole;
    return read.ok() ? "" : std::string(read.status().message());
  }

 private:
  static void StartEncoders() {
    StartDicomLibrary();
    DJEncoderRegistration::registerCodecs();
    DJLSEncoderRegistration::registerCodecs();
    DcmRLEEncoderRegistration::registerCodecs();
  }

  void Put(unsigned group, unsigned element, const std::string& text) {
    const DcmTag tag(static_cast<Uint16>(group), static_cast<Uint16>(element));
    ASSERT_TRUE(
        format_.getDataset()->putAndInsertOFStringArray(tag, OFString(text.c_str())).good());
  }

  void Compress() {
    const DJ_RPLossless lossless(1, 0);
    const DJ_RPLossy lossy(90);
    const DJLSRepresentationParameter jpeg_ls(0, OFTrue);
    const DcmRLERepresentationParameter rle;
    const DcmRepresentationParameter* parameter = &lossy;
    if (syntax_ == EXS_JPEGProcess14SV1) parameter = &lossless;
    if (syntax_ == EXS_JPEGLSLossless) parameter = &jpeg_ls;
    if (syntax_ == EXS_RLELossless) parameter = &rle;

    ASSERT_TRUE(format_.getDataset()->chooseRepresentation(syntax_, parameter).good());
    DcmElement* pixels = nullptr;
    DcmPixelSequence* sequence = nullptr;
    ASSERT_TRUE(format_.getDataset()->findAndGetElement(DCM_PixelData, pixels).good());
    ASSERT_TRUE(dynamic_cast<DcmPixelData&>(*pixels)
                    .getEncapsulatedRepresentation(syntax_, parameter, sequence)
                    .good());
    for (unsigned long i = 0; i < sequence->card(); ++i) {
      DcmPixelItem* item = nullptr;
      Uint8* bytes = nullptr;
      ASSERT_TRUE(sequence->getItem(item, i).good() && item->getUint8Array(bytes).good());
      items.emplace_back(reinterpret_cast<const char*>(bytes), item->getLength());
    }
  }

  void PutItems() {
    auto* sequence = new DcmPixelSequence(DcmTag(DCM_PixelData, EVR_OB));
    for (const std::string& bytes : items) {
      auto* item = new DcmPixelItem(DcmTag(DCM_PixelItemTag, EVR_OB));
      item->putUint8Array(reinterpret_cast<const Uint8*>(bytes.data()), bytes.size());
      sequence->insert(item);
    }
    auto* pixels = new DcmPixelData(DCM_PixelData);
    pixels->putOriginalRepresentation(syntax_, nullptr, sequence);
    format_.getDataset()->insert(pixels, true);
  }

  const E_TransferSyntax syntax_;
  DcmFileFormat format_;
};

struct FlipCounts {
  int refused = 0, same = 0, changed = 0;
};

/// Every seventh bit of the fragment, one at a time.
FlipCounts FlipBits(CompressedDicom& file) {
  FlipCounts counts;
  const auto whole = file.Read();
  EXPECT_TRUE(whole.ok()) << whole.status();
  const std::string good = file.items.back();
  for (std::size_t bit = 0; whole.ok() && bit < 8 * good.size(); bit += 7) {
    file.items.back()[bit / 8] = static_cast<char>(good[bit / 8] ^ (1 << bit % 8));
    const auto read = file.Read();
    ++(!read.ok() ? counts.refused : *read == *whole ? counts.same : counts.changed);
    file.items.back() = good;
  }
  return counts;
}

std::size_t Find(const std::string& bytes, const std::string& what) {
  const std::size_t at = bytes.find(what);
  EXPECT_NE(at, std::string::npos);
  return at;
}

TEST(DamagedPixels, FlippedBitsOfCompressedFramesAreRefusedWhereTheirCodesShowThem) {
  struct Case {
    E_TransferSyntax syntax;
    double refused;  ///< part of the flips, at least
  };
  for (const Case& c : {Case{EXS_JPEGProcess1, 0.4}, Case{EXS_JPEGProcess2_4, 0.3},
                        Case{EXS_JPEGProcess10_12, 0.35}, Case{EXS_JPEGProcess14SV1, 0.4},
                        Case{EXS_JPEGLSLossless, 0.9}, Case{EXS_RLELossless, 0.25}}) {
    CompressedDicom file(c.syntax);
    const FlipCounts counts = FlipBits(file);
    const int flips = counts.refused + counts.same + counts.changed;
    RecordProperty(DcmXfer(c.syntax).getXferID(), StrCat(counts.refused, " of ", flips));
    EXPECT_GE(counts.refused, c.refused * flips) << DcmXfer(c.syntax).getXferName();
  }
}

TEST(DamagedPixels, FramesCutShortAreRefusedAndZerosBehindThemAreNot) {
  for (const E_TransferSyntax syntax :
       {EXS_JPEGProcess1, EXS_JPEGProcess2_4, EXS_JPEGProcess10_12, EXS_JPEGProcess14SV1,
        EXS_JPEGLSLossless, EXS_RLELossless}) {
    CompressedDicom file(syntax);
    const char* name = DcmXfer(syntax).getXferName();
    for (const std::size_t cut : {4, 8, 60, 200}) {
      EXPECT_NE(file.Refusal([&](std::string& f) { f.resize(f.size() - cut); }), "")
          << name << " without its last " << cut << " bytes";
    }
    const std::size_t end = file.items.back().rfind("\xff\xd9");
    if (end != std::string::npos) file.items.back().resize(end + 2);
    EXPECT_EQ(file.Refusal([](std::string& f) { f += std::string(6, '\0'); }), "") << name;
    EXPECT_NE(file.Refusal([](std::string& f) { f += "junk"; }), "") << name;
  }
}

TEST(DamagedPixels, AJpegThatIsNotWhatTheDataSetSaysIsRefused) {
  CompressedDicom file(EXS_JPEGProcess14SV1);
  const std::string& image = file.items.back();
  const std::size_t frame = Find(image, "\xff\xc3"), scan = Find(image, "\xff\xda");
  const auto with = [&](std::size_t at, char byte) {
    return file.Refusal([&](std::string& f) { f[at] = byte; });
  };
  EXPECT_EQ(file.Refusal([](std::string&) {}), "");
  EXPECT_THAT(with(frame + 6, 23), HasSubstr("24 x 23 pixels"));
  EXPECT_THAT(with(frame + 8, 32), HasSubstr("32 x 24 pixels"));
  EXPECT_THAT(with(frame + 4, 8), HasSubstr("samples of 8 bits"));
  EXPECT_THAT(with(frame + 4, 'x'), HasSubstr("samples of 120 bits"));
  EXPECT_THAT(with(frame + 4, 12), HasSubstr("values of more than 12 bits"));
  EXPECT_THAT(with(frame + 1, '\xc1'), HasSubstr("its transfer syntax does not allow"));
  EXPECT_THAT(with(scan + 7, 2), HasSubstr("its transfer syntax does not allow"))
      << "another predictor";
  EXPECT_THAT(with(0, 'x'), HasSubstr("does not begin like"));
  const auto cut_behind_a_segment = [&](std::string& f) {
    f.resize(scan);
    if (f.size() % 2 != 0) f.insert(2, 1, '\xff');  // frames have even lengths
  };
  EXPECT_THAT(file.Refusal(cut_behind_a_segment), HasSubstr("cut short"));
  EXPECT_THAT(with(frame + 3, 12), HasSubstr("another length than it states"));
  EXPECT_THAT(file.Refusal([&](std::string& f) { f.insert(frame, f, frame, 13); }),
              HasSubstr("two frame headers"));
}

TEST(DamagedPixels, CodesOfAJpegEndWithTheImageToTheBit) {
  for (const E_TransferSyntax syntax :
       {EXS_JPEGProcess1, EXS_JPEGProcess2_4, EXS_JPEGProcess14SV1}) {
    CompressedDicom file(syntax);
    std::size_t end = file.items.back().rfind("\xff\xd9");
    while (file.items.back()[end - 1] == '\xff') --end;  // may be there any number of times
    EXPECT_THAT(file.Refusal([&](std::string& f) { f.insert(end, 1, '\x15'); }),
                HasSubstr("codes after the end"))
        << "a byte more";
    EXPECT_THAT(file.Refusal([&](std::string& f) { f.erase(end - 1, 1); }),
                testing::AnyOf(HasSubstr("impossible codes"), HasSubstr("codes end before")))
        << "a byte less";
    EXPECT_THAT(file.Refusal([&](std::string& f) { f.insert(end, "\xff\xd0"); }),
                HasSubstr("codes after the end"))
        << "a restart of nothing";
  }
}

/// 8-bit grey, with a restart marker after every row of blocks.
std::string EncodeWithRestarts(const std::vector<Uint16>& values) {
  jpeg_compress_struct encoder;
  jpeg_error_mgr errors;
  encoder.err = jpeg_std_error(&errors);
  jpeg_create_compress(&encoder);
  unsigned char* out = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&encoder, &out, &size);
  encoder.image_width = encoder.image_height = kSide;
  encoder.input_components = 1;
  encoder.in_color_space = JCS_GRAYSCALE;
  jpeg_set_defaults(&encoder);
  jpeg_set_quality(&encoder, 100, TRUE);
  encoder.restart_in_rows = 1;
  jpeg_start_compress(&encoder, TRUE);
  std::vector<JSAMPLE> samples(values.begin(), values.end());
  for (JSAMPROW row = samples.data(); encoder.next_scanline < kSide; row += kSide) {
    jpeg_write_scanlines(&encoder, &row, 1);
  }
  jpeg_finish_compress(&encoder);
  jpeg_destroy_compress(&encoder);
  std::string bytes(reinterpret_cast<const char*>(out), size);
  std::free(out);
  return bytes;
}

TEST(DamagedPixels, RestartMarkersOfAJpegFollowOneAnother) {
  CompressedDicom file(EXS_JPEGProcess1);
  file.items.back() = EncodeWithRestarts(Discs(1, 8));
  EXPECT_EQ(file.Refusal([](std::string&) {}), "");
  const std::size_t first = Find(file.items.back(), "\xff\xd0");
  const std::size_t second = Find(file.items.back(), "\xff\xd1");
  EXPECT_THAT(file.Refusal([&](std::string& f) { f[first + 1] = '\xd1'; }),
              HasSubstr("a restart marker is missing"));
  EXPECT_THAT(file.Refusal([&](std::string& f) { f.erase(second, 2); }),
              HasSubstr("after the end of the image"));
  EXPECT_NE(file.Refusal([&](std::string& f) { f.erase(first, second - first); }), "");
}

TEST(DamagedPixels, ABlockDarkerThanBlackIsNoBlockOfAJpeg) {
  CompressedDicom file(EXS_JPEGProcess1);
  file.items.back() = EncodeWithRestarts(std::vector<Uint16>(std::size_t{kSide} * kSide));
  EXPECT_EQ(file.Refusal([](std::string&) {}), "");
  // 8 bits and a stuffed byte, the last bit of a code of 9; then its number of 11 bits: -1024.
  const std::size_t codes = Find(file.items.back(), "\xff\xda") + 10;
  ASSERT_EQ(file.items.back().substr(codes, 3), std::string("\xff\x00\x3f", 3));
  EXPECT_THAT(file.Refusal([&](std::string& f) { f[codes + 2] = 0x1f; }),
              HasSubstr("impossible codes at block 0"));
}

TEST(DamagedPixels, WhatTheDecoderOfAProgressiveJpegWarnsAboutIsRefused) {
  CompressedDicom file(EXS_JPEGProcess10_12);
  const std::size_t end = file.items.back().rfind("\xff\xd9");
  EXPECT_THAT(file.Refusal([&](std::string& f) { f.erase(end - 2, 2); }),
              HasSubstr("corrupt codes"));
}

TEST(DamagedPixels, ALossyImageIsNotTakenForALosslessOne) {
  CompressedDicom file(EXS_JPEGLSLossless);
  const std::size_t scan = Find(file.items.back(), "\xff\xda");
  EXPECT_THAT(file.Refusal([&](std::string& f) { f[scan + 7] = 2; }),
              HasSubstr("its transfer syntax does not allow"));
  EXPECT_THAT(file.Refusal([&](std::string& f) { f[Find(f, "\xff\xf7") + 6] = 25; }),
              HasSubstr("24 x 25 pixels"));
}

TEST(DamagedPixels, RleSegmentsAreCountedAndEachIsAsLongAsTheFrame) {
  CompressedDicom file(EXS_RLELossless);
  const auto with = [&](std::size_t at, char byte) {
    return file.Refusal([&](std::string& f) { f[at] = byte; });
  };
  EXPECT_EQ(with(0, 2), "");
  EXPECT_THAT(with(0, 1), HasSubstr("1 segments where 2"));
  EXPECT_THAT(with(0, 17), HasSubstr("17 segments where 2"));
  EXPECT_THAT(with(4, 66), HasSubstr("do not follow one another"));
  EXPECT_THAT(with(9, '\x7f'), HasSubstr("do not follow one another"));
  EXPECT_THAT(with(12, 1), HasSubstr("does not count"));
  EXPECT_THAT(with(60, 1), HasSubstr("does not count"));
  EXPECT_THAT(file.Refusal([](std::string& f) { f.resize(40); }), HasSubstr("inside its header"));
  EXPECT_THAT(with(64, '\x91'), HasSubstr("segment 0"));
}

TEST(DamagedPixels, TheOffsetTableNamesWhereFramesBegin) {
  CompressedDicom file(EXS_JPEGProcess14SV1, 3);
  ASSERT_EQ(file.items.size(), 4u);
  const std::vector<std::string> whole = file.items;
  const auto values = file.Read();
  ASSERT_TRUE(values.ok()) << values.status();
  file.items[0].clear();
  EXPECT_EQ(*file.Read(), *values) << "there need not be one";
  // A frame of several fragments, with a table and without.
  file.items = {"", whole[1].substr(0, 100), whole[1].substr(100), whole[2], whole[3]};
  EXPECT_EQ(*file.Read(), *values);
  file.items[0] = whole[0];
  file.items[0][4] = static_cast<char>(file.items[0][4] + 8);  // another item header
  EXPECT_THAT(std::string(file.Read().status().message()), HasSubstr("no fragment begins"));
  file.items = whole;
  file.items[0][4] = static_cast<char>(file.items[0][4] ^ 2);
  EXPECT_THAT(std::string(file.Read().status().message()), HasSubstr("no fragment begins"));
  file.items[0] = whole[0].substr(0, 8);
  EXPECT_THAT(std::string(file.Read().status().message()), HasSubstr("8 bytes for 3 frames"));
  file.items = {"", whole[1], whole[2]};
  EXPECT_THAT(std::string(file.Read().status().message()), HasSubstr("2 fragments of 3 frames"));
  file.items = {"", whole[1], whole[2].substr(0, whole[2].size() / 2), whole[3]};
  EXPECT_FALSE(file.Read().ok()) << "a frame does not go on in the next one's fragment";
}

TEST(DamagedPixels, OffsetsAreThoseOfFragments) {
  using Offsets = std::vector<std::uint32_t>;
  const Offsets lengths = {10, 20, 30};
  EXPECT_THAT(*FrameStarts(lengths, Offsets{0, 18, 46}), ElementsAre(0, 1, 2));
  EXPECT_THAT(*FrameStarts(lengths, Offsets{0, 46}), ElementsAre(0, 2));
  for (const Offsets& wrong : {Offsets{0, 46, 18}, Offsets{18, 46}, Offsets{0, 18, 84},
                               Offsets{0, 0}, Offsets{0, 20}, Offsets{}}) {
    EXPECT_TRUE(absl::IsDataLoss(FrameStarts(lengths, wrong).status())) << wrong.size();
  }
}

TEST(DamagedPixels, PixelsThatAreNotCompressedAreAsLongAsTheirFrames) {
  for (const E_TransferSyntax syntax :
       {EXS_LittleEndianExplicit, EXS_LittleEndianImplicit, EXS_DeflatedLittleEndianExplicit}) {
    EXPECT_TRUE(CompressedDicom(syntax, 2).Read().ok());
    for (const int rows : {23, 25, 12}) {
      const auto read = CompressedDicom(syntax, 2).PutWord(0x0010, rows).Read();
      EXPECT_THAT(std::string(read.status().message()),
                  HasSubstr(StrCat("2304 bytes of pixels where ", 2 * 2 * rows * kSide)));
    }
  }
}

TEST(DamagedPixels, ADeflatedDataSetEndsWhereItsFileDoes) {
  const TemporaryFolder folder;
  const std::string path = CompressedDicom(EXS_DeflatedLittleEndianExplicit).Write(folder);
  const std::string whole = *ReadFile(Folders::OfThisUser(), path, 1 << 20);
  const auto refusal = [&](const std::string& bytes) {
    EXPECT_TRUE(WriteFileDurably(Folders::OfThisUser(), path, AsBytes(bytes)).ok());
    return std::string(ReadDicomFile(Folders::OfThisUser(), path).status().message());
  };
  EXPECT_EQ(refusal(whole), "");
  EXPECT_EQ(refusal(whole + std::string(1, '\0')), "") << "padding";
  EXPECT_THAT(refusal(whole + "x"), HasSubstr("deflated data set is damaged"));
  EXPECT_THAT(refusal(whole + std::string(2, '\0')), HasSubstr("deflated data set is damaged"));
  for (const std::size_t cut : {2, 3, 40}) {
    EXPECT_THAT(refusal(whole.substr(0, whole.size() - cut)), HasSubstr("deflated data set is"));
  }
}

std::string EncodeJpeg2000(bool is_lossy) {
  opj_image_cmptparm_t part{};
  part.dx = part.dy = 1;
  part.w = part.h = kSide;
  part.prec = 12;
  opj_image_t* image = opj_image_create(1, &part, OPJ_CLRSPC_GRAY);
  image->x1 = image->y1 = kSide;
  const auto values = Discs(1, 12);
  std::copy(values.begin(), values.end(), image->comps[0].data);
  opj_cparameters_t parameters = Jpeg2000Parameters();
  parameters.irreversible = is_lossy ? 1 : 0;
  return CompressJpeg2000(image, parameters);
}

TEST(DamagedPixels, AJpeg2000FrameEndsWithItsMarkerAndIsAsLosslessAsItsSyntax) {
  CompressedDicom file(EXS_JPEG2000LosslessOnly);
  file.items = {"", EncodeJpeg2000(false)};
  const auto values = file.Read();
  ASSERT_TRUE(values.ok()) << values.status();
  const auto expected = Discs(1, 12);
  EXPECT_EQ(*values, Values(expected.begin(), expected.end()));
  EXPECT_EQ(file.Refusal([](std::string& f) { f += std::string(3, '\0'); }), "");
  EXPECT_THAT(file.Refusal([](std::string& f) { f += "junk"; }), HasSubstr("an end marker"));
  EXPECT_THAT(file.Refusal([](std::string& f) { f.resize(f.size() - 2); }),
              HasSubstr("an end marker"));
  EXPECT_THAT(file.Refusal([](std::string& f) { f = EncodeJpeg2000(true); }),
              HasSubstr("a lossy image in a lossless"));
}

}  // namespace
}  // namespace patchbay::workers
