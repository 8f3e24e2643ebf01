#include "workers/sources/volumes/dicom_library.h"

#include <mutex>

#include <dcmtk/config/osconfig.h>
#include <dcmtk/dcmdata/dcdicent.h>
#include <dcmtk/dcmdata/dcdict.h>
#include <dcmtk/dcmdata/dcitem.h>
#include <dcmtk/dcmdata/dcobject.h>
#include <dcmtk/dcmdata/dcrledrg.h>
#include <dcmtk/dcmjpeg/djdecode.h>
#include <dcmtk/dcmjpls/djdecode.h>
#include <dcmtk/oflog/oflog.h>

namespace patchbay::workers {
namespace {

constexpr std::size_t kMaxTextBytes = 1024;

struct Entry {
  Uint16 group, element;
  DcmEVR vr;
};

/// What is read of a file, for implicit transfer syntaxes on a machine without DCMTK's dictionary.
constexpr Entry kRead[] = {
    {0x0002, 0x0010, EVR_UI}, {0x0008, 0x0008, EVR_CS}, {0x0008, 0x0016, EVR_UI},
    {0x0008, 0x0060, EVR_CS}, {0x0008, 0x0070, EVR_LO}, {0x0008, 0x1090, EVR_LO},
    {0x0008, 0x9007, EVR_CS}, {0x0010, 0x0020, EVR_LO}, {0x0018, 0x0010, EVR_LO},
    {0x0018, 0x0015, EVR_CS}, {0x0018, 0x0050, EVR_DS}, {0x0018, 0x0060, EVR_DS},
    {0x0018, 0x0088, EVR_DS}, {0x0018, 0x0090, EVR_DS}, {0x0018, 0x1100, EVR_DS},
    {0x0018, 0x1120, EVR_DS}, {0x0018, 0x1151, EVR_IS}, {0x0018, 0x1210, EVR_SH},
    {0x0018, 0x5100, EVR_CS}, {0x0018, 0x9314, EVR_SQ}, {0x0018, 0x9316, EVR_CS},
    {0x0018, 0x9325, EVR_SQ}, {0x0018, 0x9329, EVR_SQ}, {0x0020, 0x000d, EVR_UI},
    {0x0020, 0x000e, EVR_UI}, {0x0020, 0x0013, EVR_IS}, {0x0020, 0x0032, EVR_DS},
    {0x0020, 0x0037, EVR_DS}, {0x0020, 0x0052, EVR_UI}, {0x0020, 0x9113, EVR_SQ},
    {0x0020, 0x9116, EVR_SQ}, {0x0028, 0x0002, EVR_US}, {0x0028, 0x0004, EVR_CS},
    {0x0028, 0x0008, EVR_IS}, {0x0028, 0x0010, EVR_US}, {0x0028, 0x0011, EVR_US},
    {0x0028, 0x0030, EVR_DS}, {0x0028, 0x0100, EVR_US}, {0x0028, 0x0101, EVR_US},
    {0x0028, 0x0102, EVR_US}, {0x0028, 0x0103, EVR_US}, {0x0028, 0x0120, EVR_xs},
    {0x0028, 0x0121, EVR_xs}, {0x0028, 0x0301, EVR_CS}, {0x0028, 0x1052, EVR_DS},
    {0x0028, 0x1053, EVR_DS}, {0x0028, 0x1054, EVR_LO}, {0x0028, 0x9110, EVR_SQ},
    {0x0028, 0x9145, EVR_SQ}, {0x5200, 0x9229, EVR_SQ}, {0x5200, 0x9230, EVR_SQ},
    {0x7fe0, 0x0010, EVR_ox},
};

void Start() {
  OFLog::configure(OFLogger::OFF_LOG_LEVEL);
  DcmDataDictionary& dictionary = dcmDataDict.wrlock();
  if (!dictionary.isDictionaryLoaded()) {
    for (const Entry& e : kRead) {
      dictionary.addEntry(new DcmDictEntry(e.group, e.element, DcmVR(e.vr), "Patchbay", 1,
                                           DcmVariableVM, "DICOM", OFTrue, nullptr));
    }
  }
  dcmDataDict.wrunlock();
  // Elements that another program wrote as UN are what the dictionary says.
  dcmEnableUnknownVRConversion.set(OFTrue);
  DJDecoderRegistration::registerCodecs();
  DJLSDecoderRegistration::registerCodecs();
  DcmRLEDecoderRegistration::registerCodecs();
}

}  // namespace

void StartDicomLibrary() {
  static std::once_flag once;
  std::call_once(once, Start);
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

}  // namespace patchbay::workers
