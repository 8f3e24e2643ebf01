// Bytes that peers send: control messages, greetings of a ring, headers of shards. Proofs are made
// valid, so that damaged data passes them.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "runtime/core/hash.h"
#include "runtime/wire/data/ring_greeting.h"
#include "runtime/wire/data/shard_header.h"
#include "runtime/wire/protocol/codec.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/runtime/wire/protocol/every_field.h"

namespace patchbay::fuzz {
namespace {

using namespace data;

constexpr std::size_t kProofBytes = 32;

StreamSecret Secret() {
  StreamSecret secret;
  secret.fill(std::byte{1});
  return secret;
}

/// The last 32 bytes become the proof of those before them, and of `nonce` where there is one.
void Prove(std::vector<std::byte>& message, std::span<const std::byte> nonce) {
  if (message.size() < kProofBytes) return;
  std::string text(AsText(std::span(message).first(message.size() - kProofBytes)));
  text.append(AsText(nonce));
  const Digest proof = HmacSha256(Secret(), text);
  std::memcpy(message.data() + message.size() - kProofBytes, proof.bytes.data(), kProofBytes);
}

bool ReadMessage(std::span<const std::byte> bytes) {
  static protocol::Decoder decoder;
  const auto message = decoder.Decode(bytes);
  if (!message.ok()) return false;
  const auto again = protocol::Encode(*message);
  if (!again.ok() || !protocol::Decode(AsBytes(*again)).ok()) std::abort();
  return true;
}

std::vector<std::string> MessageSeeds() {
  std::vector<std::string> seeds;
  for (std::size_t body = 0; body < protocol::test::kBodies; ++body) {
    seeds.push_back(*protocol::Encode(protocol::test::Filled(body, 1)));
  }
  return seeds;
}

bool ReadGreeting(std::span<const std::byte> bytes) {
  const Variant variant(bytes, 3);
  const Nonce nonce{std::byte{1}};
  std::vector<std::byte> message(variant.bytes.begin(), variant.bytes.end());
  if (variant.index == 0) return DecodeChallenge(message).ok();
  Prove(message, nonce);
  if (variant.index == 1) return DecodeHello(message, nonce, Secret()).ok();
  const auto offer = DecodeRingOffer(message, nonce, Secret());
  if (offer.ok() &&
      (offer->slots == 0 || offer->RingHostBytes() / offer->slots != offer->host_stride)) {
    std::abort();
  }
  return offer.ok();
}

std::vector<std::string> GreetingSeeds() {
  const Nonce nonce{std::byte{1}};
  RingOffer offer;
  offer.slots = 5;
  offer.capacity = 16;
  offer.host_stride = 3 * 4096;
  offer.layout = Sha256Of("the layout");
  RingOffer device = offer;
  device.device_stride = 2 * 4096;
  device.device.emplace();
  device.device->gpu_uuid = "GPU-1234";
  device.device->size_bytes = 5 * 2 * 4096;
  return {Prefixed(0, AsText(EncodeChallenge({nonce}))),
          Prefixed(1, AsText(EncodeHello({77, nonce}, nonce, Secret()))),
          Prefixed(2, AsText(EncodeRingOffer(offer, nonce, Secret()))),
          Prefixed(2, AsText(EncodeRingOffer(device, nonce, Secret())))};
}

bool ReadHeader(std::span<const std::byte> bytes) {
  std::vector<std::byte> message(bytes.begin(), bytes.end());
  Prove(message, {});
  const auto header = DecodeShardHeader(message, Secret());
  if (!header.ok()) return false;
  std::array<std::byte, kShardHeaderBytes> again;
  EncodeShardHeader(*header, Secret(), again);
  if (!std::equal(again.begin(), again.end(), message.begin())) std::abort();
  return true;
}

std::vector<std::string> HeaderSeeds() {
  ShardHeader header;
  header.stream = 77;
  header.grant = Grant{1, 2, 0, 4};
  header.lease = LeaseNumber{1, 9};
  std::array<std::byte, kShardHeaderBytes> bytes;
  EncodeShardHeader(header, Secret(), bytes);
  return {std::string(AsText(bytes))};
}

}  // namespace

std::vector<FuzzTarget> WireTargets() {
  return {{"message", ReadMessage, MessageSeeds},
          {"ring_greeting", ReadGreeting, GreetingSeeds},
          {"shard_header", ReadHeader, HeaderSeeds}};
}

}  // namespace patchbay::fuzz
