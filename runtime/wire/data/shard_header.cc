#include "runtime/wire/data/shard_header.h"

#include <algorithm>
#include <cstring>

#include "runtime/core/other_version.h"
#include "runtime/wire/data/little_endian.h"

namespace patchbay::data {
namespace {

constexpr std::size_t kCrcBegin = 80;
constexpr std::size_t kTimesBegin = 144;
constexpr std::size_t kProofBegin = 160;

Digest HeaderProof(std::span<const std::byte> header, const StreamSecret& secret) {
  return HmacSha256(secret, AsText(header.first(kProofBegin)));
}

}  // namespace

StatusOr<StreamSecret> StreamSecretFromText(std::string_view text) {
  if (text.size() != kStreamSecretBytes) {
    return InvalidArgument("read stream secret: it has ", text.size(), " bytes, not ",
                           kStreamSecretBytes);
  }
  StreamSecret secret;
  std::memcpy(secret.data(), text.data(), secret.size());
  return secret;
}

bool EqualInConstantTime(std::span<const std::byte> a, std::span<const std::byte> b) {
  if (a.size() != b.size()) return false;
  volatile unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference = difference | std::to_integer<unsigned>(a[i] ^ b[i]);
  }
  return difference == 0;
}

void EncodeShardHeader(const ShardHeader& header, const StreamSecret& secret,
                       std::span<std::byte, kShardHeaderBytes> out) {
  std::fill(out.begin(), out.end(), std::byte{0});
  std::byte* p = out.data();
  StoreLittle(p, kShardHeaderMagic);
  StoreLittle(p + 4, kShardHeaderVersion);
  StoreLittle(p + 6, static_cast<std::uint8_t>(header.landing));
  StoreLittle(p + 7, header.array);
  StoreLittle(p + 8, header.stream);
  StoreLittle(p + 16, header.shard.epoch);
  StoreLittle(p + 20, header.shard.rank);
  StoreLittle(p + 24, header.shard.batch);
  StoreLittle(p + 32, header.shard.shard);
  StoreLittle(p + 36, header.grant.slot);
  StoreLittle(p + 40, header.grant.slot_generation);
  StoreLittle(p + 48, header.grant.place);
  StoreLittle(p + 52, header.grant.count);
  StoreLittle(p + 56, header.lease.incarnation);
  StoreLittle(p + 60, header.arrays);
  StoreLittle(p + 64, header.lease.counter);
  for (std::size_t i = 0; i < kMaxArrays; ++i) StoreLittle(p + kCrcBegin + 4 * i, header.crc32c[i]);
  StoreLittle(p + kTimesBegin, header.times.storage_us);
  StoreLittle(p + kTimesBegin + 4, header.times.decode_us);
  StoreLittle(p + kTimesBegin + 8, header.times.transform_us);
  StoreLittle(p + kTimesBegin + 12, header.times.transfer_us);
  const Digest proof = HeaderProof(out, secret);
  std::memcpy(p + kProofBegin, proof.bytes.data(), proof.bytes.size());
}

StatusOr<ShardHeader> DecodeShardHeader(std::span<const std::byte> bytes,
                                        const StreamSecret& secret) {
  const auto refuse = [](std::string cause) {
    return InvalidArgument("read shard header: ", cause);
  };
  if (bytes.size() != kShardHeaderBytes) return refuse(StrCat("it has ", bytes.size(), " bytes"));
  const std::byte* p = bytes.data();
  if (LoadLittle<std::uint32_t>(p) != kShardHeaderMagic) return refuse("wrong magic number");
  if (const auto v = LoadLittle<std::uint16_t>(p + 4); v != kShardHeaderVersion) {
    return refuse(OtherVersion(v, kShardHeaderVersion, kRunOneRelease));
  }
  const Digest proof = HeaderProof(bytes, secret);
  if (!EqualInConstantTime(std::as_bytes(std::span(proof.bytes)), bytes.subspan(kProofBegin))) {
    return PermissionDenied("read shard header: the proof is for another stream");
  }
  const auto landing = LoadLittle<std::uint8_t>(p + 6);
  if (landing > static_cast<std::uint8_t>(Landing::kDevice)) return refuse("unknown landing");
  ShardHeader h;
  h.array = LoadLittle<std::uint8_t>(p + 7);
  h.arrays = LoadLittle<std::uint8_t>(p + 60);
  if (h.arrays == 0 || h.arrays > kMaxArrays) return refuse("too few or too many arrays");
  if (h.array >= h.arrays && h.array != kEveryArray) return refuse("it has no such array");
  for (std::size_t i = 0; i < kMaxArrays; ++i) {
    h.crc32c[i] = LoadLittle<std::uint32_t>(p + kCrcBegin + 4 * i);
  }
  const auto is_zero = [](std::span<const std::byte> reserved) {
    return std::all_of(reserved.begin(), reserved.end(),
                       [](std::byte b) { return b == std::byte{0}; });
  };
  if (!is_zero(bytes.subspan(61, 3)) || !is_zero(bytes.subspan(72, 8)) ||
      !is_zero(bytes.subspan(kCrcBegin + 4 * h.arrays, 4 * (kMaxArrays - h.arrays)))) {
    return refuse("reserved bytes are not zero");
  }
  h.landing = static_cast<Landing>(landing);
  h.stream = LoadLittle<std::uint64_t>(p + 8);
  h.shard.epoch = LoadLittle<std::uint32_t>(p + 16);
  h.shard.rank = LoadLittle<std::uint32_t>(p + 20);
  h.shard.batch = LoadLittle<std::uint64_t>(p + 24);
  h.shard.shard = LoadLittle<std::uint32_t>(p + 32);
  h.grant.slot = LoadLittle<std::uint32_t>(p + 36);
  h.grant.slot_generation = LoadLittle<std::uint64_t>(p + 40);
  h.grant.place = LoadLittle<std::uint32_t>(p + 48);
  h.grant.count = LoadLittle<std::uint32_t>(p + 52);
  h.lease.incarnation = LoadLittle<std::uint32_t>(p + 56);
  h.lease.counter = LoadLittle<std::uint64_t>(p + 64);
  h.times.storage_us = LoadLittle<std::uint32_t>(p + kTimesBegin);
  h.times.decode_us = LoadLittle<std::uint32_t>(p + kTimesBegin + 4);
  h.times.transform_us = LoadLittle<std::uint32_t>(p + kTimesBegin + 8);
  h.times.transfer_us = LoadLittle<std::uint32_t>(p + kTimesBegin + 12);
  return h;
}

}  // namespace patchbay::data
