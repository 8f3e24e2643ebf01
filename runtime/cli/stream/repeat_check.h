// Whether own functions make a patch alike, whatever is made before it and beside it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/cli/command.h"
#include "runtime/client/run_file.h"
#include "runtime/core/status.h"
#include "runtime/format/json/json.h"

namespace patchbay::cli {

struct RepeatReport {
  std::size_t patches = 0;                ///< compared for each function
  std::vector<std::string> functions;     ///< names of all
  std::vector<std::string> unrepeatable;  ///< "key 'augment[1].python': jitter: patch 17"
};

/// Streams the first patches of the run's first epoch twice for each own function, without the
/// others: in batches of another size, and from another patch on, by another process. Compares the
/// arrays. Errors as of a stream, a function's exception among them.
StatusOr<RepeatReport> CheckRepeat(const Session& session, const client::RunSource& source,
                                   const std::string& split, const Json& augment);

}  // namespace patchbay::cli
