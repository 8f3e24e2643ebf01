// OME-Zarr 0.4 for programs that read no zarr shards: Zarr v2 of axes t, c, z, y, x below
// bioformats2raw's layout 3, a file for each plane of a chunk. Label sets are below the image.
#include <algorithm>
#include <array>
#include <cstring>
#include <set>

#include "runtime/core/strings.h"
#include "runtime/format/zarr/codec/chunk_encoder.h"
#include "runtime/format/zarr/label_sets.h"
#include "runtime/format/zarr/planar_files.h"
#include "runtime/os/file.h"
#include "workers/jobs/convert/conversion.h"
#include "workers/jobs/convert/ome_xml.h"

namespace patchbay::workers {
namespace {

constexpr std::int64_t kPartSide = 4 * zarr::kPlanarSide;  ///< side of a part
constexpr char kImage[] = "0";
constexpr std::array<std::string_view, 5> kAxes = {"t", "c", "z", "y", "x"};

/// One level of `store`, an image or a label image, into the array at `folder`. Not thread-safe.
class PlaneWriter {
 public:
  PlaneWriter(TaskContext& context, const zarr::OpenedStore& store, std::size_t level,
              const Conversion& from)
      : context_(context),
        store_(store.settings),
        level_(store.levels[level]),
        chunk_(zarr::PlanarChunkOf(level_.size)),
        settings_{.dtype = store_.dtype,
                  .channels = 1,
                  .codec_level = static_cast<int>(from.options.codec_level)},
        encoder_(settings_) {}

  /// The chunks of `part`, which begins at a chunk's corner, durably. `channel`: ShardPlace's.
  Status Write(const Box& part, int channel, const std::string& folder, const LeaseFolder& lease) {
    channel_ = channel;
    for (std::int64_t z = part.z; z < part.z + part.depth; z += store_.chunk.z) {
      for (std::int64_t y = part.y; y < part.y + part.height; y += chunk_.y) {
        for (std::int64_t x = part.x; x < part.x + part.width; x += chunk_.x) {
          const Extent slab{store_.chunk.z, chunk_.y, chunk_.x};
          PB_RETURN_IF_ERROR(WriteSlab(Intersect(BoxAt({z, y, x}, slab), part), folder, lease));
        }
      }
    }
    for (const std::string& name : folders_) {
      PB_RETURN_IF_ERROR(StepOf(context_));
      PB_RETURN_IF_ERROR(SyncDirectory(context_.allowed, name));
    }
    return absl::OkStatus();
  }

  Json Document(const Json& fill_value) const {
    const Extent& size = level_.size;
    const std::size_t element = SizeOf(store_.dtype);
    const char kind = store_.dtype == DType::kFloat32 ? 'f'
                      : store_.dtype == DType::kInt16 ? 'i'
                                                      : 'u';
    return {{"zarr_format", 2},
            {"shape", {1, store_.channels, size.z, size.y, size.x}},
            {"chunks", {1, 1, 1, chunk_.y, chunk_.x}},
            {"dtype", StrCat(element == 1 ? "|" : "<", std::string(1, kind), element)},
            {"compressor",
             {{"id", "blosc"},
              {"cname", "zstd"},
              {"clevel", settings_.codec_level},
              {"shuffle", element == 1 ? 0 : 1},
              {"blocksize", settings_.blosc_block_bytes}}},
            {"fill_value", fill_value},
            {"filters", nullptr},
            {"order", "C"},
            {"dimension_separator", "/"}};
  }

 private:
  /// The planes of a box of one chunk's rows and columns.
  Status WriteSlab(const Box& box, const std::string& folder, const LeaseFolder& lease) {
    const std::size_t element = SizeOf(store_.dtype);
    const auto plane_bytes = static_cast<std::size_t>(chunk_.Pixels()) * element;
    const std::int64_t count = store_.IsVolume() ? box.depth : store_.channels;
    const auto planes = static_cast<std::size_t>(count);
    Fill(planes * plane_bytes);
    TensorView out = ContiguousView<3>(planes_.data(), store_.dtype, {count, chunk_.y, chunk_.x});
    out.shape[1] = box.height;
    out.shape[2] = box.width;
    PB_RETURN_IF_ERROR(Read(box, out));
    for (std::size_t i = 0; i < planes; ++i) {
      PB_RETURN_IF_ERROR(StepOf(context_));
      const auto plane = std::span(planes_).subspan(i * plane_bytes, plane_bytes);
      if (IsFill(plane)) continue;
      encoded_.clear();
      PB_RETURN_IF_ERROR(encoder_.Append(plane, encoded_));
      const bool is_volume = store_.IsVolume();
      const std::int64_t c = is_volume ? std::max(channel_, 0) : static_cast<std::int64_t>(i);
      const std::int64_t z = is_volume ? box.z + static_cast<std::int64_t>(i) : 0;
      const std::string row = StrCat(folder, "/0/", c, "/", z, "/", box.y / chunk_.y);
      PB_RETURN_IF_ERROR(lease.Put(context_, StrCat(row, "/", box.x / chunk_.x), encoded_, 0644));
      folders_.insert(row);
    }
    return absl::OkStatus();
  }

