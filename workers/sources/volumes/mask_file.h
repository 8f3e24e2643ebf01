// Masks of volumes, written as NIfTI and NRRD.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "runtime/core/extent.h"
#include "runtime/core/status.h"
#include "runtime/os/folders.h"
#include "workers/sources/volumes/patient_axes.h"

namespace patchbay::workers {

struct VolumeMask {
  Extent size;
  Affine affine;
  std::span<const std::uint8_t> values;  ///< size.Pixels(), x fastest
  bool is_exported = false;              ///< marked as a label set of ours, in which 255 is ignored
};

/// A NIfTI-1 file with its geometry as sform, deflated where the name ends in ".gz". Durable, and
/// whole or not there. Returns its bytes. Sides of up to 32,767.
StatusOr<std::uint64_t> WriteNiftiMask(const Folders& allowed, const std::string& path,
                                       const VolumeMask& mask);
/// The same as a deflated NRRD in LPS.
StatusOr<std::uint64_t> WriteNrrdMask(const Folders& allowed, const std::string& path,
                                      const VolumeMask& mask);

/// True for a NIfTI or NRRD file that is marked as exported. False if it cannot be read.
bool IsExportedVolumeMask(const Folders& allowed, const std::string& path);

}  // namespace patchbay::workers
