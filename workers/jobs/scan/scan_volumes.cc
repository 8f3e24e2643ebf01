#include "workers/jobs/scan/scan_volumes.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <utility>

#include "runtime/core/strings.h"
#include "runtime/os/folder_listing.h"
#include "workers/jobs/task/folder_tree.h"
#include "workers/jobs/task/identity.h"
#include "workers/jobs/task/image_digest.h"
#include "workers/jobs/task/mask_files.h"
#include "workers/jobs/task/stated_modality.h"
#include "workers/jobs/task/task.h"
#include "workers/sources/volumes/find_volumes.h"

namespace patchbay::workers {
namespace {

namespace fs = std::filesystem;
using results::ScanRow;

/// Typical voxels take half their room in a store.
constexpr double kBytesOfVolumeStore = 0.5;
/// A verdict of headers: only the voxels can tell whether it is one that `ingest` takes.
constexpr std::string_view kUnsure = "unsure";
/// The least part of the unit slice normal along an axis of the patient; a plane tilted by more is
/// oblique.
constexpr double kLeastAlong = 0.95;

/// The folder that all files lie below.
std::string FolderAbove(const std::vector<std::string>& files) {
  std::string folder = fs::path(files.front()).parent_path().string();
  for (const std::string& file : files) {
    while (!file.starts_with(folder + "/")) folder = fs::path(folder).parent_path().string();
  }
  return folder;
}

/// The name of the plane that a row and a column direction (in LPS) span; "" if they are parallel.
std::string OrientationOf(const Vec3& row, const Vec3& column) {
  const Vec3 normal = Cross(row, column);
  const double length = Norm(normal);
  if (!(length > 0)) return "";
  if (std::abs(normal.z) >= kLeastAlong * length) return "axial";
  if (std::abs(normal.y) >= kLeastAlong * length) return "coronal";
  return std::abs(normal.x) >= kLeastAlong * length ? "sagittal" : "oblique";
}

/// Rounds to the digits that headers give, without those of binary fractions.
std::optional<double> Rounded(double mm) {
  return mm > 0 ? std::optional(std::round(mm * 1e4) / 1e4) : std::nullopt;
}

void DescribeSeries(const DicomSeries& series, const std::string& key, ScanRow& row) {
  const Judgement judgement = Judge(series);
  const DicomFile& first = series.files.front();
  const DicomFrame& frame = first.frames.front();
  row.is_series = true;
  const bool is_unsure =
      judgement.verdict == Verdict::kUniform && first.modality == "CT" && !first.has_tube_voltage;
  row.verdict = is_unsure ? kUnsure : NameOf(judgement.verdict);
  row.reason = judgement.ReasonAndWay();
  if (CheckGeometry(judgement, GeometryPolicy::kAccept).ok() && !is_unsure) {
    const auto modality = RecordedModality({{"acquisition", FactsOf(series, judgement)}});
    if (modality) row.modality = modality->ToString();
  }
  if (is_unsure) {
    row.reason = StrCat(judgement.reason, judgement.reason.empty() ? "" : "; ",
                        "no tube voltage: ingest takes it if it has a value of ", kLeastPlausibleHu,
                        " or less");
  }
  row.patient = PseudonymOf(key, "patient", first.patient);
  row.study = PseudonymOf(key, "study", first.study);
  row.series = PseudonymOf(key, "series", first.series);
  row.slices = 0;
  for (const DicomFile& file : series.files) {
    *row.slices += static_cast<std::int64_t>(file.frames.size());
  }
  row.height = first.rows;
  row.width = first.columns;
  if (first.facts.contains("thickness_mm")) {
    row.thickness_mm = first.facts["thickness_mm"].get<double>();
  }
  row.step_mm = Rounded(judgement.step_mm);
  row.pixel_mm = Rounded(frame.row_step);
  row.kernel = first.facts.value("kernel", "");
  row.contrast = first.facts.value("contrast", false) ? "yes" : "no";
  row.orientation =
      frame.row && frame.column ? OrientationOf(*frame.row, *frame.column) : std::string();
}

/// Describes a NIfTI, NRRD or MetaImage file, several volumes by the first where they have names.
/// DataLoss for a file that is cut or damaged.
Status DescribeFile(const TaskContext& context, const FoundVolume& volume, ScanRow& row) {
  row.is_series = true;
  const std::string& path = volume.files.front();
  const bool is_named =
      volume.channels > 1 && std::ssize(StatedChannels(context, path)) == volume.channels;
  const auto header =
      ReadVolumeHeader(context.allowed, volume.format, path, GeometryPolicy::kRefuse,
                       is_named ? std::optional<std::int64_t>(0) : std::nullopt);
  if (absl::IsDataLoss(header.status())) return header.status();
  row.verdict = NameOf(header.ok() ? Verdict::kUniform : Verdict::kNotAVolume);
  if (!header.ok()) {
    row.reason = MessageOf(header.status());
    return absl::OkStatus();
  }
  const Volume& file = header->volume;
  const RawVoxels& raw = header->raw;
  row.slices = raw.size.z;
  row.height = raw.size.y;
  row.width = raw.size.x;
  row.step_mm = Rounded(Norm(file.affine.z));
  row.pixel_mm = Rounded(Norm(file.affine.y));
  row.orientation = OrientationOf(file.affine.x, file.affine.y);
  row.estimated_bytes = static_cast<std::uint64_t>(
      static_cast<double>(2 * raw.size.Pixels() * header->channels) * kBytesOfVolumeStore);
  return absl::OkStatus();
}

StatusOr<ScanRow> VolumeRowOf(TaskContext& context, const FoundVolume& volume,
                              const ScanVolumesOptions& options) {
  ScanRow row;
  row.path = volume.files.front();
  row.kind = NameOf(volume.format);
  row.source_bytes = BytesOfFiles(context, volume.files);
  row.estimated_bytes =
      static_cast<std::uint64_t>(static_cast<double>(volume.voxel_bytes) * kBytesOfVolumeStore);
  if (volume.format == VolumeFormat::kDicom) {
    PB_ASSIGN_OR_RETURN(const DicomSeries series,
                        OpenSeries(context.allowed, volume.files, ProgressOf(context)));
    DescribeSeries(series, options.pseudonym_key, row);
    if (volume.files.size() > 1) {
      row.path = StrCat(FolderAbove(volume.files), row.series.empty() ? "" : "#", row.series);
    }
  } else {
    PB_RETURN_IF_ERROR(DescribeFile(context, volume, row));
    if (const auto stated = StatedModality(context, volume.format, volume.files.front())) {
      row.modality = stated->ToString();
    }
  }
  if (!options.hash) return row;
  PB_ASSIGN_OR_RETURN(const Digest digest, DigestOfFiles(context, volume.files));
  row.content_hash = digest.Hex();
  return row;
}

}  // namespace

void MarkMask(const std::string& reason, ScanRow& row) {
  row.verdict = kMaskVerdict;
  row.reason = StrCat(reason, ": left out unless `use` is 1");
  row.use = "0";
}

StatusOr<ScannedVolumes> ScanVolumes(TaskContext& context, const std::string& path,
                                     const ScanVolumesOptions& options) {
  const auto may_read = [&context](const std::string& file) { return context.MayRead(file); };
  PB_ASSIGN_OR_RETURN(const FoundVolumes found,
                      FindVolumes(context.allowed, path, may_read, ProgressOf(context)));
  ScannedVolumes scanned;
  const bool is_folder = !IsRegularFile(context.allowed, path);
  for (const FoundVolume& volume : found.volumes) {
    StatusOr<ScanRow> row = VolumeRowOf(context, volume, options);
    if (absl::IsCancelled(row.status())) return row.status();
    std::string mask;
    if (is_folder) {
      PB_ASSIGN_OR_RETURN(mask, MaskReason(context, volume));
    }
    if (!mask.empty() && row.ok()) MarkMask(mask, *row);
    scanned.rows.push_back(
        row.ok() ? *std::move(row)
                 : ScanRow{volume.files.front(), std::string(MessageOf(row.status()))});
    scanned.files.insert(scanned.files.end(), volume.files.begin(), volume.files.end());
  }
  for (const std::string& file : found.unreadable) {
    scanned.rows.push_back({file, "no volume that can be read"});
    scanned.files.push_back(file);
  }
  return scanned;
}

}  // namespace patchbay::workers
