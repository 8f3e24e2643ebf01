#include "workers/sources/jpeg_ls.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include <dcmtk/config/osconfig.h>
#include <dcmtk/dcmdata/dcpixseq.h>
#include <dcmtk/dcmdata/dcpxitem.h>
#include <dcmtk/dcmdata/dctk.h>
#include <dcmtk/dcmjpls/djcodecd.h>
#include <dcmtk/dcmjpls/djcparam.h>
#include <dcmtk/dcmjpls/djrparam.h>
#include <dcmtk/oflog/oflog.h>

#include "runtime/core/strings.h"
#include "workers/sources/jpeg_markers.h"

namespace patchbay::workers {
namespace {

Status DamagedJpegLs(std::string_view cause) { return DataLoss("jpeg-ls: ", cause); }

/// The image as the only fragment of a sequence, behind an empty offset table: DCMTK decodes
/// nothing else.
bool PutFrame(std::span<const std::byte> bytes, DcmPixelSequence& sequence) {
  auto table = std::make_unique<DcmPixelItem>(DcmTag(DCM_PixelItemTag));
  auto fragment = std::make_unique<DcmPixelItem>(DcmTag(DCM_PixelItemTag));
  // Fragments have an even length.
  std::vector<Uint8> even(bytes.size() + bytes.size() % 2);
  std::memcpy(even.data(), bytes.data(), bytes.size());
  if (fragment->putUint8Array(even.data(), static_cast<unsigned long>(even.size())).bad() ||
      sequence.insert(table.get()).bad()) {
    return false;
  }
  table.release();  // the sequence owns it
  if (sequence.insert(fragment.get()).bad()) return false;
  fragment.release();
  return true;
}

bool PutShape(const JpegLsShape& shape, DcmDataset& dataset) {
  const auto bits = static_cast<Uint16>(8 * shape.sample_bytes);
  const std::pair<Uint16, Uint16> shorts[] = {{0x0002, static_cast<Uint16>(shape.components)},
                                              {0x0006, 0},  // interleaved
                                              {0x0010, static_cast<Uint16>(shape.rows)},
                                              {0x0011, static_cast<Uint16>(shape.columns)},
                                              {0x0100, bits},
                                              {0x0101, bits},
                                              {0x0102, static_cast<Uint16>(bits - 1)},
                                              {0x0103, 0}};
  for (const auto& [element, value] : shorts) {
    if (element == 0x0006 && shape.components == 1) continue;
    if (dataset.putAndInsertUint16(DcmTag(0x0028, element, EVR_US), value).bad()) return false;
  }
  const char* photometric = shape.components == 1 ? "MONOCHROME2" : "RGB";
  return dataset.putAndInsertString(DcmTag(0x0028, 0x0004, EVR_CS), photometric).good();
}

}  // namespace

Status CheckJpegLs(std::span<const std::byte> bytes, const JpegLsShape& shape) {
  PB_ASSIGN_OR_RETURN(const JpegMarkers image, ReadJpegMarkers(bytes));
  if (image.rows != shape.rows || image.columns != shape.columns ||
      image.components != shape.components) {
    return DamagedJpegLs(StrCat(image.columns, " x ", image.rows, " pixels of ", image.components,
                                " components where the file states ", shape.columns, " x ",
                                shape.rows, " of ", shape.components));
  }
  if ((image.precision + 7) / 8 != shape.sample_bytes) {
    return DamagedJpegLs(StrCat("samples of ", image.precision, " bits where the file states ",
                                8 * shape.sample_bytes));
  }
  if (image.process == kJpegLs && !(shape.is_lossless && image.first != 0)) {
    return absl::OkStatus();
  }
  return DamagedJpegLs("a coding process that its transfer syntax does not allow");
}

Status DecodeJpegLs(std::span<const std::byte> bytes, const JpegLsShape& shape,
                    std::span<std::byte> out) {
  PB_RETURN_IF_ERROR(CheckJpegLs(bytes, shape));
  static std::once_flag once;
  std::call_once(once, [] { OFLog::configure(OFLogger::OFF_LOG_LEVEL); });
  DcmDataset dataset;
  DcmPixelSequence sequence(DcmTag(DCM_PixelSequenceTag));
  if (!PutShape(shape, dataset) || !PutFrame(bytes, sequence)) {
    return Internal("jpeg-ls: the frame cannot be given to its decoder");
  }
  std::vector<std::byte> even;
  std::span<std::byte> room = out;
  if (out.size() % 2 != 0) {  // DCMTK writes an even number of bytes
    even.resize(out.size() + 1);
    room = even;
  }
  Uint32 fragment = 1;  // behind the offset table
  OFString colours;
  const DJLSCodecParameter parameters;
  const DJLSRepresentationParameter form(0, shape.is_lossless);
  const DJLSLosslessDecoder lossless;
  const DJLSNearLosslessDecoder lossy;
  const DJLSDecoderBase& decoder = shape.is_lossless ? static_cast<const DJLSDecoderBase&>(lossless)
                                                     : static_cast<const DJLSDecoderBase&>(lossy);
  const OFCondition read =
      decoder.decodeFrame(&form, &sequence, &parameters, &dataset, 0, fragment, room.data(),
                          static_cast<Uint32>(room.size()), colours);
  if (read.bad()) return DamagedJpegLs(read.text());
  if (!even.empty()) std::memcpy(out.data(), even.data(), out.size());
  return absl::OkStatus();
}

}  // namespace patchbay::workers
