// A connection of a reader of pages.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <openssl/types.h>

#include "runtime/os/file.h"

namespace patchbay::scheduler {

/// Bytes to and from a reader, with or without TLS, until a deadline. One thread.
class Connection {
 public:
  /// `socket` does not block; `tls` may be null; everything ends at once when `stop` is readable.
  Connection(UniqueFd socket, SSL_CTX* tls, int stop, std::int64_t deadline_ns);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Waits for a part; 0 = nothing more comes in time.
  std::size_t Read(std::span<char> part);
  /// Gives up at the deadline.
  void Write(std::string_view text);

 private:
  /// Whether the last call may be tried again.
  bool Await();

  const UniqueFd socket_;
  const int stop_;
  const std::int64_t deadline_ns_;
  BIO* bio_;
};

}  // namespace patchbay::scheduler
