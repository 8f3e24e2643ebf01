#include "workers/sources/volumes/text_header.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>

#include "runtime/core/strings.h"
#include "runtime/os/folder_listing.h"
#include "workers/sources/volumes/raw_voxels.h"

namespace patchbay::workers {
namespace {

constexpr std::size_t kMaxHeaderBytes = 1u << 16;

using Fields = std::map<std::string, std::string>;

struct TextHeader {
  std::string first_line;
  Fields fields;
  std::uint64_t size_bytes = 0;  ///< voxels begin here
};

std::string Trimmed(std::string text) {
  const char* kBlank = " \t\r";
  text.erase(0, std::min(text.find_first_not_of(kBlank), text.size()));
  text.erase(text.find_last_not_of(kBlank) + 1);
  return text;
}

std::string Lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

/// Lines up to an empty one, or up to and with the line of the field `last`; of an NRRD whose
/// voxels are in another file, up to the end of the file.
StatusOr<TextHeader> ReadHeader(const Folders& allowed, const std::string& path, char separator,
                                const std::string& last) {
  PB_ASSIGN_OR_RETURN(ByteStream stream,
                      ByteStream::Open(allowed, path, 0, ByteStream::Packing::kNone));
  std::string text(std::min<std::uint64_t>(stream.MostLeft(), kMaxHeaderBytes), '\0');
  PB_RETURN_IF_ERROR(stream.Read(std::as_writable_bytes(std::span(text))));
  const bool is_whole = text.size() < kMaxHeaderBytes;
  if (is_whole && !text.ends_with('\n')) text += '\n';
  TextHeader header;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    if (end == std::string::npos) break;
    const std::string line = Trimmed(text.substr(at, end - at));
    if (at == 0) header.first_line = line;
    at = end + 1;
    header.size_bytes = at;
    if (line.empty()) return header;
    const std::size_t colon = line.find(separator);
    if (line.front() == '#' || colon == std::string::npos) continue;
    const std::string name = Lower(Trimmed(line.substr(0, colon)));
    header.fields.emplace(name, Trimmed(line.substr(colon + 1)));
    if (name == last) return header;
  }
  const bool is_detached =
      header.fields.contains("data file") || header.fields.contains("datafile");
  if (is_whole && is_detached) return header;
  return InvalidArgument("read volume: the header does not end");
}

std::string Field(const TextHeader& header, const char* name) {
  const auto found = header.fields.find(name);
  return found == header.fields.end() ? "" : found->second;
}

/// All numbers of a text whose other characters are blanks, commas and brackets; nothing otherwise.
std::optional<std::vector<double>> NumbersIn(const std::string& text) {
  std::vector<double> numbers;
  const char *at = text.data(), *end = at + text.size();
  while (at < end) {
    if (std::string_view(" \t,()").find(*at) != std::string_view::npos) {
      ++at;
      continue;
    }
    double value = 0;
    const auto [after, error] = std::from_chars(at, end, value);
    if (error != std::errc() || !std::isfinite(value) || numbers.size() >= 64) return std::nullopt;
    numbers.push_back(value);
    at = after;
  }
  return numbers;
}

StatusOr<std::vector<double>> Numbers(const TextHeader& header, const char* name,
                                      std::size_t count) {
  const auto numbers = NumbersIn(Field(header, name));
  if (numbers && numbers->size() == count) return *numbers;
  return InvalidArgument("read volume: ", name, ": not ", count, " numbers");
}

Status SetSize(const TextHeader& header, const char* name, Extent& size) {
  PB_ASSIGN_OR_RETURN(const auto sides, Numbers(header, name, 3));
  for (const double side : sides) {
    if (side != std::floor(side) || side < 1 || side > kMaxReadSide) {
      return InvalidArgument("read volume: ", name, ": a side of ", side);
    }
  }
  size = {static_cast<std::int64_t>(sides[2]), static_cast<std::int64_t>(sides[1]),
          static_cast<std::int64_t>(sides[0])};
  return CheckVolumeSize(size, "read volume");
}

constexpr std::size_t kMaxTypeShown = 40;  ///< characters shown of a header's type

StatusOr<DType> TypeNamed(const std::map<std::string, DType>& names, const std::string& name) {
  const auto found = names.find(Lower(name));
  if (found != names.end()) return found->second;
  const bool is_word =
      name.size() <= kMaxTypeShown &&
      Lower(name).find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_ ") == std::string::npos;
  return Unimplemented("read volume: voxels of type ", is_word ? StrCat("'", name, "'") : "unknown",
                       ": integers of 8 to 32 bits, float and double are read; convert them");
}

const std::map<std::string, DType>& NrrdTypes() {
  static const std::map<std::string, DType> kTypes = {
      {"signed char", DType::kInt8},      {"int8", DType::kInt8},
      {"int8_t", DType::kInt8},           {"uchar", DType::kUint8},
      {"unsigned char", DType::kUint8},   {"uint8", DType::kUint8},
      {"uint8_t", DType::kUint8},         {"short", DType::kInt16},
      {"signed short", DType::kInt16},    {"int16", DType::kInt16},
      {"int16_t", DType::kInt16},         {"ushort", DType::kUint16},
      {"unsigned short", DType::kUint16}, {"uint16", DType::kUint16},
      {"uint16_t", DType::kUint16},       {"int", DType::kInt32},
      {"int32", DType::kInt32},           {"int32_t", DType::kInt32},
      {"uint", DType::kUint32},           {"unsigned int", DType::kUint32},
      {"uint32", DType::kUint32},         {"uint32_t", DType::kUint32},
      {"float", DType::kFloat32},         {"double", DType::kFloat64}};
  return kTypes;
}

const std::map<std::string, DType>& MetaTypes() {
  static const std::map<std::string, DType> kTypes = {
      {"met_char", DType::kInt8},     {"met_uchar", DType::kUint8},   {"met_short", DType::kInt16},
      {"met_ushort", DType::kUint16}, {"met_int", DType::kInt32},     {"met_uint", DType::kUint32},
      {"met_float", DType::kFloat32}, {"met_double", DType::kFloat64}};
  return kTypes;
}

Status CheckAxes(const Affine& affine) {
  for (const Vec3& step : {affine.x, affine.y, affine.z}) {
    if (!(Norm(step) > 1e-6)) {
      return InvalidArgument("read volume: an axis with a step of no length");
    }
  }
  const double skew = SkewOf(affine);
  if (skew <= kMaxSkew) return absl::OkStatus();
  return InvalidArgument("read volume: axes are not perpendicular (cosine ", skew, ")");
}

Status NoOrientation() {
  return FailedPrecondition(
      "read volume: no patient space: left and right are not known (`patchbay ingest --geometry "
      "accept` takes x to the left, y to posterior, z to superior; a mask has to say)");
}

Status SetNrrdGeometry(const TextHeader& header, GeometryPolicy policy, Volume& volume) {
  const std::string space = Lower(Field(header, "space"));
  const bool is_lps = space == "left-posterior-superior" || space == "lps";
  const bool is_ras = space == "right-anterior-superior" || space == "ras";
  if (!is_lps && !is_ras) {
    if (policy != GeometryPolicy::kAccept) return NoOrientation();
    PB_ASSIGN_OR_RETURN(const auto steps, Numbers(header, "spacings", 3));
    volume.affine.x.x = steps[0];
    volume.affine.y.y = steps[1];
    volume.affine.z.z = steps[2];
    volume.log.push_back({{"step", "geometry"}, {"from", "spacings"}});
    return CheckAxes(volume.affine);
  }
  PB_ASSIGN_OR_RETURN(const auto d, Numbers(header, "space directions", 9));
  std::vector<double> o(3, 0);
  if (!Field(header, "space origin").empty()) {
    PB_ASSIGN_OR_RETURN(o, Numbers(header, "space origin", 3));
  }
  const double f = is_ras ? -1 : 1;
  const auto at = [&](std::size_t i) { return Vec3{f * d[i], f * d[i + 1], d[i + 2]}; };
  volume.affine = {at(0), at(3), at(6), {f * o[0], f * o[1], o[2]}};
  volume.log.push_back({{"step", "geometry"}, {"from", "space directions"}});
  return CheckAxes(volume.affine);
}

bool IsTrue(const std::string& text) { return Lower(text) == "true"; }

Status SetMetaGeometry(const TextHeader& header, GeometryPolicy policy, Volume& volume) {
  const char* steps_name =
      Field(header, "elementspacing").empty() ? "elementsize" : "elementspacing";
  PB_ASSIGN_OR_RETURN(const auto steps, Numbers(header, steps_name, 3));
  const char* matrix_name = "transformmatrix";
  if (Field(header, matrix_name).empty()) matrix_name = "orientation";
  std::vector<double> m = {1, 0, 0, 0, 1, 0, 0, 0, 1}, o(3, 0);
  if (!Field(header, matrix_name).empty()) {
    PB_ASSIGN_OR_RETURN(m, Numbers(header, matrix_name, 9));
  } else if (policy != GeometryPolicy::kAccept) {
    return NoOrientation();
  }
  for (const char* name : {"offset", "position", "origin"}) {
    if (Field(header, name).empty()) continue;
    PB_ASSIGN_OR_RETURN(o, Numbers(header, name, 3));
    break;
  }
  const auto axis = [&](std::size_t i) {
    return Vec3{m[3 * i], m[3 * i + 1], m[3 * i + 2]} * steps[i];
  };
  volume.affine = {axis(0), axis(1), axis(2), {o[0], o[1], o[2]}};
  volume.log.push_back({{"step", "geometry"}, {"from", "transform matrix"}});
  return CheckAxes(volume.affine);
}

/// The file of voxels that a header names. It lies beside the header, so that no header opens other
/// files: a name with a folder is InvalidArgument; Unimplemented for a list or pattern of files.
StatusOr<std::string> FileBeside(const Folders& allowed, const std::string& path,
                                 const std::string& name) {
  const std::string first = Lower(name.substr(0, name.find(' ')));
  if (first == "list" || name.find('%') != std::string::npos) {
    return Unimplemented("read volume: voxels in several files: save it as one .nrrd or .mha file");
  }
  if (name == "." || name == ".." || name.find_first_of("/\\") != std::string::npos) {
    return InvalidArgument(
        "read volume: the header names its data file with a folder: it has to lie beside the "
        "header and be named alone");
  }
  std::string file = path.substr(0, path.rfind('/') + 1) + name;
  if (IsRegularFile(allowed, file)) return file;
  return NotFound("read volume: the data file that the header names is not beside it");
}

/// Bytes before the voxels of a file of their own; for -1 all but those that the voxels take.
StatusOr<std::uint64_t> BytesBefore(const Folders& allowed, const std::string& skip,
                                    const RawVoxels& raw) {
  const auto numbers = NumbersIn(skip.empty() ? "0" : skip);
  constexpr double kMost = 1e15;
  const double bytes = numbers && numbers->size() == 1 ? numbers->front() : kMost;
  if (bytes == -1 && raw.packing == ByteStream::Packing::kNone) {
    PB_ASSIGN_OR_RETURN(const std::uint64_t all, SizeOf(allowed, raw.file));
    const std::uint64_t taken = static_cast<std::uint64_t>(raw.size.Pixels()) * SizeOf(raw.stored);
    return all - std::min(all, taken);
  }
  if (bytes >= 0 && bytes < kMost && bytes == std::floor(bytes)) {
    return static_cast<std::uint64_t>(bytes);
  }
  return InvalidArgument("read volume: bytes to skip before the voxels: not a whole number");
}

/// Finds the voxels of an NRRD of known size: behind its header, or in a file beside it.
Status PlaceNrrdVoxels(const Folders& allowed, const std::string& path, const TextHeader& header,
                       RawVoxels& raw) {
  std::string name = Field(header, "data file");
  if (name.empty()) name = Field(header, "datafile");
  const std::string skip = Field(header, "byte skip");
  for (const char* field : {"line skip", "byte skip"}) {
    const bool is_read = !name.empty() && field == std::string_view("byte skip");
    if (is_read || Field(header, field).empty() || Field(header, field) == "0") continue;
    return Unimplemented("read nrrd: '", field, "' is not supported: save it as one .nrrd file");
  }
  raw.offset = header.size_bytes;
  if (name.empty()) return absl::OkStatus();
  raw.offset = 0;
  PB_ASSIGN_OR_RETURN(raw.file, FileBeside(allowed, path, name));
  const bool is_plain = raw.packing == ByteStream::Packing::kNone;
  std::uint64_t& before = is_plain ? raw.offset : raw.inflated_offset;
  PB_ASSIGN_OR_RETURN(before, BytesBefore(allowed, skip, raw));
  return absl::OkStatus();
}

/// The voxels of an NRRD, but for their place and axes.
StatusOr<RawVoxels> RawOf(const TextHeader& header) {
  RawVoxels raw;
  PB_ASSIGN_OR_RETURN(raw.stored, TypeNamed(NrrdTypes(), Field(header, "type")));
  const std::string encoding = Lower(Field(header, "encoding"));
  if (encoding == "gzip" || encoding == "gz") {
    raw.packing = ByteStream::Packing::kDeflated;
  } else if (encoding != "raw") {
    return Unimplemented("read nrrd: encoding '", encoding, "' is not supported");
  }
  raw.is_big_endian = Lower(Field(header, "endian")) == "big";
  if (SizeOf(raw.stored) > 1 && Field(header, "endian").empty()) {
    return InvalidArgument("read nrrd: no byte order");
  }
  return raw;
}

StatusOr<TextHeader> ReadNrrdHeader(const Folders& allowed, const std::string& path) {
  PB_ASSIGN_OR_RETURN(TextHeader header, ReadHeader(allowed, path, ':', ""));
  if (header.first_line.starts_with("NRRD")) return header;
  return InvalidArgument("read nrrd: not an NRRD file");
}

/// Returns the number of layers, and makes `header` that of one layer: removes a first axis that is
/// not spatial.
StatusOr<std::int64_t> TakeLayers(TextHeader& header) {
  if (Field(header, "dimension") == "3") return 1;
  if (Field(header, "dimension") != "4") {
    return Unimplemented("read nrrd: neither three axes nor layers of three");
  }
  PB_ASSIGN_OR_RETURN(const auto sides, Numbers(header, "sizes", 4));
  std::string& directions = header.fields["space directions"];
  if (!directions.starts_with("none") || !(sides[0] >= 1 && sides[0] <= kMaxReadSide) ||
      sides[0] != std::floor(sides[0])) {
    return Unimplemented("read nrrd: four axes, of which the first is not a list of layers");
  }
  directions.erase(0, 4);
  header.fields["sizes"] = StrCat(sides[1], " ", sides[2], " ", sides[3]);
  return static_cast<std::int64_t>(sides[0]);
}

/// "Segment3_Name:=Liver": the separator of keys that are a program's own has a further '='.
std::string OwnField(const TextHeader& header, const std::string& name) {
  const std::string text = Field(header, name.c_str());
  return text.starts_with('=') ? Trimmed(text.substr(1)) : text;
}

StatusOr<NrrdSegment> SegmentOf(const TextHeader& header, std::size_t number, std::int64_t layers) {
  const std::string key = StrCat("segment", number, "_");
  NrrdSegment segment{OwnField(header, key + "name"), 0, 1};
  const auto value = NumbersIn(OwnField(header, key + "labelvalue"));
  const auto layer = NumbersIn(OwnField(header, key + "layer"));
  const auto is_whole = [](const auto& list, double low, double high) {
    return list && list->size() == 1 && list->front() >= low && list->front() <= high &&
           list->front() == std::floor(list->front());
  };
  const bool has_layer = layer && !layer->empty();
  if (segment.name.empty() || !is_whole(value, 1, 255) ||
      (has_layer && !is_whole(layer, 0, static_cast<double>(layers - 1)))) {
    return InvalidArgument("read nrrd: segment ", number,
                           ": it needs a name, a value of 1 to 255 and a layer ", "of the file's ",
                           layers);
  }
  segment.value = static_cast<std::uint8_t>(value->front());
  if (has_layer) segment.layer = static_cast<std::size_t>(layer->front());
  return segment;
}

}  // namespace

