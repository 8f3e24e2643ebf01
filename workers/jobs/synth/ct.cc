#include <algorithm>
#include <cerrno>
#include <cmath>
#include <map>
#include <numbers>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

#include "runtime/core/hash.h"
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/os/file.h"
#include "runtime/os/file_names.h"
#include "runtime/os/folder_listing.h"
#include "runtime/os/temporary_file.h"
#include "workers/jobs/synth/abdomen.h"
#include "workers/jobs/synth/synth.h"
#include "workers/sources/volumes/dicom_writer.h"
#include "workers/sources/volumes/mask_file.h"

namespace patchbay::workers {
namespace {

constexpr double kTiltDegrees = 15;
constexpr const char* kRoot = "1.2.826.0.1.3680043.10.1411.";

/// The first pixel of a slice.
Vec3 PlaceOf(const SynthCtOptions& o, std::int64_t z) {
  return {-o.pixel_mm * static_cast<double>(o.size.x - 1) / 2,
          -o.pixel_mm * static_cast<double>(o.size.y - 1) / 2,
          o.step_mm * static_cast<double>(z) - 100};
}

/// Stored values of a slice: HU + 1024.
WrittenSlice SliceOf(const AbdomenField& field, const SynthCtOptions& o, std::int64_t z) {
  WrittenSlice slice;
  slice.rows = o.size.y;
  slice.columns = o.size.x;
  slice.row_step = slice.column_step = o.pixel_mm;
  slice.position = PlaceOf(o, z);
  slice.values.reserve(static_cast<std::size_t>(o.size.y * o.size.x));
  for (std::int64_t y = 0; y < o.size.y; ++y) {
    for (std::int64_t x = 0; x < o.size.x; ++x) {
      slice.values.push_back(static_cast<std::uint16_t>(field.At({z, y, x}) + 1024));
    }
  }
  return slice;
}

void SetRescale(WrittenSlice& slice, double slope, double intercept) {
  for (std::uint16_t& v : slice.values) {
    const double hu = static_cast<double>(v) - 1024;
    v = static_cast<std::uint16_t>(std::llround((hu - intercept) / slope));
  }
  slice.slope = slope;
  slice.intercept = intercept;
}

/// The files of a series, before they are written.
class Series {
 public:
  Series(const SynthCtOptions& options) : o_(options) {
    const AbdomenField field(o_.size, o_.seed, !o_.lesions.empty());
    for (std::int64_t z = 0; z < o_.size.z; ++z) {
      WrittenFile file;
      file.bits_stored = 12;
      file.frames.push_back(SliceOf(field, o_, z));
      file.texts = PhantomTexts();
      file.texts[{0x0020, 0x0013}] = std::to_string(z + 1);
      files_.push_back(std::move(file));
      names_.push_back(StrCat("IM", 1000 + z, ".dcm"));
    }
  }

  /// `fault`: one of kCtFaults.
  void Apply(std::string_view fault);

  StatusOr<std::int64_t> Write(const Folders& allowed, const std::string& folder,
                               const SynthProgress& progress) const {
    for (std::size_t i = 0; i < files_.size(); ++i) {
      const std::string path = StrCat(folder, "/", names_[i]);
      PB_RETURN_IF_ERROR(WriteDicom(allowed, path, files_[i]));
      if (progress && !progress(static_cast<double>(i + 1) / static_cast<double>(files_.size()))) {
        return Cancelled("synth ct: cancelled");
      }
    }
    if (is_truncated_) {
      const std::string path = StrCat(folder, "/", names_[names_.size() / 2]);
      PB_ASSIGN_OR_RETURN(const std::uint64_t bytes, SizeOf(allowed, path));
      PB_ASSIGN_OR_RETURN(const UniqueFd fd, OpenFile(allowed, path, O_WRONLY));
      const int failed = ftruncate(fd.get(), static_cast<off_t>(bytes / 2));
      if (failed != 0) return FromErrno("truncate", path, errno);
    }
    return static_cast<std::int64_t>(files_.size());
  }

