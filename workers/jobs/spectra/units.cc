#include "workers/jobs/spectra/units.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "ops/spectral/spectral_frames.h"
#include "runtime/core/strings.h"

namespace patchbay::workers {
namespace {

/// Units that each thread is ahead of its consumer. Larger means more memory and slower disks
/// hidden.
constexpr std::size_t kUnitsAhead = 2;
/// Background of a slide where the file says that a tile is absent; other images are dark there. As
/// ingest stores them.
constexpr std::uint8_t kBrightfieldFill = 255, kDarkFill = 0;

Status OutOfMemory(std::string_view doing) {
  return absl::ResourceExhaustedError(
      StrCat("spectra: ", doing, " tiles: out of memory: fewer workers (--cpus) leave each more"));
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

}  // namespace

UnitsAhead::UnitsAhead(const ImageSource& source, const SpectraGrid& grid,
                       std::vector<SpectraUnit> units, const UnitsAheadOptions& options)
    : source_(source),
      grid_(grid),
      options_(options),
      most_ahead_(kUnitsAhead * static_cast<std::size_t>(options.threads)),
      units_(std::move(units)),
      ready_(units_.size()) {
  for (int i = 0; i < options.threads; ++i) threads_.emplace_back([this] { Loop(); });
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
        {tile.y / grid_.chunk_height, tile.x / grid_.chunk_width, std::string(MessageOf(decoded))});
    for (int channel = 0; channel < plan::SpectralChannels(grid_.options); ++channel) {
      for (std::int64_t y = tile.y; y < tile.y + tile.height; ++y) {
        std::memset(planes.At(channel, y, tile.x), 0, static_cast<std::size_t>(tile.width));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace patchbay::workers
