// What the two ends of remote delivery agree on.
#pragma once

namespace patchbay::data {

/// The active message that carries one array of a shard: header = ShardHeader, which names it;
/// payload by rendezvous.
inline constexpr unsigned kShardMessageId = 7;

}  // namespace patchbay::data
