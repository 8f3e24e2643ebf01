#include "workers/sources/volumes/nifti.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "runtime/core/channels.h"
#include "runtime/core/strings.h"
#include "runtime/os/file.h"
#include "workers/sources/volumes/raw_voxels.h"

namespace patchbay::workers {
namespace {

constexpr std::size_t kHeader1 = 348, kHeader2 = 540;
constexpr double kMaxOffset = 1 << 24;

Status RefuseNifti(std::string_view cause) { return InvalidArgument("read nifti: ", cause); }

/// The header's fields by their offset, in the file's byte order.
class Header {
 public:
  static StatusOr<Header> Read(const Folders& allowed, const std::string& path) {
    Header h;
    PB_ASSIGN_OR_RETURN(h.packing, ByteStream::PackingOf(allowed, path));
    PB_ASSIGN_OR_RETURN(ByteStream stream, ByteStream::Open(allowed, path, 0, h.packing));
    if (stream.MostLeft() < kHeader1) return RefuseNifti("not a NIfTI file");
    PB_RETURN_IF_ERROR(stream.Read(std::span(h.bytes_).first(kHeader1)));
    for (const bool swapped : {false, true}) {
      h.is_swapped = swapped;
      const auto size = h.Get<std::int32_t>(0);
      if (size != kHeader1 && size != kHeader2) continue;
      h.is_second = size == kHeader2;
      if (h.is_second) PB_RETURN_IF_ERROR(stream.Read(std::span(h.bytes_).subspan(kHeader1)));
      return h.CheckMagic();
    }
    return RefuseNifti("not a NIfTI file");
  }

  template <typename T>
  T Get(std::size_t offset) const {
    std::byte bytes[sizeof(T)];
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      bytes[i] = bytes_[offset + (is_swapped ? sizeof(T) - 1 - i : i)];
    }
    T value;
    std::memcpy(&value, bytes, sizeof(T));
    return value;
  }
  /// Field `i` of an array at the NIfTI-1 or the NIfTI-2 offset.
  double Real(std::size_t first, std::size_t second, std::size_t i = 0) const {
    return is_second ? Get<double>(second + 8 * i) : static_cast<double>(Get<float>(first + 4 * i));
  }
  std::int64_t Dim(std::size_t i) const {
    return is_second ? Get<std::int64_t>(16 + 8 * i) : Get<std::int16_t>(40 + 2 * i);
  }
  int Code(std::size_t first, std::size_t second) const {
    return is_second ? Get<std::int32_t>(second) : Get<std::int16_t>(first);
  }
  double Pixdim(std::size_t i) const { return Real(76, 104, i); }

  bool is_swapped = false, is_second = false;
  ByteStream::Packing packing = ByteStream::Packing::kNone;

 private:
  StatusOr<Header> CheckMagic() const {
    const char* magic = reinterpret_cast<const char*>(bytes_.data()) + (is_second ? 4 : 344);
    if (std::memcmp(magic, is_second ? "n+2" : "n+1", 4) == 0) return *this;
    if (std::memcmp(magic, is_second ? "ni2" : "ni1", 4) == 0) {
      return Unimplemented("read nifti: header and voxels in two files");
    }
    if (is_second) return RefuseNifti("not a NIfTI file");
    return Unimplemented(
        "read nifti: not a NIfTI file but one of Analyze 7.5, which does not say which side is "
        "left: convert it to NIfTI");
  }

  std::array<std::byte, kHeader2> bytes_{};
};

StatusOr<Extent> SizeOfImage(const Header& h) {
  const std::int64_t axes = h.Dim(0);
  if (axes < 1 || axes > 7) return RefuseNifti(StrCat(axes, " axes"));
  for (std::int64_t i = 4; i <= axes; ++i) {
    const std::int64_t side = h.Dim(static_cast<std::size_t>(i)), most = i == 4 ? kMaxChannels : 1;
    if (side > most) {
      return Unimplemented("read nifti: axis ", i, " of ", side, ": more than ", most);
    }
  }
  const auto side = [&](std::size_t i) {
    return static_cast<std::int64_t>(i) <= axes ? h.Dim(i) : 1;
  };
  const Extent size{side(3), side(2), side(1)};
  PB_RETURN_IF_ERROR(CheckVolumeSize(size, "read nifti"));
  return size;
}

/// " (name)" of an unsupported type; "" for an unknown code.
std::string_view NameOfType(int datatype) {
  switch (datatype) {
    case 32:
    case 1792:
    case 2048:
      return " (complex numbers)";
    case 128:
    case 2304:
      return " (colours)";
    case 1024:
    case 1280:
      return " (64-bit integers)";
    case 1536:
      return " (128-bit float)";
    default:
      return "";
  }
}

StatusOr<DType> TypeOf(int datatype) {
  switch (datatype) {
    case 2:
      return DType::kUint8;
    case 4:
      return DType::kInt16;
    case 8:
      return DType::kInt32;
    case 16:
      return DType::kFloat32;
    case 64:
      return DType::kFloat64;
    case 256:
      return DType::kInt8;
    case 512:
      return DType::kUint16;
    case 768:
      return DType::kUint32;
    default:
      return Unimplemented("read nifti: voxels of type ", datatype, NameOfType(datatype),
                           ": integers of 8 to 32 bits, float and double are read; convert them");
  }
}

Matrix4 Sform(const Header& h) {
  Matrix4 m{};
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t c = 0; c < 4; ++c) m[row][c] = h.Real(280 + 16 * row, 400 + 32 * row, c);
  }
  m[3][3] = 1;
  return m;
}

