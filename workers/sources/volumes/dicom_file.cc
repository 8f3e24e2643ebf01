#include "workers/sources/volumes/dicom_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include <dcmtk/config/osconfig.h>
#include <dcmtk/dcmdata/dctk.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "runtime/core/strings.h"
#include "runtime/os/file.h"
#include "runtime/os/folder_listing.h"
#include "workers/sources/source_extent.h"
#include "workers/sources/volumes/dicom_library.h"

namespace patchbay::workers {
namespace {

constexpr std::size_t kPreambleBytes = 132;
constexpr std::size_t kMaxFactBytes = 64;

Status RefuseDicom(std::string_view cause) { return InvalidArgument("read dicom: ", cause); }

std::vector<double> NumbersAt(DcmItem& item, unsigned group, unsigned element, std::size_t count) {
  return ToNumbers(DicomText(item, group, element), count);
}

int WordAt(DcmItem& item, unsigned group, unsigned element, int otherwise) {
  Uint16 value = 0;
  const DcmTagKey key(static_cast<Uint16>(group), static_cast<Uint16>(element));
  return item.findAndGetUint16(key, value).good() ? value : otherwise;
}

/// A stored value: US or SS, according to the file or to the sign of its pixels.
std::optional<int> StoredValueAt(DcmItem& item, unsigned group, unsigned element, bool is_signed) {
  const DcmTagKey key(static_cast<Uint16>(group), static_cast<Uint16>(element));
  Uint16 word = 0;
  Sint16 number = 0;
  if (item.findAndGetSint16(key, number).good()) {
    return is_signed ? number : static_cast<int>(static_cast<std::uint16_t>(number));
  }
  if (item.findAndGetUint16(key, word).bad()) return std::nullopt;
  return is_signed ? static_cast<int>(static_cast<std::int16_t>(word)) : word;
}

/// Adds the text only if it is short and plain: numbers, codes, a scanner's model.
void AddFact(Json& facts, const char* name, const std::string& text) {
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) != 0 || std::strchr(" ._-+/\\()[],", c) != nullptr;
  };
  if (text.empty() || text.size() > kMaxFactBytes) return;
  if (std::all_of(text.begin(), text.end(), plain)) facts[name] = text;
}

void AddNumber(Json& facts, const char* name, DcmItem& item, unsigned group, unsigned element) {
  if (const auto number = DicomNumber(item, group, element)) facts[name] = *number;
}

/// The allow-list. Nothing else of a file reaches a store, but through a keyed hash.
void ReadFacts(DcmItem& item, DicomFile& file) {
  Json& facts = file.facts;
  AddFact(facts, "modality", file.modality);
  AddFact(facts, "manufacturer", DicomText(item, 0x0008, 0x0070));
  AddFact(facts, "scanner_model", DicomText(item, 0x0008, 0x1090));
  AddFact(facts, "body_part", DicomText(item, 0x0018, 0x0015));
  AddFact(facts, "kernel", file.kernel);
  AddFact(facts, "patient_position", DicomText(item, 0x0018, 0x5100));
  AddFact(facts, "transfer_syntax", file.transfer_syntax);
  AddFact(facts, "sop_class", file.sop_class);
  AddNumber(facts, "thickness_mm", item, 0x0018, 0x0050);
  AddNumber(facts, "tube_kv", item, 0x0018, 0x0060);
  AddNumber(facts, "spacing_between_slices_mm", item, 0x0018, 0x0088);
  AddNumber(facts, "data_collection_diameter_mm", item, 0x0018, 0x0090);
  AddNumber(facts, "reconstruction_diameter_mm", item, 0x0018, 0x1100);
  AddNumber(facts, "stated_tilt_deg", item, 0x0018, 0x1120);
  AddNumber(facts, "tube_current_ma", item, 0x0018, 0x1151);
  // Whether, not which: the agent is free text.
  facts["contrast"] = !DicomText(item, 0x0018, 0x0010).empty();
  facts["bits_stored"] = file.bits_stored;
  facts["signed"] = file.is_signed;
}

