#include "runtime/wire/data/remote_delivery.h"

#include <charconv>

#include "runtime/core/hash.h"
#include "runtime/wire/data/remote_transports.h"

namespace patchbay::data {

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
    return absl::InvalidArgumentError("send shard: payload and header differ in arrays");
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
  return absl::InvalidArgumentError(
      StrCat("parse address: ", text, ": it does not end with the trainer's incarnation"));
}

StatusOr<std::string> AddressUnder(std::string_view scheme, const std::string& address) {
  if (address.starts_with(scheme)) return address.substr(scheme.size());
  return absl::UnavailableError(StrCat("connect to trainer: ", address, ": this node sends over ",
                                       scheme, " only: give both sides the same --data-policy"));
}

}  // namespace patchbay::data
