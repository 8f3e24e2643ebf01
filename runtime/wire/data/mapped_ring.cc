#include "runtime/wire/data/mapped_ring.h"

#include <array>
#include <cerrno>
#include <utility>

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/core/hash.h"
#include "runtime/wire/data/sockets.h"

namespace patchbay::data {
namespace {

/// Receives the trainer's greeting: one message of at most buffer.size() bytes.
StatusOr<std::span<const std::byte>> ReceiveGreeting(int socket, std::span<std::byte> buffer,
                                                     UniqueFd* fd = nullptr) {
  PB_ASSIGN_OR_RETURN(const std::size_t size, ReceiveMessage(socket, buffer, fd));
  if (size == 0) return PermissionDenied("the trainer closed the connection: not admitted");
  return std::span<const std::byte>(buffer.first(size));
}

}  // namespace

StatusOr<std::unique_ptr<MappedRing>> MappedRing::Connect(const Options& options) {
  const std::string context = StrCat("map ring of stream ", options.stream);
  auto ring = std::unique_ptr<MappedRing>(new MappedRing());
  ring->options_ = options;
  const Status connected = [&]() -> Status {
    PB_ASSIGN_OR_RETURN(ring->socket_, ConnectAbstract(options.socket_name, options.timeout_ms));
    const int socket = ring->socket_.get();
    PB_ASSIGN_OR_RETURN(const PeerProcess trainer, IdentifyPeer(socket));
    if (trainer.uid != geteuid() && trainer.uid != 0) {
      return PermissionDenied("the socket belongs to another user");
    }
    std::array<std::byte, kMaxGreetingBytes> buffer;
    PB_ASSIGN_OR_RETURN(const auto first, ReceiveGreeting(socket, buffer));
    PB_ASSIGN_OR_RETURN(const Challenge challenge, DecodeChallenge(first));
    Hello hello;
    hello.stream = options.stream;
    hello.incarnation = options.incarnation;
    FillRandom(hello.nonce);
    PB_RETURN_IF_ERROR(SendMessage(socket, EncodeHello(hello, challenge.nonce, options.secret)));
    UniqueFd memfd;
    PB_ASSIGN_OR_RETURN(const auto second, ReceiveGreeting(socket, buffer, &memfd));
    PB_ASSIGN_OR_RETURN(ring->offer_, DecodeRingOffer(second, hello.nonce, options.secret));
    PB_RETURN_IF_ERROR(ring->CheckLayout());
    PB_ASSIGN_OR_RETURN(ring->mapping_,
                        memory::MemfdBlock::Map(std::move(memfd), ring->offer_.RingHostBytes()));
    if (madvise(ring->mapping_.data(), ring->mapping_.size_bytes(), MADV_DONTFORK) != 0) {
      return FromErrno("keep mapping from children", "ring", errno);
    }
    ring->prefault_ = memory::Prefault(ring->mapping_.bytes());
    return absl::OkStatus();
  }();
  if (absl::IsDeadlineExceeded(connected)) return Unavailable(context, ": ", connected.message());
  if (!connected.ok()) return Annotate(connected, context);
  return ring;
}

Status MappedRing::CheckLayout() {
  PB_ASSIGN_OR_RETURN(
      layout_, SlotLayout::Of(options_.layout, options_.capacity, offer_.device.has_value()));
  const bool same = offer_.layout == options_.layout.ToDigest() &&
                    offer_.capacity == options_.capacity &&
                    offer_.host_stride == layout_.host_stride() &&
                    offer_.device_stride == layout_.device_stride();
  if (same) return absl::OkStatus();
  return FailedPrecondition("the trainer lays out its slots otherwise: capacity ", offer_.capacity,
                            ", strides ", offer_.host_stride, " and ", offer_.device_stride,
                            ", layout ", offer_.layout.Hex(), "; here: ", options_.capacity, ", ",
                            layout_.host_stride(), " and ", layout_.device_stride(), ", ",
                            options_.layout.ToDigest().Hex());
}

StatusOr<std::vector<std::span<std::byte>>> MappedRing::Window(const Grant& grant) const {
  if (grant.slot >= offer_.slots || !layout_.Holds(grant.place, grant.count)) {
    return InvalidArgument("open window: slot ", grant.slot, ", patches ", grant.place, " + ",
                           grant.count, ": outside the ring");
  }
  const std::span<std::byte> slot =
      mapping_.bytes().subspan(layout_.host_stride() * grant.slot, layout_.host_stride());
  std::vector<std::span<std::byte>> ranges;
  for (std::size_t i = 0; i < layout_.arrays(); ++i) {
    const ByteRange range = layout_.InHost(i, grant.place, grant.count);
    ranges.push_back(slot.subspan(range.offset_bytes, range.size_bytes));
  }
  return ranges;
}

std::uint64_t MappedRing::DeviceOffset(const Grant& grant, std::size_t array) const {
  return layout_.device_stride() * grant.slot +
         layout_.InDevice(array, grant.place, grant.count).offset_bytes;
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