  /// By zarr shards: each is another file.
  Status Read(const Box& box, const TensorView& out) {
    const Extent& side = store_.shard;
    for (std::int64_t y = box.y, height = 0; y < box.y + box.height; y += height) {
      height = std::min(side.y - y % side.y, box.y + box.height - y);
      for (std::int64_t x = box.x, width = 0; x < box.x + box.width; x += width) {
        width = std::min(side.x - x % side.x, box.x + box.width - x);
        TensorView part = out;
        part.data += (y - box.y) * out.stride_bytes[1] + (x - box.x) * out.stride_bytes[2];
        part.shape[1] = height;
        part.shape[2] = width;
        const Box cell{box.z, y, x, box.depth, height, width};
        if (store_.axes == zarr::StoreAxes::kCzyx) part = OfOneChannel(part);
        PB_RETURN_IF_ERROR(level_.array.ReadRegion(zarr::RegionOf(store_, cell, channel_), part));
        PB_RETURN_IF_ERROR(StepOf(context_));
      }
    }
    return absl::OkStatus();
  }

  /// (z, y, x) as (c, z, y, x).
  static TensorView OfOneChannel(const TensorView& planes) {
    TensorView view = planes;
    view.rank = 4;
    view.shape[0] = 1;
    view.stride_bytes[0] = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      view.shape[i + 1] = planes.shape[i];
      view.stride_bytes[i + 1] = planes.stride_bytes[i];
    }
    return view;
  }

  /// Chunks reach past the level: there they are the fill value.
  void Fill(std::size_t bytes) {
    const std::vector<std::byte>& fill = level_.array.metadata().fill;
    planes_.resize(bytes);
    for (std::size_t i = 0; i < bytes; i += fill.size()) {
      std::memcpy(planes_.data() + i, fill.data(), fill.size());
    }
  }

  bool IsFill(std::span<const std::byte> plane) const {
    const std::vector<std::byte>& fill = level_.array.metadata().fill;
    return std::memcmp(plane.data(), fill.data(), fill.size()) == 0 &&
           std::memcmp(plane.data(), plane.data() + fill.size(), plane.size() - fill.size()) == 0;
  }

  TaskContext& context_;
  const zarr::ImageStoreSettings& store_;
  const zarr::OpenedLevel& level_;
  const Extent chunk_;
  const zarr::ImageStoreSettings settings_;  ///< settings of a plane
  int channel_ = -1;                         ///< the one being written
  zarr::ChunkEncoder encoder_;
  std::vector<std::byte> planes_, encoded_;
  std::set<std::string> folders_;  ///< have new files
};

/// Values of the axes of 0.4 out of those of the store's axes.
Json Lifted(const Json& axes, const Json& values, const Json& otherwise) {
  Json lifted = Json::array();
  for (const std::string_view name : kAxes) {
    Json value = otherwise;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      if (axes[i]["name"] == name) value = values[i];
    }
    lifted.push_back(std::move(value));
  }
  return lifted;
}

Json AxesOf(const Json& axes) {
  Json lifted = Lifted(axes, axes, nullptr);
  for (std::size_t i = 0; i < kAxes.size(); ++i) {
    if (!lifted[i].is_null()) continue;
    lifted[i] = {{"name", kAxes[i]}, {"type", i == 0 ? "time" : i == 1 ? "channel" : "space"}};
  }
  return lifted;
}

/// attributes.ome of 0.5 as the attributes of 0.4.
Json AttributesOf(Json ome) {
  Json& multiscale = ome["multiscales"][0];
  const Json axes = multiscale["axes"];
  for (Json& dataset : multiscale["datasets"]) {
    for (Json& transform : dataset["coordinateTransformations"]) {
      const bool is_scale = transform.contains("scale");
      Json& values = transform[is_scale ? "scale" : "translation"];
      values = Lifted(axes, values, is_scale ? 1.0 : 0.0);
    }
  }
  multiscale["axes"] = AxesOf(axes);
  multiscale["version"] = "0.4";
  if (ome.contains("image-label")) ome["image-label"]["version"] = "0.4";
  ome.erase("version");
  return ome;
}

/// Documents of a planar store: they are durable once it is published.
class Documents {
 public:
  Documents(TaskContext& context, const std::string& root) : context_(context), root_(root) {}

