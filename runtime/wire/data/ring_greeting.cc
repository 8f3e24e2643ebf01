#include "runtime/wire/data/ring_greeting.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "runtime/core/other_version.h"
#include "runtime/memory/host_buffer.h"
#include "runtime/model/stream/limits.h"
#include "runtime/wire/data/little_endian.h"

namespace patchbay::data {
namespace {

constexpr std::uint32_t kMagic = 0x474e5250u;  // "PRNG" in memory order
constexpr std::uint16_t kVersion = 3;
constexpr std::size_t kPrefixBytes = 8;
constexpr std::size_t kProofBytes = 32;
constexpr std::size_t kDigestBytes = 32;
constexpr std::size_t kUuidBytes = 64;
constexpr std::size_t kIpcBytes = 64;

enum class Kind : std::uint16_t { kChallenge = 1, kHello = 2, kRingOffer = 3 };

constexpr std::size_t kChallengeBytes = kPrefixBytes + 32;
constexpr std::size_t kHelloNonceAt = kPrefixBytes + 8 + 4;
constexpr std::size_t kHelloBytes = kHelloNonceAt + 32 + kProofBytes;
constexpr std::size_t kOfferBytes =
    kPrefixBytes + 16 + 16 + kDigestBytes + 8 + kIpcBytes + kUuidBytes + kProofBytes;
constexpr std::size_t kDeviceAt = 16 + 16 + kDigestBytes;  ///< its size, handle and UUID
static_assert(kOfferBytes <= kMaxGreetingBytes);

std::vector<std::byte> Begin(Kind kind, std::size_t size_bytes) {
  std::vector<std::byte> out(size_bytes);
  StoreLittle(out.data(), kMagic);
  StoreLittle(out.data() + 4, kVersion);
  StoreLittle(out.data() + 6, static_cast<std::uint16_t>(kind));
  return out;
}

Status CheckPrefix(std::span<const std::byte> bytes, Kind kind, std::size_t size_bytes) {
  if (bytes.size() != size_bytes || LoadLittle<std::uint32_t>(bytes.data()) != kMagic ||
      LoadLittle<std::uint16_t>(bytes.data() + 6) != static_cast<std::uint16_t>(kind)) {
    return InvalidArgument("read ring greeting: unexpected message");
  }
  if (const auto v = LoadLittle<std::uint16_t>(bytes.data() + 4); v != kVersion) {
    return InvalidArgument("read ring greeting: ", OtherVersion(v, kVersion, kRunOneRelease));
  }
  return absl::OkStatus();
}

Digest GreetingProof(std::span<const std::byte> message, const Nonce& nonce,
                     const StreamSecret& secret) {
  std::string text(AsText(message.first(message.size() - kProofBytes)));
  text.append(AsText(nonce));
  return HmacSha256(secret, text);
}

void Seal(std::vector<std::byte>& message, const Nonce& nonce, const StreamSecret& secret) {
  const Digest proof = GreetingProof(message, nonce, secret);
  std::memcpy(message.data() + message.size() - kProofBytes, proof.bytes.data(), kProofBytes);
}

Status CheckSeal(std::span<const std::byte> message, const Nonce& nonce,
                 const StreamSecret& secret) {
  const Digest proof = GreetingProof(message, nonce, secret);
  if (EqualInConstantTime(std::as_bytes(std::span(proof.bytes)), message.last(kProofBytes))) {
    return absl::OkStatus();
  }
  return PermissionDenied("read ring greeting: the peer does not know the stream secret");
}

}  // namespace

std::vector<std::byte> EncodeChallenge(const Challenge& challenge) {
  auto out = Begin(Kind::kChallenge, kChallengeBytes);
  std::copy(challenge.nonce.begin(), challenge.nonce.end(), out.begin() + kPrefixBytes);
  return out;
}

StatusOr<Challenge> DecodeChallenge(std::span<const std::byte> bytes) {
  PB_RETURN_IF_ERROR(CheckPrefix(bytes, Kind::kChallenge, kChallengeBytes));
  Challenge challenge;
  std::copy_n(bytes.data() + kPrefixBytes, challenge.nonce.size(), challenge.nonce.begin());
  return challenge;
}

std::vector<std::byte> EncodeHello(const Hello& hello, const Nonce& theirs,
                                   const StreamSecret& secret) {
  auto out = Begin(Kind::kHello, kHelloBytes);
  StoreLittle(out.data() + kPrefixBytes, hello.stream);
  StoreLittle(out.data() + kPrefixBytes + 8, hello.incarnation);
  std::copy(hello.nonce.begin(), hello.nonce.end(), out.begin() + kHelloNonceAt);
  Seal(out, theirs, secret);
  return out;
}

StatusOr<Hello> DecodeHello(std::span<const std::byte> bytes, const Nonce& ours,
                            const StreamSecret& secret) {
  PB_RETURN_IF_ERROR(CheckPrefix(bytes, Kind::kHello, kHelloBytes));
  PB_RETURN_IF_ERROR(CheckSeal(bytes, ours, secret));
  Hello hello;
  hello.stream = LoadLittle<std::uint64_t>(bytes.data() + kPrefixBytes);
  hello.incarnation = LoadLittle<std::uint32_t>(bytes.data() + kPrefixBytes + 8);
  std::copy_n(bytes.data() + kHelloNonceAt, hello.nonce.size(), hello.nonce.begin());
  return hello;
}

std::vector<std::byte> EncodeRingOffer(const RingOffer& offer, const Nonce& theirs,
                                       const StreamSecret& secret) {
  auto out = Begin(Kind::kRingOffer, kOfferBytes);
  std::byte* p = out.data() + kPrefixBytes;
  StoreLittle(p, offer.slots);
  StoreLittle(p + 4, offer.capacity);
  StoreLittle(p + 8, std::uint64_t{offer.device.has_value() ? 1u : 0u});
  StoreLittle(p + 16, offer.host_stride);
  StoreLittle(p + 24, offer.device_stride);
  std::memcpy(p + 32, offer.layout.bytes.data(), kDigestBytes);
  if (offer.device.has_value()) {
    StoreLittle(p + kDeviceAt, offer.device->size_bytes);
    std::copy(offer.device->ipc.begin(), offer.device->ipc.end(), p + kDeviceAt + 8);
    const std::size_t length = std::min(offer.device->gpu_uuid.size(), kUuidBytes);
    std::memcpy(p + kDeviceAt + 8 + kIpcBytes, offer.device->gpu_uuid.data(), length);
  }
  Seal(out, theirs, secret);
  return out;
}

StatusOr<RingOffer> DecodeRingOffer(std::span<const std::byte> bytes, const Nonce& ours,
                                    const StreamSecret& secret) {
  PB_RETURN_IF_ERROR(CheckPrefix(bytes, Kind::kRingOffer, kOfferBytes));
  PB_RETURN_IF_ERROR(CheckSeal(bytes, ours, secret));
  const std::byte* p = bytes.data() + kPrefixBytes;
  RingOffer offer;
  offer.slots = LoadLittle<std::uint32_t>(p);
  offer.capacity = LoadLittle<std::uint32_t>(p + 4);
  offer.host_stride = LoadLittle<std::uint64_t>(p + 16);
  offer.device_stride = LoadLittle<std::uint64_t>(p + 24);
  std::memcpy(offer.layout.bytes.data(), p + 32, kDigestBytes);
  const auto refuse = [](const char* cause) {
    return InvalidArgument("read ring greeting: ", cause);
  };
  if (offer.slots == 0 || offer.slots > kMaxRingSlots) return refuse("too few or too many slots");
  if (offer.host_stride == 0 || offer.host_stride > memory::kMaxBlockBytes / offer.slots ||
      offer.device_stride > memory::kMaxBlockBytes / offer.slots) {
    return refuse("the ring is empty or too large");
  }
  if (LoadLittle<std::uint64_t>(p + 8) != 0) {
    memory::DeviceBlockHandle device;
    device.size_bytes = LoadLittle<std::uint64_t>(p + kDeviceAt);
    std::copy_n(p + kDeviceAt + 8, kIpcBytes, device.ipc.begin());
    const char* uuid = reinterpret_cast<const char*>(p + kDeviceAt + 8 + kIpcBytes);
    device.gpu_uuid.assign(uuid, strnlen(uuid, kUuidBytes));
    if (device.size_bytes != offer.slots * offer.device_stride) {
      return refuse("the slots do not make up the device block");
    }
    offer.device = device;
  }
  if (offer.device.has_value() != (offer.device_stride != 0)) {
    return refuse("slots on a device without its block");
  }
  return offer;
}

}  // namespace patchbay::data
