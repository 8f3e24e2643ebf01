// One strip: tiles in, integers out. Every native tile is decoded once; a frame is measured as soon
// as its last pixel is decoded.
#include "workers/jobs/spectra/strip.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <tuple>

#include "ops/spectral/spectral_frames.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/format/json/json_forms.h"
#include "runtime/os/file.h"
#include "runtime/os/work_meter.h"
#include "workers/jobs/spectra/engine.h"
#include "workers/jobs/spectra/spectra.h"
#include "workers/jobs/spectra/spectra_staging.h"

namespace patchbay::workers {
namespace {

/// Units that each thread is ahead of its consumer. Larger means more memory and slower disks
/// hidden.
constexpr std::size_t kUnitsAhead = 2;
/// Fill value of tiles that the file marks as absent: the background of a slide; dark in other
/// images. Equal to ingest's.
constexpr std::uint8_t kBrightfieldFill = 255, kDarkFill = 0;

Status OutOfMemory(std::string_view doing) {
  return ResourceExhausted("spectra: ", doing,
                           " tiles: out of memory: fewer workers (--cpus) leave each more");
}

Status FetchUnit(const ImageSource& source, SpectraUnit& unit) {
  if (!unit.wanted) return absl::OkStatus();
  try {
    return source.Fetch(0, unit.box, unit.encoded);
  } catch (const std::bad_alloc&) {
    return OutOfMemory("read");
  }
}

void DecodeUnit(UnitDecoder& decoder, const SpectraGrid& grid, SpectraUnit& unit) {
  unit.damaged.clear();
  try {
    if (!unit.planes) unit.planes.emplace(grid);
    unit.planes->Hold(unit.box);
    unit.decoded = decoder.Decode(unit, *unit.planes, unit.damaged);
  } catch (const std::bad_alloc&) {
    unit.decoded = OutOfMemory("decode");
  }
}

/// Pixels of frames between two signs of progress: tens of milliseconds of one core for each
/// channel. Larger means slower to notice that a task was cancelled, and a core that many share may
/// show nothing as long as a lease lasts.
constexpr std::int64_t kFramePixelsAtOnce = std::int64_t{1} << 24;
/// Frame columns that wait for their neighbours, so that transformed columns are shared and sums
/// flushed once for all of them. Larger means pixels lie longer before they are measured.
constexpr std::int64_t kColumnsAtOnce = 256;

/// The frames of a strip that are counted. A value.
class WantedFrames {
 public:
  WantedFrames(const ops::FrameRange& frames, std::vector<std::uint8_t> wanted)
      : frames_(frames), wanted_(std::move(wanted)) {}

  bool Any(const ops::FrameRange& range) const {
    if (wanted_.empty()) return FramesIn(Intersect(range, frames_)) > 0;
    bool any = false;
    ForEach(range, [&](std::size_t i) { any = any || wanted_[i] != 0; });
    return any;
  }

  /// How many it left out that counted until now.
  std::uint64_t LeaveOut(const ops::FrameRange& range) {
    if (wanted_.empty()) wanted_.assign(static_cast<std::size_t>(FramesIn(frames_)), 1);
    std::uint64_t changed = 0;
    ForEach(range, [&](std::size_t i) { changed += std::exchange(wanted_[i], 0); });
    return changed;
  }

  /// The flags of a range, in the form of SpectralFrames::Add; empty when all frames count.
  std::vector<std::uint8_t> Of(const ops::FrameRange& range) const {
    std::vector<std::uint8_t> bytes;
    if (wanted_.empty()) return bytes;
    ForEach(range, [&](std::size_t i) { bytes.push_back(wanted_[i]); });
    return bytes;
  }

 private:
  template <typename Visit>
  void ForEach(const ops::FrameRange& range, const Visit& visit) const {
    const ops::FrameRange inside = Intersect(range, frames_);
    const std::int64_t columns = frames_.column_end - frames_.column_begin;
    for (std::int64_t row = inside.row_begin; row < inside.row_end; ++row) {
      const std::int64_t first = (row - frames_.row_begin) * columns - frames_.column_begin;
      for (std::int64_t c = inside.column_begin; c < inside.column_end; ++c) {
        visit(static_cast<std::size_t>(first + c));
      }
    }
  }