 private:
  using Texts = std::map<std::pair<unsigned, unsigned>, std::string>;

  struct Fault {
    std::string_view name;
    void (*apply)(Series& series);
  };
  static const Fault kFaults[];

  Texts PhantomTexts() const {
    return {{{0x0008, 0x0008}, "ORIGINAL\\PRIMARY\\AXIAL"},
            {{0x0008, 0x0016}, "1.2.840.10008.5.1.4.1.1.2"},
            {{0x0008, 0x0060}, "CT"},
            {{0x0008, 0x0070}, "Patchbay"},
            {{0x0008, 0x1090}, "Phantom"},
            {{0x0010, 0x0010}, "PHANTOM^SYNTHETIC"},
            {{0x0010, 0x0020}, StrCat("PHANTOM-", o_.seed)},
            {{0x0018, 0x0050}, StrCat(o_.step_mm)},
            {{0x0018, 0x0060}, "120"},
            {{0x0018, 0x1210}, "SOFT"},
            {{0x0018, 0x5100}, "HFS"},
            {{0x0020, 0x000d}, StrCat(kRoot, "1.", o_.seed)},
            {{0x0020, 0x000e}, StrCat(kRoot, "2.", o_.seed)},
            {{0x0020, 0x0052}, StrCat(kRoot, "3.", o_.seed)}};
  }

  WrittenSlice& Slice(std::size_t i) { return files_[i].frames.front(); }
  std::size_t Middle() const { return files_.size() / 2; }

