#include "runtime/format/zarr/codec/codec_metadata.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <set>

#include <immintrin.h>

#include "runtime/core/outcome.h"
#include "runtime/format/zarr/codec/tile_codec.h"

namespace patchbay::zarr {
namespace {

Status Malformed(std::string_view what, std::string_view cause) {
  return ErrorAbout(absl::StatusCode::kInvalidArgument, "read metadata", what, cause);
}

Status Unsupported(std::string_view what, std::string_view kind, std::string_view name) {
  return ErrorAbout(absl::StatusCode::kUnimplemented, "read metadata", what,
                    StrCat(kind, " ", name, " is not supported"));
}

/// A type name as numcodecs filters spell it ("<i2", "int32"), with its byte order.
struct ElementType {
  DType dtype = DType::kUint8;
  bool big_endian = false;
};

std::optional<ElementType> FilterType(const Json& options, const char* key) {
  const auto found = options.find(key);
  if (found == options.end() || !found->is_string()) return std::nullopt;
  const auto& name = found->get_ref<const std::string&>();
  if (const auto dtype = DTypeFromName(name)) return ElementType{*dtype, false};
  return ParseDTypeV2(name)
             ? std::optional(ElementType{ParseDTypeV2(name)->dtype, ParseDTypeV2(name)->big_endian})
             : std::nullopt;
}

Status AppendDelta(const Json& options, const ArrayMetadata& array, std::string_view what,
                   CodecChain& chain) {
  const auto dtype = FilterType(options, "dtype");
  const auto astype = options.contains("astype") ? FilterType(options, "astype") : dtype;
  const bool integer = array.dtype >= DType::kInt8 && array.dtype <= DType::kUint64;
  if (!dtype || !astype) return Malformed(what, "codec delta has no dtype");
  if (dtype->dtype != array.dtype || astype->dtype != array.dtype || !integer) {
    return Unsupported(what, "codec", "delta between types");
  }
  chain.codecs.push_back({.kind = CodecKind::kDelta});
  return absl::OkStatus();
}

Status AppendFixedScaleOffset(const Json& options, const ArrayMetadata& array,
                              std::string_view what, CodecChain& chain) {
  const auto dtype = FilterType(options, "dtype");
  const auto astype = options.contains("astype") ? FilterType(options, "astype") : dtype;
  if (!dtype || !astype) return Malformed(what, "codec fixedscaleoffset has no dtype");
  PB_ASSIGN_OR_RETURN(const double scale, JsonDouble(options, "scale", what));
  PB_ASSIGN_OR_RETURN(const double offset, JsonDouble(options, "offset", what));
  const bool floats = array.dtype == DType::kFloat32 || array.dtype == DType::kFloat64;
  const bool integers = astype->dtype >= DType::kInt8 && astype->dtype <= DType::kUint64;
  if (dtype->dtype != array.dtype || !floats || !integers || scale == 0 || !chain.codecs.empty()) {
    return Unsupported(what, "codec", "fixedscaleoffset of these types");
  }
  if (SizeOf(astype->dtype) > 1) chain.big_endian = astype->big_endian;
  chain.codecs.push_back({.kind = CodecKind::kFixedScaleOffset,
                          .scale = scale,
                          .offset = offset,
                          .stored_dtype = astype->dtype});
  return absl::OkStatus();
}

Status AppendShuffle(const Json& options, std::string_view what, CodecChain& chain) {
  std::int64_t size = 4;
  if (options.contains("elementsize")) {
    PB_ASSIGN_OR_RETURN(size, JsonInt(options, "elementsize", what));
  }
  if (size < 1 || size > 256) return Malformed(what, "codec shuffle has an elementsize beyond 256");
  chain.codecs.push_back({.kind = CodecKind::kShuffle, .element_bytes = size});
  return absl::OkStatus();
}

Status AppendChecksum(CodecKind kind, bool first_by_default, const Json& options,
                      std::string_view what, CodecChain& chain) {
  Codec codec{.kind = kind, .checksum_first = first_by_default};
  if (options.contains("location")) {
    PB_ASSIGN_OR_RETURN(const std::string location, JsonString(options, "location", what));
    if (location != "start" && location != "end") {
      return Malformed(what, StrCat("checksum location ", location));
    }
    codec.checksum_first = location == "start";
  }
  chain.codecs.push_back(codec);
  return absl::OkStatus();
}

StatusOr<std::vector<int>> ParseOrder(const Json& options, int rank, std::string_view what) {
  const auto found = options.find("order");
  if (found == options.end()) return Malformed(what, "codec transpose has no order");
  std::vector<int> order(static_cast<std::size_t>(rank));
  if (found->is_string() && (*found == "C" || *found == "F")) {
    for (int i = 0; i < rank; ++i) {
      order[static_cast<std::size_t>(i)] = *found == "C" ? i : rank - 1 - i;
    }
    return order;
  }
  if (!found->is_array() || found->size() != order.size()) {
    return Malformed(what, "codec transpose: order is not a permutation of the axes");
  }
  std::set<std::int64_t> seen;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Json& axis = (*found)[i];
    const std::int64_t value = axis.is_number_integer() ? axis.get<std::int64_t>() : -1;
    if (value < 0 || value >= rank || !seen.insert(value).second) {
      return Malformed(what, "codec transpose: order is not a permutation of the axes");
    }
    order[i] = static_cast<int>(value);
  }
  return order;
}

struct NamedCodec {
  std::string name;
  Json configuration = Json::object();
};

StatusOr<NamedCodec> ParseNamed(const Json& entry, std::string_view what) {
  NamedCodec out;
  if (entry.is_string()) {
    out.name = entry.get<std::string>();
    return out;
  }
  if (!entry.is_object()) return Malformed(what, "a codec is neither a name nor an object");
  PB_ASSIGN_OR_RETURN(out.name, JsonString(entry, "name", what));
  if (const auto found = entry.find("configuration"); found != entry.end()) {
    if (!found->is_object()) return Malformed(what, StrCat("codec ", out.name, ": configuration"));
    out.configuration = *found;
  }
  return out;
}

StatusOr<bool> ParseEndian(const NamedCodec& codec, std::string_view what) {
  const auto found = codec.configuration.find("endian");
  if (found == codec.configuration.end() || found->is_null() || *found == "little") return false;
  if (*found == "big") return true;
  return Malformed(what, "codec bytes: endian is neither little nor big");
}

/// v3 names that are not "numcodecs.…": the bytes-to-bytes codecs of the specification.
Status AppendBytesCodec(const NamedCodec& codec, std::string_view what, CodecChain& chain) {
  if (codec.name == "blosc") {
    chain.codecs.push_back({.kind = CodecKind::kBlosc});
  } else if (codec.name == "zstd") {
    chain.codecs.push_back({.kind = CodecKind::kZstd});
  } else if (codec.name == "gzip") {
    chain.codecs.push_back({.kind = CodecKind::kGzip});
  } else if (codec.name == "crc32c") {
    return AppendChecksum(CodecKind::kCrc32c, false, codec.configuration, what, chain);
  } else {
    return Unsupported(what, "codec", codec.name);
  }
  return absl::OkStatus();
}

bool IsArrayFilter(std::string_view id) {
  return id == "delta" || id == "fixedscaleoffset" || id == "bitround";
}

/// The chain of one inner chunk: transpose*, filters*, bytes, bytes-to-bytes codecs*.
Status ParseChain(const Json& codecs, std::string_view what, ArrayMetadata& array) {
  CodecChain& chain = array.chain;
  chain.order.resize(array.shape.size());
  for (std::size_t i = 0; i < chain.order.size(); ++i) chain.order[i] = static_cast<int>(i);
  bool serialised = false;
  for (const Json& entry : codecs) {
    PB_ASSIGN_OR_RETURN(const NamedCodec codec, ParseNamed(entry, what));
    PB_ASSIGN_OR_RETURN(const auto tile,
                        ParseTileFormat(codec.name, codec.configuration, array, what));
    const bool foreign = codec.name.rfind("numcodecs.", 0) == 0;
    const std::string id = foreign ? codec.name.substr(10) : codec.name;
    if (codec.name == "sharding_indexed") return Unsupported(what, "codec", "nested sharding");
    if (codec.name == "transpose") {
      if (serialised) return Malformed(what, "codec transpose after bytes");
      if (!chain.codecs.empty()) return Unsupported(what, "codec", "transpose after a filter");
      PB_ASSIGN_OR_RETURN(const std::vector<int> order,
                          ParseOrder(codec.configuration, array.rank(), what));
      std::vector<int> composed(order.size());
      for (std::size_t i = 0; i < order.size(); ++i) {
        composed[i] = chain.order[static_cast<std::size_t>(order[i])];
      }
      chain.order = composed;
    } else if (tile) {
      if (serialised || !chain.codecs.empty()) {
        return Malformed(what, StrCat("codec ", codec.name, " after another"));
      }
      serialised = true;
      chain.tile = tile;
    } else if (codec.name == "bytes") {
      if (serialised) return Malformed(what, "codec bytes twice");
      serialised = true;
      PB_ASSIGN_OR_RETURN(chain.big_endian, ParseEndian(codec, what));
    } else if (foreign && IsArrayFilter(id) && serialised) {
      return Malformed(what, StrCat("codec ", codec.name, " after bytes"));
    } else if (foreign) {
      const std::size_t before = chain.codecs.size();
      PB_RETURN_IF_ERROR(AppendNumcodec(id, codec.configuration, array, what, chain));
      if (!serialised && !IsArrayFilter(id) && chain.codecs.size() > before) {
        return Malformed(what, StrCat("codec ", codec.name, " before bytes"));
      }
    } else {
      if (!serialised) {
        // An unknown array codec and a misplaced bytes codec look alike: report the right one.
        PB_RETURN_IF_ERROR(AppendBytesCodec(codec, what, chain));
        return Malformed(what, StrCat("codec ", codec.name, " before bytes"));
      }
      PB_RETURN_IF_ERROR(AppendBytesCodec(codec, what, chain));
    }
  }
  if (!serialised) return Malformed(what, "codecs hold no bytes or sharding_indexed codec");
  return absl::OkStatus();
}

Status ParseIndexCodecs(const Json& options, std::string_view what, ArrayMetadata& array) {
  const auto found = options.find("index_codecs");
  if (found == options.end() || !found->is_array() || found->empty() ||
      found->size() > kMaxCodecs) {
    return Malformed(what, "sharding_indexed has no index_codecs");
  }
  PB_ASSIGN_OR_RETURN(const NamedCodec first, ParseNamed((*found)[0], what));
  if (first.name != "bytes") return Unsupported(what, "index codec", first.name);
  PB_ASSIGN_OR_RETURN(array.index_big_endian, ParseEndian(first, what));
  array.index_checksum = false;
  for (std::size_t i = 1; i < found->size(); ++i) {
    PB_ASSIGN_OR_RETURN(const NamedCodec next, ParseNamed((*found)[i], what));
    if (next.name != "crc32c" || array.index_checksum) {
      return Unsupported(what, "index codec", next.name);
    }
    array.index_checksum = true;
  }
  return absl::OkStatus();
}

Status ParseSharding(const Json& options, std::string_view what, ArrayMetadata& array) {
  array.sharded = true;
  PB_ASSIGN_OR_RETURN(array.chunk_shape, ParseExtents(options, "chunk_shape", false, what));
  if (array.chunk_shape.size() != array.shape.size()) {
    return Malformed(what, "sharding_indexed: chunk_shape has another rank than the array");
  }
  std::int64_t chunks = 1;
  for (std::size_t i = 0; i < array.shape.size(); ++i) {
    if (array.shard_shape[i] % array.chunk_shape[i] != 0) {
      return Malformed(what, "sharding_indexed: chunk_shape does not divide the shard");
    }
    if (__builtin_mul_overflow(chunks, array.shard_shape[i] / array.chunk_shape[i], &chunks) ||
        chunks > kMaxChunksPerShard) {
      return Malformed(what, StrCat("more than ", kMaxChunksPerShard, " chunks in a shard"));
    }
  }
  const std::string location =
      options.contains("index_location") && options["index_location"].is_string()
          ? options["index_location"].get<std::string>()
          : (options.contains("index_location") ? "" : "end");
  if (location != "start" && location != "end") {
    return Malformed(what, "sharding_indexed: index_location is neither start nor end");
  }
  array.index_at_end = location == "end";
  PB_RETURN_IF_ERROR(ParseIndexCodecs(options, what, array));
  const auto codecs = options.find("codecs");
  if (codecs == options.end() || !codecs->is_array() || codecs->size() > kMaxCodecs) {
    return Malformed(what, "sharding_indexed has no codecs");
  }
  return ParseChain(*codecs, what, array);
}

Status RefuseFill(const Json& value, DType dtype, std::string_view what) {
  return ErrorAbout(absl::StatusCode::kInvalidArgument, "read metadata", what,
                    StrCat("fill_value ", DumpJson(value), " is not a value of ", NameOf(dtype)));
}

template <typename T>
std::vector<std::byte> BytesOf(T value) {
  std::vector<std::byte> out(sizeof value);
  std::memcpy(out.data(), &value, sizeof value);
  return out;
}

template <typename T>
StatusOr<std::vector<std::byte>> Integer(const Json& value, DType dtype, std::string_view what) {
  if (value.is_number_unsigned()) {
    const auto v = value.get<std::uint64_t>();
    if (v <= static_cast<std::uint64_t>(std::numeric_limits<T>::max())) {
      return BytesOf(static_cast<T>(v));
    }
  } else if (value.is_number_integer()) {
    const auto v = value.get<std::int64_t>();
    if (std::is_signed_v<T> && v >= static_cast<std::int64_t>(std::numeric_limits<T>::min()) &&
        v <= static_cast<std::int64_t>(std::numeric_limits<T>::max())) {
      return BytesOf(static_cast<T>(v));
    }
  } else if (value.is_number_float()) {
    const double v = value.get<double>();
    // Up to 2^53 every whole number is exact.
    if (v == std::floor(v) && std::fabs(v) <= 9007199254740992.0 &&
        v >= static_cast<double>(std::numeric_limits<T>::min()) &&
        v <= static_cast<double>(std::numeric_limits<T>::max())) {
      return BytesOf(static_cast<T>(v));
    }
  }
  return RefuseFill(value, dtype, what);
}

/// The bits of "0x..." with exactly `digits` hex digits.
std::optional<std::uint64_t> HexBits(std::string_view text, std::size_t digits) {
  if (text.size() != digits + 2 || text.substr(0, 2) != "0x") return std::nullopt;
  std::uint64_t bits = 0;
  for (const char c : text.substr(2)) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) return std::nullopt;
    bits = bits << 4 | static_cast<std::uint64_t>(digit);
  }
  return bits;
}

