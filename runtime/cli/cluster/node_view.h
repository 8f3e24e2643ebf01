// Nodes as people and programs see them; defined in node.cc.
#pragma once

#include <string>
#include <vector>

#include "runtime/format/json/json.h"
#include "runtime/wire/protocol/messages.h"

namespace patchbay::cli {

/// As `status` and `top` give it to programs; defined in cluster_status.cc.
Json ClusterToJson(const protocol::ClusterDescribed& cluster);
Json NodesToJson(const std::vector<protocol::NodeRow>& nodes);
/// Heading and one line per node.
std::vector<std::string> NodeTable(const std::vector<protocol::NodeRow>& nodes);

}  // namespace patchbay::cli