StatusOr<RawVolume> ReadNrrdVolumeHeader(const Folders& allowed, const std::string& path,
                                         GeometryPolicy policy) {
  PB_ASSIGN_OR_RETURN(const TextHeader header, ReadNrrdHeader(allowed, path));
  if (Field(header, "dimension") != "3") {
    return Unimplemented("read nrrd: the file does not have three axes");
  }
  RawVolume found;
  found.volume.kind = "nrrd";
  PB_ASSIGN_OR_RETURN(found.raw, RawOf(header));
  PB_RETURN_IF_ERROR(SetSize(header, "sizes", found.raw.size));
  PB_RETURN_IF_ERROR(PlaceNrrdVoxels(allowed, path, header, found.raw));
  PB_RETURN_IF_ERROR(SetNrrdGeometry(header, policy, found.volume));
  return found;
}

StatusOr<bool> HasNrrdSegments(const Folders& allowed, const std::string& path) {
  PB_ASSIGN_OR_RETURN(const TextHeader header, ReadNrrdHeader(allowed, path));
  return header.fields.contains("segment0_name");
}

StatusOr<SegmentedNrrd> ReadSegmentedNrrd(const Folders& allowed, const std::string& path,
                                          const VolumeProgress& progress) {
  PB_ASSIGN_OR_RETURN(TextHeader header, ReadNrrdHeader(allowed, path));
  SegmentedNrrd out;
  PB_ASSIGN_OR_RETURN(out.layers, TakeLayers(header));
  for (std::size_t i = 0; header.fields.contains(StrCat("segment", i, "_name")); ++i) {
    PB_ASSIGN_OR_RETURN(out.segments.emplace_back(), SegmentOf(header, i, out.layers));
  }
  RawVolume found;
  PB_ASSIGN_OR_RETURN(found.raw, RawOf(header));
  PB_RETURN_IF_ERROR(SetSize(header, "sizes", found.raw.size));
  found.raw.size.x *= out.layers;
  PB_RETURN_IF_ERROR(PlaceNrrdVoxels(allowed, path, header, found.raw));
  PB_RETURN_IF_ERROR(SetNrrdGeometry(header, GeometryPolicy::kRefuse, found.volume));
  PB_ASSIGN_OR_RETURN(out.volume, ReadRawVolume(allowed, path, std::move(found), progress));
  return out;
}

