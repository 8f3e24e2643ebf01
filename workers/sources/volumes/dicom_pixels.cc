#include "workers/sources/volumes/dicom_pixels.h"

#include <algorithm>
#include <cstring>
#include <set>

#include <dcmtk/config/osconfig.h>
#include <dcmtk/dcmdata/dcfcache.h>
#include <dcmtk/dcmdata/dcpixseq.h>
#include <dcmtk/dcmdata/dcpxitem.h>
#include <dcmtk/dcmdata/dctk.h>
#include <sys/stat.h>

#include "runtime/base/strings.h"
#include "workers/sources/jpeg2000_decoder.h"
#include "workers/sources/volumes/dicom_library.h"

namespace patchbay::workers {
namespace {

constexpr Uint32 kMaxValueBytes = 4096;
constexpr std::string_view kJpeg2000[] = {"1.2.840.10008.1.2.4.90", "1.2.840.10008.1.2.4.91"};

Status Damaged(std::string_view cause) {
  return absl::DataLossError(StrCat("read dicom pixels: ", cause));
}

Status CheckFormat(const DicomFile& f) {
  if (f.samples != 1 || f.photometric != "MONOCHROME2") {
    return absl::UnimplementedError(
        StrCat("read dicom pixels: ", f.samples, " samples a pixel, ",
               f.photometric.empty() ? "no photometric interpretation" : "not MONOCHROME2",
               "; only grey images are read"));
  }
  if (f.bits_allocated != 8 && f.bits_allocated != 16) {
    return absl::UnimplementedError(
        StrCat("read dicom pixels: ", f.bits_allocated, " bits allocated, neither 8 nor 16"));
  }
  if (f.bits_stored < 1 || f.bits_stored > f.bits_allocated || f.high_bit >= f.bits_allocated ||
      f.high_bit < f.bits_stored - 1) {
    return absl::InvalidArgumentError(StrCat("read dicom pixels: ", f.bits_stored,
                                             " bits stored with high bit ", f.high_bit, " of ",
                                             f.bits_allocated, " allocated"));
  }
  return absl::OkStatus();
}

}  // namespace

struct DicomPixels::Opened {
  explicit Opened(DicomName opened) : name(std::move(opened)) {}

