#include "workers/jobs/ingest/kept_shard.h"

#include <algorithm>
#include <memory>

#include "runtime/format/zarr/shard_encoder.h"
#include "workers/jobs/task/task.h"

namespace patchbay::workers {
namespace {

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
    for (std::int64_t row = 0; row < piece_.grid.y; ++row) {
      PB_RETURN_IF_ERROR(AddRow(row, kept));
      PB_RETURN_IF_ERROR(StepOf(context_));
    }
    kept.colours = colours_.Take();
    PB_ASSIGN_OR_RETURN(
        kept.shard, zarr::AssembleShard(slide_.store, level_.size, place, std::span(&piece_, 1)));
    return kept;
  }

 private:
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
    const std::vector<Digest> digests = is_decoded ? DigestsOf(band) : DigestsOfBytes();
    for (std::size_t i = 0; i < digests.size(); ++i) {
      kept.absent_pieces += encoded_.pieces[i].absent ? 1 : 0;
      zarr::AppendEncoded(BytesOf(encoded_.pieces[i]), digests[i], piece_);
    }
    return absl::OkStatus();
  }

  /// Empty for an absent tile.
  std::span<const std::byte> BytesOf(const EncodedPiece& tile) const {
    return std::span(encoded_.bytes).subspan(tile.begin, tile.absent ? 0 : tile.size_bytes);
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

  std::vector<Digest> DigestsOfBytes() const {
    std::vector<ByteRows> tiles;
    for (const EncodedPiece& tile : encoded_.pieces) {
      const std::span<const std::byte> bytes = BytesOf(tile);
      tiles.push_back({.first = bytes.data(), .row_bytes = bytes.size()});
    }
    return Sha256OfEach(tiles);
  }

  TaskContext& context_;
  const IngestSlide& slide_;
  const OutputLevel& level_;
  const bool counts_colours_;
  zarr::ShardPiece piece_;
  std::unique_ptr<DecodeScratch> scratch_;
  EncodedPatch encoded_;
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
