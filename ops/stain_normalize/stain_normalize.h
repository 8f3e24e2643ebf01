// stain_normalize: maps the colours of every image to those of one reference. The colours of an
// image are fitted once, at ingest, from all its pixels; a patch is never fitted by itself.
#pragma once

#include "ops/colour/optical_density.h"
#include "runtime/format/json/json.h"
#include "runtime/model/ops/op_options.h"
#include "runtime/model/ops/op_table.h"
#include "runtime/model/ops/stain_fit.h"
#include "runtime/model/ops/stain_references.h"

namespace patchbay::ops {

inline constexpr plan::OpNumber kStainNormalize{9};

/// Maps the amounts of an image's stains to those of the reference: each is scaled by the quotient
/// of the maxima, then rendered in the reference's colours. The residual is left out.
OdStep StainNormalizeStep(const plan::MacenkoFit& image, const plan::MacenkoFit& reference);

}  // namespace patchbay::ops
