// The transports behind remote_delivery.h, and what they share.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "runtime/core/status.h"
#include "runtime/wire/data/remote_delivery.h"

namespace patchbay::data {

StatusOr<std::unique_ptr<RemoteReceiver>> StartTlsReceiver(Ring& ring,
                                                           const RemoteReceiver::Options& options);
StatusOr<std::unique_ptr<RemoteReceiver>> StartUcxReceiver(Ring& ring,
                                                           const RemoteReceiver::Options& options);
std::unique_ptr<RemoteSender> MakeTlsSender(const RemoteSender::Options& options);
StatusOr<std::unique_ptr<RemoteSender>> StartUcxSender(const RemoteSender::Options& options);

/// Sets each array's crc32c unless the header has it. InvalidArgument when payload and header
/// differ in arrays.
Status SealHeader(ShardHeader& header, RemoteSender::Payload payload);
/// "10.0.0.7:4711/5" as address and incarnation. InvalidArgument for anything else.
struct TlsAddress {
  std::string host_port;
  std::uint64_t incarnation = 0;
};
StatusOr<TlsAddress> ParseTlsAddress(const std::string& text);
/// The rest of the address after the scheme. Unavailable, naming both, when the trainer's address
/// has another one.
StatusOr<std::string> AddressUnder(std::string_view scheme, const std::string& address);

}  // namespace patchbay::data
