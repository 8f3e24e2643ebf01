#include "workers/sources/volumes/find_volumes.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <sys/stat.h>

#include "runtime/core/names.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/store_root.h"
#include "runtime/os/file.h"
#include "runtime/os/folder_listing.h"
#include "workers/sources/dicom_slide.h"
#include "workers/sources/folder_walk.h"
#include "workers/sources/volumes/nifti.h"
#include "workers/sources/volumes/text_header.h"

namespace patchbay::workers {
namespace {

namespace fs = std::filesystem;

constexpr auto kFormats = NamesInOrder<VolumeFormat>("none", "dicom", "nifti", "nrrd", "mha");
/// Segmentations have pixels, and are labels of another series.
constexpr std::string_view kSegmentationClasses[] = {"1.2.840.10008.5.1.4.1.1.66.4",
                                                     "1.2.840.10008.5.1.4.1.1.66.7",
                                                     "1.2.840.10008.5.1.4.1.1.481.2"};

bool EndsWith(const std::string& path, std::initializer_list<std::string_view> endings) {
  std::string lower = path;
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return std::any_of(endings.begin(), endings.end(),
                     [&](std::string_view ending) { return lower.ends_with(ending); });
}

/// Files below a folder that may be volumes, sorted within each folder.
class Search {
 public:
  Search(const Folders& allowed, const MayRead& may_read, const VolumeProgress& progress)
      : allowed_(allowed), may_read_(may_read), progress_(progress) {}

  Status AddFolder(const std::string& folder) {
    FolderVisitor visitor;
    visitor.store = [](const std::string&) { return absl::OkStatus(); };
    visitor.file = [this](const std::string& path, const StatusOr<struct stat>& st) {
      const bool is_file = st.ok() ? S_ISREG(st->st_mode) : absl::IsPermissionDenied(st.status());
      return is_file ? AddFile(path) : absl::OkStatus();
    };
    // The search for slides names it.
    visitor.locked = [](const std::string&, const Status&) { return absl::OkStatus(); };
    visitor.done = [this] { return progress_ ? progress_() : absl::OkStatus(); };
    return WalkFolder(allowed_, folder, "find volumes", visitor);
  }

  const std::vector<std::string>& files() const { return files_; }
  /// Files with endings of volumes that may not be read.
  std::vector<std::string> Refused() const {
    std::vector<std::string> refused;
    for (const std::string& path : refused_) {
      if (EndsWith(path, {".dcm", ".nii", ".nii.gz", ".nrrd", ".nhdr", ".mha", ".mhd"})) {
        refused.push_back(path);
      }
    }
    return refused;
  }

 private:
  Status AddFile(const std::string& path) {
    if (files_.size() >= kMaxVolumeFiles) {
      return InvalidArgument("find volumes: more than ", kMaxVolumeFiles,
                             " files; name fewer folders");
    }
    if (progress_) PB_RETURN_IF_ERROR(progress_());
    const auto canonical = may_read_(path);
    (canonical.ok() ? files_ : refused_).push_back(canonical.ok() ? *canonical : path);
    return absl::OkStatus();
  }

