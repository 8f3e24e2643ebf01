#include "workers/sources/volumes/dicom_frames.h"

#include <cstring>
#include <numeric>

#include <dcmtk/config/osconfig.h>
#include <dcmtk/dcmdata/dcpixseq.h>
#include <dcmtk/dcmdata/dcpxitem.h>

#include "runtime/core/strings.h"

namespace patchbay::workers {
namespace {

constexpr std::uint32_t kItemHeaderBytes = 8;

Status Damaged(std::string_view cause) {
  return absl::DataLossError(StrCat("read dicom pixels: ", cause));
}

/// The bytes of an item of the sequence: 0 is the offset table. They live as long as the sequence.
StatusOr<std::span<const std::byte>> ItemAt(DcmPixelSequence& sequence, std::size_t number) {
  DcmPixelItem* item = nullptr;
  Uint8* bytes = nullptr;
  if (sequence.getItem(item, static_cast<unsigned long>(number)).bad()) {
    return Damaged("a fragment is missing");
  }
  const std::size_t size = item->getLength();
  if (size == 0) return std::span<const std::byte>();
  if (item->getUint8Array(bytes).bad() || bytes == nullptr) {
    return Damaged("the bytes of a fragment are not there");
  }
  return std::as_bytes(std::span(bytes, size));
}

StatusOr<std::vector<std::uint32_t>> OffsetTable(DcmPixelSequence& sequence, std::size_t frames) {
  PB_ASSIGN_OR_RETURN(const auto bytes, ItemAt(sequence, 0));
  std::vector<std::uint32_t> offsets(bytes.size() / 4);
  if (!offsets.empty()) std::memcpy(offsets.data(), bytes.data(), offsets.size() * 4);
  if (bytes.empty() || bytes.size() == frames * 4) return offsets;
  return Damaged(StrCat("an offset table of ", bytes.size(), " bytes for ", frames, " frames"));
}

/// Without an offset table: a frame begins where a fragment begins like a JPEG image.
StatusOr<std::vector<std::size_t>> JpegStarts(DcmPixelSequence& sequence, std::size_t fragments) {
  std::vector<std::size_t> starts;
  for (std::size_t i = 0; i < fragments; ++i) {
    PB_ASSIGN_OR_RETURN(const auto bytes, ItemAt(sequence, i + 1));
    const bool is_start = bytes.size() >= 3 && bytes[0] == std::byte{0xff} &&
                          bytes[1] == std::byte{0xd8} && bytes[2] == std::byte{0xff};
    if (is_start) starts.push_back(i);
  }
  return starts;
}

}  // namespace

StatusOr<std::vector<std::size_t>> FrameStarts(std::span<const std::uint32_t> lengths,
                                               std::span<const std::uint32_t> offsets) {
  std::vector<std::size_t> starts;
  std::uint32_t place = 0;  // offsets of 32 bits wrap round
  for (std::size_t i = 0; i < lengths.size() && starts.size() < offsets.size(); ++i) {
    if (offsets[starts.size()] == place) starts.push_back(i);
    place += lengths[i] + kItemHeaderBytes;
  }
  const bool is_whole = starts.size() == offsets.size() && !starts.empty() && starts[0] == 0;
  if (is_whole) return starts;
  return Damaged("the offset table names places where no fragment begins");
}

StatusOr<DicomFrames> DicomFrames::Place(DcmPixelSequence& sequence, std::size_t frames) {
  if (sequence.card() < 2) return Damaged("no compressed frames");
  const std::size_t fragments = sequence.card() - 1;
  PB_ASSIGN_OR_RETURN(const auto offsets, OffsetTable(sequence, frames));
  std::vector<std::size_t> starts(frames);
  std::iota(starts.begin(), starts.end(), std::size_t{0});
  if (!offsets.empty()) {
    std::vector<std::uint32_t> lengths;
    for (std::size_t i = 0; i < fragments; ++i) {
      DcmPixelItem* item = nullptr;
      if (sequence.getItem(item, static_cast<unsigned long>(i + 1)).bad()) {
        return Damaged("a fragment is missing");
      }
      lengths.push_back(item->getLength());
    }
    PB_ASSIGN_OR_RETURN(starts, FrameStarts(lengths, offsets));
  } else if (frames != 1 && fragments != frames) {
    PB_ASSIGN_OR_RETURN(starts, JpegStarts(sequence, fragments));
  }
  if (starts.size() != frames || starts[0] != 0 || fragments < frames) {
    return Damaged(StrCat(fragments, " fragments of ", frames, " frames"));
  }
  starts.push_back(fragments);
  return DicomFrames(sequence, std::move(starts));
}

StatusOr<std::vector<std::byte>> DicomFrames::Read(std::size_t frame) const {
  std::vector<std::byte> all;
  for (std::size_t i = starts_[frame]; i < starts_[frame + 1]; ++i) {
    PB_ASSIGN_OR_RETURN(const auto bytes, ItemAt(*sequence_, i + 1));
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  return all;
}

}  // namespace patchbay::workers
