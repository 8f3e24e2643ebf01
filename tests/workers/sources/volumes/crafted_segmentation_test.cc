// DICOM SEG files made here: segments that overlap, slices without a frame, and refusals.
#include <functional>

#include <dcmtk/config/osconfig.h>
#include <dcmtk/dcmdata/dcpixseq.h>
#include <dcmtk/dcmdata/dcpxitem.h>
#include <dcmtk/dcmdata/dctk.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workers/sources/slide_fixtures.h"
#include "workers/sources/volumes/dicom_segmentation.h"

namespace patchbay::workers {
namespace {

using testing::ElementsAreArray;
using testing::HasSubstr;

constexpr int kFrameRows = 3, kFrameColumns = 5;  // 15 bits: frames begin within a byte
constexpr std::size_t kPlane = std::size_t{kFrameRows} * kFrameColumns;

void Put(DcmItem& item, unsigned group, unsigned element, const std::string& text) {
  const DcmTag tag(static_cast<Uint16>(group), static_cast<Uint16>(element));
  ASSERT_TRUE(item.putAndInsertOFStringArray(tag, OFString(text.c_str())).good()) << text;
}
void PutWord(DcmItem& item, unsigned group, unsigned element, int value) {
  const DcmTag tag(static_cast<Uint16>(group), static_cast<Uint16>(element));
  ASSERT_TRUE(item.putAndInsertUint16(tag, static_cast<Uint16>(value)).good());
}
DcmItem& ItemAt(DcmItem& item, unsigned group, unsigned element, long number = 0) {
  DcmItem* made = nullptr;
  item.findOrCreateSequenceItem(DcmTag(static_cast<Uint16>(group), static_cast<Uint16>(element)),
                                made, number);
  return *made;
}

struct SegFrame {
  int segment = 1;
  double z = 0;
  std::array<bool, kPlane> voxels{};
  std::string axes = "1\\0\\0\\0\\1\\0";
  double x = -10;
};

/// Frames of voxels whose position in the plane is a multiple of `every`.
SegFrame FrameOf(int segment, double z, std::size_t every) {
  SegFrame frame{.segment = segment, .z = z};
  for (std::size_t i = 0; i < kPlane; i += every) frame.voxels[i] = true;
  return frame;
}

/// A binary SEG of two segments, 2 mm between its slices.
class CraftedSeg {
 public:
  explicit CraftedSeg(const std::vector<SegFrame>& frames) {
    DcmItem& item = *format_.getDataset();
    Put(item, 0x0008, 0x0016, "1.2.840.10008.5.1.4.1.1.66.4");
    Put(item, 0x0008, 0x0060, "SEG");
    Put(item, 0x0020, 0x0052, "1.2.3");
    Put(item, 0x0028, 0x0004, "MONOCHROME2");
    Put(item, 0x0028, 0x0008, std::to_string(frames.size()));
    Put(item, 0x0062, 0x0001, "BINARY");
    PutWord(item, 0x0028, 0x0002, 1);
    PutWord(item, 0x0028, 0x0010, kFrameRows);
    PutWord(item, 0x0028, 0x0011, kFrameColumns);
    for (const unsigned element : {0x0100u, 0x0101u}) PutWord(item, 0x0028, element, 1);
    for (const unsigned element : {0x0102u, 0x0103u}) PutWord(item, 0x0028, element, 0);
    for (const int segment : {1, 2}) {
      DcmItem& listed = ItemAt(item, 0x0062, 0x0002, segment - 1);
      PutWord(listed, 0x0062, 0x0004, segment);
      Put(listed, 0x0062, 0x0005, segment == 1 ? "organ" : "tumour");
    }
    DcmItem& measures = ItemAt(ItemAt(item, 0x5200, 0x9229), 0x0028, 0x9110);
    Put(measures, 0x0028, 0x0030, "3\\4");
    Put(measures, 0x0018, 0x0088, "2");
    std::vector<Uint8> bits((frames.size() * kPlane + 15) / 16 * 2);
    for (std::size_t f = 0; f < frames.size(); ++f) {
      PutFrame(ItemAt(item, 0x5200, 0x9230, static_cast<long>(f)), frames[f]);
      for (std::size_t i = 0; i < kPlane; ++i) {
        const std::size_t bit = f * kPlane + i;
        if (frames[f].voxels[i]) bits[bit / 8] |= static_cast<Uint8>(1u << (bit % 8));
      }
    }
    item.putAndInsertUint8Array(DCM_PixelData, bits.data(), bits.size());
  }

  CraftedSeg& Change(const std::function<void(DcmItem&)>& change) {
    change(*format_.getDataset());
    return *this;
  }

  StatusOr<LabelVolume> Read(E_TransferSyntax syntax = EXS_LittleEndianExplicit) {
    const TemporaryFolder folder;
    const std::string path = folder.File("seg.dcm");
    const OFCondition saved = format_.saveFile(OFFilename(path.c_str()), syntax);
    if (saved.bad()) return absl::InternalError(saved.text());
    return ReadDicomSegmentation(Folders::OfThisUser(), path, nullptr);
  }

 private:
  static void PutFrame(DcmItem& groups, const SegFrame& frame) {
    PutWord(ItemAt(groups, 0x0062, 0x000a), 0x0062, 0x000b, frame.segment);
    Put(ItemAt(groups, 0x0020, 0x9113), 0x0020, 0x0032, StrCat(frame.x, "\\-20\\", frame.z));
    Put(ItemAt(groups, 0x0020, 0x9116), 0x0020, 0x0037, frame.axes);
  }