StatusOr<RawVolume> ReadMetaImageHeader(const Folders& allowed, const std::string& path,
                                        GeometryPolicy policy) {
  PB_ASSIGN_OR_RETURN(const TextHeader header, ReadHeader(allowed, path, '=', "elementdatafile"));
  if (Field(header, "ndims") != "3") {
    return Unimplemented("read metaimage: the file does not have three axes");
  }
  const std::string channels = Field(header, "elementnumberofchannels");
  if (!channels.empty() && channels != "1") {
    return Unimplemented("read metaimage: several channels");
  }
  if (Lower(Field(header, "binarydata")) == "false") {
    return Unimplemented("read metaimage: voxels as text");
  }
  RawVolume found;
  found.volume.kind = "mha";
  RawVoxels& raw = found.raw;
  PB_RETURN_IF_ERROR(SetSize(header, "dimsize", raw.size));
  PB_ASSIGN_OR_RETURN(raw.stored, TypeNamed(MetaTypes(), Field(header, "elementtype")));
  if (IsTrue(Field(header, "compresseddata"))) raw.packing = ByteStream::Packing::kDeflated;
  raw.is_big_endian = IsTrue(Field(header, "binarydatabyteordermsb")) ||
                      IsTrue(Field(header, "elementbyteordermsb"));
  raw.offset = header.size_bytes;
  if (const std::string name = Field(header, "elementdatafile"); Lower(name) != "local") {
    PB_ASSIGN_OR_RETURN(raw.file, FileBeside(allowed, path, name));
    PB_ASSIGN_OR_RETURN(raw.offset, BytesBefore(allowed, Field(header, "headersize"), raw));
  }
  PB_RETURN_IF_ERROR(SetMetaGeometry(header, policy, found.volume));
  return found;
}

}  // namespace patchbay::workers
