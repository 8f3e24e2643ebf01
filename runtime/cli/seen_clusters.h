// The clusters that commands which only look at things see.
#pragma once

#include <functional>
#include <string>

#include "runtime/cli/command.h"
#include "runtime/client/client.h"
#include "runtime/core/status.h"
#include "runtime/format/json/json.h"

namespace patchbay::cli {

/// Called with each cluster. `embedded`: the key file of the embedded cluster it is; "" for the
/// one that was named or that `patchbay up` runs.
using LookAtCluster = std::function<Status(client::Client& client, const std::string& embedded)>;

/// Calls `look` for the cluster that the session names; or else for the one that runs from this
/// home and for every embedded one of this user, by name. An embedded cluster that is starting or
/// ending is skipped with a note. FailedPrecondition when there is none. Call it under an
/// InterruptScope.
Status LookAtClusters(const Session& session, const LookAtCluster& look);

/// Prints the heading of an embedded cluster; nothing for "".
void SayEmbedded(Terminal& terminal, const std::string& key_file);
/// Adds the description of a cluster to the result for programs: an embedded one to the list, with
/// its "key_file"; any other is the result itself.
void AddCluster(Json cluster, const std::string& key_file, Json& result, Json& embedded);

}  // namespace patchbay::cli
