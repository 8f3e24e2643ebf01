// Bytes deflated by zlib, for tests of readers.
#pragma once

#include <string>

#include <gtest/gtest.h>
#include <zlib.h>

namespace patchbay {

/// Through zlib, with a header of zlib (15) or gzip (31).
inline std::string Deflate(const std::string& raw, int window, int level = 6) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, level, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(raw.size() * 2 + 1024, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(raw.data()));
  stream.avail_in = static_cast<uInt>(raw.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

}  // namespace patchbay
