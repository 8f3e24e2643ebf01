// DCMTK made ready, once a process. Included only by the files of this folder that include DCMTK.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/os/file.h"
#include "runtime/os/folders.h"

class DcmFileFormat;
class DcmItem;

namespace patchbay::workers {

/// An element of a data set.
struct DicomElement {
  std::uint16_t group = 0, element = 0;
  const char* type = "";  ///< its VR
};
/// Elements that a SEG takes from its series: patient and study, which it has even where the series
/// leaves them empty, and what else it has where the series does.
inline constexpr DicomElement kStudyElements[] = {
    {0x0008, 0x0020, "DA"}, {0x0008, 0x0030, "TM"}, {0x0008, 0x0050, "SH"}, {0x0008, 0x0090, "PN"},
    {0x0010, 0x0010, "PN"}, {0x0010, 0x0020, "LO"}, {0x0010, 0x0030, "DA"}, {0x0010, 0x0040, "CS"},
    {0x0020, 0x000d, "UI"}, {0x0020, 0x0010, "SH"}, {0x0020, 0x0052, "UI"}, {0x0020, 0x1040, "LO"},
};
inline constexpr DicomElement kOptionalElements[] = {
    {0x0008, 0x0005, "CS"},
    {0x0028, 0x2110, "CS"},
    {0x0028, 0x2112, "DS"},
    {0x0028, 0x2114, "CS"},
};

/// Registers the decoders (JPEG, JPEG-LS, RLE), silences the log (it may quote patients), and adds
/// the tags that are read to the dictionary where DCMTK's own is not installed.
void StartDicomLibrary();

/// A DICOM file held open under a name that leads to it whatever happens to its path: DCMTK opens
/// by name.
class DicomName {
 public:
  /// FailedPrecondition for anything but a regular file.
  static StatusOr<DicomName> OpenToRead(const Folders& allowed, const std::string& path);
  /// Makes the file, or empties it.
  static StatusOr<DicomName> OpenToWrite(const Folders& allowed, const std::string& path);

  /// Valid as long as this lives.
  std::string name() const;

 private:
  explicit DicomName(UniqueFd fd) : fd_(std::move(fd)) {}

  UniqueFd fd_;
};

/// The `max_value_bytes` that files are parsed with.
inline constexpr std::uint32_t kMaxDicomValueBytes = 4096;

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
/// The number of a private element, whose last byte is `element`, in the block of its creator; 0
/// where there is no such block.
unsigned DicomPrivateElement(DcmItem& item, std::string_view creator, unsigned group,
                             unsigned element);

/// The numbers of "1.5\\2\\3"; empty unless there are `count`, all finite.
std::vector<double> ToNumbers(const std::string& text, std::size_t count);
std::optional<double> ToNumber(const std::string& text);
std::optional<double> DicomNumber(DcmItem& item, unsigned group, unsigned element);

/// An item of a sequence; null without it.
DcmItem* DicomItem(DcmItem& item, unsigned group, unsigned element, long number = 0);

}  // namespace patchbay::workers
