// One annotation file, or the tissue that is found, into one store.

#include <fcntl.h>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/image_store.h"
#include "runtime/format/zarr/label_sets.h"
#include "runtime/format/zarr/label_writer.h"
#include "runtime/os/file.h"
#include "runtime/os/folder_listing.h"
#include "workers/annotations/annotation.h"
#include "workers/jobs/labels/class_map.h"
#include "workers/jobs/labels/class_values.h"
#include "workers/jobs/labels/label_raster.h"
#include "workers/jobs/labels/labels.h"
#include "workers/jobs/labels/position_builder.h"
#include "workers/jobs/labels/readers.h"
#include "workers/jobs/labels/request.h"
#include "workers/jobs/labels/revision.h"
#include "workers/jobs/labels/tissue_colours.h"
#include "workers/jobs/labels/volume_import.h"
#include "workers/jobs/task/image_digest.h"
#include "workers/jobs/task/recorded_stain.h"
#include "workers/jobs/task/task.h"

namespace patchbay::workers {
namespace {

constexpr std::size_t kFirstBytes = 4096;

StatusOr<ImportRow> OpenRow(TaskContext& context, const LabelsRequest& request) {
  const LabelRow& row = request.rows[request.row];
  ImportRow out;
  PB_ASSIGN_OR_RETURN(const std::string store,
                      request.dry_run ? context.MayRead(row.store) : context.MayWrite(row.store));
  using enum SubjectKind;
  context.subjects.Add(store, request.slide ? Subject{kSlide, *request.slide, ""}
                                            : Subject{kStore, request.row, ""});
  if (!request.tissue && request.readers.empty()) {
    PB_ASSIGN_OR_RETURN(out.file, context.MayRead(row.file));
    context.subjects.Add(out.file, {kFile, request.row, ""});
    out.site = row.site;
  }
  PB_ASSIGN_OR_RETURN(out.image, OpenLabelledImage(context.allowed, store));
  return out;
}

/// Counts of level 0.
struct Pixels {
  const std::array<std::uint64_t, 256>& by_value;
  const IgnoredClasses& ignored;
};

struct Source {
  std::unique_ptr<LabelRaster> drawing;
  std::optional<Digest> digest;  ///< digest of the file, where there is one
  Json more = Json::object();    ///< further attributes, of a class map or of readers
  bool is_mask = false;          ///< classes by values, not by names
};

/// The sets that voted, by revision, and how.
Json AttributesOf(const LabelsRequest& request, const Readers& readers) {
  Json sets = Json::array();
  for (std::size_t i = 0; i < readers.sets.size(); ++i) {
    sets.push_back(zarr::RevisionName(request.readers[i], readers.sets[i].digest));
  }
  return {{"majority",
           {{"sets", sets},
            {"ties", request.votes.first_wins ? "first" : "ignore"},
            {"min_votes", request.votes.least_votes}}}};
}

StatusOr<std::string> FirstBytesOf(const Folders& allowed, const std::string& path) {
  PB_ASSIGN_OR_RETURN(const UniqueFd fd, OpenFile(allowed, path, O_RDONLY | O_NONBLOCK));
  const auto of_file = SizeOf(allowed, path);
  if (!of_file.ok()) {
    return ErrorAbout(absl::StatusCode::kInvalidArgument, "import labels", path, "no file");
  }
  std::string text(static_cast<std::size_t>(std::min<std::uint64_t>(*of_file, kFirstBytes)), '\0');
  PB_RETURN_IF_ERROR(ReadAt(fd.get(), 0, std::as_writable_bytes(std::span(text)), path));
  return text;
}

/// InvalidArgument where a property is asked for and `what` has none.
Status CheckClassFrom(const LabelsRequest& request, std::string_view what) {
  if (request.class_from.empty()) return absl::OkStatus();
  return InvalidArgument("import labels: --class-from ", request.class_from, ": ", what,
                         " has no properties: it is for GeoJSON");
}

/// `classes`: the request's, in the values that are drawn.
StatusOr<Source> OpenSource(TaskContext& context, const LabelsRequest& request,
                            const plan::ClassTable& classes, const ImportRow& row,
                            const Readers& readers) {
  const RasterRequest drawing{
      row.image, classes, row.site, request.origin, request.class_from, ProgressOf(context)};
  if (!readers.sets.empty()) {
    Source voted;
    PB_ASSIGN_OR_RETURN(voted.drawing,
                        DrawMajority(context.allowed, drawing, readers, request.votes));
    voted.more = AttributesOf(request, readers);
    return voted;
  }
  if (request.tissue) {
    Source found;
    PB_ASSIGN_OR_RETURN(found.drawing, DrawTissue(context, row.image, *request.tissue));
    return found;
  }
  Source source;
  if (IsClassMap(row.file)) {
    PB_RETURN_IF_ERROR(CheckClassFrom(request, "results of map"));
    PB_ASSIGN_OR_RETURN(const OpenedLabels map, OpenClassMap(context, row.file, row.image));
    source.digest = map.set.digest;
    source.more = map.set.attributes;
    PB_ASSIGN_OR_RETURN(source.drawing, DrawClassMap(context.allowed, drawing, map));
    return source;
  }
  PB_ASSIGN_OR_RETURN(const std::string first, FirstBytesOf(context.allowed, row.file));
  if (FormatOf(first) == AnnotationFormat::kTiff) {
    PB_RETURN_IF_ERROR(CheckClassFrom(request, "a mask"));
    PB_ASSIGN_OR_RETURN(source.digest, DigestOfFiles(context, {row.file}));
    PB_ASSIGN_OR_RETURN(source.drawing, DrawMask(context.allowed, drawing, row.file));
    source.is_mask = true;
    return source;
  }
  PB_ASSIGN_OR_RETURN(const std::string text,
                      ReadFile(context.allowed, row.file, kMaxAnnotationBytes));
  context.AddProgress();
  source.digest = Sha256Of(text);
  PB_ASSIGN_OR_RETURN(source.drawing, DrawOutlines(drawing, text));
  context.AddProgress();
  return source;
}

/// The drawing's report with pixels and, where the spacing is known, square millimetres of each
/// class.
results::DrawnLabelReport ReportOf(const LabelsRequest& request, const LabelledImage& image,
                                   const Pixels& pixels, const LabelRaster& drawing) {
  const auto& [z, y, x] = image.spacing;
  const double mm2 = y && x ? y->Micrometres() * x->Micrometres() * 1e-6 : 0;
  results::DrawnLabelReport report = drawing.report();
  report.set = request.set;
  report.ignored_pixels = pixels.by_value[zarr::kIgnoreLabel];
  for (std::size_t i = 0; i < report.classes.size(); ++i) {
    const plan::LabelClass& one = request.classes.classes[i];
    results::ClassPixels& row = report.classes[i];
    row.name = one.name;
    row.value = one.value;
    row.pixels =
        pixels.ignored.CountOf(i).value_or(pixels.by_value[static_cast<std::size_t>(one.value)]);
    if (mm2 > 0) row.area_mm2 = static_cast<double>(row.pixels) * mm2;
  }
  return report;
}

std::string TextOf(const results::DrawnLabelReport& report) {
  return DumpJson(report.tissue ? JsonOf<results::SlideLabelReport>(report) : JsonOf(report));
}

/// Facts known once the pixels are written: the pixels of each value, and the files beside them.
struct Written {
  std::array<std::uint64_t, 256> pixels{};
  Json files;  ///< name -> digest of the files beside them
};

Status WriteBeside(const TaskContext& context, const LabelsFolder& folder, const char* name,
                   std::span<const std::byte> bytes, Written& written) {
  written.files[name] = Sha256Of(bytes).Hex();
  return ReplaceFile(context.allowed, StrCat(folder.Staging(), "/", name), bytes);
}

/// The metadata of the label image.
zarr::ImageStoreSpec SpecOf(const LabelsRequest& request, const ImportRow& row,
                            const Source& source, const Written& written) {
  zarr::ImageStoreSpec spec = RevisionSpec(request, row, written.pixels);
  spec.settings = zarr::LabelSettings();
  Json& labels = spec.attributes["labels"];
  if (!source.is_mask) labels.erase("site");  // outlines are the same at every site
  labels["format"] = source.drawing->report().format;
  labels["source_size"] = {row.image.source.y, row.image.source.x};
  if (source.digest) labels["annotation_sha256"] = source.digest->Hex();
  labels.update(source.more);
  if (!request.class_from.empty()) labels["class_from"] = request.class_from;
  if (request.tissue) labels["tissue"] = JsonOf(*source.drawing->report().tissue);
  labels["files"] = written.files;
  return spec;
}

/// A chunk as it is stored: classes that are ignored are 255.
StatusOr<std::optional<std::uint8_t>> ResolvedChunk(LabelRaster& drawing, const Extent& level,
                                                    const Point& at, IgnoredClasses& ignored,
                                                    std::uint8_t* out) {
  PB_ASSIGN_OR_RETURN(const std::optional<std::uint8_t> one, drawing.Chunk(at, out));
  if (!ignored.any()) return one;
  const std::int64_t side = zarr::LabelSettings().chunk.x;
  const Box box = Intersect(Box2D(at.y * side, at.x * side, side, side), WholeOf(level));
  if (one) {
    return std::optional(ignored.Resolve(*one, static_cast<std::uint64_t>(box.Pixels())));
  }
  for (std::int64_t y = 0; y < box.height; ++y) {
    ignored.Resolve(std::span(out + y * side, static_cast<std::size_t>(box.width)));
  }
  return one;
}

}  // namespace

StatusOr<TaskOutput> RunLabelsImport(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(LabelsRequest request, LabelsRequestOf(context));
  PB_ASSIGN_OR_RETURN(const ImportRow row, OpenRow(context, request));
  if (request.tissue) PB_RETURN_IF_ERROR(CheckFlat(row.image, "label tissue"));
  Readers readers;
  if (!request.readers.empty()) {
    PB_RETURN_IF_ERROR(CheckFlat(row.image, "take a majority"));
    PB_ASSIGN_OR_RETURN(readers, OpenReaders(context.allowed, row.image.store, request.readers));
    request.classes = readers.classes;
  }
  if (row.image.is_volume) {
    PB_RETURN_IF_ERROR(CheckClassFrom(request, "a volume's segmentation"));
    return ImportVolume(context, request, row);
  }
  IgnoredClasses ignored(request.classes);
  PB_ASSIGN_OR_RETURN(const Source source,
                      OpenSource(context, request, ignored.table(), row, readers));
  const auto chunk = [&](const Point& at, std::uint8_t* out) {
    return ResolvedChunk(*source.drawing, row.image.levels[0], at, ignored, out);
  };
  const auto after_row = ProgressOf(context);
  TaskOutput output;
  if (request.dry_run) {
    PB_ASSIGN_OR_RETURN(const auto pixels,
                        zarr::CountLabels(row.image.levels[0], chunk, after_row));
    PB_RETURN_IF_ERROR(source.drawing->Finish());
    output.result = TextOf(ReportOf(request, row.image, {pixels, ignored}, *source.drawing));
    return output;
  }
  PB_ASSIGN_OR_RETURN(const LabelsFolder folder, LabelsFolder::Open(context, row.image.store));
  PB_RETURN_IF_ERROR(MakeDirectories(context.allowed, folder.Staging()));
  PositionBuilder positions(request.classes, row.image.levels[0], request.tissue ? kTissueStep : 1);
  PB_ASSIGN_OR_RETURN(const auto colours,
                      TissueColours::Open(context.allowed, row.image.store, request.classes));
  const auto index_row = [&](std::int64_t at, const std::vector<zarr::LabelCell>& chunks) {
    positions.AddRow(at, zarr::LabelSettings().chunk.x, chunks);
    if (colours != nullptr) {
      PB_RETURN_IF_ERROR(colours->AddRow(at, zarr::LabelSettings().chunk.x, chunks));
    }
    return after_row();
  };
  PB_ASSIGN_OR_RETURN(
      const zarr::LabelShards shards,
      zarr::WriteLabelShards(context.allowed, folder.Staging(), row.image.levels, chunk, index_row,
                             [&context] { context.AddProgress(); }));
  PB_RETURN_IF_ERROR(source.drawing->Finish());
  Written written{shards.pixels, Json::object()};
  const std::string index = plan::EncodePositionIndex(positions.Finish(shards.pixels));
  PB_RETURN_IF_ERROR(
      WriteBeside(context, folder, plan::kPositionIndexFile, AsBytes(index), written));
  if (colours != nullptr) {
    const std::vector<std::byte> counted = ops::SerialiseHistogram(colours->Take());
    PB_RETURN_IF_ERROR(WriteBeside(context, folder, kTissueColoursFile, counted, written));
  }
  const zarr::ImageStoreSpec spec = SpecOf(request, row, source, written);
  PB_ASSIGN_OR_RETURN(const zarr::StoreRoots roots, zarr::CombineRoots(spec, shards.records));
  PB_RETURN_IF_ERROR(zarr::DraftStoreMetadata(context.allowed, folder.Staging(), spec, roots));
  PB_ASSIGN_OR_RETURN(const bool was_there,
                      PublishRevision(context, folder, request, row, roots.bytes));
  auto report = ReportOf(request, row.image, {shards.pixels, ignored}, *source.drawing);
  report.digest = roots.bytes.Hex();
  report.revision = zarr::RevisionName(request.set, roots.bytes);
  report.already_there = was_there;
  report.stored_bytes = shards.stored_bytes;
  output.result = TextOf(report);
  output.progress_bytes = shards.stored_bytes;
  return output;
}

}  // namespace patchbay::workers
