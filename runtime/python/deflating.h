// Deflate streams (RFC 1951) of the chunks of a map, made several times as fast as zlib's level 1
// and about as short. No Python, C library only.
#pragma once

#include <cstddef>
#include <cstdint>

namespace patchbay::python {

/// Room that the stream of `size` bytes needs at most, its writer's included.
constexpr std::size_t MostDeflated(std::size_t size) { return size + size / 1024 + 64; }

/// Writes one stream to `out`, which has room for MostDeflated(size); its bytes. Equal input makes
/// equal bytes on every processor.
std::size_t Deflate(const std::uint8_t* in, std::size_t size, std::uint8_t* out);

/// Castagnoli's checksum, which closes an index of a shard.
std::uint32_t Crc32c(const std::uint8_t* in, std::size_t size);

}  // namespace patchbay::python
