// Envelope <-> bytes. The bytes are one unpacked Cap'n Proto message as patchbay.capnp specifies
// it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "runtime/core/status.h"
#include "runtime/wire/protocol/envelope.h"

namespace patchbay::protocol {

/// Most elements in any list of a message; longer ones are refused on both sides.
inline constexpr std::uint32_t kMaxListItems = 1u << 16;
/// Most segments of a received message.
inline constexpr std::uint32_t kMaxSegments = 4;

/// Turns envelopes into bytes, reusing its scratch memory from call to call. Not thread-safe: one
/// per thread.
class Encoder {
 public:
  Encoder();
  ~Encoder();
  Encoder(Encoder&&) noexcept;
  Encoder& operator=(Encoder&&) noexcept;

  /// The bytes are valid until the next call. ResourceExhausted when the message would exceed
  /// kMaxMessageBytes or a list kMaxListItems.
  StatusOr<std::span<const std::byte>> Encode(const Envelope& envelope);

 private:
  struct Scratch;
  std::unique_ptr<Scratch> scratch_;
};

/// Decodes messages from peers, which it does not trust: InvalidArgument for anything that is not
/// exactly one well-formed message within the limits, with known union members and enumerants;
/// FailedPrecondition when the peer's version is not supported. Not thread-safe: one per thread.
class Decoder {
 public:
  Decoder();
  ~Decoder();
  Decoder(Decoder&&) noexcept;
  Decoder& operator=(Decoder&&) noexcept;

  StatusOr<Envelope> Decode(std::span<const std::byte> bytes);
  /// The request id of the last message when its version was refused, so that it can be answered;
  /// otherwise 0.
  std::uint64_t refused_request_id() const;

 private:
  struct Scratch;
  std::unique_ptr<Scratch> scratch_;
};

/// One-off forms of the above, for tests and rare messages.
StatusOr<std::string> Encode(const Envelope& envelope);
StatusOr<Envelope> Decode(std::span<const std::byte> bytes);

/// "SubmitJob", "Heartbeat", ...: for errors and logs.
const char* BodyName(const Body& body);

}  // namespace patchbay::protocol
