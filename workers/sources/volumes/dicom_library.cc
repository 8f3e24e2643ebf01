#include "workers/sources/volumes/dicom_library.h"

#include <cerrno>
#include <charconv>
#include <cmath>
#include <mutex>
#include <vector>

#include <dcmtk/config/osconfig.h>
#include <dcmtk/dcmdata/dcdeftag.h>
#include <dcmtk/dcmdata/dcdicent.h>
#include <dcmtk/dcmdata/dcdict.h>
#include <dcmtk/dcmdata/dcfilefo.h>
#include <dcmtk/dcmdata/dcistrmf.h>
#include <dcmtk/dcmdata/dcitem.h>
#include <dcmtk/dcmdata/dcmetinf.h>
#include <dcmtk/dcmdata/dcobject.h>
#include <dcmtk/dcmdata/dcrledrg.h>
#include <dcmtk/dcmdata/dcxfer.h>
#include <dcmtk/dcmjpeg/djdecode.h>
#include <dcmtk/dcmjpls/djdecode.h>
#include <dcmtk/oflog/oflog.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/os/available_memory.h"
#include "workers/sources/volumes/byte_stream.h"

namespace patchbay::workers {
namespace {

constexpr std::size_t kMaxTextBytes = 1024;

struct Entry {
  Uint16 group, element;
  DcmEVR vr;
};

/// The elements that are read from a file, for implicit transfer syntaxes on a machine without
/// DCMTK's dictionary.
constexpr Entry kRead[] = {
    {0x0002, 0x0010, EVR_UI},
    {0x0008, 0x0008, EVR_CS},
    {0x0008, 0x0016, EVR_UI},
    {0x0008, 0x0018, EVR_UI},
    {0x0008, 0x0060, EVR_CS},
    {0x0008, 0x0070, EVR_LO},
    {0x0008, 0x1090, EVR_LO},
    {0x0008, 0x9007, EVR_CS},
    {0x0018, 0x0010, EVR_LO},
    {0x0018, 0x0015, EVR_CS},
    {0x0018, 0x0050, EVR_DS},
    {0x0018, 0x0060, EVR_DS},
    {0x0018, 0x0088, EVR_DS},
    {0x0018, 0x0090, EVR_DS},
    {0x0018, 0x1100, EVR_DS},
    {0x0018, 0x1120, EVR_DS},
    {0x0018, 0x1151, EVR_IS},
    {0x0018, 0x1210, EVR_SH},
    {0x0018, 0x5100, EVR_CS},
    {0x0018, 0x9314, EVR_SQ},
    {0x0018, 0x9316, EVR_CS},
    {0x0018, 0x9325, EVR_SQ},
    {0x0018, 0x9329, EVR_SQ},
    {0x0020, 0x000e, EVR_UI},
    {0x0020, 0x0013, EVR_IS},
    {0x0020, 0x0032, EVR_DS},
    {0x0020, 0x0037, EVR_DS},
    {0x0020, 0x9113, EVR_SQ},
    {0x0020, 0x9116, EVR_SQ},
    {0x0028, 0x0002, EVR_US},
    {0x0028, 0x0004, EVR_CS},
    {0x0028, 0x0008, EVR_IS},
    {0x0028, 0x0010, EVR_US},
    {0x0028, 0x0011, EVR_US},
    {0x0028, 0x0030, EVR_DS},
    {0x0028, 0x0100, EVR_US},
    {0x0028, 0x0101, EVR_US},
    {0x0028, 0x0102, EVR_US},
    {0x0028, 0x0103, EVR_US},
    {0x0028, 0x0120, EVR_xs},
    {0x0028, 0x0121, EVR_xs},
    {0x0028, 0x0301, EVR_CS},
    {0x0028, 0x1052, EVR_DS},
    {0x0028, 0x1053, EVR_DS},
    {0x0028, 0x1054, EVR_LO},
    {0x0028, 0x9110, EVR_SQ},
    {0x0028, 0x9145, EVR_SQ},
    {0x5200, 0x9229, EVR_SQ},
    {0x5200, 0x9230, EVR_SQ},
    {0x7fe0, 0x0010, EVR_ox},
    // Phases of a series
    {0x0018, 0x0081, EVR_DS},
    {0x0018, 0x0086, EVR_IS},
    {0x0018, 0x1060, EVR_DS},
    {0x0018, 0x9082, EVR_FD},
    {0x0018, 0x9087, EVR_FD},
    {0x0018, 0x9114, EVR_SQ},
    {0x0018, 0x9117, EVR_SQ},
    {0x0018, 0x9118, EVR_SQ},
    {0x0020, 0x0012, EVR_IS},
    {0x0020, 0x0100, EVR_IS},
    {0x0020, 0x9056, EVR_SH},
    {0x0020, 0x9111, EVR_SQ},
    {0x0020, 0x9128, EVR_UL},
    {0x0020, 0x9153, EVR_FD},
    // Structure sets
    {0x3006, 0x0020, EVR_SQ},
    {0x3006, 0x0022, EVR_IS},
    {0x3006, 0x0024, EVR_UI},
    {0x3006, 0x0026, EVR_LO},
    {0x3006, 0x0039, EVR_SQ},
    {0x3006, 0x0040, EVR_SQ},
    {0x3006, 0x0042, EVR_CS},
    {0x3006, 0x0046, EVR_IS},
    {0x3006, 0x0050, EVR_DS},
    {0x3006, 0x0084, EVR_IS},
    // MR and PET
    {0x0008, 0x0021, EVR_DA},
    {0x0008, 0x0022, EVR_DA},
    {0x0008, 0x002a, EVR_DT},
    {0x0008, 0x0031, EVR_TM},
    {0x0008, 0x0032, EVR_TM},
    {0x0008, 0x0100, EVR_SH},
    {0x0008, 0x0201, EVR_SH},
    {0x0010, 0x1030, EVR_DS},
    {0x0018, 0x1072, EVR_TM},
    {0x0018, 0x1074, EVR_DS},
    {0x0018, 0x1075, EVR_DS},
    {0x0018, 0x1078, EVR_DT},
    {0x0018, 0x9226, EVR_SQ},
    {0x0018, 0x9701, EVR_DT},
    {0x0018, 0x9751, EVR_SQ},
    {0x0018, 0x9758, EVR_CS},
    {0x0028, 0x0051, EVR_CS},
    {0x0040, 0x08ea, EVR_SQ},
    {0x0040, 0x9096, EVR_SQ},
    {0x0040, 0x9224, EVR_FD},
    {0x0040, 0x9225, EVR_FD},
    {0x0054, 0x0016, EVR_SQ},
    {0x0054, 0x1001, EVR_CS},
    {0x0054, 0x1006, EVR_CS},
    {0x0054, 0x1102, EVR_CS},
};

struct PrivateEntry {
  Entry entry;
  const char* creator;
};
/// Private elements that are read: a dictionary may lack them.
constexpr PrivateEntry kPrivate[] = {
    {{0x0009, 0x0d, EVR_DT}, "GEMS_PETD_01"},
    {{0x2005, 0x0e, EVR_FL}, "Philips MR Imaging DD 001"},
    {{0x2005, 0x0f, EVR_SQ}, "Philips MR Imaging DD 005"},
    {{0x7053, 0x00, EVR_DS}, "Philips PET Private Group"},
    {{0x7053, 0x09, EVR_DS}, "Philips PET Private Group"},
};

void Start() {
  OFLog::configure(OFLogger::OFF_LOG_LEVEL);
  DcmDataDictionary& dictionary = dcmDataDict.wrlock();
  const auto add = [&dictionary](Uint16 group, Uint16 element, const DcmVR& vr,
                                 const char* creator = nullptr) {
    dictionary.addEntry(new DcmDictEntry(group, element, vr, "Patchbay", 1, DcmVariableVM, "DICOM",
                                         OFTrue, creator));
  };
  for (const auto& [e, creator] : kPrivate) add(e.group, e.element, DcmVR(e.vr), creator);
  if (!dictionary.isDictionaryLoaded()) {
    for (const Entry& e : kRead) add(e.group, e.element, DcmVR(e.vr));
    for (const DicomElement& e : kStudyElements) add(e.group, e.element, DcmVR(e.type));
    for (const DicomElement& e : kOptionalElements) add(e.group, e.element, DcmVR(e.type));
  }
  dcmDataDict.wrunlock();
  // Elements written as UN by another program get their type from the dictionary.
  dcmEnableUnknownVRConversion.set(OFTrue);
  DJDecoderRegistration::registerCodecs();
  DJLSDecoderRegistration::registerCodecs();
  DcmRLEDecoderRegistration::registerCodecs();
}

/// DCMTK parses sequences by recursion, and reads its stream at every level of them: so the stack
/// is measured here, for every transfer syntax. Once it is too deep, the stream reports its end.
class GuardedStream final : public DcmInputFileStream {
 public:
  explicit GuardedStream(const std::string& path)
      : DcmInputFileStream(OFFilename(path.c_str())), top_(StackPlace()) {}