  const Folders& allowed_;
  const MayRead& may_read_;
  const VolumeProgress& progress_;
  std::vector<std::string> files_, refused_;
};

bool IsSegmentation(const DicomFile& file) {
  return std::find(std::begin(kSegmentationClasses), std::end(kSegmentationClasses),
                   file.sop_class) != std::end(kSegmentationClasses);
}

StatusOr<RawVolume> HeaderOf(const Folders& allowed, VolumeFormat format, const std::string& path,
                             GeometryPolicy policy) {
  if (format == VolumeFormat::kNifti) return ReadNiftiHeader(allowed, path, policy);
  if (format == VolumeFormat::kNrrd) return ReadNrrdVolumeHeader(allowed, path, policy);
  if (format == VolumeFormat::kMetaImage) return ReadMetaImageHeader(allowed, path, policy);
  return InvalidArgument("read volume: no volume of a known format");
}

struct Reading {
  const Folders& allowed;
  const MayRead& may_read;
  const VolumeProgress& progress;
};

/// A NIfTI, NRRD or MetaImage file, and the file of its voxels where that is another. Why it cannot
/// be read, if so, shows when it is read.
FoundVolume FileVolume(const Reading& reading, VolumeFormat format, const std::string& path) {
  FoundVolume volume{path, format, {path}};
  const auto header = HeaderOf(reading.allowed, format, path, GeometryPolicy::kAccept);
  if (header.ok()) volume.channels = header->channels;
  if (format != VolumeFormat::kNifti) {
    const bool is_apart = header.ok() && !header->raw.file.empty();
    const auto voxels = is_apart ? reading.may_read(header->raw.file) : path;
    if (is_apart && voxels.ok()) volume.files.push_back(*voxels);
  }
  volume.voxel_bytes = 2 * SizeOf(reading.allowed, volume.files.back()).value_or(0);
  return volume;
}

/// Sorts files into series and other volumes.
Status Sort(const Reading& reading, const std::string& named, const std::vector<std::string>& files,
            FoundVolumes& found) {
  const Folders& allowed = reading.allowed;
  std::vector<DicomFile> headers;
  for (const std::string& file : files) {
    if (reading.progress) PB_RETURN_IF_ERROR(reading.progress());
    const VolumeFormat format = FormatOf(allowed, file);
    if (format == VolumeFormat::kNone) {
      if (EndsWith(file, {".dcm", ".nii", ".nii.gz"})) found.unreadable.push_back(file);
      continue;
    }
    if (format != VolumeFormat::kDicom) {
      if (EndsWith(file, {".seg.nrrd"})) continue;  // labels of another volume
      found.volumes.push_back(FileVolume(reading, format, file));
      continue;
    }
    if (DicomSlideNameOf(allowed, file)) continue;  // the search for slides finds it
    auto header = ReadDicomFile(allowed, file);
    if (!header.ok()) {
      found.unreadable.push_back(file);
    } else if (!header->HasPixels() || IsSegmentation(*header)) {
      ++found.other_dicom;
    } else {
      headers.push_back(*std::move(header));
    }
  }
  for (const DicomSeries& series : GroupSeries(std::move(headers))) {
    FoundVolume volume;
    volume.format = VolumeFormat::kDicom;
    volume.series_uid = series.uid;
    volume.name = series.uid.empty() ? fs::path(series.files[0].path).parent_path().string()
                                     : StrCat(named, "#", series.uid);
    for (const DicomFile& file : series.files) {
      volume.files.push_back(file.path);
      volume.voxel_bytes +=
          2 * static_cast<std::uint64_t>(file.rows * file.columns) * file.frames.size();
    }
    found.volumes.push_back(std::move(volume));
  }
  return absl::OkStatus();
}

}  // namespace

VolumeFormat FormatOf(const Folders& allowed, const std::string& path) {
  if (LooksLikeDicom(allowed, path)) return VolumeFormat::kDicom;
  const auto fd = OpenFile(allowed, path, O_RDONLY | O_NONBLOCK);
  struct stat st {};
  std::array<char, 8> head{};
  if (!fd.ok() || fstat(fd->get(), &st) != 0 || !S_ISREG(st.st_mode)) return VolumeFormat::kNone;
  if (static_cast<std::size_t>(st.st_size) < head.size() ||
      !ReadAt(fd->get(), 0, std::as_writable_bytes(std::span(head)), "head").ok()) {
    return VolumeFormat::kNone;
  }
  if (std::memcmp(head.data(), "NRRD000", 7) == 0) return VolumeFormat::kNrrd;
  if (EndsWith(path, {".mha", ".mhd"})) return VolumeFormat::kMetaImage;
  const auto size_is = [&head](const char* bytes) {
    return std::memcmp(head.data(), bytes, 4) == 0;
  };
  const bool is_plain = size_is("\x5c\x01\0\0") || size_is("\0\0\x01\x5c") ||
                        size_is("\x1c\x02\0\0") || size_is("\0\0\x02\x1c");
  const bool is_gzip = std::memcmp(head.data(), "\x1f\x8b", 2) == 0;
  if (is_plain || (is_gzip && EndsWith(path, {".nii.gz"}))) return VolumeFormat::kNifti;
  return VolumeFormat::kNone;
}

StatusOr<FoundVolumes> FindVolumes(const Folders& allowed, const std::string& path,
                                   const MayRead& may_read, const VolumeProgress& progress) {
  PB_ASSIGN_OR_RETURN(const std::string canonical, may_read(path));
  const Reading reading{allowed, may_read, progress};
  FoundVolumes found;
  if (!IsFolder(allowed, canonical)) {
    PB_RETURN_IF_ERROR(Sort(reading, canonical, {canonical}, found));
    // A single file is named by its own name; a DICOMDIR stands for the files around it.
    for (FoundVolume& volume : found.volumes) volume.name = canonical;
    if (found.other_dicom == 0) return found;
    if (fs::path(canonical).filename() == "DICOMDIR") {
      return FindVolumes(allowed, fs::path(canonical).parent_path().string(), may_read, progress);
    }
    found.unreadable.push_back(canonical);
    return found;
  }
  if (zarr::IsStore(allowed, canonical)) return found;
  Search search(allowed, may_read, progress);
  PB_RETURN_IF_ERROR(search.AddFolder(canonical));
  PB_RETURN_IF_ERROR(Sort(reading, canonical, search.files(), found));
  for (std::string& refused : search.Refused()) found.unreadable.push_back(std::move(refused));
  return found;
}

StatusOr<RepairedSeries> OpenParts(const Folders& allowed, const std::vector<std::string>& files,
                                   const VolumeProgress& progress, const Repairs& rules) {
  std::vector<DicomFile> headers;
  for (const std::string& file : files) {
    PB_ASSIGN_OR_RETURN(DicomFile header, ReadDicomFile(allowed, file));
    headers.push_back(std::move(header));
    if (progress) PB_RETURN_IF_ERROR(progress());
  }
  std::vector<DicomSeries> series = GroupSeries(std::move(headers));
  if (series.size() == 1) {
    return RepairSeries(allowed, std::move(series.front()), rules, progress);
  }
  if (series.empty()) {
    return InvalidArgument("read series: no image in it: a report, plan or directory");
  }
  return InvalidArgument("read series: the files are of ", series.size(),
                         " series; they changed since they were listed");
}

StatusOr<DicomSeries> OpenSeries(const Folders& allowed, const std::vector<std::string>& files,
                                 const VolumeProgress& progress, const SeriesRepair& repair) {
  PB_ASSIGN_OR_RETURN(RepairedSeries series, OpenParts(allowed, files, progress, repair.rules));
  const std::size_t parts = series.Count();
  if (repair.part <= parts && (parts == 1) == (repair.part == 0)) {
    return std::move(series).Part(repair.part);
  }
  return InvalidArgument("read series: it is split into ", parts, ", and part ", repair.part,
                         " is wanted: its files changed since they were listed");
}

StatusOr<RawVolume> ReadVolumeHeader(const Folders& allowed, VolumeFormat format,
                                     const std::string& path, GeometryPolicy policy,
                                     std::optional<std::int64_t> number) {
  PB_ASSIGN_OR_RETURN(RawVolume whole, HeaderOf(allowed, format, path, policy));
  PB_ASSIGN_OR_RETURN(RawVolume header, VolumeOf(std::move(whole), number));
  PB_RETURN_IF_ERROR(CheckRawVoxels(allowed, path, header.raw));
  return header;
}

StatusOr<Volume> ReadVolume(const Folders& allowed, VolumeFormat format,
                            const std::vector<std::string>& files, const ReadVolumeOptions& options,
                            const VolumeProgress& progress) {
  StatusOr<Volume> volume = InvalidArgument("read volume: no volume of a known format");
  if (format == VolumeFormat::kDicom) {
    PB_ASSIGN_OR_RETURN(const DicomSeries series,
                        OpenSeries(allowed, files, progress, options.repair));
    volume = ReadDicomVolume(allowed, series, Judge(series), options.geometry, progress);
  } else if (!files.empty()) {
    PB_ASSIGN_OR_RETURN(RawVolume whole, HeaderOf(allowed, format, files[0], options.geometry));
    PB_ASSIGN_OR_RETURN(RawVolume header, VolumeOf(std::move(whole), options.number));
    volume = ReadRawVolume(allowed, files[0], std::move(header), progress);
  }
  if (!volume.ok()) return volume;
  volume->facts["source_orientation"] = OrientationOf(volume->affine);
  if (progress) PB_RETURN_IF_ERROR(progress());
  if (options.is_canonical) Reorder(*volume, CanonicalOrder(volume->affine));
  return volume;
}

std::string_view NameOf(VolumeFormat format) { return kFormats.Of(format); }

StatusOr<VolumeFormat> VolumeFormatFromName(std::string_view name) {
  const auto format = kFormats.Find(name);
  if (format && *format != VolumeFormat::kNone) return *format;
  return InvalidArgument("read volume: no such format");
}

}  // namespace patchbay::workers
