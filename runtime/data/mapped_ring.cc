#include "runtime/data/mapped_ring.h"

#include <array>
#include <cerrno>
#include <utility>

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/hash.h"
#include "runtime/data/ring_memory.h"
#include "runtime/data/ucx_quiet.h"
#include "runtime/data/unix_socket.h"

namespace patchbay::data {
namespace {

/// The trainer's greeting comes in one message of at most this size.
StatusOr<std::span<const std::byte>> ReceiveGreeting(int socket, std::span<std::byte> buffer,
                                                     UniqueFd* fd = nullptr) {
  PB_ASSIGN_OR_RETURN(const std::size_t size, ReceiveMessage(socket, buffer, fd));
  if (size == 0) {
    return absl::PermissionDeniedError("the trainer closed the connection: not admitted");
  }
  return std::span<const std::byte>(buffer.first(size));
}

}  // namespace

StatusOr<std::unique_ptr<MappedRing>> MappedRing::Connect(const Options& options) {
  KeepUcxQuiet();
  const std::string context = StrCat("map ring of stream ", options.stream);
  auto ring = std::unique_ptr<MappedRing>(new MappedRing());
  ring->options_ = options;
  const Status connected = [&]() -> Status {
    PB_ASSIGN_OR_RETURN(ring->socket_, ConnectAbstract(options.socket_name, options.timeout_ms));
    const int socket = ring->socket_.get();
    PB_ASSIGN_OR_RETURN(const PeerProcess trainer, IdentifyPeer(socket));
    if (trainer.uid != geteuid() && trainer.uid != 0) {
      return absl::PermissionDeniedError("the socket belongs to another user");
    }
    std::array<std::byte, kMaxGreetingBytes> buffer;
    PB_ASSIGN_OR_RETURN(const auto first, ReceiveGreeting(socket, buffer));
    PB_ASSIGN_OR_RETURN(const Challenge challenge, DecodeChallenge(first));
    Hello hello;
    hello.stream = options.stream;
    FillRandom(hello.nonce);
    PB_RETURN_IF_ERROR(SendMessage(socket, EncodeHello(hello, challenge.nonce, options.secret)));
    UniqueFd memfd;
    PB_ASSIGN_OR_RETURN(const auto second, ReceiveGreeting(socket, buffer, &memfd));
    PB_ASSIGN_OR_RETURN(ring->offer_, DecodeRingOffer(second, hello.nonce, options.secret));
    PB_ASSIGN_OR_RETURN(ring->mapping_,
                        memory::MemfdBlock::Map(std::move(memfd), ring->offer_.ring_bytes));
    if (madvise(ring->mapping_.data(), ring->mapping_.size_bytes(), MADV_DONTFORK) != 0) {
      return FromErrno("keep mapping from children", "ring", errno);
    }
    ring->prefault_ = memory::Prefault(ring->mapping_.bytes());
    return absl::OkStatus();
  }();
  if (absl::IsDeadlineExceeded(connected)) {
    return absl::UnavailableError(StrCat(context, ": ", connected.message()));
  }
  if (!connected.ok()) return Annotate(connected, context);
  return ring;
}

StatusOr<std::span<std::byte>> MappedRing::Window(const Grant& grant) const {
  if (grant.slot >= offer_.slots || grant.size_bytes > offer_.slot_bytes ||
      grant.offset_bytes > offer_.slot_bytes - grant.size_bytes) {
    return absl::InvalidArgumentError(StrCat("open window: slot ", grant.slot, ", ",
                                             grant.offset_bytes, " + ", grant.size_bytes,
                                             " bytes: outside the ring"));
  }
  return mapping_.bytes().subspan(SlotStride(offer_.slot_bytes) * grant.slot + grant.offset_bytes,
                                  grant.size_bytes);
}

Status MappedRing::ReportShardFinished(const ShardHeader& header) {
  std::array<std::byte, kShardHeaderBytes> message;
  EncodeShardHeader(header, options_.secret, message);
  return Annotate(SendMessage(socket_.get(), message),
                  StrCat("report shard ", header.shard.ToString()));
}

bool MappedRing::Closed() const {
  pollfd watched{socket_.get(), POLLIN | POLLRDHUP, 0};
  if (poll(&watched, 1, 0) <= 0) return false;
  return (watched.revents & (POLLHUP | POLLRDHUP | POLLERR)) != 0;
}

}  // namespace patchbay::data