  void Remove(std::size_t i) {
    files_.erase(files_.begin() + static_cast<std::ptrdiff_t>(i));
    names_.erase(names_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  void Add(WrittenFile file, std::string name) {
    files_.push_back(std::move(file));
    names_.push_back(std::move(name));
  }
  void SetAll(unsigned group, unsigned element, const std::string& text) {
    for (WrittenFile& file : files_) file.texts[{group, element}] = text;
  }

  void Tilt(double degrees) {
    const double angle = degrees * std::numbers::pi / 180;
    for (WrittenFile& file : files_) {
      file.frames[0].column = {0, std::cos(angle), -std::sin(angle)};
    }
  }

  /// Makes one file of all frames, in the order of every `step`-th.
  void Merge(std::size_t step) {
    WrittenFile all = files_.front();
    all.frames.clear();
    for (std::size_t i = 0; i < files_.size(); ++i) {
      all.frames.push_back(Slice(i * step % files_.size()));
    }
    all.texts[{0x0008, 0x0016}] = "1.2.840.10008.5.1.4.1.1.2.1";
    files_ = {all};
    names_ = {"enhanced.dcm"};
  }
  void Encode(const char* transfer_syntax) {
    for (WrittenFile& file : files_) file.transfer_syntax = transfer_syntax;
  }

  const SynthCtOptions& o_;
  std::vector<WrittenFile> files_;
  std::vector<std::string> names_;
  bool is_truncated_ = false;
};

constexpr Series::Fault Series::kFaults[] = {
    {"none", [](Series&) {}},
    {"missing-slice", [](Series& s) { s.Remove(s.Middle()); }},
    {"duplicate-slice", [](Series& s) { s.Add(s.files_[s.Middle()], "IM1999.dcm"); }},
    {"tilt", [](Series& s) { s.Tilt(kTiltDegrees); }},
    {"tilt-back", [](Series& s) { s.Tilt(-kTiltDegrees); }},
    {"variable-steps",
     [](Series& s) {
       for (std::size_t i = 0; i < s.files_.size(); ++i) {
         s.Slice(i).position.z += 0.13 * s.o_.step_mm * static_cast<double>(i * i % 5);
       }
     }},
    {"shifted-slice", [](Series& s) { s.Slice(s.Middle()).position.x += 7 * s.o_.pixel_mm; }},
    {"shuffled-names",
     [](Series& s) {
       const std::size_t count = s.names_.size();
       for (std::size_t i = 0; i < count; ++i) {
         s.names_[i] = StrCat("IM", 1000 + i * 7 % count, "-", i, ".dcm");
         s.files_[i].texts[{0x0020, 0x0013}] = std::to_string(i * 5 % count);
       }
     }},
    {"mixed-orientation", [](Series& s) { s.Slice(s.Middle()).column = {0, 0, -1}; }},
    {"mixed-spacing", [](Series& s) { s.Slice(s.Middle()).row_step *= 1.1; }},
    {"mixed-size",
     [](Series& s) {
       WrittenSlice& slice = s.Slice(s.Middle());
       slice.rows /= 2;
       slice.values.resize(static_cast<std::size_t>(slice.rows * slice.columns));
     }},
    {"mixed-kernel", [](Series& s) { s.files_[s.Middle()].texts[{0x0018, 0x1210}] = "BONE"; }},
    {"frame-of-reference",
     [](Series& s) {
       s.files_[s.Middle()].texts[{0x0020, 0x0052}] = StrCat(kRoot, "4.", s.o_.seed);
     }},
    {"frame-a-slice",  // as LIDC-IDRI has them
     [](Series& s) {
       for (std::size_t i = 0; i < s.files_.size(); ++i) {
         s.files_[i].texts[{0x0020, 0x0052}] = StrCat(kRoot, "4.", s.o_.seed, ".", i + 1);
       }
     }},
    {"localiser-among",
     [](Series& s) { s.files_[0].texts[{0x0008, 0x0008}] = "ORIGINAL\\PRIMARY\\LOCALIZER"; }},
    {"no-rescale", [](Series& s) { s.files_[s.Middle()].has_rescale = false; }},
    {"flipped-rows",
     [](Series& s) {
       for (WrittenFile& file : s.files_) file.frames[0].column = {0, -1, 0};
     }},
    {"sagittal",
     [](Series& s) {
       for (std::size_t i = 0; i < s.files_.size(); ++i) {
         s.Slice(i).row = {0, 1, 0};
         s.Slice(i).column = {0, 0, -1};
         s.Slice(i).position = {s.o_.step_mm * static_cast<double>(i), -40, 30};
       }
     }},
    {"no-position", [](Series& s) { s.files_[s.Middle()].has_position = false; }},
    {"over-time",
     [](Series& s) {
       const std::size_t count = s.files_.size();
       for (std::size_t i = 0; i < count; ++i) s.Add(s.files_[i], StrCat("IM", 3000 + i, ".dcm"));
     }},
    {"slope-change",
     [](Series& s) {
       for (std::size_t i = s.Middle(); i < s.files_.size(); ++i) SetRescale(s.Slice(i), 1, -2000);
     }},
    {"fractional-slope",
     [](Series& s) {
       for (std::size_t i = 0; i < s.files_.size(); ++i) SetRescale(s.Slice(i), 0.5, -1024.25);
     }},
    {"signedness",
     [](Series& s) {
       for (std::size_t i = 0; i < s.files_.size(); i += 2) {
         s.files_[i].is_signed = true;
         s.files_[i].bits_stored = 16;
         SetRescale(s.Slice(i), 1, 0);
       }
     }},
    {"high-bits",  // an overlay above the stored bits
     [](Series& s) {
       for (WrittenFile& file : s.files_) {
         std::vector<std::uint16_t>& values = file.frames[0].values;
         for (std::size_t i = 0; i < values.size(); i += 3) values[i] |= 0x8000;
       }
     }},
    {"enhanced", [](Series& s) { s.Merge(1); }},
    {"frame-order", [](Series& s) { s.Merge(5); }},
    {"mr", [](Series& s) { s.SetAll(0x0008, 0x0060, "MR"); }},
    {"not-hu", [](Series& s) { s.SetAll(0x0028, 0x1054, "US"); }},
    {"localiser", [](Series& s) { s.SetAll(0x0008, 0x0008, "ORIGINAL\\PRIMARY\\LOCALIZER"); }},
    {"secondary-capture",
     [](Series& s) { s.SetAll(0x0008, 0x0016, "1.2.840.10008.5.1.4.1.1.7"); }},
    {"burned-in", [](Series& s) { s.SetAll(0x0028, 0x0301, "YES"); }},
    {"single-slice",
     [](Series& s) {
       s.files_.resize(1);
       s.names_.resize(1);
     }},
    {"two-series",
     [](Series& s) {
       const std::size_t count = s.files_.size();
       for (std::size_t i = 0; i < count; ++i) {
         WrittenFile other = s.files_[i];
         other.texts[{0x0020, 0x000e}] = StrCat(kRoot, "5.", s.o_.seed);
         SetRescale(other.frames[0], 1, -1000);
         s.Add(std::move(other), StrCat("IM", 2000 + i, ".dcm"));
       }
     }},
    {"no-extension",
     [](Series& s) {
       for (std::string& name : s.names_) name.resize(name.find('.'));
     }},
    {"truncated", [](Series& s) { s.is_truncated_ = true; }},
    {"implicit", [](Series& s) { s.Encode("1.2.840.10008.1.2"); }},
    {"big-endian", [](Series& s) { s.Encode("1.2.840.10008.1.2.2"); }},
    {"deflated", [](Series& s) { s.Encode("1.2.840.10008.1.2.1.99"); }},
    {"jpeg", [](Series& s) { s.Encode("1.2.840.10008.1.2.4.70"); }},
    {"jpeg-ls", [](Series& s) { s.Encode("1.2.840.10008.1.2.4.80"); }},
    {"rle", [](Series& s) { s.Encode("1.2.840.10008.1.2.5"); }}};

void Series::Apply(std::string_view fault) {
  static_assert([] {  // a name that only one of the two has does not compile
    std::string_view names = kCtFaults;
    for (const Fault& made : kFaults) {
      if (!names.starts_with(made.name)) return false;
      names.remove_prefix(std::min(made.name.size() + 1, names.size()));
    }
    return names.empty();
  }());
  for (const Fault& made : kFaults) {
    if (made.name == fault) made.apply(*this);
  }
  for (std::size_t i = 0; i < files_.size(); ++i) {
    files_[i].texts[{0x0008, 0x0018}] = StrCat(kRoot, "9.", o_.seed, ".", i + 1);
  }
}

/// The mask of the phantom's lesions on the grid of its slices.
Status WriteLesions(const Folders& allowed, const SynthCtOptions& o) {
  if (o.lesions.empty()) return absl::OkStatus();
  const AbdomenField field(o.size, o.seed, true);
  std::vector<std::uint8_t> mask;
  for (std::int64_t i = 0; i < o.size.Pixels(); ++i) {
    mask.push_back(static_cast<std::uint8_t>(field.LesionAt(CellAt(o.size, i))));
  }
  const Affine affine{{o.pixel_mm, 0, 0}, {0, o.pixel_mm, 0}, {0, 0, o.step_mm}, PlaceOf(o, 0)};
  return WriteNiftiMask(allowed, o.lesions, {o.size, affine, mask}).status();
}

}  // namespace

StatusOr<std::int64_t> SynthCt(const Folders& allowed, const std::string& folder,
                               const SynthCtOptions& options, const SynthProgress& progress) {
  if (Exists(allowed, folder, false)) {
    return ErrorAbout(absl::StatusCode::kAlreadyExists, "synth ct", folder,
                      "something of that name is already there");
  }
  PB_ASSIGN_OR_RETURN(const PartialFolder staging, PartialFolder::Make(allowed, folder));
  Series series(options);
  series.Apply(options.fault);
  PB_ASSIGN_OR_RETURN(const std::int64_t written, series.Write(allowed, staging.path(), progress));
  PB_RETURN_IF_ERROR(RenameFile(allowed, staging.path(), folder));
  const Status mask = WriteLesions(allowed, options);
  if (mask.ok()) return written;
  RemoveTree(allowed, folder).IgnoreError();
  return mask;
}

}  // namespace patchbay::workers
