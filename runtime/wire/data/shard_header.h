// The header in front of a shard's bytes (remote) or instead of them (mapped): which shard, under
// which lease, into which slot, and a proof that the sender belongs to the stream.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "runtime/core/hash.h"
#include "runtime/core/ids.h"
#include "runtime/core/status.h"
#include "runtime/model/stream/batch_layout.h"
#include "runtime/model/stream/stage_times.h"

namespace patchbay::data {

inline constexpr std::uint32_t kShardHeaderMagic = 0x52485350u;  ///< "PSHR" in memory order
inline constexpr std::uint16_t kShardHeaderVersion = 3;
inline constexpr std::size_t kShardHeaderBytes = 192;
inline constexpr std::size_t kStreamSecretBytes = 32;

/// The scheduler, the stream's trainers and the workers that serve it know it; the data plane never
/// carries it.
using StreamSecret = std::array<std::byte, kStreamSecretBytes>;

/// InvalidArgument unless `text` is exactly kStreamSecretBytes long (TrainerEndpoint carries it
/// so).
StatusOr<StreamSecret> StreamSecretFromText(std::string_view text);

/// The memory of the trainer that holds the bytes.
enum class Landing : std::uint8_t {
  kHost = 0,    ///< the host ring; pinned staging when the slots are on a device
  kDevice = 1,  ///< the device slot itself, written over CUDA IPC and complete; arrays that always
                ///< lie in host memory are in the host ring
};

/// ShardHeader::array of a report that the whole shard is in.
inline constexpr std::uint8_t kEveryArray = 0xFF;

/// Goes before a shard's bytes over TLS and UCX, and alone reports one that was written in place.
struct ShardHeader {
  std::uint64_t stream = 0;
  ShardId shard;
  Grant grant;
  LeaseNumber lease;
  Landing landing = Landing::kHost;
  std::uint8_t arrays = 1;           ///< arrays per patch of the stream
  std::uint8_t array = kEveryArray;  ///< the array that comes with this header
  /// Checksum of each array's bytes; 0 and unused on the mapped path, and past `arrays`.
  std::array<std::uint32_t, kMaxArrays> crc32c{};
  /// Time that the shard took to make; a receiver adds the transfer's.
  StageTimes times;

  bool operator==(const ShardHeader&) const = default;
};

/// Fixed layout, every field little-endian, zero where reserved:
///   0 magic u32 | 4 version u16 | 6 landing u8 | 7 array u8 | 8 stream u64 | 16 epoch u32 |
///   20 rank u32 | 24 batch u64 | 32 shard u32 | 36 slot u32 | 40 slot generation u64 |
///   48 place u32 | 52 count u32 | 56 lease incarnation u32 | 60 arrays u8 | 61 reserved 3 |
///   64 lease counter u64 | 72 reserved 8 | 80 crc32c u32 x 16 |
///   144 storage us u32 | 148 decode us u32 | 152 transform us u32 | 156 transfer us u32 |
///   160 proof: HMAC-SHA256(stream secret, bytes 0..160)
void EncodeShardHeader(const ShardHeader& header, const StreamSecret& secret,
                       std::span<std::byte, kShardHeaderBytes> out);

/// InvalidArgument: wrong size, magic, version, landing, arrays or reserved bytes;
/// PermissionDenied: the proof is not of this secret (compared in constant time). Checks only the
/// form; SlotTable checks whether the grant is live.
StatusOr<ShardHeader> DecodeShardHeader(std::span<const std::byte> bytes,
                                        const StreamSecret& secret);

/// Equal in every byte, in time that depends on the sizes only.
bool EqualInConstantTime(std::span<const std::byte> a, std::span<const std::byte> b);

}  // namespace patchbay::data