std::vector<std::byte> FloatBytes(double value, DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return BytesOf(value);
    case DType::kFloat32:
      return BytesOf(static_cast<float>(value));
    case DType::kFloat16:
      return BytesOf(static_cast<std::uint16_t>(
          _cvtss_sh(static_cast<float>(value), _MM_FROUND_TO_NEAREST_INT)));
    default: {  // bfloat16: round to nearest even
      const auto single = static_cast<float>(value);
      if (std::isnan(single)) return BytesOf(std::uint16_t{0x7fc0});
      std::uint32_t bits;
      std::memcpy(&bits, &single, sizeof bits);
      return BytesOf(static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16));
    }
  }
}

StatusOr<std::vector<std::byte>> Float(const Json& value, DType dtype, std::string_view what) {
  if (value.is_number()) return FloatBytes(value.get<double>(), dtype);
  if (!value.is_string()) return RefuseFill(value, dtype, what);
  const auto& text = value.get_ref<const std::string&>();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (text == "NaN") return FloatBytes(std::numeric_limits<double>::quiet_NaN(), dtype);
  if (text == "Infinity") return FloatBytes(kInfinity, dtype);
  if (text == "-Infinity") return FloatBytes(-kInfinity, dtype);
  const auto bits = HexBits(text, 2 * SizeOf(dtype));
  if (!bits) return RefuseFill(value, dtype, what);
  std::vector<std::byte> out(SizeOf(dtype));
  std::memcpy(out.data(), &*bits, out.size());
  return out;
}

}  // namespace