  const DicomName name;  ///< DCMTK opens it again for large values
  DcmFileFormat format;
  DcmPixelData* pixels = nullptr;
  DcmFileCache cache;
  Uint32 next_fragment = 0;
};

DicomPixels::DicomPixels(const DicomFile& file, std::unique_ptr<Opened> opened)
    : file_(file), opened_(std::move(opened)) {}
DicomPixels::~DicomPixels() = default;

StatusOr<std::unique_ptr<DicomPixels>> DicomPixels::Open(const DicomFile& file) {
  PB_RETURN_IF_ERROR(CheckFormat(file));
  PB_ASSIGN_OR_RETURN(DicomName name, DicomName::OpenToRead(file.path));
  auto opened = std::make_unique<Opened>(std::move(name));
  const Status loaded = LoadDicom(opened->name, DicomExtent::kAll, kMaxValueBytes, opened->format);
  if (!loaded.ok()) return Damaged(MessageOf(loaded));
  DcmElement* element = nullptr;
  if (opened->format.getDataset()->findAndGetElement(DCM_PixelData, element).bad() ||
      (opened->pixels = dynamic_cast<DcmPixelData*>(element)) == nullptr) {
    return Damaged("there are no pixels");
  }
  return std::unique_ptr<DicomPixels>(new DicomPixels(file, std::move(opened)));
}

std::int32_t DicomPixels::StoredValue(std::uint32_t bits, int shift) const {
  const std::uint32_t mask = (1u << file_.bits_stored) - 1;
  const std::uint32_t value = (bits >> shift) & mask;
  const std::uint32_t sign = 1u << (file_.bits_stored - 1);
  if (file_.is_signed && (value & sign) != 0) return static_cast<std::int32_t>(value | ~mask);
  return static_cast<std::int32_t>(value);
}

Status DicomPixels::Read(std::size_t frame, std::span<std::int32_t> out) {
  if (frame >= file_.frames.size() ||
      out.size() != static_cast<std::size_t>(file_.rows * file_.columns)) {
    return absl::InternalError("read dicom pixels: no such frame");
  }
  const bool is_jpeg2000 = std::find(std::begin(kJpeg2000), std::end(kJpeg2000),
                                     file_.transfer_syntax) != std::end(kJpeg2000);
  return is_jpeg2000 ? ReadJpeg2000(frame, out) : ReadOther(frame, out);
}

Status DicomPixels::ReadOther(std::size_t frame, std::span<std::int32_t> out) {
  const auto sample_bytes = static_cast<std::size_t>(file_.bits_allocated / 8);
  Uint32 size = 0;
  DcmDataset* dataset = opened_->format.getDataset();
  if (opened_->pixels->getUncompressedFrameSize(dataset, size).bad()) {
    return Damaged("the size of a frame is not known");
  }
  if (size < out.size() * sample_bytes || size > out.size() * sample_bytes + 1) {
    return Damaged(
        StrCat("a frame of ", size, " bytes where ", out.size() * sample_bytes, " are promised"));
  }
  std::vector<std::byte> bytes(size + size % 2);
  OFString colours;
  if (frame == 0) opened_->next_fragment = 0;
  const OFCondition read = opened_->pixels->getUncompressedFrame(
      dataset, static_cast<Uint32>(frame), opened_->next_fragment, bytes.data(),
      static_cast<Uint32>(bytes.size()), colours, &opened_->cache);
  if (read.bad()) return Damaged(StrCat("frame ", frame, ": ", read.text()));
  const DcmXfer syntax(dataset->getOriginalXfer());
  const int shift = syntax.isEncapsulated() ? 0 : file_.high_bit + 1 - file_.bits_stored;
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, bytes.data() + i * sample_bytes, sample_bytes);
    out[i] = StoredValue(bits, shift);
  }
  return absl::OkStatus();
}

/// The fragments of one frame put together. One fragment a frame, or all of a single frame.
Status DicomPixels::ReadJpeg2000(std::size_t frame, std::span<std::int32_t> out) {
  DcmPixelSequence* sequence = nullptr;
  const E_TransferSyntax syntax = opened_->format.getDataset()->getOriginalXfer();
  if (opened_->pixels->getEncapsulatedRepresentation(syntax, nullptr, sequence).bad() ||
      sequence == nullptr || sequence->card() < 2) {
    return Damaged("no compressed frames");
  }
  const std::size_t fragments = sequence->card() - 1, frames = file_.frames.size();
  if (frames != 1 && fragments != frames) {
    return Damaged(StrCat(fragments, " fragments of ", frames, " JPEG 2000 frames"));
  }
  std::vector<std::byte> stream;
  for (std::size_t i = 0; i < (frames == 1 ? fragments : 1); ++i) {
    DcmPixelItem* item = nullptr;
    Uint8* bytes = nullptr;
    if (sequence->getItem(item, static_cast<unsigned long>(1 + frame + i)).bad() ||
        item->getUint8Array(bytes).bad() || bytes == nullptr) {
      return Damaged(StrCat("frame ", frame, ": its bytes are not there"));
    }
    const auto* begin = reinterpret_cast<const std::byte*>(bytes);
    stream.insert(stream.end(), begin, begin + item->getLength());
  }
  GreyJpeg2000 image{file_.rows, file_.columns, out, file_.bits_stored};
  PB_RETURN_IF_ERROR(Annotate(DecodeGreyJpeg2000(stream, image), StrCat("frame ", frame)));
  sign_differs_ |= image.is_signed != file_.is_signed;
  for (std::int32_t& value : out) value = StoredValue(static_cast<std::uint32_t>(value), 0);
  return absl::OkStatus();
}

}  // namespace patchbay::workers