  ops::FrameRange frames_;
  std::vector<std::uint8_t> wanted_;  ///< empty: all
};

std::vector<SpectraUnit> UnitsOf(const SpectraGrid& grid, const ops::FrameRange& frames,
                                 const WantedFrames& wanted) {
  std::vector<SpectraUnit> units;
  for (const Box& box : CutUnits(grid, frames)) {
    SpectraUnit unit;
    unit.box = box;
    unit.wanted = wanted.Any(FramesTouching(grid, box));
    units.push_back(std::move(unit));
  }
  return units;
}

class StripMeasure {
 public:
  StripMeasure(TaskContext& context, const StripRequest& request, const SpectraGrid& grid,
               std::unique_ptr<ops::SpectralFrames> engine)
      : context_(context),
        request_(request),
        grid_(grid),
        wanted_(request.frames, request.wanted),
        units_(request.image, grid, UnitsOf(grid, request.frames, wanted_), AheadOf(context)),
        decoder_(request.image, grid),
        planes_(grid),
        next_row_(request.frames.row_begin),
        band_end_(request.frames.row_begin),
        engine_(std::move(engine)) {
    result_.sums.assign(static_cast<std::size_t>(plan::SpectralChannels(grid.options)),
                        ops::SpectralSums(grid.options));
    planes_.Hold(ColumnsHeld());
    for (std::uint8_t frame : request.wanted) result_.frames_off_tissue += frame == 0 ? 1 : 0;
  }

  StatusOr<StripResult> Run() {
    std::int64_t band_y = -1;
    while (std::unique_ptr<SpectraUnit> unit = units_.Next()) {
      PB_RETURN_IF_ERROR(context_.CheckCancelled());
      if (unit->box.y != band_y) {
        if (result_.damaged) break;
        band_y = unit->box.y;
        StartBand(unit->box);
      }
      PB_RETURN_IF_ERROR(Measure(*unit));
      units_.GiveBack(std::move(unit));
    }
    PB_RETURN_IF_ERROR(engine_->Finish());
    return std::move(result_);
  }

 private:
  /// A worker of one core decodes where it measures: see notes/0001 of this folder.
  static UnitsAheadOptions AheadOf(const TaskContext& context) {
    UnitsAheadOptions ahead;
    ahead.is_decoded = context.threads > 1;
    ahead.threads = context.threads;
    return ahead;
  }

  /// Whole tiles that hold all columns of the strip.
  Box ColumnsHeld() const {
    const Box need = PixelsOf(grid_, request_.frames);
    const std::int64_t left = need.x / grid_.chunk_width * grid_.chunk_width;
    const std::int64_t tiles = (need.x + need.width - 1) / grid_.chunk_width + 1;
    return Box2D(need.y, left, 0, std::min(grid_.width, tiles * grid_.chunk_width) - left);
  }

  void StartBand(const Box& box) {
    const std::int64_t bottom = box.y + box.height;
    next_row_ = band_end_;
    band_end_ =
        std::clamp(RowsAbove(grid_, bottom), request_.frames.row_begin, request_.frames.row_end);
    next_column_ = request_.frames.column_begin;
    const ops::FrameRange rest = {next_row_, request_.frames.row_end, request_.frames.column_begin,
                                  request_.frames.column_end};
    const std::int64_t top = FramesIn(rest) == 0 ? box.y : PixelsOf(grid_, rest).y;
    planes_.MoveTo(std::min(top, box.y), bottom);
  }

  Status TakePixels(SpectraUnit& unit) {
    if (unit.planes) {
      PB_RETURN_IF_ERROR(unit.decoded);
      if (unit.wanted) planes_.Copy(*unit.planes);
    } else {
      unit.damaged.clear();
      PB_RETURN_IF_ERROR(decoder_.Decode(unit, planes_, unit.damaged));
    }
    for (DamagedTile& tile : unit.damaged) NoteDamage(std::move(tile));
    return absl::OkStatus();
  }