std::optional<DTypeV2> ParseDTypeV2(std::string_view text) {
  if (text.size() != 3) return std::nullopt;
  const char order = text[0];
  if (order != '<' && order != '>' && order != '|') return std::nullopt;
  static constexpr std::pair<std::string_view, DType> kTypes[] = {
      {"b1", DType::kBool},    {"i1", DType::kInt8},    {"u1", DType::kUint8},
      {"i2", DType::kInt16},   {"u2", DType::kUint16},  {"i4", DType::kInt32},
      {"u4", DType::kUint32},  {"i8", DType::kInt64},   {"u8", DType::kUint64},
      {"f2", DType::kFloat16}, {"f4", DType::kFloat32}, {"f8", DType::kFloat64}};
  for (const auto& [name, dtype] : kTypes) {
    if (text.substr(1) != name) continue;
    if (order == '|' && SizeOf(dtype) > 1) return std::nullopt;
    return DTypeV2{dtype, order == '>'};
  }
  return std::nullopt;
}

Status AppendNumcodec(std::string_view id, const Json& options, const ArrayMetadata& array,
                      std::string_view what, CodecChain& chain) {
  const std::size_t before = chain.codecs.size();
  if (chain.codecs.size() >= kMaxCodecs) return Malformed(what, "too many codecs");
  if (id == "blosc") {
    chain.codecs.push_back({.kind = CodecKind::kBlosc});
  } else if (id == "zstd") {
    chain.codecs.push_back({.kind = CodecKind::kZstd});
  } else if (id == "gzip" || id == "zlib") {
    chain.codecs.push_back({.kind = CodecKind::kGzip});
  } else if (id == "lz4") {
    chain.codecs.push_back({.kind = CodecKind::kLz4});
  } else if (id == "bz2") {
    chain.codecs.push_back({.kind = CodecKind::kBz2});
  } else if (id == "crc32c") {
    return AppendChecksum(CodecKind::kCrc32c, false, options, what, chain);
  } else if (id == "adler32") {
    return AppendChecksum(CodecKind::kAdler32, true, options, what, chain);
  } else if (id == "fletcher32") {
    chain.codecs.push_back({.kind = CodecKind::kFletcher32});
  } else if (id == "shuffle") {
    return AppendShuffle(options, what, chain);
  } else if (id == "bitround") {
    return absl::OkStatus();  // rounds on encode; decoding changes nothing
  } else if (id == "delta" || id == "fixedscaleoffset") {
    if (before > 0 && !IsTyped(chain.codecs.back().kind)) {
      return Unsupported(what, "codec", StrCat(id, " after a byte codec"));
    }
    return id == "delta" ? AppendDelta(options, array, what, chain)
                         : AppendFixedScaleOffset(options, array, what, chain);
  } else {
    return Unsupported(what, "codec", id);
  }
  return absl::OkStatus();
}

