// Every limit of a stream, by name. Planner, scheduler and trainer use the same limits, and the
// first to see a larger value refuses it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace patchbay {

/// The last epoch a stream can have: random numbers are counted with 16 bits of epoch.
inline constexpr std::uint32_t kMaxEpoch = 0xFFFF;
inline constexpr std::uint64_t kMaxPatchesPerEpoch = std::uint64_t{1} << 40;
inline constexpr std::uint32_t kMaxGlobalBatch = 1u << 20;
inline constexpr std::uint32_t kMaxWorldSize = 4'096;
inline constexpr std::uint32_t kMaxShardsPerSlot = 1u << 16;
/// Most bytes of one rank's part of a batch.
inline constexpr std::uint64_t kMaxSlotBytes = std::uint64_t{1} << 38;
/// Most bytes of all slots of a trainer: it maps them at once.
inline constexpr std::uint64_t kMaxRingBytes = std::uint64_t{1} << 40;
/// Slots of a trainer, its spares included.
inline constexpr std::uint32_t kMaxRingSlots = 256;
inline constexpr std::size_t kMaxImageRuns = 4'096;   ///< runs of a sequential stream
inline constexpr std::size_t kMaxUnitRuns = 65'536;   ///< runs of a stream with units
inline constexpr std::size_t kMaxByteVersions = 256;  ///< bytes of the text naming a plan's makers

}  // namespace patchbay
