// The modality that is stated beside a volume's file, which does not record it itself.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/model/source/modality.h"
#include "workers/jobs/task/task.h"
#include "workers/sources/volumes/find_volumes.h"

namespace patchbay::workers {

/// By the side-car (SCAN.json beside SCAN.nii.gz), else by the dataset.json above imagesTr or
/// imagesTs: of its one channel, or of the one called `channel`. nullopt where none is there, may
/// be read or says it, and for DICOM, whose headers do.
std::optional<ModalityRecord> StatedModality(const TaskContext& context, VolumeFormat format,
                                             const std::string& file,
                                             const std::string& channel = "");

/// The channels that the dataset.json above imagesTr or imagesTs names; empty without one.
std::vector<std::string> StatedChannels(const TaskContext& context, const std::string& file);

}  // namespace patchbay::workers