Status ParseCodecsV3(const Json& codecs, std::string_view what, ArrayMetadata& array) {
  if (!codecs.is_array() || codecs.empty() || codecs.size() > kMaxCodecs) {
    return Malformed(what, StrCat("codecs is not a list of 1 to ", kMaxCodecs));
  }
  for (const Json& entry : codecs) {
    PB_ASSIGN_OR_RETURN(const NamedCodec codec, ParseNamed(entry, what));
    if (codec.name != "sharding_indexed") continue;
    if (codecs.size() != 1)
      return Unsupported(what, "codec", "another one next to sharding_indexed");
    return ParseSharding(codec.configuration, what, array);
  }
  array.chunk_shape = array.shard_shape;
  return ParseChain(codecs, what, array);
}

StatusOr<std::vector<std::int64_t>> ParseExtents(const Json& object, const char* key, bool zero_ok,
                                                 std::string_view what) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array()) {
    return Malformed(what, StrCat(key, " is not a list"));
  }
  if (found->size() > static_cast<std::size_t>(kMaxRank)) {
    return Unsupported(what, "rank", StrCat(found->size()));
  }
  std::vector<std::int64_t> out;
  for (const Json& entry : *found) {
    const bool whole = entry.is_number_integer() &&
                       !(entry.is_number_unsigned() &&
                         entry.get<std::uint64_t>() > static_cast<std::uint64_t>(kMaxExtent));
    const std::int64_t value = whole ? entry.get<std::int64_t>() : -1;
    if (value < (zero_ok ? 0 : 1) || value > kMaxExtent) {
      return Malformed(what, StrCat(key, " holds ", DumpJson(entry), ", not a number from ",
                                    zero_ok ? 0 : 1, " to ", kMaxExtent));
    }
    out.push_back(value);
  }
  return out;
}

