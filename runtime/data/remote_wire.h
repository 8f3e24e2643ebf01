// What the two ends of remote delivery agree on.
#pragma once

namespace patchbay::data {

/// The active message that carries a shard: header = ShardHeader, payload by rendezvous.
inline constexpr unsigned kShardMessageId = 7;

}  // namespace patchbay::data