void ReadPhase(DcmItem& item, DicomFrame& frame) {
  for (const PhaseAttribute& one : kPhaseAttributes) {
    std::string text = DicomText(item, one.group, one.element);
    if (!text.empty()) frame.phase[one.name] = std::move(text);
  }
}

/// Plane position, orientation, spacing and rescale from wherever an item states them.
void ReadPlane(DcmItem& item, DicomFrame& frame) {
  const auto position = NumbersAt(item, 0x0020, 0x0032, 3);
  if (!position.empty()) frame.position = Vec3{position[0], position[1], position[2]};
  const auto axes = NumbersAt(item, 0x0020, 0x0037, 6);
  if (!axes.empty()) {
    frame.row = Vec3{axes[0], axes[1], axes[2]};
    frame.column = Vec3{axes[3], axes[4], axes[5]};
  }
  const auto steps = NumbersAt(item, 0x0028, 0x0030, 2);
  if (!steps.empty()) {
    frame.row_step = steps[0];
    frame.column_step = steps[1];
  }
  const auto slope = DicomNumber(item, 0x0028, 0x1053),
             intercept = DicomNumber(item, 0x0028, 0x1052);
  if (slope && intercept) {
    frame.slope = *slope;
    frame.intercept = *intercept;
    frame.has_rescale = true;
  }
}

double PhilipsScaleOf(DcmItem& item) {
  Float32 scale = 0;
  const unsigned at = DicomPrivateElement(item, "Philips MR Imaging DD 001", 0x2005, 0x0e);
  const DcmTagKey key(0x2005, static_cast<Uint16>(at));
  const bool is_there = at != 0 && item.findAndGetFloat32(key, scale).good() && scale > 0;
  return is_there ? static_cast<double>(scale) : 0;
}

/// From the values that Philips's console shows to those that compare between its scans.
void ScalePhilips(DicomFrame& frame) {
  if (frame.philips_scale == 0 || !frame.has_rescale || frame.slope == 0) return;
  frame.intercept /= frame.slope * frame.philips_scale;
  frame.slope = 1 / frame.philips_scale;
}

/// The unit of enhanced PET, and its slope and intercept in place of the rescale.
void ReadRealWorld(DcmItem& groups, DicomFrame& frame) {
  DcmItem* map = DicomItem(groups, 0x0040, 0x9096);
  DcmItem* unit = map == nullptr ? nullptr : DicomItem(*map, 0x0040, 0x08ea);
  if (unit == nullptr) return;
  const auto slope = DicomNumber(*map, 0x0040, 0x9225),
             intercept = DicomNumber(*map, 0x0040, 0x9224);
  if (!slope || !intercept) return;
  frame.slope = *slope;
  frame.intercept = *intercept;
  frame.has_rescale = true;
  frame.unit = DicomText(*unit, 0x0008, 0x0100);
}