StatusOr<Matrix4> Qform(const Header& h) {
  const double b = h.Real(256, 352), c = h.Real(260, 360), d = h.Real(264, 368);
  const double rest = 1 - (b * b + c * c + d * d);
  if (!(rest > -1e-5)) return RefuseNifti("the quaternion of the qform is longer than 1");
  const double a = std::sqrt(std::max(rest, 0.0));
  const double r[3][3] = {
      {a * a + b * b - c * c - d * d, 2 * (b * c - a * d), 2 * (b * d + a * c)},
      {2 * (b * c + a * d), a * a + c * c - b * b - d * d, 2 * (c * d - a * b)},
      {2 * (b * d - a * c), 2 * (c * d + a * b), a * a + d * d - b * b - c * c}};
  const double steps[3] = {h.Pixdim(1), h.Pixdim(2), h.Pixdim(3) * (h.Pixdim(0) < 0 ? -1.0 : 1.0)};
  Matrix4 m{};
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t k = 0; k < 3; ++k) m[row][k] = r[row][k] * steps[k];
    m[row][3] = h.Real(268 + 4 * row, 376 + 8 * row);
  }
  m[3][3] = 1;
  return m;
}

/// Millimetres in the header's unit of length.
StatusOr<double> UnitOf(const Header& h) {
  const int code = (h.is_second ? h.Get<std::int32_t>(500) : h.Get<std::uint8_t>(123)) & 7;
  if (code == 0 || code == 2) return 1.0;
  if (code == 1) return 1000.0;
  if (code == 3) return 0.001;
  return RefuseNifti(StrCat("unknown unit of length ", code));
}

StatusOr<Affine> GeometryOf(const Header& h, GeometryPolicy policy, Volume& volume) {
  Matrix4 ras{};
  std::string from;
  if (h.Code(254, 348) > 0) {
    ras = Sform(h);
    from = "sform";
  } else if (h.Code(252, 344) > 0) {
    PB_ASSIGN_OR_RETURN(ras, Qform(h));
    from = "qform";
  } else if (policy == GeometryPolicy::kAccept) {
    for (std::size_t i = 0; i < 3; ++i) ras[i][i] = h.Pixdim(i + 1);
    ras[3][3] = 1;
    from = "pixdim";
  } else {
    return FailedPrecondition(
        "read nifti: neither sform nor qform: left and right are not known (`patchbay ingest "
        "--geometry accept` takes x to the right, y to anterior, z to superior; a mask has to "
        "say)");
  }
  PB_ASSIGN_OR_RETURN(const double unit, UnitOf(h));
  for (std::size_t row = 0; row < 3; ++row) {
    for (double& value : ras[row]) {
      value *= unit;
      if (!std::isfinite(value)) {
        return RefuseNifti(StrCat("the ", from, " holds a value that is not a number"));
      }
    }
  }
  const Affine affine = FromRas(ras);
  for (const Vec3& step : {affine.x, affine.y, affine.z}) {
    if (!(Norm(step) > 1e-6)) return RefuseNifti(StrCat("the ", from, " has a step of no length"));
  }
  const double skew = SkewOf(affine);
  if (skew > kMaxSkew) {
    return RefuseNifti(StrCat("the ", from, " is skewed: axes meet at a cosine of ", skew,
                              ", more than ", kMaxSkew));
  }
  volume.log.push_back({{"step", "geometry"}, {"from", from}});
  return affine;
}

}  // namespace

StatusOr<RawVolume> ReadNiftiHeader(const Folders& allowed, const std::string& path,
                                    GeometryPolicy policy) {
  PB_ASSIGN_OR_RETURN(const Header h, Header::Read(allowed, path));
  RawVolume header;
  header.volume.kind = "nifti";
  RawVoxels& raw = header.raw;
  raw.packing = h.packing;
  raw.is_big_endian = h.is_swapped;
  PB_ASSIGN_OR_RETURN(raw.size, SizeOfImage(h));
  if (h.Dim(0) >= 4) header.channels = std::max<std::int64_t>(1, h.Dim(4));
  PB_ASSIGN_OR_RETURN(raw.stored, TypeOf(h.Get<std::int16_t>(h.is_second ? 12 : 70)));
  const double offset =
      h.is_second ? static_cast<double>(h.Get<std::int64_t>(168)) : h.Real(108, 168);
  if (!(offset >= static_cast<double>(h.is_second ? kHeader2 : kHeader1) && offset <= kMaxOffset)) {
    return RefuseNifti(StrCat("voxels at byte ", offset));
  }
  raw.inflated_offset = static_cast<std::uint64_t>(offset);
  const double slope = h.Real(112, 176), intercept = h.Real(116, 184);
  if (slope != 0) {
    raw.slope = slope;
    raw.intercept = intercept;
  }
  PB_ASSIGN_OR_RETURN(header.volume.affine, GeometryOf(h, policy, header.volume));
  return header;
}

}  // namespace patchbay::workers
