#include "runtime/wire/data/remote_wire.h"

#include <algorithm>

#include "runtime/core/hash.h"
#include "runtime/wire/data/little_endian.h"

namespace patchbay::data {
namespace {

constexpr std::uint32_t kAnswerMagic = 0x534e4150u;  ///< "PANS" in memory order

/// True for every code that says that this attempt is void, or that another may do.
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
  return absl::PermissionDeniedError("read introduction: the proof is not of this stream");
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
    return absl::UnavailableError("the trainer answered something else");
  }
  if (code == absl::StatusCode::kOk) return absl::OkStatus();
  if (IsRefusal(code)) return Status(code, "the trainer refused it: its grant is dead or it is in");
  return absl::UnavailableError(
      StrCat("the trainer dropped it (code ", static_cast<int>(code), ")"));
}

}  // namespace patchbay::data