  DcmFileFormat format_;
};

std::vector<std::uint8_t> Painted(const LabelVolume& labels, std::size_t segment) {
  std::vector<std::uint8_t> out(static_cast<std::size_t>(labels.size.Pixels()));
  EXPECT_TRUE(labels.paint(segment, 7, out).ok());
  return out;
}

TEST(CraftedSegmentation, OverlappingSegmentsAreEachWholeAndSlicesWithoutAFrameAreEmpty) {
  // Not in order; segment 2 lies over segment 1 in one slice; nothing at 32 mm.
  const std::vector<SegFrame> frames = {FrameOf(2, 34, 3), FrameOf(1, 30, 2), FrameOf(1, 34, 4)};
  const auto labels = CraftedSeg(frames).Read();
  ASSERT_TRUE(labels.ok()) << labels.status();
  EXPECT_EQ(labels->size, Extent(3, kFrameRows, kFrameColumns));
  EXPECT_EQ(labels->segments, (std::vector<std::string>{"organ", "tumour"}));
  EXPECT_EQ(labels->frame_of_reference, "1.2.3");
  EXPECT_EQ(labels->affine.origin.z, 30);
  EXPECT_EQ(labels->affine.x.x, 4);
  EXPECT_EQ(labels->affine.y.y, 3);
  EXPECT_EQ(labels->affine.z.z, 2);
  for (const int segment : {1, 2}) {
    std::vector<std::uint8_t> expected(3 * kPlane);
    for (const SegFrame& frame : frames) {
      const auto slice = static_cast<std::size_t>((frame.z - 30) / 2);
      for (std::size_t i = 0; i < kPlane; ++i) {
        if (frame.segment == segment && frame.voxels[i]) expected[slice * kPlane + i] = 7;
      }
    }
    EXPECT_THAT(Painted(*labels, static_cast<std::size_t>(segment - 1)), ElementsAreArray(expected))
        << segment;
  }
}

TEST(CraftedSegmentation, WhatIsNoSetOfSegmentsOnOneGridIsRefused) {
  const std::vector<SegFrame> good = {FrameOf(1, 30, 2), FrameOf(2, 32, 2)};
  const auto frames = [&](const std::function<void(SegFrame&)>& change) {
    std::vector<SegFrame> all = good;
    change(all[1]);
    return std::string(CraftedSeg(all).Read().status().message());
  };
  const auto item = [&](const std::function<void(DcmItem&)>& change) {
    return std::string(CraftedSeg(good).Change(change).Read().status().message());
  };
  ASSERT_TRUE(CraftedSeg(good).Read().ok());
  EXPECT_THAT(frames([](SegFrame& f) { f.segment = 3; }), HasSubstr("of no segment that is"));
  EXPECT_THAT(frames([](SegFrame& f) { f.axes = "0\\1\\0\\1\\0\\0"; }),
              HasSubstr("frame 2: another orientation"));
  EXPECT_THAT(frames([](SegFrame& f) { f.x = -9; }), HasSubstr("frame 2: 1 mm off the grid"));
  EXPECT_THAT(item([](DcmItem& i) { Put(i, 0x0062, 0x0001, "FRACTIONAL"); }),
              HasSubstr("fractional"));
  EXPECT_THAT(item([](DcmItem& i) { Put(i, 0x0062, 0x0001, "LABELMAP"); }),
              HasSubstr("not a binary segmentation"));
  EXPECT_THAT(item([](DcmItem& i) { PutWord(i, 0x0028, 0x0100, 8); }), HasSubstr("one bit"));
  EXPECT_THAT(item([](DcmItem& i) { PutWord(ItemAt(i, 0x0062, 0x0002, 1), 0x0062, 0x0004, 1); }),
              HasSubstr("segment 2: no number of its own"));
  EXPECT_THAT(item([](DcmItem& i) { i.findAndDeleteElement(DcmTagKey(0x0062, 0x0002)); }),
              HasSubstr("lists no segments"));
  EXPECT_THAT(item([](DcmItem& i) { PutWord(i, 0x0028, 0x0010, 300); }), HasSubstr("fewer bits"));
  EXPECT_THAT(item([](DcmItem& i) { Put(i, 0x0008, 0x0016, "1.2.840.10008.5.1.4.1.1.2"); }),
              HasSubstr("not a segmentation (SEG)"));
  EXPECT_THAT(item([](DcmItem& i) { PutWord(i, 0x0028, 0x0010, 1); }), HasSubstr("more bits"));
}

TEST(CraftedSegmentation, CompressedFramesAreNotReadAndNotCalledDamaged) {
  const auto compress = [](DcmItem& item) {
    auto* sequence = new DcmPixelSequence(DcmTag(DCM_PixelData, EVR_OB));
    for (const Uint32 size : {0u, 64u}) {
      auto* bytes = new DcmPixelItem(DcmTag(DCM_PixelItemTag, EVR_OB));
      bytes->putUint8Array(std::vector<Uint8>(64).data(), size);
      sequence->insert(bytes);
    }
    auto* pixels = new DcmPixelData(DCM_PixelData);
    pixels->putOriginalRepresentation(EXS_RLELossless, nullptr, sequence);
    item.insert(pixels, true);
  };
  const auto labels = CraftedSeg({FrameOf(1, 30, 2)}).Change(compress).Read(EXS_RLELossless);
  EXPECT_TRUE(absl::IsUnimplemented(labels.status())) << labels.status();
}

}  // namespace
}  // namespace patchbay::workers
