// JPEG 2000 codestreams made in memory.
#pragma once

#include <cstring>
#include <string>

#include <gtest/gtest.h>
#include <openjpeg.h>

namespace patchbay::workers {

/// An output stream in memory for OpenJPEG, which seeks back to fill in lengths.
struct MemoryWriter {
  std::string bytes;
  std::size_t at = 0;

  static OPJ_SIZE_T Write(void* data, OPJ_SIZE_T size, void* user) {
    auto* out = static_cast<MemoryWriter*>(user);
    if (out->bytes.size() < out->at + size) out->bytes.resize(out->at + size);
    std::memcpy(out->bytes.data() + out->at, data, size);
    out->at += size;
    return size;
  }
  static OPJ_OFF_T Skip(OPJ_OFF_T size, void* user) {
    static_cast<MemoryWriter*>(user)->at += static_cast<std::size_t>(size);
    return size;
  }
  static OPJ_BOOL Seek(OPJ_OFF_T to, void* user) {
    static_cast<MemoryWriter*>(user)->at = static_cast<std::size_t>(to);
    return OPJ_TRUE;
  }
};

/// The parameters of both encoders in the tests: one layer, three resolutions.
inline opj_cparameters_t Jpeg2000Parameters() {
  opj_cparameters_t parameters;
  opj_set_default_encoder_parameters(&parameters);
  parameters.tcp_numlayers = 1;
  parameters.cp_disto_alloc = 1;
  parameters.numresolution = 3;
  return parameters;
}

/// A raw codestream of `image`, which it destroys.
inline std::string CompressJpeg2000(opj_image_t* image, opj_cparameters_t parameters) {
  opj_codec_t* codec = opj_create_compress(OPJ_CODEC_J2K);
  opj_stream_t* stream = opj_stream_create(1 << 16, OPJ_FALSE);
  MemoryWriter out;
  opj_stream_set_user_data(stream, &out, nullptr);
  opj_stream_set_write_function(stream, MemoryWriter::Write);
  opj_stream_set_skip_function(stream, MemoryWriter::Skip);
  opj_stream_set_seek_function(stream, MemoryWriter::Seek);
  EXPECT_TRUE(opj_setup_encoder(codec, &parameters, image));
  EXPECT_TRUE(opj_start_compress(codec, image, stream));
  EXPECT_TRUE(opj_encode(codec, stream));
  EXPECT_TRUE(opj_end_compress(codec, stream));
  opj_stream_destroy(stream);
  opj_destroy_codec(codec);
  opj_image_destroy(image);
  return out.bytes;
}

}  // namespace patchbay::workers
