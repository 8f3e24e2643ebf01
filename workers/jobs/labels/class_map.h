// A class map of `patchbay map` (configs/map.md) as labels of the image that it was made from.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/core/box.h"
#include "workers/jobs/labels/opened_labels.h"

namespace patchbay::workers {

/// By its name.
bool IsClassMap(std::string_view path);

/// The class map at `path`, canonical, of an image of results whose store is `image`. The set's
/// attributes say which results and output it is of. InvalidArgument: an image of other pixels than
/// the map was made from, values that are no bytes, another extent than the image's, links in its
/// folder, which `map` makes none of; NotFound outside of a folder of results.
StatusOr<OpenedLabels> OpenClassMap(TaskContext& context, const std::string& path,
                                    LabelledImage image);

/// InvalidArgument where a link lies below a folder of results.
Status CheckNoLinks(TaskContext& context, const std::string& folder);

}  // namespace patchbay::workers