/// One item of the functional groups: planes, measures, orientation, rescale, frame type.
void ReadGroups(DcmItem& groups, DicomFrame& frame, DicomFile& file) {
  constexpr std::pair<unsigned, unsigned> kPlanes[] = {
      {0x0020, 0x9113}, {0x0020, 0x9116}, {0x0028, 0x9110}, {0x0028, 0x9145}};
  for (const auto& [group, element] : kPlanes) {
    DcmItem* item = DicomItem(groups, group, element);
    if (item == nullptr) continue;
    ReadPlane(*item, frame);
    const std::string type = DicomText(*item, 0x0028, 0x1054);
    if (!type.empty()) file.rescale_type = type;
  }
  for (const unsigned type_of : {0x9329u, 0x9226u, 0x9751u}) {  // CT, MR, PET
    DcmItem* type = DicomItem(groups, 0x0018, type_of);
    if (type == nullptr) continue;
    frame.image_type = frame.phase["ImageType"] = DicomText(*type, 0x0008, 0x9007);
  }
  // Frame content, echo, diffusion, cardiac synchronization.
  constexpr std::pair<unsigned, unsigned> kPhases[] = {
      {0x0020, 0x9111}, {0x0018, 0x9114}, {0x0018, 0x9117}, {0x0018, 0x9118}};
  for (const auto& [group, element] : kPhases) {
    if (DcmItem* item = DicomItem(groups, group, element)) ReadPhase(*item, frame);
  }
  const unsigned philips = DicomPrivateElement(groups, "Philips MR Imaging DD 005", 0x2005, 0x0f);
  DcmItem* own = philips == 0 ? nullptr : DicomItem(groups, 0x2005, philips);
  if (own != nullptr) frame.philips_scale = PhilipsScaleOf(*own);
  if (file.modality == "PT") ReadRealWorld(groups, frame);
  if (DcmItem* item = DicomItem(groups, 0x0018, 0x9314)) {
    const std::string kernel = DicomText(*item, 0x0018, 0x1210);
    if (!kernel.empty()) file.kernel = kernel;
  }
  if (DicomItem(groups, 0x0018, 0x9325) != nullptr) file.has_tube_voltage = true;
}

Status ReadFrames(DcmItem& item, DicomFile& file) {
  const double count = DicomNumber(item, 0x0028, 0x0008).value_or(1);
  if (!(count >= 1 && count <= kMaxDicomFrames)) {
    return RefuseDicom(StrCat(count, " frames, not 1 to ", kMaxDicomFrames));
  }
  DicomFrame base;
  base.image_type = DicomText(item, 0x0008, 0x0008);
  ReadPlane(item, base);
  ReadPhase(item, base);
  base.philips_scale = PhilipsScaleOf(item);
  if (DcmItem* shared = DicomItem(item, 0x5200, 0x9229)) ReadGroups(*shared, base, file);
  file.frames.assign(static_cast<std::size_t>(count), base);
  const bool has_groups = DicomItem(item, 0x5200, 0x9230) != nullptr;
  for (std::size_t i = 0; i < file.frames.size(); ++i) {
    DcmItem* groups = has_groups ? DicomItem(item, 0x5200, 0x9230, static_cast<long>(i)) : nullptr;
    if (groups != nullptr) ReadGroups(*groups, file.frames[i], file);
    ScalePhilips(file.frames[i]);
  }
  return absl::OkStatus();
}

void ReadPixelFormat(DcmItem& item, DicomFile& file) {
  file.rows = WordAt(item, 0x0028, 0x0010, 0);
  file.columns = WordAt(item, 0x0028, 0x0011, 0);
  file.samples = WordAt(item, 0x0028, 0x0002, 1);
  file.bits_allocated = WordAt(item, 0x0028, 0x0100, 16);
  file.bits_stored = WordAt(item, 0x0028, 0x0101, file.bits_allocated);
  file.high_bit = WordAt(item, 0x0028, 0x0102, file.bits_stored - 1);
  file.is_signed = WordAt(item, 0x0028, 0x0103, 0) == 1;
  file.photometric = DicomText(item, 0x0028, 0x0004);
  file.padding = StoredValueAt(item, 0x0028, 0x0120, file.is_signed);
  file.padding_limit = StoredValueAt(item, 0x0028, 0x0121, file.is_signed);
}

Status CheckPixelFormat(const DicomFile& file) {
  if (!file.HasPixels()) return absl::OkStatus();
  if (file.rows > kMaxDicomSide || file.columns > kMaxDicomSide) {
    return RefuseDicom(StrCat(file.rows, " x ", file.columns, " pixels, more than ", kMaxDicomSide,
                              " along a side"));
  }
  return absl::OkStatus();
}

