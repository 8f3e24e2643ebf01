// Volumes for tests, and counts of their voxels.
#pragma once

#include <array>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/core/strings.h"
#include "runtime/os/folders.h"
#include "workers/sources/volumes/dicom_pixels.h"
#include "workers/sources/volumes/find_volumes.h"

/// Ends a test that needs outside data where there is none.
#define SKIP_WITHOUT_DATA()                                                  \
  if (std::getenv("PATCHBAY_TEST_DATA") == nullptr ||                        \
      *std::getenv("PATCHBAY_TEST_DATA") == '\0') {                          \
    GTEST_SKIP() << "PATCHBAY_TEST_DATA is not set: no real series to read"; \
  }                                                                          \
  static_assert(true)

namespace patchbay::workers {

inline std::string Data(const std::string& name) {
  return StrCat(std::getenv("PATCHBAY_TEST_DATA"), "/", name);
}

inline StatusOr<std::string> AnyPath(const std::string& path) { return path; }

inline FoundVolumes FoundBelow(const std::string& path) {
  auto found = FindVolumes(Folders::OfThisUser(), path, AnyPath, nullptr);
  EXPECT_TRUE(found.ok()) << found.status();
  return found.ok() ? *std::move(found) : FoundVolumes{};
}

inline std::vector<DicomSeries> SeriesBelow(const std::string& path) {
  std::vector<DicomSeries> all;
  for (const FoundVolume& volume : FoundBelow(path).volumes) {
    if (volume.format != VolumeFormat::kDicom) continue;
    auto series = OpenSeries(Folders::OfThisUser(), volume.files, nullptr);
    EXPECT_TRUE(series.ok()) << series.status();
    if (series.ok()) all.push_back(*std::move(series));
  }
  return all;
}

/// The one volume below `path`.
inline StatusOr<Volume> ReadCanonical(const std::string& path,
                                      GeometryPolicy policy = GeometryPolicy::kRefuse) {
  PB_ASSIGN_OR_RETURN(const FoundVolumes found,
                      FindVolumes(Folders::OfThisUser(), path, AnyPath, nullptr));
  if (found.volumes.size() != 1) {
    return absl::NotFoundError(StrCat(path, ": ", found.volumes.size(), " volumes"));
  }
  ReadVolumeOptions options;
  options.geometry = policy;
  return ReadVolume(Folders::OfThisUser(), found.volumes[0].format, found.volumes[0].files, options,
                    nullptr);
}

/// The stored values of all frames of one file.
inline StatusOr<std::vector<std::int32_t>> StoredValues(const std::string& path) {
  PB_ASSIGN_OR_RETURN(const DicomFile file, ReadDicomFile(Folders::OfThisUser(), path));
  PB_ASSIGN_OR_RETURN(const auto pixels, DicomPixels::Open(Folders::OfThisUser(), file));
  const auto plane = static_cast<std::size_t>(file.rows * file.columns);
  std::vector<std::int32_t> all(plane * file.frames.size());
  for (std::size_t f = 0; f < file.frames.size(); ++f) {
    PB_RETURN_IF_ERROR(pixels->Read(f, std::span(all).subspan(f * plane, plane)));
  }
  return all;
}

struct LabelMean {
  std::int64_t voxels = 0;
  double mean = 0;
};

inline double ValueOf(const Volume& volume, std::size_t i) {
  if (volume.dtype == DType::kInt16) {
    return reinterpret_cast<const std::int16_t*>(volume.voxels.data())[i];
  }
  return static_cast<double>(reinterpret_cast<const float*>(volume.voxels.data())[i]);
}

inline LabelMean MeanUnder(const Volume& volume, const Volume& labels, int label) {
  LabelMean found;
  double sum = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(volume.size.Pixels()); ++i) {
    if (ValueOf(labels, i) != label) continue;
    ++found.voxels;
    sum += ValueOf(volume, i);
  }
  found.mean = sum / static_cast<double>(found.voxels);
  return found;
}

}  // namespace patchbay::workers
