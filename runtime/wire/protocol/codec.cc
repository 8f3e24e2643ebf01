// The envelope, the framing and the limits.
#include "runtime/wire/protocol/codec.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <kj/exception.h>

#include "runtime/core/other_version.h"
#include "runtime/wire/protocol/codec_fields.h"

namespace patchbay::protocol {
namespace {

constexpr std::size_t kWordBytes = sizeof(capnp::word);
constexpr std::size_t kMaxWords = kMaxMessageBytes / kWordBytes;
constexpr std::size_t kFirstScratchWords = 1024;
constexpr unsigned kMaxNesting = 16;
constexpr std::uint64_t kMinTraversalWords = 1024;

static_assert(kMaxMessageBytes % kWordBytes == 0);

void WriteBody(codec::Writing& out, const Body& body, wire::Envelope::Body::Builder b) {
#define PATCHBAY_OVERLOAD(Type, CONSTANT, FIELDS) \
  void operator()(const Type& m) const { codec::Write(out, m, b.init##Type()); }
  struct Arm {
    codec::Writing& out;
    mutable wire::Envelope::Body::Builder b;
    PATCHBAY_EVERY_BODY(PATCHBAY_OVERLOAD)
  };
#undef PATCHBAY_OVERLOAD
  std::visit(Arm{out, b}, body);
}

void ReadBody(codec::Reading& in, wire::Envelope::Body::Reader r, Body& body) {
  switch (r.which()) {
#define PATCHBAY_CASE(Type, CONSTANT, FIELDS)             \
  case wire::Envelope::Body::CONSTANT:                    \
    codec::Read(in, r.get##Type(), body.emplace<Type>()); \
    return;
    PATCHBAY_EVERY_BODY(PATCHBAY_CASE)
#undef PATCHBAY_CASE
  }
  in.Fail("the message is of an unknown kind");
}

Status Malformed(std::string_view why) { return InvalidArgument("decode message: ", why); }

}  // namespace

// ---------------------------------------------------------------- encoding

struct Encoder::Scratch {
  /// words[0] is the frame's header, the rest is the only segment; zero between calls, as the
  /// builder demands of memory it is given.
  std::vector<capnp::word> words = std::vector<capnp::word>(kFirstScratchWords);
  std::size_t used_words = 0;  ///< words of the last frame, to be zeroed before the next
};

Encoder::Encoder() : scratch_(std::make_unique<Scratch>()) {}
Encoder::~Encoder() = default;
Encoder::Encoder(Encoder&&) noexcept = default;
Encoder& Encoder::operator=(Encoder&&) noexcept = default;

namespace {

/// The result of building: the message is in the offered segment, or it would have needed `needed`
/// words.
struct Built {
  bool fits = false;
  std::size_t needed = 0;
};

Built Build(const Envelope& envelope, kj::ArrayPtr<capnp::word> segment, codec::Writing& out) {
  /// Allocates from `segment` first; anything beyond it is allocated elsewhere and only counted.
  struct Keeper final : capnp::MessageBuilder {
    kj::ArrayPtr<capnp::word> first;
    std::vector<std::vector<capnp::word>> more;
    bool given = false;
    std::size_t extra_words = 0;
    explicit Keeper(kj::ArrayPtr<capnp::word> segment_) : first(segment_) {}
    kj::ArrayPtr<capnp::word> allocateSegment(unsigned minimum) override {
      if (!given && minimum <= first.size()) {
        given = true;
        return first;
      }
      const std::size_t words = std::max<std::size_t>(minimum, first.size());
      extra_words += words;
      KJ_REQUIRE(extra_words <= 2 * kMaxWords, "message too large");
      more.emplace_back(words);
      return kj::arrayPtr(more.back().data(), more.back().size());
    }
  };
  Keeper keeper(segment);
  auto root = keeper.initRoot<wire::Envelope>();
  root.setVersion(envelope.version);
  root.setSenderIncarnation(envelope.sender_incarnation);
  root.setRequestId(envelope.request_id);
  WriteBody(out, envelope.body, root.getBody());
  Built built;
  const auto segments = keeper.getSegmentsForOutput();
  for (const auto& each : segments) built.needed += each.size();
  built.fits = segments.size() == 1 && segments[0].begin() == segment.begin();
  return built;
}

}  // namespace

StatusOr<std::span<const std::byte>> Encoder::Encode(const Envelope& envelope) {
  const Status too_large = ResourceExhausted("encode ", BodyName(envelope.body), ": larger than ",
                                             kMaxMessageBytes, " bytes");
  for (;;) {
    auto& words = scratch_->words;
    std::memset(static_cast<void*>(words.data()), 0, scratch_->used_words * kWordBytes);
    codec::Writing out;
    Built built;
    try {
      scratch_->used_words = words.size();
      built = Build(envelope, kj::arrayPtr(words.data() + 1, words.size() - 1), out);
    } catch (const kj::Exception&) {
      return too_large;
    }
    if (out.failure != nullptr) {
      return ResourceExhausted("encode ", BodyName(envelope.body), ": ", out.failure);
    }
    if (built.needed + 1 > kMaxWords) return too_large;
    if (built.fits) {
      scratch_->used_words = built.needed + 1;
      const std::uint32_t header[2] = {0, static_cast<std::uint32_t>(built.needed)};
      std::memcpy(static_cast<void*>(words.data()), header, sizeof header);
      return std::span(reinterpret_cast<const std::byte*>(words.data()),
                       (built.needed + 1) * kWordBytes);
    }
    words = std::vector<capnp::word>(std::min(kMaxWords + 1, built.needed + built.needed / 4 + 2));
    scratch_->used_words = 0;
  }
}

// ---------------------------------------------------------------- decoding

struct Decoder::Scratch {
  std::vector<capnp::word> words;
  std::uint64_t refused_request_id = 0;
};

Decoder::Decoder() : scratch_(std::make_unique<Scratch>()) {}
Decoder::~Decoder() = default;
Decoder::Decoder(Decoder&&) noexcept = default;
Decoder& Decoder::operator=(Decoder&&) noexcept = default;
std::uint64_t Decoder::refused_request_id() const { return scratch_->refused_request_id; }

namespace {

/// Size and segment table, before anything is copied.
Status CheckFrame(std::span<const std::byte> bytes) {
  if (bytes.size() > kMaxMessageBytes) return Malformed("larger than the limit");
  if (bytes.size() < kWordBytes || bytes.size() % kWordBytes != 0) {
    return Malformed("its length is not a multiple of the word size");
  }
  std::uint32_t last_segment = 0;
  std::memcpy(&last_segment, bytes.data(), sizeof last_segment);
  if (last_segment >= kMaxSegments) return Malformed("too many segments");
  const std::size_t table_words = (2 + last_segment) / 2 + ((2 + last_segment) % 2);
  if (bytes.size() / kWordBytes < table_words) return Malformed("the segment table is cut off");
  std::size_t total_words = table_words;
  for (std::uint32_t i = 0; i <= last_segment; ++i) {
    std::uint32_t segment_words = 0;
    std::memcpy(&segment_words, bytes.data() + 4 * (i + 1), sizeof segment_words);
    total_words += segment_words;
  }
  if (total_words > bytes.size() / kWordBytes) return Malformed("it is cut off");
  if (total_words < bytes.size() / kWordBytes) return Malformed("bytes follow its end");
  return absl::OkStatus();
}

Status ReadEnvelope(kj::ArrayPtr<const capnp::word> words, Envelope& envelope) {
  capnp::ReaderOptions limits;
  limits.traversalLimitInWords = std::max<std::uint64_t>(4 * words.size(), kMinTraversalWords);
  limits.nestingLimit = kMaxNesting;
  capnp::FlatArrayMessageReader reader(words, limits);
  const auto root = reader.getRoot<wire::Envelope>();
  envelope.version = root.getVersion();
  envelope.sender_incarnation = root.getSenderIncarnation();
  envelope.request_id = root.getRequestId();
  if (envelope.version < kMinProtocolVersion || envelope.version > kProtocolVersion) {
    const std::string known = kMinProtocolVersion == kProtocolVersion
                                  ? StrCat(kProtocolVersion)
                                  : StrCat(kMinProtocolVersion, " to ", kProtocolVersion);
    return FailedPrecondition("decode message: its protocol has ",
                              OtherVersion(envelope.version, known, kRunOneRelease));
  }
  codec::Reading in(words.size() * kWordBytes);
  ReadBody(in, root.getBody(), envelope.body);
  if (in.failure() != nullptr) return Malformed(in.failure());
  return absl::OkStatus();
}

}  // namespace

StatusOr<Envelope> Decoder::Decode(std::span<const std::byte> bytes) {
  scratch_->refused_request_id = 0;
  PB_RETURN_IF_ERROR(CheckFrame(bytes));
  auto& words = scratch_->words;
  const std::size_t count = bytes.size() / kWordBytes;
  if (words.size() < count) words = std::vector<capnp::word>(std::max(count, kFirstScratchWords));
  std::memcpy(static_cast<void*>(words.data()), bytes.data(), bytes.size());
  Envelope envelope;
  try {
    const Status status = ReadEnvelope(kj::arrayPtr(words.data(), count), envelope);
    if (absl::IsFailedPrecondition(status)) scratch_->refused_request_id = envelope.request_id;
    PB_RETURN_IF_ERROR(status);
  } catch (const kj::Exception&) {
    return Malformed("malformed message");
  } catch (const std::exception&) {
    return Malformed("malformed message");
  }
  return envelope;
}

// ---------------------------------------------------------------- one-off forms and names

StatusOr<std::string> Encode(const Envelope& envelope) {
  Encoder encoder;
  PB_ASSIGN_OR_RETURN(const auto bytes, encoder.Encode(envelope));
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

StatusOr<Envelope> Decode(std::span<const std::byte> bytes) { return Decoder().Decode(bytes); }

const char* BodyName(const Body& body) {
#define PATCHBAY_NAME(Type, CONSTANT, FIELDS) \
  const char* operator()(const Type&) const { return #Type; }
  struct Name {
    PATCHBAY_EVERY_BODY(PATCHBAY_NAME)
  };
#undef PATCHBAY_NAME
  return std::visit(Name{}, body);
}

}  // namespace patchbay::protocol
