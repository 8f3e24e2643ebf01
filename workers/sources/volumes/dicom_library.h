// DCMTK made ready, once a process. Included only by the files of this folder that include DCMTK.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "runtime/core/status.h"
#include "runtime/os/file.h"
#include "runtime/os/folders.h"

class DcmFileFormat;
class DcmItem;

namespace patchbay::workers {

/// Registers the decoders (JPEG, JPEG-LS, RLE), silences the log (it may quote patients), and adds
/// the tags that are read to the dictionary where DCMTK's own is not installed.
void StartDicomLibrary();

/// A DICOM file held open under a name that leads to it whatever happens to its path: DCMTK opens
/// by name.
class DicomName {
 public:
  /// FailedPrecondition for anything but a regular file.
  static StatusOr<DicomName> OpenToRead(const Folders& allowed, const std::string& path);
  /// Made, or emptied.
  static StatusOr<DicomName> OpenToWrite(const Folders& allowed, const std::string& path);

  /// Valid as long as this lives.
  std::string name() const;

 private:
  explicit DicomName(UniqueFd fd) : fd_(std::move(fd)) {}

  UniqueFd fd_;
};

/// How much of a file is parsed.
enum class DicomExtent { kHeader, kAll };  ///< kHeader: everything before the pixels

/// Parses a file; values longer than `max_value_bytes` stay in it, and are read only as long as
/// `file` lives. InvalidArgument for files that DCMTK does not read, for sequences nested so deep
/// that reading them would take more than kMaxParseStackBytes of the calling thread's stack
/// (several hundred levels), and for a deflated data set of more than kMaxInflatedDicomBytes, which
/// DCMTK would inflate into memory; ResourceExhausted where a smaller one does not fit; DataLoss
/// for one that is damaged so that its end is not found, or is not the end of the file. Messages
/// hold no path.
Status LoadDicom(const Folders& allowed, const DicomName& file, DicomExtent extent,
                 std::uint32_t max_value_bytes, DcmFileFormat& format);
inline constexpr std::uint64_t kMaxInflatedDicomBytes = std::uint64_t{1} << 30;
inline constexpr std::uintptr_t kMaxParseStackBytes = std::uintptr_t{256} << 10;

/// Text of an element without the padding of its ends; "" where it is absent. Values of several
/// parts keep their backslashes. At most 1024 characters.
std::string DicomText(DcmItem& item, unsigned group, unsigned element);

}  // namespace patchbay::workers
