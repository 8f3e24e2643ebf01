// A segmentation into the store of a volume.
#pragma once

#include "workers/jobs/labels/revision.h"

namespace patchbay::workers {

/// As RunLabelsImport, of a row whose store is a volume: NIfTI, NRRD, .seg.nrrd, MHA or DICOM SEG
/// onto the image's grid. With the label image come the index of where each class lies, that of its
/// components, and the histogram of its Hounsfield units.
StatusOr<TaskOutput> ImportVolume(TaskContext& context, const LabelsRequest& request,
                                  const ImportRow& row);

}  // namespace patchbay::workers