/// Compressed frames have fewer bytes than their pixels, and everything else in a file is small.
Status CheckExtent(const Folders& allowed, const DicomFile& file) {
  PB_ASSIGN_OR_RETURN(const std::uint64_t file_bytes, SizeOf(allowed, file.path));
  const auto samples = static_cast<std::uint64_t>(file.rows * file.columns) * file.frames.size() *
                       static_cast<std::uint64_t>(std::max(file.samples, 1));
  const auto bytes_each = static_cast<std::uint64_t>(std::max(file.bits_allocated, 8) + 7) / 8;
  const Status extent = CheckFileExtent(file_bytes, samples * bytes_each);
  return extent.ok() ? extent : RefuseDicom(MessageOf(extent));
}

}  // namespace

bool LooksLikeDicom(const Folders& allowed, const std::string& path) {
  const auto fd = OpenFile(allowed, path, O_RDONLY | O_NONBLOCK);
  struct stat st {};
  if (!fd.ok() || fstat(fd->get(), &st) != 0 || !S_ISREG(st.st_mode)) return false;
  std::array<unsigned char, kPreambleBytes> head{};
  const auto n = std::min<std::size_t>(static_cast<std::size_t>(st.st_size), head.size());
  if (n < 16 ||
      !ReadAt(fd->get(), 0, std::as_writable_bytes(std::span(head)).first(n), "head").ok())
    return false;
  if (n == head.size() && std::memcmp(head.data() + 128, "DICM", 4) == 0) return true;
  // Without a preamble: a first tag of group 2 or 8, little or big endian, of a small element.
  const bool little = (head[0] == 8 || head[0] == 2) && head[1] == 0 && head[3] == 0;
  const bool big = head[0] == 0 && (head[1] == 8 || head[1] == 2) && head[2] == 0;
  const bool has_vr = std::isupper(head[4]) != 0 && std::isupper(head[5]) != 0;
  const bool is_implicit = little && head[6] == 0 && head[7] == 0;
  return (little || big) && (has_vr || is_implicit);
}

StatusOr<DicomFile> ReadDicomFile(const Folders& allowed, const std::string& path) {
  PB_ASSIGN_OR_RETURN(const DicomName opened, DicomName::OpenToRead(allowed, path));
  DcmFileFormat format;
  const Status loaded =
      LoadDicom(allowed, opened, DicomExtent::kHeader, kMaxDicomValueBytes, format);
  if (!loaded.ok()) return RefuseDicom(MessageOf(loaded));
  DcmItem& item = *format.getDataset();
  DicomFile file;
  file.path = path;
  file.sop_class = DicomText(item, 0x0008, 0x0016);
  file.modality = DicomText(item, 0x0008, 0x0060);
  file.transfer_syntax = DcmXfer(format.getDataset()->getOriginalXfer()).getXferID();
  file.series = DicomText(item, 0x0020, 0x000e);
  file.study = DicomText(item, 0x0020, 0x000d);
  file.patient = DicomText(item, 0x0010, 0x0020);
  file.frame_of_reference = DicomText(item, 0x0020, 0x0052);
  file.burned_in = DicomText(item, 0x0028, 0x0301);
  file.rescale_type = DicomText(item, 0x0028, 0x1054);
  file.kernel = DicomText(item, 0x0018, 0x1210);
  file.has_tube_voltage = DicomNumber(item, 0x0018, 0x0060).has_value();
  if (const auto instance = DicomNumber(item, 0x0020, 0x0013)) {
    if (std::abs(*instance) < 1e9) file.instance = static_cast<std::int64_t>(*instance);
  }
  ReadPixelFormat(item, file);
  PB_RETURN_IF_ERROR(CheckPixelFormat(file));
  if (file.HasPixels()) {
    PB_RETURN_IF_ERROR(ReadFrames(item, file));
    PB_RETURN_IF_ERROR(CheckExtent(allowed, file));
    if (file.modality == "PT") file.pet = ReadPet(item, file.frames.front().unit);
  }
  ReadFacts(item, file);
  return file;
}

}  // namespace patchbay::workers
