// One DICOM file's description of its frames, read without its pixels.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/os/folders.h"
#include "workers/sources/volumes/dicom_pet.h"
#include "workers/sources/volumes/patient_axes.h"

namespace patchbay::workers {

/// Frames of one file, and sides of one frame.
inline constexpr std::int64_t kMaxDicomFrames = 16384;
inline constexpr std::int64_t kMaxDicomSide = 16384;

/// An attribute by which the phases of a series may differ.
struct PhaseAttribute {
  std::string_view name;
  unsigned group, element;
  bool is_clock = false;  ///< a time of day, which no store records
};
inline constexpr PhaseAttribute kPhaseAttributes[] = {
    {"AcquisitionNumber", 0x0020, 0x0012},
    {"TemporalPositionIdentifier", 0x0020, 0x0100},
    {"TemporalPositionIndex", 0x0020, 0x9128},
    {"StackID", 0x0020, 0x9056},
    {"EchoNumbers", 0x0018, 0x0086},
    {"EchoTime", 0x0018, 0x0081},
    {"EffectiveEchoTime", 0x0018, 0x9082},
    {"DiffusionBValue", 0x0018, 0x9087},
    {"TriggerTime", 0x0018, 0x1060},
    {"NominalCardiacTriggerDelayTime", 0x0020, 0x9153},
    {"ImageType", 0x0008, 0x0008},
    {"AcquisitionTime", 0x0008, 0x0032, true},
    {"AcquisitionDateTime", 0x0008, 0x002a, true}};

/// One slice: a single-frame file, or one frame of an enhanced file.
struct DicomFrame {
  std::optional<Vec3> position;          ///< ImagePositionPatient: centre of the first pixel
  std::optional<Vec3> row, column;       ///< ImageOrientationPatient: along a row, down a column
  double row_step = 0, column_step = 0;  ///< mm between rows, between columns; 0: not stated
  double slope = 1, intercept = 0;
  bool has_rescale = false;
  double philips_scale = 0;  ///< Philips's scale slope, which slope and intercept hold; 0: none
  std::string unit;          ///< slope and intercept give it, in enhanced PET
  std::string image_type;    ///< "ORIGINAL\\PRIMARY\\AXIAL"
  std::map<std::string_view, std::string> phase;  ///< kPhaseAttributes that are stated, by name
  bool is_left_out = false;                       ///< under a repair
};

struct DicomFile {
  std::string path;
  std::string sop_class, modality, transfer_syntax;
  std::string series, study, patient, frame_of_reference;
  std::string photometric, burned_in, rescale_type, kernel;
  std::int64_t rows = 0, columns = 0;
  int samples = 1, bits_allocated = 16, bits_stored = 16, high_bit = 15;
  bool is_signed = false;
  bool is_inverted = false;                   ///< stored values, under a repair
  std::optional<int> padding, padding_limit;  ///< stored values
  bool has_tube_voltage = false;
  std::optional<PetAttributes> pet;  ///< in PET alone
  std::optional<std::int64_t> instance;
  Json facts = Json::object();  ///< the allow-listed fields
  std::vector<DicomFrame> frames;

  bool HasPixels() const { return rows > 0 && columns > 0; }
};

/// The stored value as far from the other end of those that the file's bits can hold.
inline std::int32_t InvertedValue(const DicomFile& file, std::int32_t value) {
  return (file.is_signed ? -1 : static_cast<std::int32_t>((1u << file.bits_stored) - 1)) - value;
}

/// True for a regular file that begins like DICOM: with its preamble, or with a data set of group 8
/// or 2. Looks at a few bytes.
bool LooksLikeDicom(const Folders& allowed, const std::string& path);

/// Reads everything before the pixels. InvalidArgument for a file that is not DICOM or contradicts
/// itself. Messages hold no path and no value of a field that may name a patient.
StatusOr<DicomFile> ReadDicomFile(const Folders& allowed, const std::string& path);

}  // namespace patchbay::workers