  Status Measure(SpectraUnit& unit) {
    PB_RETURN_IF_ERROR(TakePixels(unit));
    context_.AddProgress();
    const std::int64_t end =
        std::min(ColumnsBefore(grid_, unit.box.x + unit.box.width), request_.frames.column_end);
    if (end < request_.frames.column_end && end - next_column_ < kColumnsAtOnce) {
      return absl::OkStatus();
    }
    const ops::FrameRange complete = {next_row_, band_end_, next_column_, end};
    next_column_ = std::max(next_column_, end);
    return result_.damaged ? absl::OkStatus() : AddFrames(complete);
  }

  void NoteDamage(DamagedTile tile) {
    const Box box = Intersect(Box2D(tile.row * grid_.chunk_height, tile.column * grid_.chunk_width,
                                    grid_.chunk_height, grid_.chunk_width),
                              Box2D(0, 0, grid_.height, grid_.width));
    const ops::FrameRange frames = FramesTouching(grid_, box);
    if (request_.settings.skip_damaged) {
      result_.frames_skipped += wanted_.LeaveOut(frames);
    } else if (wanted_.Any(frames)) {
      const auto place = [](const DamagedTile& t) { return std::tie(t.row, t.column); };
      if (!result_.damaged || place(tile) < place(*result_.damaged)) {
        result_.damaged = std::move(tile);
      }
    }
  }

  /// Row by row and part by part, so that progress shows.
  Status AddFrames(const ops::FrameRange& range) {
    const std::int64_t frame = request_.settings.frame;
    const std::int64_t at_once = std::max<std::int64_t>(1, kFramePixelsAtOnce / (frame * frame));
    const std::int64_t columns =
        std::clamp<std::int64_t>(range.column_end - range.column_begin, 1, at_once);
    const std::int64_t rows = std::max<std::int64_t>(1, at_once / columns);
    for (std::int64_t row = range.row_begin; row < range.row_end; row += rows) {
      for (std::int64_t column = range.column_begin; column < range.column_end; column += columns) {
        PB_RETURN_IF_ERROR(AddPart({row, std::min(row + rows, range.row_end), column,
                                    std::min(column + columns, range.column_end)}));
        context_.AddProgress();
        PB_RETURN_IF_ERROR(context_.CheckCancelled());
      }
    }
    return absl::OkStatus();
  }

  Status AddPart(const ops::FrameRange& part) {
    if (!wanted_.Any(part)) return absl::OkStatus();
    const std::vector<std::uint8_t> wanted = wanted_.Of(part);
    for (std::size_t channel = 0; channel < result_.sums.size(); ++channel) {
      PB_RETURN_IF_ERROR(engine_->Add(planes_.View(static_cast<int>(channel)), part, wanted,
                                      result_.sums[channel]));
    }
    return absl::OkStatus();
  }

