// A segmentation into the store of a volume.
#pragma once

#include "workers/jobs/labels/revision.h"

namespace patchbay::workers {

/// RunLabelsImport for a row whose store is a volume: brings NIfTI, NRRD, .seg.nrrd, MHA or DICOM
/// SEG onto the image's grid. The label image also gets the index of class positions, the index of
/// components, and the histogram of Hounsfield units under each class.
StatusOr<TaskOutput> ImportVolume(TaskContext& context, const LabelsRequest& request,
                                  const ImportRow& row);

}  // namespace patchbay::workers
