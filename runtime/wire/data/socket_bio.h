// OpenSSL's source and sink: a non-blocking socket, with one system call a record or fewer, no copy
// of received bytes, and no SIGPIPE in a user's process.
#pragma once

#include <cstddef>

struct bio_st;

namespace patchbay::data {

/// Sealed bytes that wait to be sent at once: eight records.
inline constexpr std::size_t kWriteBufferBytes = 128 << 10;

/// Owns no descriptor; null when there is no memory. What is written leaves when kWriteBufferBytes
/// have come together or the BIO is flushed.
bio_st* MakeSocketBio(int fd);

}  // namespace patchbay::data
