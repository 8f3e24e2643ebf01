#include "runtime/wire/data/socket_bio.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include <openssl/bio.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/uio.h>

namespace patchbay::data {
namespace {

/// A connection's bytes between OpenSSL and the kernel.
struct Wire {
  int fd = -1;
  std::vector<char> out;  ///< to be sent, from `sent` on
  std::size_t sent = 0;
  /// The next record's header, which came with the end of the record before: OpenSSL asks for
  /// header and body one after the other.
  std::array<char, SSL3_RT_HEADER_LENGTH> header{};
  std::size_t header_bytes = 0;
};

Wire& WireOf(BIO* bio) { return *static_cast<Wire*>(BIO_get_data(bio)); }

bool IsTemporary() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

/// Whether all that waited has left; otherwise the BIO says whether to try again.
bool SendWaiting(BIO* bio) {
  Wire& wire = WireOf(bio);
  while (wire.sent < wire.out.size()) {
    const ssize_t sent =
        send(wire.fd, wire.out.data() + wire.sent, wire.out.size() - wire.sent, MSG_NOSIGNAL);
    if (sent < 0) {
      if (IsTemporary()) BIO_set_retry_write(bio);
      return false;
    }
    wire.sent += static_cast<std::size_t>(sent);
  }
  wire.out.clear();
  wire.sent = 0;
  return true;
}

int WriteBytes(BIO* bio, const char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  Wire& wire = WireOf(bio);
  const auto count = static_cast<std::size_t>(size);
  if (wire.out.size() + count > kWriteBufferBytes && !SendWaiting(bio)) return -1;
  wire.out.insert(wire.out.end(), bytes, bytes + count);
  return size;
}

int TakeHeader(Wire& wire, char* bytes, std::size_t size) {
  const std::size_t taken = std::min(size, wire.header_bytes);
  std::memcpy(bytes, wire.header.data(), taken);
  std::memmove(wire.header.data(), wire.header.data() + taken, wire.header_bytes - taken);
  wire.header_bytes -= taken;
  return static_cast<int>(taken);
}

int ReadBytes(BIO* bio, char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  Wire& wire = WireOf(bio);
  const auto count = static_cast<std::size_t>(size);
  if (wire.header_bytes > 0) return TakeHeader(wire, bytes, count);
  std::array<iovec, 2> parts = {{{bytes, count}, {wire.header.data(), wire.header.size()}}};
  const ssize_t got = readv(wire.fd, parts.data(), static_cast<int>(parts.size()));
  if (got < 0 && IsTemporary()) BIO_set_retry_read(bio);
  if (got <= size) return static_cast<int>(got);
  wire.header_bytes = static_cast<std::size_t>(got) - count;
  return size;
}

long Control(BIO* bio, int command, long, void*) {
  if (command != BIO_CTRL_FLUSH) return 0;
  BIO_clear_retry_flags(bio);
  return SendWaiting(bio) ? 1 : -1;
}

int Destroy(BIO* bio) {
  delete static_cast<Wire*>(BIO_get_data(bio));
  return 1;
}

BIO_METHOD* MakeSocketMethod() {
  BIO_METHOD* const method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "patchbay");
  if (method == nullptr) return nullptr;
  BIO_meth_set_write(method, &WriteBytes);
  BIO_meth_set_read(method, &ReadBytes);
  BIO_meth_set_ctrl(method, &Control);
  BIO_meth_set_destroy(method, &Destroy);
  return method;
}

}  // namespace

/// The method is immutable once made, and made once in a process.
BIO* MakeSocketBio(int fd) {
  static BIO_METHOD* const method = MakeSocketMethod();
  BIO* const bio = method == nullptr ? nullptr : BIO_new(method);
  if (bio == nullptr) return nullptr;
  auto* wire = new Wire;
  wire->fd = fd;
  BIO_set_data(bio, wire);
  BIO_set_init(bio, 1);
  return bio;
}

}  // namespace patchbay::data
