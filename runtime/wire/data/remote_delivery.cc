#include "runtime/wire/data/remote_delivery.h"

#include <algorithm>
#include <charconv>

#include "runtime/core/hash.h"
#include "runtime/wire/data/little_endian.h"

namespace patchbay::data {
namespace {

constexpr std::uint32_t kAnswerMagic = 0x534e4150u;  ///< "PANS" in memory order

/// True for every code that means that this attempt is void, or that another may succeed.
bool IsRefusal(absl::StatusCode code) {
  return code == absl::StatusCode::kFailedPrecondition || code == absl::StatusCode::kAlreadyExists;
}

Digest HelloProof(std::span<const std::byte> ucx_address, const StreamSecret& secret) {
  return HmacSha256(secret, StrCat("patchbay sender ", AsText(ucx_address)));
}

}  // namespace

std::vector<std::byte> EncodeHello(std::span<const std::byte> ucx_address,
                                   const StreamSecret& secret) {
  const Digest proof = HelloProof(ucx_address, secret);
  const auto proof_bytes = std::as_bytes(std::span(proof.bytes));
  std::vector<std::byte> hello(proof_bytes.begin(), proof_bytes.end());
  hello.insert(hello.end(), ucx_address.begin(), ucx_address.end());
  return hello;
}

StatusOr<std::span<const std::byte>> DecodeHello(std::span<const std::byte> hello,
                                                 const StreamSecret& secret) {
  constexpr std::size_t kProofBytes = sizeof(Digest::bytes);
  const auto proof = hello.first(std::min(hello.size(), kProofBytes));
  const auto address = hello.subspan(proof.size());
  const Digest expected = HelloProof(address, secret);
  if (!address.empty() && EqualInConstantTime(std::as_bytes(std::span(expected.bytes)), proof)) {
    return address;
  }
  return PermissionDenied("read introduction: the proof is for another stream");
}

std::array<std::byte, kShardAnswerBytes> EncodeShardAnswer(const LeaseNumber& lease,
                                                           const Status& outcome) {
  std::array<std::byte, kShardAnswerBytes> bytes{};
  StoreLittle(bytes.data(), kAnswerMagic);
  StoreLittle(bytes.data() + 4, static_cast<std::uint32_t>(outcome.code()));
  StoreLittle(bytes.data() + 8, lease.counter);
  return bytes;
}

Status DecodeShardAnswer(std::span<const std::byte, kShardAnswerBytes> bytes,
                         const LeaseNumber& lease) {
  const auto code = static_cast<absl::StatusCode>(LoadLittle<std::uint32_t>(bytes.data() + 4));
  if (LoadLittle<std::uint32_t>(bytes.data()) != kAnswerMagic ||
      LoadLittle<std::uint64_t>(bytes.data() + 8) != lease.counter) {
    return Unavailable("the trainer answered something else");
  }
  if (code == absl::StatusCode::kOk) return absl::OkStatus();
  if (IsRefusal(code))
    return Status(code, "the trainer refused the shard: its grant is dead, or the shard counted");
  return Unavailable("the trainer dropped the shard (code ", static_cast<int>(code), ")");
}

StatusOr<std::unique_ptr<RemoteReceiver>> RemoteReceiver::Start(Ring& ring,
                                                                const Options& options) {
  if (options.network.policy == NetworkPolicy::kRdma) return StartUcxReceiver(ring, options);
  return StartTlsReceiver(ring, options);
}

StatusOr<std::unique_ptr<RemoteSender>> RemoteSender::Start(const Options& options) {
  if (options.network.policy == NetworkPolicy::kRdma) return StartUcxSender(options);
  return MakeTlsSender(options);
}

Status SealHeader(ShardHeader& header, RemoteSender::Payload payload) {
  if (payload.empty() || payload.size() > kMaxArrays || payload.size() != header.arrays) {
    return InvalidArgument("send shard: payload and header differ in arrays");
  }
  for (std::size_t i = 0; i < payload.size(); ++i) {
    if (header.crc32c[i] == 0) header.crc32c[i] = Crc32c(payload[i]);
  }
  return absl::OkStatus();
}

StatusOr<TlsAddress> ParseTlsAddress(const std::string& text) {
  const std::size_t slash = text.find('/');
  TlsAddress address;
  address.host_port = text.substr(0, slash);
  PB_RETURN_IF_ERROR(ParseSocketAddress(address.host_port).status());
  const char* const end = text.data() + text.size();
  const char* const number = slash == std::string::npos ? end : text.data() + slash + 1;
  const auto [stopped, error] = std::from_chars(number, end, address.incarnation);
  if (error == std::errc() && stopped == end) return address;
  return InvalidArgument("parse address: ", text,
                         ": it does not end with the trainer's incarnation");
}

StatusOr<std::string> AddressUnder(std::string_view scheme, const std::string& address) {
  if (address.starts_with(scheme)) return address.substr(scheme.size());
  return Unavailable("connect to trainer: ", address, ": this node sends over ", scheme,
                     " only: give both sides the same --data-policy");
}

}  // namespace patchbay::data
