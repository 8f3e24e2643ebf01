// The mark in a sheet of `preview` that tells which images it shows, for `patchbay forget`: a tEXt
// chunk of PNG, which readers of pictures pass over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "runtime/core/hash.h"

namespace patchbay::results {

inline constexpr std::string_view kSheetKeyword = std::string_view("Patchbay images\0", 16);
inline constexpr std::size_t kSheetEndBytes = 12;        ///< IEND, the last chunk
inline constexpr std::size_t kMaxSheetMarkBytes = 8192;  ///< the most cards need 4.2 KiB

/// CRC-32 of PNG and zlib.
inline std::uint32_t PngCrc(std::string_view bytes) {
  std::uint32_t crc = 0xFFFFFFFF;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320 : 0);
  }
  return ~crc;
}

/// `png` with the digests of its images; as it is without any.
inline std::string WithMark(std::string png, const std::set<Digest>& digests) {
  if (digests.empty() || png.size() < kSheetEndBytes) return png;
  std::string chunk = "tEXt";
  chunk += kSheetKeyword;
  for (const Digest& digest : digests) chunk += digest.Hex() + " ";
  const auto word = [](std::size_t value) {
    std::string bytes;
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xFF);
    return bytes;
  };
  const std::string length = word(chunk.size() - 4), crc = word(PngCrc(chunk));
  return png.insert(png.size() - kSheetEndBytes, length + chunk + crc);
}

/// The digests in the end of a PNG; none where it has no mark.
inline std::set<std::string> MarkOf(std::string_view png) {
  std::set<std::string> digests;
  std::size_t at = png.rfind(kSheetKeyword);
  if (at == std::string_view::npos) return digests;
  constexpr std::size_t kDigits = 2 * sizeof(Digest::bytes);
  for (at += kSheetKeyword.size(); at + kDigits < png.size() && png[at + kDigits] == ' ';
       at += kDigits + 1) {
    digests.emplace(png.substr(at, kDigits));
  }
  return digests;
}

}  // namespace patchbay::results