  bool too_deep() const { return too_deep_; }

  OFBool good() const override { return !too_deep_ && DcmInputFileStream::good(); }
  OFCondition status() const override {
    return too_deep_ ? EC_InvalidStream : DcmInputFileStream::status();
  }
  offile_off_t avail() override { return Stopped() ? 0 : DcmInputFileStream::avail(); }
  offile_off_t read(void* to, offile_off_t bytes) override {
    return Stopped() ? 0 : DcmInputFileStream::read(to, bytes);
  }

 private:
  static std::uintptr_t StackPlace() {
    return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  }
  bool Stopped() {
    too_deep_ = too_deep_ || top_ - StackPlace() > kMaxParseStackBytes;  // it grows downwards
    return too_deep_;
  }

  const std::uintptr_t top_;
  bool too_deep_ = false;
};

/// Where a file's deflated data set begins; 0 where it is not deflated, or its meta header cannot
/// be read.
std::uint64_t DeflatedFrom(const DicomName& file) {
  GuardedStream stream(file.name());
  DcmFileFormat format;
  format.setReadMode(ERM_metaOnly);
  format.transferInit();
  const OFCondition read = format.readUntilTag(stream);
  format.transferEnd();
  OFString syntax;
  if (read.bad() || format.getMetaInfo()->findAndGetOFString(DCM_TransferSyntaxUID, syntax).bad()) {
    return 0;
  }
  const bool is_deflated = DcmXfer(syntax.c_str()).getStreamCompression() == ESC_zlib;
  return is_deflated ? static_cast<std::uint64_t>(stream.tell()) : 0;
}

/// DCMTK keeps all of a deflated data set: it has to be small enough.
Status CheckInflated(const Folders& allowed, const DicomName& file) {
  const std::uint64_t offset = DeflatedFrom(file);
  if (offset == 0) return absl::OkStatus();
  PB_ASSIGN_OR_RETURN(ByteStream stream, ByteStream::Open(allowed, file.name(), offset,
                                                          ByteStream::Packing::kRawDeflated));
  std::vector<std::byte> part(std::size_t{1} << 18);
  std::uint64_t bytes = part.size();  // counts the part at which it ends
  while (stream.Read(part).ok()) {
    bytes += part.size();
    if (bytes > kMaxInflatedDicomBytes) {
      return InvalidArgument("its deflated data set inflates to more than ",
                             kMaxInflatedDicomBytes >> 20, " MiB");
    }
  }
  PB_ASSIGN_OR_RETURN(const bool is_whole, stream.IsAtEnd());
  if (!is_whole) return DataLoss("its deflated data set is damaged or cut short");
  return CheckMemoryFits("read dicom", bytes, AvailableMemory());
}

}  // namespace

void StartDicomLibrary() {
  static std::once_flag once;
  std::call_once(once, Start);
}

StatusOr<DicomName> DicomName::OpenToRead(const Folders& allowed, const std::string& path) {
  PB_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(allowed, path, O_RDONLY | O_NONBLOCK));
  struct stat st {};
  if (fstat(fd.get(), &st) != 0) return FromErrno("stat", path, errno);
  if (S_ISREG(st.st_mode)) return DicomName(std::move(fd));
  return ErrorAbout(absl::StatusCode::kFailedPrecondition, "read dicom", path,
                    "not a regular file");
}