  Status Group(const std::string& name, const Json& attributes) {
    PB_RETURN_IF_ERROR(Write(name + "/.zgroup", Text({{"zarr_format", 2}})));
    return attributes.empty() ? absl::OkStatus() : Write(name + "/.zattrs", Text(attributes));
  }

  /// The metadata of an image and its levels.
  Status Image(const std::string& name, const zarr::OpenedStore& store, const Conversion& from) {
    PB_RETURN_IF_ERROR(
        Group(name, AttributesOf(store.documents.at("zarr.json")["attributes"]["ome"])));
    for (std::size_t l = 0; l < store.levels.size(); ++l) {
      const std::string& path = store.levels[l].path;
      const Json& fill = store.documents.at(path + "/zarr.json").at("fill_value");
      const PlaneWriter writer(context_, store, l, from);
      PB_RETURN_IF_ERROR(Write(StrCat(name, "/", path, "/.zarray"), Text(writer.Document(fill))));
    }
    return absl::OkStatus();
  }

  Status Write(const std::string& name, const std::string& text) {
    const std::string path = StrCat(root_, "/", name);
    PB_RETURN_IF_ERROR(MakeDirectories(context_.allowed, path.substr(0, path.rfind('/'))));
    PB_RETURN_IF_ERROR(StepOf(context_));
    return ReplaceFile(context_.allowed, path, AsBytes(text), 0644);
  }

 private:
  static std::string Text(const Json& document) { return document.dump(2) + "\n"; }

  TaskContext& context_;
  const std::string root_;
};

/// The current revision of every label set, under the name of the set.
Status WriteLabels(TaskContext& context, const Conversion& from, Documents& documents) {
  PB_ASSIGN_OR_RETURN(const std::vector<zarr::LabelSet> sets,
                      zarr::ReadLabelSets(context.allowed, from.path));
  if (sets.empty()) return absl::OkStatus();
  PB_ASSIGN_OR_RETURN(const auto lease, LeaseFolder::Make(context, from.staging));
  Json names = Json::array();
  for (const zarr::LabelSet& set : sets) {
    names.push_back(set.name);
    const std::string name = StrCat(kImage, "/", zarr::kLabelsFolder, "/", set.name);
    PB_ASSIGN_OR_RETURN(const zarr::OpenedStore labels,
                        zarr::OpenStore(context.allowed, StrCat(from.path, "/", zarr::kLabelsFolder,
                                                                "/", set.revision)));
    for (std::size_t l = 0; l < labels.levels.size(); ++l) {
      const std::string array = StrCat(from.Made(), "/", name, "/", labels.levels[l].path);
      PlaneWriter writer(context, labels, l, from);
      PB_RETURN_IF_ERROR(writer.Write(WholeOf(labels.levels[l].size), -1, array, *lease));
    }
    PB_RETURN_IF_ERROR(documents.Image(name, labels, from));
  }
  return documents.Group(StrCat(kImage, "/", zarr::kLabelsFolder), {{"labels", names}});
}

Status CheckNothing(const Conversion& /*from*/) { return absl::OkStatus(); }

Extent PlanarPartOf(const Conversion& from) {
  if (!from.store.settings.IsVolume()) return Flat(kPartSide, kPartSide);
  return {from.store.settings.chunk.z, zarr::kPlanarSide, zarr::kPlanarSide};
}

StatusOr<std::string> MakePlanarPart(TaskContext& context, const Conversion& from,
                                     const zarr::ShardPlace& part, const LeaseFolder& lease) {
  const auto level = static_cast<std::size_t>(part.level);
  const std::string array = StrCat(from.Made(), "/", kImage, "/", from.store.levels[level].path);
  PlaneWriter writer(context, from.store, level, from);
  PB_RETURN_IF_ERROR(writer.Write(BoxOf(from, part), part.channel, array, lease));
  return "";
}

/// The root's documents last: without them it is no store.
Status FinishPlanar(TaskContext& context, const Conversion& from) {
  Documents documents(context, from.Made());
  PB_RETURN_IF_ERROR(WriteLabels(context, from, documents));
  PB_RETURN_IF_ERROR(documents.Image(kImage, from.store, from));
  PB_RETURN_IF_ERROR(documents.Group("OME", {{"series", {kImage}}}));
  PB_RETURN_IF_ERROR(documents.Write("OME/METADATA.ome.xml", OmeXmlOf(from, "Patchbay", true)));
  return documents.Group(".", {{"bioformats2raw.layout", 3}, {"patchbay", PlanarMarkOf(from)}});
}

}  // namespace

Json PlanarMarkOf(const Conversion& from) {
  return {{"converted_from", from.store.recorded->bytes.Hex()},
          {"codec_level", from.options.codec_level}};
}

const ConversionTarget kPlanarStore = {CheckNothing, PlanarPartOf, MakePlanarPart, FinishPlanar};

}  // namespace patchbay::workers
