// The rows of a table that are channels of one image: they share an image_id, and each names its
// channel.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/model/plan/cohort_table.h"

namespace patchbay::cli {

inline constexpr char kChannelColumn[] = "channel", kImageColumn[] = "image_id";

/// One image of several channels.
struct ChannelRows {
  std::vector<std::string> names;            ///< in the order of their first rows in the table
  std::vector<const plan::CohortRow*> rows;  ///< one for each name
};

/// The images of those rows whose cell `channel` is not empty, in the order of their first rows.
/// InvalidArgument naming file, line and column: a row without an image_id, a name that is none, or
/// that another row of the image has, an image that lacks a channel which another one has, images
/// of one channel, an image_id of a row without a channel too. `rows` point into `table`.
StatusOr<std::vector<ChannelRows>> ChannelsOf(const plan::CohortTable& table,
                                              const std::vector<const plan::CohortRow*>& rows);

}  // namespace patchbay::cli