StatusOr<DicomName> DicomName::OpenToWrite(const Folders& allowed, const std::string& path) {
  PB_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(allowed, path, O_WRONLY | O_CREAT | O_TRUNC));
  return DicomName(std::move(fd));
}

std::string DicomName::name() const { return StrCat("/proc/self/fd/", fd_.get()); }

Status LoadDicom(const Folders& allowed, const DicomName& file, DicomExtent extent,
                 std::uint32_t max_value_bytes, DcmFileFormat& format) {
  StartDicomLibrary();
  PB_RETURN_IF_ERROR(CheckInflated(allowed, file));
  GuardedStream stream(file.name());
  OFCondition loaded = stream.status();
  if (loaded.good()) {
    format.setReadMode(ERM_autoDetect);
    format.transferInit();
    loaded =
        format.readUntilTag(stream, EXS_Unknown, EGL_noChange, max_value_bytes,
                            extent == DicomExtent::kHeader ? DCM_PixelData : DCM_UndefinedTagKey);
    format.transferEnd();
  }
  if (stream.too_deep()) return InvalidArgument("its sequences are nested too deep");
  if (loaded.good()) return absl::OkStatus();
  return InvalidArgument("the file cannot be read: ", loaded.text());
}

std::string DicomText(DcmItem& item, unsigned group, unsigned element) {
  OFString value;
  const DcmTagKey key(static_cast<Uint16>(group), static_cast<Uint16>(element));
  if (item.findAndGetOFStringArray(key, value).bad()) return "";
  std::string text(value.c_str(), std::min(value.size(), kMaxTextBytes));
  text.resize(std::min(text.size(), text.find('\0')));
  while (!text.empty() && (text.back() == ' ' || text.back() == '\0')) text.pop_back();
  const std::size_t begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? "" : text.substr(begin);
}

