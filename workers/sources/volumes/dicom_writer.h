// Writing DICOM for the synthetic series and for tests: single slices and enhanced multi-frame
// files, in any syntax that DCMTK encodes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/os/folders.h"
#include "workers/sources/volumes/patient_axes.h"

namespace patchbay::workers {

/// A slice to be written. Text fields by (group, element); empty members are not written.
struct WrittenSlice {
  std::int64_t rows = 0, columns = 0;
  std::vector<std::uint16_t> values;  ///< stored, rows x columns
  Vec3 position, row{1, 0, 0}, column{0, 1, 0};
  double row_step = 1, column_step = 1;
  double slope = 1, intercept = -1024;
};

struct WrittenFile {
  std::string transfer_syntax = "1.2.840.10008.1.2.1";
  int bits_stored = 16;
  bool is_signed = false;
  bool has_rescale = true, has_position = true;
  std::vector<WrittenSlice> frames;  ///< several: an enhanced file
  /// Further elements of the data set, written last, so that they replace earlier ones.
  std::map<std::pair<unsigned, unsigned>, std::string> texts;
};

/// Unimplemented for a syntax that DCMTK does not encode.
Status WriteDicom(const Folders& allowed, const std::string& path, const WrittenFile& file);

}  // namespace patchbay::workers
