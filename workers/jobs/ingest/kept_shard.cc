#include "workers/jobs/ingest/kept_shard.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "runtime/core/strings.h"
#include "runtime/format/tiles/self_contained_jpeg.h"
#include "workers/jobs/task/task.h"

namespace patchbay::workers {
namespace {

/// Memory that is taken for a shard before its tiles are there: a hostile first row makes the rest
/// look large.
constexpr std::size_t kMostReserved = std::size_t{64} << 20;

/// One shard, a row of tiles at a time.
class ShardOfTiles {
 public:
  ShardOfTiles(TaskContext& context, const IngestSlide& slide, const zarr::ShardPlace& place)
      : context_(context),
        slide_(slide),
        level_(slide.levels[static_cast<std::size_t>(LevelOfStored(slide.levels, place.level))]),
        counts_colours_(place.level == 0 && HasColours(slide)),
        piece_(zarr::ChunksOf(slide.store, level_.size, place)),
        scratch_(slide.source->MakeScratch()),
        hasher_(slide.store) {
    encoded_.after_piece = ProgressOf(context);
  }

  StatusOr<KeptShard> Make(const zarr::ShardPlace& place) {
    KeptShard kept;
    PB_RETURN_IF_ERROR(SettleTiles());
    for (std::int64_t row = 0; row < piece_.grid.y; ++row) {
      PB_RETURN_IF_ERROR(AddRow(row, kept));
      PB_RETURN_IF_ERROR(StepOf(context_));
    }
    kept.colours = colours_.Take();
    kept.shard = {level_.size, place, std::move(piece_)};
    return kept;
  }

 private:
  Status SettleTiles() {
    PB_ASSIGN_OR_RETURN(const tiles::TileFormat format,
                        slide_.source->TilesOf(level_.source_level));
    if (!slide_.settings.self_contained || format.codec != tiles::TileCodec::kJpeg) {
      return absl::OkStatus();
    }
    PB_ASSIGN_OR_RETURN(self_contained_,
                        tiles::SelfContainedJpeg::Make(format, slide_.store.channels));
    return absl::OkStatus();
  }

  Status AddRow(std::int64_t row, KeptShard& kept) {
    const Extent& tile = slide_.store.chunk;
    const Box box = Intersect(Box2D((piece_.first.y + row) * tile.y, piece_.first.x * tile.x,
                                    tile.y, piece_.grid.x * tile.x),
                              WholeOf(level_.size));
    PB_RETURN_IF_ERROR(slide_.source->Fetch(level_.source_level, box, encoded_));
    const bool is_decoded = !slide_.settings.no_statistics;
    TensorView band;
    if (is_decoded) {
      PB_ASSIGN_OR_RETURN(band, Decode(box));
    }
    std::sort(encoded_.pieces.begin(), encoded_.pieces.end(),
              [](const auto& a, const auto& b) { return a.chunk.x < b.chunk.x; });
    PB_RETURN_IF_ERROR(StoreRow());
    const std::vector<Digest> digests = is_decoded ? DigestsOf(band) : Sha256OfEach(stored_);
    if (row == 0) {  // rows are much alike
      const std::size_t likely = encoded_.bytes.size() * static_cast<std::size_t>(piece_.grid.y);
      piece_.bytes.reserve(std::min(likely + likely / 8, kMostReserved));
    }
    for (std::size_t i = 0; i < digests.size(); ++i) {
      kept.absent_pieces += encoded_.pieces[i].absent ? 1 : 0;
      zarr::AppendEncoded({stored_[i].first, stored_[i].row_bytes}, digests[i], piece_);
    }
    return absl::OkStatus();
  }

  /// The row's tiles as they are stored; empty for absent ones.
  Status StoreRow() {
    stored_.clear();
    made_.clear();
    for (const EncodedPiece& tile : encoded_.pieces) {
      const auto bytes =
          std::span(encoded_.bytes).subspan(tile.begin, tile.absent ? 0 : tile.size_bytes);
      const std::size_t begin = made_.size();
      if (self_contained_ && !bytes.empty()) {
        PB_RETURN_IF_ERROR(Annotate(self_contained_->Append(bytes, made_),
                                    StrCat("keep tile: level ", level_.source_level, " row ",
                                           tile.chunk.y, " column ", tile.chunk.x)));
      }
      stored_.push_back({.first = bytes.data(),
                         .row_bytes = self_contained_ ? made_.size() - begin : bytes.size()});
    }
    if (!self_contained_) return absl::OkStatus();
    const std::byte* next = made_.data();  // it grows no more
    for (ByteRows& tile : stored_) next = (tile.first = next) + tile.row_bytes;
    return absl::OkStatus();
  }

  StatusOr<TensorView> Decode(const Box& box) {
    pixels_.resize(static_cast<std::size_t>(box.Pixels() * slide_.store.PixelBytes()));
    const TensorView band = ContiguousView<4>(
        pixels_.data(), slide_.store.dtype,
        {1, box.height, box.width, static_cast<std::int64_t>(slide_.store.channels)});
    PB_RETURN_IF_ERROR(slide_.source->Decode(encoded_, band, slide_.store.fill_value, *scratch_));
    if (counts_colours_) PB_RETURN_IF_ERROR(colours_.Add(band));
    return band;
  }

  /// The digests of the tiles' pixels inside the image.
  std::vector<Digest> DigestsOf(const ConstTensorView& band) {
    std::vector<ConstTensorView> tiles;
    std::vector<bool> is_absent;
    const std::int64_t side = slide_.store.chunk.x;
    for (std::int64_t x = 0; x < band.shape[2]; x += side) {
      ConstTensorView& tile = tiles.emplace_back(band);
      tile.data += x * band.stride_bytes[2];
      tile.shape[2] = std::min(side, band.shape[2] - x);
      is_absent.push_back(encoded_.pieces[is_absent.size()].absent);
    }
    return hasher_.HashEach(tiles, is_absent);
  }

  TaskContext& context_;
  const IngestSlide& slide_;
  const OutputLevel& level_;
  const bool counts_colours_;
  zarr::ShardPiece piece_;
  std::unique_ptr<DecodeScratch> scratch_;
  EncodedPatch encoded_;
  std::optional<tiles::SelfContainedJpeg> self_contained_;
  std::vector<std::byte> made_;   ///< tiles of the row that are not the slide's bytes
  std::vector<ByteRows> stored_;  ///< tiles of the row as they are stored
  zarr::PixelHasher hasher_;
  ops::StainCounter colours_;
  std::vector<std::byte> pixels_;
};

}  // namespace

StatusOr<KeptShard> KeepShard(TaskContext& context, const IngestSlide& slide,
                              const zarr::ShardPlace& place) {
  return ShardOfTiles(context, slide, place).Make(place);
}

}  // namespace patchbay::workers