unsigned DicomPrivateElement(DcmItem& item, std::string_view creator, unsigned group,
                             unsigned element) {
  for (unsigned block = 0x10; block < 0x100; ++block) {
    if (DicomText(item, group, block) == creator) return block << 8 | element;
  }
  return 0;
}

std::vector<double> ToNumbers(const std::string& text, std::size_t count) {
  std::vector<double> numbers;
  const char *at = text.data(), *end = at + text.size();
  while (at < end && numbers.size() <= count) {
    while (at < end && (*at == ' ' || *at == '+')) ++at;
    double value = 0;
    const auto [after, error] = std::from_chars(at, end, value);
    if (error != std::errc() || !std::isfinite(value)) return {};
    numbers.push_back(value);
    at = after;
    while (at < end && *at == ' ') ++at;
    if (at < end && *at++ != '\\') return {};
  }
  return numbers.size() == count ? numbers : std::vector<double>();
}

std::optional<double> ToNumber(const std::string& text) {
  const auto one = ToNumbers(text, 1);
  return one.empty() ? std::nullopt : std::optional(one[0]);
}

std::optional<double> DicomNumber(DcmItem& item, unsigned group, unsigned element) {
  return ToNumber(DicomText(item, group, element));
}

DcmItem* DicomItem(DcmItem& item, unsigned group, unsigned element, long number) {
  DcmItem* found = nullptr;
  const DcmTagKey key(static_cast<Uint16>(group), static_cast<Uint16>(element));
  return item.findAndGetSequenceItem(key, found, number).good() ? found : nullptr;
}

}  // namespace patchbay::workers
