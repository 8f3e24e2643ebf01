#include "runtime/format/zarr/metadata.h"

#include <algorithm>

#include <sys/stat.h>

#include "runtime/core/other_version.h"
#include "runtime/core/outcome.h"
#include "runtime/format/zarr/codec/codec_metadata.h"
#include "runtime/format/zarr/file_byte_store.h"
#include "runtime/os/file.h"
#include "runtime/os/folder_listing.h"

namespace patchbay::zarr {
namespace {

Status Malformed(std::string_view what, std::string_view cause) {
  return ErrorAbout(absl::StatusCode::kInvalidArgument, "read metadata", what, cause);
}

Status Unsupported(std::string_view what, std::string_view cause) {
  return ErrorAbout(absl::StatusCode::kUnimplemented, "read metadata", what, cause);
}

Status OtherFormat(std::string_view what, std::int64_t found, std::string_view file, int known) {
  return Unsupported(
      what, StrCat("zarr_format in ", file, ": ",
                   OtherVersion(found, known, "have the program that made it write Zarr 2 or 3")));
}

std::string Below(const std::string& key, std::string_view name) {
  return key.empty() ? std::string(name) : StrCat(key, "/", name);
}

/// Nothing where there is no such document.
StatusOr<std::optional<Json>> FindDocument(ByteStore& store, const std::string& key) {
  const auto text = ReadObject(store, key, kMaxMetadataBytes);
  if (absl::IsNotFound(text.status())) return std::nullopt;
  if (!text.ok()) return text.status();
  const std::string name = store.NameOf(key);
  PB_ASSIGN_OR_RETURN(Json document, ParseJson(*text, name));
  if (!document.is_object()) return Malformed(name, "not a JSON object");
  return std::optional<Json>(std::move(document));
}

/// .zattrs, or an empty object where there is none.
StatusOr<Json> ReadAttributesV2(ByteStore& store, const std::string& key) {
  PB_ASSIGN_OR_RETURN(auto document, FindDocument(store, Below(key, ".zattrs")));
  return document ? *std::move(document) : Json::object();
}

Status NoNodeIn(const ByteStore& store, const std::string& key, std::string_view wanted) {
  return ErrorAbout(absl::StatusCode::kNotFound, "open store", store.NameOf(key),
                    StrCat("no Zarr ", wanted, " here"));
}

/// A folder that is looked at once.
FileByteStore FolderOf(const Folders& allowed, const std::string& path) {
  return FileByteStore(allowed, path, std::make_shared<FileCache>(1));
}

Status NoNode(const Folders& allowed, const std::string& path, std::string_view wanted) {
  const auto st = StatOf(allowed, path);
  if (absl::IsNotFound(st.status())) {
    return ErrorAbout(absl::StatusCode::kNotFound, "open store", path, "no such folder");
  }
  if (!st.ok())
    return ErrorAbout(st.status().code(), "open store", path, OutcomeOf(st.status()).cause);
  if (S_ISREG(st->st_mode)) {
    const auto fd = OpenFile(allowed, path, 0);
    char magic[4] = {};
    if (fd.ok() && ReadAt(fd->get(), 0, std::as_writable_bytes(std::span(magic)), path).ok() &&
        std::string_view(magic, 4) == "PK\3\4") {
      return ErrorAbout(absl::StatusCode::kUnimplemented, "open store", path,
                        "zip stores are not supported; unpack it first");
    }
    return ErrorAbout(
        absl::StatusCode::kNotFound, "open store", path,
        "a file, not a store's folder (`patchbay ingest` makes a store from a slide or volume)");
  }
  return ErrorAbout(absl::StatusCode::kNotFound, "open store", path,
                    StrCat("no Zarr ", wanted, " here"));
}

Status ParseChunkGrid(const Json& document, std::string_view what, ArrayMetadata& out) {
  PB_ASSIGN_OR_RETURN(const Json* grid, JsonMember(document, "chunk_grid", what));
  if (!grid->is_object()) return Malformed(what, "chunk_grid is not an object");
  PB_ASSIGN_OR_RETURN(const std::string name, JsonString(*grid, "name", what));
  if (name != "regular") return Unsupported(what, StrCat("chunk grid ", name, " is not supported"));
  PB_ASSIGN_OR_RETURN(const Json* configuration, JsonMember(*grid, "configuration", what));
  if (!configuration->is_object()) return Malformed(what, "chunk_grid has no configuration");
  PB_ASSIGN_OR_RETURN(out.shard_shape, ParseExtents(*configuration, "chunk_shape", false, what));
  if (out.shard_shape.size() != out.shape.size()) {
    return Malformed(what, "chunk_shape has another rank than shape");
  }
  return absl::OkStatus();
}

Status ParseSeparator(const Json& value, std::string_view what, char& out) {
  if (value != "." && value != "/") return Malformed(what, "the separator is neither . nor /");
  out = value.get_ref<const std::string&>()[0];
  return absl::OkStatus();
}

Status ParseKeyEncoding(const Json& document, std::string_view what, ArrayMetadata& out) {
  PB_ASSIGN_OR_RETURN(const Json* encoding, JsonMember(document, "chunk_key_encoding", what));
  if (!encoding->is_object()) return Malformed(what, "chunk_key_encoding is not an object");
  PB_ASSIGN_OR_RETURN(const std::string name, JsonString(*encoding, "name", what));
  if (name != "default" && name != "v2") {
    return Unsupported(what, StrCat("chunk key encoding ", name, " is not supported"));
  }
  out.key_style = name == "v2" ? KeyStyle::kV2 : KeyStyle::kDefault;
  out.separator = name == "v2" ? '.' : '/';
  const auto configuration = encoding->find("configuration");
  if (configuration == encoding->end()) return absl::OkStatus();
  if (!configuration->is_object()) return Malformed(what, "chunk_key_encoding configuration");
  const auto separator = configuration->find("separator");
  if (separator == configuration->end()) return absl::OkStatus();
  return ParseSeparator(*separator, what, out.separator);
}

/// A reader must fail on members outside the specification unless they are marked as optional to
/// understand.
Status CheckExtensions(const Json& document, std::string_view what) {
  static constexpr std::string_view kKnown[] = {"zarr_format",
                                                "node_type",
                                                "shape",
                                                "data_type",
                                                "chunk_grid",
                                                "chunk_key_encoding",
                                                "fill_value",
                                                "codecs",
                                                "attributes",
                                                "dimension_names",
                                                "storage_transformers",
                                                "consolidated_metadata"};
  for (const auto& [key, value] : document.items()) {
    if (std::find(std::begin(kKnown), std::end(kKnown), key) != std::end(kKnown)) continue;
    const bool optional =
        value.is_object() && value.contains("must_understand") && value["must_understand"] == false;
    if (!optional) return Unsupported(what, StrCat("extension ", key, " is not supported"));
  }
  const auto transformers = document.find("storage_transformers");
  if (transformers != document.end() && !transformers->empty()) {
    return Unsupported(what, "storage transformers are not supported");
  }
  return absl::OkStatus();
}

Status ParseDimensionNames(const Json& document, std::string_view what, ArrayMetadata& out) {
  const auto names = document.find("dimension_names");
  if (names == document.end() || names->is_null()) return absl::OkStatus();
  if (!names->is_array() || names->size() != out.shape.size()) {
    return Malformed(what, "dimension_names is not one name per axis");
  }
  for (const Json& name : *names) {
    if (!name.is_string() && !name.is_null()) return Malformed(what, "a dimension name");
    out.dimension_names.push_back(name.is_string() ? name.get<std::string>() : "");
  }
  return absl::OkStatus();
}

Status ParseCompressorsV2(const Json& document, std::string_view what, ArrayMetadata& out) {
  std::vector<Json> codecs;
  if (const auto filters = document.find("filters");
      filters != document.end() && !filters->is_null()) {
    if (!filters->is_array() || filters->size() > kMaxCodecs) {
      return Malformed(what, "filters is not a short list");
    }
    for (const Json& filter : *filters) codecs.push_back(filter);
  }
  PB_ASSIGN_OR_RETURN(const Json* compressor, JsonMember(document, "compressor", what));
  if (!compressor->is_null()) codecs.push_back(*compressor);
  for (const Json& codec : codecs) {
    if (!codec.is_object()) return Malformed(what, "a codec is not an object");
    PB_ASSIGN_OR_RETURN(const std::string id, JsonString(codec, "id", what));
    PB_RETURN_IF_ERROR(AppendNumcodec(id, codec, out, what, out.chain));
  }
  return absl::OkStatus();
}

Status ParseOrderV2(const Json& document, std::string_view what, ArrayMetadata& out) {
  PB_ASSIGN_OR_RETURN(const std::string order, JsonString(document, "order", what));
  const bool fortran = order.size() == 1 && order[0] == 'F';
  if (!fortran && (order.size() != 1 || order[0] != 'C')) {
    return Malformed(what, "order is neither C nor F");
  }
  const int rank = out.rank();
  for (int i = 0; i < rank; ++i) out.chain.order.push_back(fortran ? rank - 1 - i : i);
  const auto separator = document.find("dimension_separator");
  if (separator == document.end() || separator->is_null()) return absl::OkStatus();
  return ParseSeparator(*separator, what, out.separator);
}

}  // namespace

StatusOr<ArrayMetadata> ParseArrayV3(const Json& document, std::string_view what) {
  ArrayMetadata out;
  PB_ASSIGN_OR_RETURN(const std::int64_t format, JsonInt(document, "zarr_format", what));
  if (format != 3) return OtherFormat(what, format, "zarr.json", 3);
  PB_ASSIGN_OR_RETURN(const std::string node, JsonString(document, "node_type", what));
  if (node != "array") return Malformed(what, StrCat("node_type ", node, " is not array"));
  PB_RETURN_IF_ERROR(CheckExtensions(document, what));
  PB_ASSIGN_OR_RETURN(const Json* type, JsonMember(document, "data_type", what));
  const std::string name = type->is_string() ? type->get<std::string>() : DumpJson(*type);
  const auto dtype = type->is_string() ? DTypeFromName(name) : std::nullopt;
  if (!dtype) return Unsupported(what, StrCat("data type ", name, " is not supported"));
  out.dtype = *dtype;
  PB_ASSIGN_OR_RETURN(out.shape, ParseExtents(document, "shape", true, what));
  PB_RETURN_IF_ERROR(ParseChunkGrid(document, what, out));
  PB_RETURN_IF_ERROR(ParseKeyEncoding(document, what, out));
  PB_ASSIGN_OR_RETURN(const Json* codecs, JsonMember(document, "codecs", what));
  PB_RETURN_IF_ERROR(ParseCodecsV3(*codecs, what, out));
  PB_RETURN_IF_ERROR(CheckChunk(out, what));
  PB_ASSIGN_OR_RETURN(const Json* fill, JsonMember(document, "fill_value", what));
  if (fill->is_null()) return Malformed(what, "fill_value is null");
  PB_ASSIGN_OR_RETURN(out.fill, ParseFillValue(*fill, out.dtype, what));
  PB_RETURN_IF_ERROR(ParseDimensionNames(document, what, out));
  if (const auto attributes = document.find("attributes"); attributes != document.end()) {
    if (!attributes->is_object()) return Malformed(what, "attributes is not an object");
    out.attributes = *attributes;
  }
  return out;
}

StatusOr<GroupMetadata> ParseGroupV3(Json document, std::string_view what) {
  PB_ASSIGN_OR_RETURN(const std::int64_t format, JsonInt(document, "zarr_format", what));
  if (format != 3) return OtherFormat(what, format, "zarr.json", 3);
  PB_ASSIGN_OR_RETURN(const std::string node, JsonString(document, "node_type", what));
  if (node == "array") {
    return Malformed(what, "a Zarr array, not an OME-Zarr image: give the group above it");
  }
  if (node != "group") return Malformed(what, StrCat("node_type '", node, "' is not group"));
  GroupMetadata out;
  if (const auto attributes = document.find("attributes"); attributes != document.end()) {
    if (!attributes->is_object()) return Malformed(what, "attributes is not an object");
    out.attributes = std::move(*attributes);
  }
  return out;
}

StatusOr<ArrayMetadata> ParseArrayV2(const Json& document, Json attributes, std::string_view what) {
  ArrayMetadata out;
  out.zarr_format = 2;
  out.key_style = KeyStyle::kV2;
  out.separator = '.';
  out.attributes = std::move(attributes);
  PB_ASSIGN_OR_RETURN(const std::int64_t format, JsonInt(document, "zarr_format", what));
  if (format != 2) return OtherFormat(what, format, ".zarray", 2);
  PB_ASSIGN_OR_RETURN(const Json* type, JsonMember(document, "dtype", what));
  const std::string name = type->is_string() ? type->get<std::string>() : DumpJson(*type);
  const auto dtype = type->is_string() ? ParseDTypeV2(name) : std::nullopt;
  if (!dtype) return Unsupported(what, StrCat("data type ", name, " is not supported"));
  out.dtype = dtype->dtype;
  out.chain.big_endian = dtype->big_endian && SizeOf(out.dtype) > 1;
  PB_ASSIGN_OR_RETURN(out.shape, ParseExtents(document, "shape", true, what));
  PB_ASSIGN_OR_RETURN(out.chunk_shape, ParseExtents(document, "chunks", false, what));
  if (out.chunk_shape.size() != out.shape.size()) {
    return Malformed(what, "chunks has another rank than shape");
  }
  out.shard_shape = out.chunk_shape;
  PB_RETURN_IF_ERROR(CheckChunk(out, what));
  PB_RETURN_IF_ERROR(ParseOrderV2(document, what, out));
  PB_RETURN_IF_ERROR(ParseCompressorsV2(document, what, out));
  PB_ASSIGN_OR_RETURN(const Json* fill, JsonMember(document, "fill_value", what));
  PB_ASSIGN_OR_RETURN(out.fill, ParseFillValue(*fill, out.dtype, what));
  return out;
}

StatusOr<ArrayMetadata> ReadArrayMetadata(const Folders& allowed, const std::string& path) {
  FileByteStore store = FolderOf(allowed, path);
  auto array = ReadArrayMetadata(store, "");
  if (absl::IsNotFound(array.status())) return NoNode(allowed, path, "array");
  return array;
}

StatusOr<ArrayMetadata> ReadArrayMetadata(ByteStore& store, const std::string& key) {
  const std::string what = store.NameOf(key);
  PB_ASSIGN_OR_RETURN(const auto v3, FindDocument(store, Below(key, "zarr.json")));
  if (v3) return ParseArrayV3(*v3, what);
  PB_ASSIGN_OR_RETURN(const auto v2, FindDocument(store, Below(key, ".zarray")));
  if (!v2) return NoNodeIn(store, key, "array");
  PB_ASSIGN_OR_RETURN(Json attributes, ReadAttributesV2(store, key));
  return ParseArrayV2(*v2, std::move(attributes), what);
}

StatusOr<GroupMetadata> ReadGroupMetadata(const Folders& allowed, const std::string& path) {
  FileByteStore store = FolderOf(allowed, path);
  auto group = ReadGroupMetadata(store, "");
  if (absl::IsNotFound(group.status())) return NoNode(allowed, path, "group");
  return group;
}

StatusOr<GroupMetadata> ReadGroupMetadata(ByteStore& store, const std::string& key) {
  const std::string what = store.NameOf(key);
  PB_ASSIGN_OR_RETURN(auto v3, FindDocument(store, Below(key, "zarr.json")));
  if (v3) return ParseGroupV3(*std::move(v3), what);
  PB_ASSIGN_OR_RETURN(const auto v2, FindDocument(store, Below(key, ".zgroup")));
  if (!v2) return NoNodeIn(store, key, "group");
  PB_ASSIGN_OR_RETURN(const std::int64_t format, JsonInt(*v2, "zarr_format", what));
  if (format != 2) return OtherFormat(what, format, ".zgroup", 2);
  GroupMetadata out;
  out.zarr_format = 2;
  PB_ASSIGN_OR_RETURN(out.attributes, ReadAttributesV2(store, key));
  return out;
}

}  // namespace patchbay::zarr
