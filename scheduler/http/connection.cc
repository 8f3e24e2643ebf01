#include "scheduler/http/connection.h"

#include <algorithm>
#include <array>
#include <utility>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include "runtime/core/clock.h"
#include "runtime/core/status.h"

namespace patchbay::scheduler {

Connection::Connection(UniqueFd socket, SSL_CTX* tls, int stop)
    : socket_(std::move(socket)), stop_(stop), bio_(BIO_new_socket(socket_.get(), BIO_NOCLOSE)) {
  PB_CHECK(bio_ != nullptr);
  if (tls == nullptr) return;
  BIO* const secure = BIO_new_ssl(tls, 0);
  PB_CHECK(secure != nullptr);
  bio_ = BIO_push(secure, bio_);
}

/// A connection that closes with bytes unread would be reset, and the answer lost.
Connection::~Connection() {
  BIO_ssl_shutdown(bio_);
  BIO_free_all(bio_);
  ERR_clear_error();
  shutdown(socket_.get(), SHUT_WR);
  std::array<char, 4096> unread;
  for (int i = 0; i < 64 && recv(socket_.get(), unread.data(), unread.size(), MSG_DONTWAIT) > 0;) {
    ++i;
  }
}

bool Connection::Await() {
  const std::int64_t left_ns = deadline_ns_ - SteadyNowNs();
  if (!BIO_should_retry(bio_) || left_ns <= 0) return false;
  const short event = BIO_should_read(bio_) ? POLLIN : POLLOUT;
  std::array<pollfd, 2> waits{pollfd{socket_.get(), event, 0}, pollfd{stop_, POLLIN, 0}};
  const int ready = poll(waits.data(), waits.size(), static_cast<int>(left_ns / 1'000'000) + 1);
  return ready > 0 && waits[1].revents == 0;
}

std::size_t Connection::Read(std::span<char> part) {
  for (;;) {
    const int got = BIO_read(bio_, part.data(), static_cast<int>(part.size()));
    if (got > 0) return static_cast<std::size_t>(got);
    if (!Await()) return 0;
  }
}

bool Connection::IsDrained() const { return BIO_pending(bio_) == 0; }

bool Connection::Write(std::string_view text) {
  constexpr std::size_t kPart = 1 << 20;
  while (!text.empty()) {
    const int sent = BIO_write(bio_, text.data(), static_cast<int>(std::min(text.size(), kPart)));
    if (sent > 0) {
      text.remove_prefix(static_cast<std::size_t>(sent));
    } else if (!Await()) {
      return false;
    }
  }
  return true;
}

}  // namespace patchbay::scheduler