Status CheckChunk(const ArrayMetadata& array, std::string_view what) {
  auto bytes = static_cast<std::int64_t>(SizeOf(array.dtype));
  for (const std::int64_t extent : array.chunk_shape) {
    if (__builtin_mul_overflow(bytes, extent, &bytes) || bytes > kMaxChunkBytes) {
      return Malformed(what, StrCat("a chunk of more than ", kMaxChunkBytes, " bytes"));
    }
  }
  return absl::OkStatus();
}

StatusOr<std::vector<std::byte>> ParseFillValue(const Json& value, DType dtype,
                                                std::string_view what) {
  if (value.is_null()) return std::vector<std::byte>(SizeOf(dtype));
  switch (dtype) {
    case DType::kBool:
      if (value.is_boolean()) return BytesOf(static_cast<std::uint8_t>(value.get<bool>()));
      if (value == 0 || value == 1) return BytesOf(static_cast<std::uint8_t>(value == 1));
      return RefuseFill(value, dtype, what);
    case DType::kInt8:
      return Integer<std::int8_t>(value, dtype, what);
    case DType::kUint8:
      return Integer<std::uint8_t>(value, dtype, what);
    case DType::kInt16:
      return Integer<std::int16_t>(value, dtype, what);
    case DType::kUint16:
      return Integer<std::uint16_t>(value, dtype, what);
    case DType::kInt32:
      return Integer<std::int32_t>(value, dtype, what);
    case DType::kUint32:
      return Integer<std::uint32_t>(value, dtype, what);
    case DType::kInt64:
      return Integer<std::int64_t>(value, dtype, what);
    case DType::kUint64:
      return Integer<std::uint64_t>(value, dtype, what);
    case DType::kFloat16:
    case DType::kBfloat16:
    case DType::kFloat32:
    case DType::kFloat64:
      return Float(value, dtype, what);
  }
  return RefuseFill(value, dtype, what);
}

}  // namespace patchbay::zarr
