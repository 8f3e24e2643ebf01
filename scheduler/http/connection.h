// A connection of a reader of pages.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <openssl/types.h>

#include "runtime/os/file.h"

namespace patchbay::scheduler {

/// Bytes to and from a reader, with or without TLS, until a deadline. One thread at a time.
class Connection {
 public:
  /// `socket` does not block; `tls` may be null; everything ends at once when `stop` is readable.
  Connection(UniqueFd socket, SSL_CTX* tls, int stop);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void set_deadline(std::int64_t deadline_ns) { deadline_ns_ = deadline_ns; }
  /// Waits for a part; 0 = nothing more comes in time.
  std::size_t Read(std::span<char> part);
  /// False when it gave up at the deadline.
  bool Write(std::string_view text);
  /// Whether nothing has been received that was not read.
  bool IsDrained() const;
  int socket() const { return socket_.get(); }

 private:
  /// Whether the last call may be tried again.
  bool Await();

  const UniqueFd socket_;
  const int stop_;
  std::int64_t deadline_ns_ = 0;
  BIO* bio_;
};

}  // namespace patchbay::scheduler
