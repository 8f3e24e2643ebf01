// The wire format that both ends of remote delivery share.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/core/ids.h"
#include "runtime/core/status.h"
#include "runtime/wire/data/shard_header.h"

namespace patchbay::data {

/// UCX: the active message that carries one array of a shard: header = ShardHeader, which names it;
/// payload by rendezvous.
inline constexpr unsigned kShardMessageId = 7;
/// UCX: the first message over an endpoint, by which a sender introduces itself. Its payload:
///   0 proof: HMAC-SHA256 of the address under the stream secret | 32 address of the sender's UCX
///   worker.
/// The trainer takes shards from such senders alone.
inline constexpr unsigned kHelloMessageId = 8;
std::vector<std::byte> EncodeHello(std::span<const std::byte> ucx_address,
                                   const StreamSecret& secret);
/// The address: a view into `hello`. PermissionDenied when the proof is not of this secret.
StatusOr<std::span<const std::byte>> DecodeHello(std::span<const std::byte> hello,
                                                 const StreamSecret& secret);

/// TLS: a shard is its header (kShardHeaderBytes, of every array), then the bytes of its ranges in
/// layout order; their sizes follow from layout and count. The trainer answers each with
///   0 magic u32 | 4 status code u32 | 8 lease counter u64, little-endian,
/// 0 = it landed. A refused shard's bytes are read and dropped, so that the connection goes on.
inline constexpr std::size_t kShardAnswerBytes = 16;
std::array<std::byte, kShardAnswerBytes> EncodeShardAnswer(const LeaseNumber& lease,
                                                           const Status& outcome);
/// The trainer's answer on the shard under `lease`; Unavailable when the bytes are no answer to it.
Status DecodeShardAnswer(std::span<const std::byte, kShardAnswerBytes> bytes,
                         const LeaseNumber& lease);

}  // namespace patchbay::data
