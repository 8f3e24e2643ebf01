// What the two ends of remote delivery agree on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/ids.h"
#include "runtime/base/status.h"

namespace patchbay::data {

/// UCX: the active message that carries one array of a shard: header = ShardHeader, which names it;
/// payload by rendezvous.
inline constexpr unsigned kShardMessageId = 7;

/// TLS: a shard is its header (kShardHeaderBytes, of every array), then the bytes of its ranges in
/// layout order; their sizes follow from layout and count. The trainer answers each with
///   0 magic u32 | 4 status code u32 | 8 lease counter u64, little-endian,
/// 0 = it landed. A refused shard's bytes are read and dropped, so that the connection goes on.
inline constexpr std::size_t kShardAnswerBytes = 16;
std::array<std::byte, kShardAnswerBytes> EncodeShardAnswer(const LeaseNumber& lease,
                                                           const Status& outcome);
/// What the trainer says of the shard under `lease`; Unavailable when the answer is no answer to
/// it.
Status DecodeShardAnswer(std::span<const std::byte, kShardAnswerBytes> bytes,
                         const LeaseNumber& lease);

}  // namespace patchbay::data
