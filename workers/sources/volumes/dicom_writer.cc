#include "workers/sources/volumes/dicom_writer.h"

#include <mutex>

#include <dcmtk/config/osconfig.h>
#include <dcmtk/dcmdata/dcrleerg.h>
#include <dcmtk/dcmdata/dcrlerp.h>
#include <dcmtk/dcmdata/dctk.h>
#include <dcmtk/dcmjpeg/djencode.h>
#include <dcmtk/dcmjpeg/djrplol.h>
#include <dcmtk/dcmjpls/djencode.h>
#include <dcmtk/dcmjpls/djrparam.h>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "workers/sources/volumes/dicom_library.h"

namespace patchbay::workers {
namespace {

void StartEncoders() {
  static std::once_flag once;
  std::call_once(once, [] {
    StartDicomLibrary();
    DJEncoderRegistration::registerCodecs();
    DJLSEncoderRegistration::registerCodecs();
    DcmRLEEncoderRegistration::registerCodecs();
  });
}

std::string Joined(std::initializer_list<double> values) {
  std::string text;
  for (const double value : values) {
    std::string number = StrCat(value);
    if (number.size() > 16) number.resize(16);  // DS
    text += StrCat(text.empty() ? "" : "\\", number);
  }
  return text;
}

void PutText(DcmItem& item, unsigned group, unsigned element, const std::string& text) {
  item.putAndInsertOFStringArray(DcmTag(static_cast<Uint16>(group), static_cast<Uint16>(element)),
                                 OFString(text.c_str()));
}

void PutShort(DcmItem& item, unsigned group, unsigned element, int value) {
  item.putAndInsertUint16(DcmTag(static_cast<Uint16>(group), static_cast<Uint16>(element)),
                          static_cast<Uint16>(value));
}

DcmItem& SequenceItem(DcmItem& item, unsigned group, unsigned element, long number = 0) {
  DcmItem* made = nullptr;
  item.findOrCreateSequenceItem(DcmTag(static_cast<Uint16>(group), static_cast<Uint16>(element)),
                                made, number);
  PB_CHECK(made != nullptr);
  return *made;
}

void PutPlane(const WrittenFile& file, const WrittenSlice& s, DcmItem& position, DcmItem& axes,
              DcmItem& measures, DcmItem& values) {
  if (file.has_position) {
    PutText(position, 0x0020, 0x0032, Joined({s.position.x, s.position.y, s.position.z}));
    PutText(axes, 0x0020, 0x0037,
            Joined({s.row.x, s.row.y, s.row.z, s.column.x, s.column.y, s.column.z}));
  }
  PutText(measures, 0x0028, 0x0030, Joined({s.row_step, s.column_step}));
  if (!file.has_rescale) return;
  PutText(values, 0x0028, 0x1052, Joined({s.intercept}));
  PutText(values, 0x0028, 0x1053, Joined({s.slope}));
  PutText(values, 0x0028, 0x1054, "HU");
}

void PutFrames(const WrittenFile& file, DcmItem& item) {
  if (file.frames.size() == 1) {
    PutPlane(file, file.frames[0], item, item, item, item);
    return;
  }
  PutText(item, 0x0028, 0x0008, std::to_string(file.frames.size()));
  for (std::size_t i = 0; i < file.frames.size(); ++i) {
    DcmItem& groups = SequenceItem(item, 0x5200, 0x9230, static_cast<long>(i));
    PutPlane(file, file.frames[i], SequenceItem(groups, 0x0020, 0x9113),
             SequenceItem(groups, 0x0020, 0x9116), SequenceItem(groups, 0x0028, 0x9110),
             SequenceItem(groups, 0x0028, 0x9145));
    PutText(SequenceItem(groups, 0x0018, 0x9329), 0x0008, 0x9007,
            "ORIGINAL\\PRIMARY\\VOLUME\\NONE");
  }
}

Status Encode(DcmDataset& dataset, E_TransferSyntax syntax) {
  const DJ_RPLossless jpeg(1, 0);
  const DJLSRepresentationParameter jpegls(0, OFTrue);
  const DcmRLERepresentationParameter rle;
  const DcmRepresentationParameter* parameter = nullptr;
  if (syntax == EXS_JPEGProcess14SV1) parameter = &jpeg;
  if (syntax == EXS_JPEGLSLossless) parameter = &jpegls;
  if (syntax == EXS_RLELossless) parameter = &rle;
  if (dataset.chooseRepresentation(syntax, parameter).good() && dataset.canWriteXfer(syntax)) {
    return absl::OkStatus();
  }
  return Unimplemented("write dicom: unsupported transfer syntax");
}

}  // namespace

Status WriteDicom(const Folders& allowed, const std::string& path, const WrittenFile& file) {
  StartEncoders();
  DcmFileFormat format;
  DcmDataset& item = *format.getDataset();
  const WrittenSlice& first = file.frames.front();
  PutShort(item, 0x0028, 0x0002, 1);
  PutText(item, 0x0028, 0x0004, "MONOCHROME2");
  PutShort(item, 0x0028, 0x0010, static_cast<int>(first.rows));
  PutShort(item, 0x0028, 0x0011, static_cast<int>(first.columns));
  PutShort(item, 0x0028, 0x0100, 16);
  PutShort(item, 0x0028, 0x0101, file.bits_stored);
  PutShort(item, 0x0028, 0x0102, file.bits_stored - 1);
  PutShort(item, 0x0028, 0x0103, file.is_signed ? 1 : 0);
  PutFrames(file, item);
  std::vector<std::uint16_t> values;
  for (const WrittenSlice& slice : file.frames) {
    values.insert(values.end(), slice.values.begin(), slice.values.end());
  }
  item.putAndInsertUint16Array(DCM_PixelData, values.data(), values.size());
  for (const auto& [tag, text] : file.texts) PutText(item, tag.first, tag.second, text);
  const E_TransferSyntax syntax = DcmXfer(file.transfer_syntax.c_str()).getXfer();
  PB_RETURN_IF_ERROR(Encode(item, syntax));
  PB_ASSIGN_OR_RETURN(const DicomName opened, DicomName::OpenToWrite(allowed, path));
  const OFCondition saved = format.saveFile(OFFilename(opened.name().c_str()), syntax);
  if (saved.good()) return absl::OkStatus();
  return ErrorAbout(absl::StatusCode::kInternal, "write dicom", path, saved.text());
}

}  // namespace patchbay::workers
