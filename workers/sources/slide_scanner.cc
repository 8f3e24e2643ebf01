#include "workers/sources/slide_scanner.h"

#include <memory>
#include <string_view>
#include <utility>

#include "runtime/core/printable.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/file_byte_store.h"
#include "workers/sources/dicom/dicom_elements.h"
#include "workers/sources/scan_description.h"
#include "workers/sources/tiff_index.h"

namespace patchbay::workers {
namespace {

/// Without blanks around it; "" for what is too long to be the name of a device.
std::string ShortName(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text.size() <= kMaxScannerBytes ? Printable(text) : std::string();
}

SlideScanner OfTiff(const TiffIndex& index) {
  constexpr std::uint16_t kMake = 271, kModel = 272, kDateTime = 306;
  const TiffDirectory& first = index.directories().front();
  const auto text = [&](std::uint16_t tag) {
    return ShortName(index.ReadText(first, tag).value_or(""));
  };
  SlideScanner scanner{text(kMake), text(kModel), text(kDateTime)};
  const std::string description = index.ReadDescription(first).value_or("");
  if (!IsAperioDescription(description)) return scanner;
  const AperioDescription aperio = ParseAperioDescription(description);
  if (scanner.manufacturer.empty()) scanner.manufacturer = "Aperio";
  if (scanner.model.empty()) scanner.model = ShortName(aperio.scanner_type);
  if (scanner.scanned_at.empty()) {
    scanner.scanned_at = ShortName(StrCat(aperio.date, " ", aperio.time));
  }
  return scanner;
}

SlideScanner OfDicom(DicomElements& elements) {
  constexpr std::uint32_t kAcquired = 0x0008002A, kManufacturer = 0x00080070, kModel = 0x00081090;
  SlideScanner scanner;
  DicomVisitor visitor;
  visitor.item = [](DicomSequences) { return absl::OkStatus(); };
  visitor.value = [&](DicomSequences within, const DicomValue& value) -> StatusOr<bool> {
    if (!within.empty()) return true;
    if (value.tag > kModel) return false;
    const auto read = [&](std::string& out) {
      const auto text = elements.Text(value);
      if (text.ok()) out = ShortName(*text);
    };
    if (value.tag == kAcquired) read(scanner.scanned_at);
    if (value.tag == kManufacturer) read(scanner.manufacturer);
    if (value.tag == kModel) read(scanner.model);
    return true;
  };
  return elements.Walk(visitor).ok() ? scanner : SlideScanner();
}

}  // namespace

StatusOr<SlideScanner> ScannerOf(const Folders& allowed, const std::string& path) {
  PB_ASSIGN_OR_RETURN(const auto file, zarr::OpenStoredFile(allowed, path));
  // A file may be both: its preamble is then the header of a TIFF.
  if (auto elements = DicomElements::Open(file); elements.ok()) return OfDicom(*elements);
  const auto index = TiffIndex::Read(file);
  return index.ok() ? OfTiff(*index) : SlideScanner();
}

}  // namespace patchbay::workers