  TaskContext& context_;
  const StripRequest& request_;
  const SpectraGrid grid_;
  WantedFrames wanted_;
  UnitsAhead units_;
  UnitDecoder decoder_;
  SpectraPlanes planes_;
  StripResult result_;
  /// Frames [next_row_, band_end_) become complete with the band that is being decoded; those
  /// before next_column_ are measured already.
  std::int64_t next_row_ = 0, band_end_ = 0, next_column_ = 0;
  /// Destroyed first: it still adds to result_.
  std::unique_ptr<ops::SpectralFrames> engine_;
};

}  // namespace

Json ToJson(StripResult& result) {
  if (!result.damaged) result.encoded_sums = SumsToJson(result.sums);
  return JsonOf<StripRecord>(result);
}

StatusOr<StripResult> StripResultFromJson(const Json& json, const plan::SpectralOptions& options) {
  StripResult result;
  PB_RETURN_IF_ERROR(ReadJson<StripRecord>(json, JsonPlace("strip result"), result));
  if (result.damaged) return result;
  PB_ASSIGN_OR_RETURN(result.sums, SumsFromJson(result.encoded_sums, options));
  return result;
}

SpectraPlanes::SpectraPlanes(const SpectraGrid& grid)
    : grid_(grid), planes_(static_cast<std::size_t>(plan::SpectralChannels(grid.options))) {}

void SpectraPlanes::Hold(const Box& box) {
  left_ = box.x;
  width_ = box.width;
  top_ = bottom_ = box.y;
  MoveTo(box.y, box.y + box.height);
}

void SpectraPlanes::MoveTo(std::int64_t top, std::int64_t bottom) {
  const std::int64_t kept = std::clamp<std::int64_t>(bottom_ - top, 0, bottom_ - top_);
  const auto bytes = static_cast<std::size_t>((bottom - top) * width_);
  for (std::vector<std::uint8_t>& plane : planes_) {
    if (plane.size() < bytes) plane.resize(bytes);
    if (kept > 0 && top > top_) {
      std::memmove(plane.data(), plane.data() + (top - top_) * width_,
                   static_cast<std::size_t>(kept * width_));
    }
  }
  top_ = top;
  bottom_ = bottom;
}

std::uint8_t* SpectraPlanes::At(int channel, std::int64_t y, std::int64_t x) {
  return planes_[static_cast<std::size_t>(channel)].data() + (y - top_) * width_ + (x - left_);
}

void SpectraPlanes::Copy(SpectraPlanes& from) {
  for (int channel = 0; channel < static_cast<int>(planes_.size()); ++channel) {
    for (std::int64_t y = from.top_; y < from.bottom_; ++y) {
      std::memcpy(At(channel, y, from.left_), from.At(channel, y, from.left_),
                  static_cast<std::size_t>(from.width_));
    }
  }
}

ops::SpectralPlane SpectraPlanes::View(int channel) {
  ops::SpectralPlane plane;
  plane.pixels = planes_[static_cast<std::size_t>(channel)].data();
  plane.row_bytes = width_;
  plane.top = top_;
  plane.left = left_;
  plane.height = bottom_ - top_;
  plane.width = width_;
  plane.image_height = grid_.height;
  plane.image_width = grid_.width;
  return plane;
}

UnitsAhead::UnitsAhead(const ImageSource& source, const SpectraGrid& grid,
                       std::vector<SpectraUnit> units, const UnitsAheadOptions& options)
    : source_(source),
      grid_(grid),
      options_(options),
      most_ahead_(kUnitsAhead * static_cast<std::size_t>(options.threads)),
      units_(std::move(units)),
      ready_(units_.size()) {
  for (int i = 0; i < options.threads; ++i) threads_.emplace_back(Metered([this] { Loop(); }));
}

UnitsAhead::~UnitsAhead() {
  {
    const std::lock_guard lock(mu_);
    closed_ = true;
  }
  can_claim_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

std::optional<std::size_t> UnitsAhead::Claim(std::unique_ptr<SpectraUnit>& unit) {
  std::unique_lock lock(mu_);
  can_claim_.wait(lock, [this] {
    return closed_ || claimed_ == units_.size() || claimed_ < taken_ + most_ahead_;
  });
  if (closed_ || claimed_ == units_.size()) return std::nullopt;
  if (!spare_.empty()) {
    unit = std::move(spare_.back());
    spare_.pop_back();
  }
  if (unit == nullptr) unit = std::make_unique<SpectraUnit>();
  unit->box = units_[claimed_].box;
  unit->wanted = units_[claimed_].wanted;
  return claimed_++;
}

void UnitsAhead::Deliver(std::size_t number, std::unique_ptr<SpectraUnit> unit) {
  const std::lock_guard lock(mu_);
  ready_[number] = std::move(unit);
  is_ready_.notify_all();
}

void UnitsAhead::Loop() {
  UnitDecoder decoder(source_, grid_);
  std::unique_ptr<SpectraUnit> unit;
  while (const std::optional<std::size_t> number = Claim(unit)) {
    unit->fetched = FetchUnit(source_, *unit);
    if (options_.is_decoded) DecodeUnit(decoder, grid_, *unit);
    Deliver(*number, std::move(unit));
  }
}

std::unique_ptr<SpectraUnit> UnitsAhead::Next() {
  std::unique_lock lock(mu_);
  if (taken_ == units_.size()) return nullptr;
  is_ready_.wait(lock, [this] { return ready_[taken_] != nullptr; });
  std::unique_ptr<SpectraUnit> unit = std::move(ready_[taken_++]);
  can_claim_.notify_one();
  return unit;
}

void UnitsAhead::GiveBack(std::unique_ptr<SpectraUnit> unit) {
  const std::lock_guard lock(mu_);
  spare_.push_back(std::move(unit));
}

UnitDecoder::UnitDecoder(const ImageSource& source, const SpectraGrid& grid)
    : source_(source), grid_(grid), scratch_(source.MakeScratch()) {}

Status UnitDecoder::Decode(const SpectraUnit& unit, SpectraPlanes& planes,
                           std::vector<DamagedTile>& damaged) {
  if (!unit.wanted) return absl::OkStatus();
  const Status decoded = unit.fetched.ok() ? DecodeBox(unit.encoded, planes) : unit.fetched;
  if (!absl::IsDataLoss(decoded)) return decoded;
  return DecodeTileByTile(unit.box, planes, damaged);
}

Status UnitDecoder::DecodeBox(const EncodedPatch& encoded, SpectraPlanes& planes) {
  const Box& box = encoded.box;
  const int channels = source_.layout().channels;
  if (channels == 1) {
    TensorView out = ContiguousView<3>(reinterpret_cast<std::byte*>(planes.At(0, box.y, box.x)),
                                       DType::kUint8, {box.height, box.width, 1});
    out.stride_bytes[0] = planes.row_bytes();
    return source_.Decode(encoded, out, kDarkFill, *scratch_);
  }
  const auto bytes = static_cast<std::size_t>(box.Pixels() * channels);
  if (rgb_bytes_ < bytes) {
    rgb_ = std::make_unique_for_overwrite<std::uint8_t[]>(bytes);
    rgb_bytes_ = bytes;
  }
  const TensorView out = ContiguousView<3>(reinterpret_cast<std::byte*>(rgb_.get()), DType::kUint8,
                                           {box.height, box.width, channels});
  PB_RETURN_IF_ERROR(source_.Decode(encoded, out, kBrightfieldFill, *scratch_));
  for (std::int64_t y = 0; y < box.height; ++y) {
    const std::uint8_t* rgb = rgb_.get() + y * box.width * channels;
    if (grid_.options.channel == plan::SpectralChannel::kGrey) {
      ops::GreyOfRgb(rgb, box.width, planes.At(0, box.y + y, box.x));
    } else {
      ops::SplitRgb(rgb, box.width, planes.At(0, box.y + y, box.x), planes.At(1, box.y + y, box.x),
                    planes.At(2, box.y + y, box.x));
    }
  }
  return absl::OkStatus();
}

Status UnitDecoder::DecodeTileByTile(const Box& box, SpectraPlanes& planes,
                                     std::vector<DamagedTile>& damaged) {
  EncodedPatch encoded;
  for (const Box& tile : TilesOf(grid_, box)) {
    Status decoded = source_.Fetch(0, tile, encoded);
    if (decoded.ok()) decoded = DecodeBox(encoded, planes);
    if (decoded.ok()) continue;
    if (!absl::IsDataLoss(decoded)) return decoded;
    damaged.push_back(
        {tile.y / grid_.chunk_height, tile.x / grid_.chunk_width, OutcomeOf(decoded)});
    for (int channel = 0; channel < plan::SpectralChannels(grid_.options); ++channel) {
      for (std::int64_t y = tile.y; y < tile.y + tile.height; ++y) {
        std::memset(planes.At(channel, y, tile.x), 0, static_cast<std::size_t>(tile.width));
      }
    }
  }
  return absl::OkStatus();
}

StatusOr<StripResult> MeasureStrip(TaskContext& context, const StripRequest& request) {
  const SpectraGrid grid = GridOf(request.image.layout().levels.front(), request.settings,
                                  SpectraPaceOf(request.settings));
  if (FramesIn(request.frames) == 0 ||
      FramesIn(Intersect(request.frames, grid.All())) != FramesIn(request.frames)) {
    return InvalidArgument("spectra payload: frames outside the image");
  }
  PB_ASSIGN_OR_RETURN(std::unique_ptr<ops::SpectralFrames> engine,
                      MakeSpectraEngine(context, request.settings));
  StripMeasure measure(context, request, grid, std::move(engine));
  return measure.Run();
}

}  // namespace patchbay::workers
