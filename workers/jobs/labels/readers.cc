#include "workers/jobs/labels/readers.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/model/results/label_agreement.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {
namespace {

constexpr char kOpenLabelSets[] = "open label sets";

/// Names and values of the classes that pixels can have, by value.
std::vector<std::pair<int, std::string>> ValuesOf(const plan::ClassTable& table) {
  std::vector<std::pair<int, std::string>> values;
  for (const plan::LabelClass& one : table.classes) {
    if (one.value != plan::kIgnoreClass) values.emplace_back(one.value, one.name);
  }
  std::sort(values.begin(), values.end());
  return values;
}

/// Labels of one reader, chunk by chunk.
struct ReaderPixels {
  std::unique_ptr<ImageSource> source;
  std::unique_ptr<DecodeScratch> scratch;
  EncodedPatch fetched;
  std::vector<std::uint8_t> pixels;

  Status Read(const Box& box) {
    pixels.resize(static_cast<std::size_t>(box.Pixels()));
    PB_RETURN_IF_ERROR(source->Fetch(0, box, fetched));
    const TensorView view =
        ContiguousView<3>(reinterpret_cast<std::byte*>(pixels.data()), DType::kUint8,
                          {box.height, box.width, std::int64_t{1}});
    return source->Decode(fetched, view, zarr::kIgnoreLabel, *scratch);
  }
};

class MajorityRaster final : public LabelRaster {
 public:
  MajorityRaster(std::vector<ReaderPixels> readers, const RasterRequest& request,
                 const VoteRule& rule)
      : readers_(std::move(readers)), rule_(rule), size_(request.image.levels[0]) {
    report_.format = "majority";
    report_.classes.resize(request.classes.classes.size());
    votes_.resize(readers_.size());
  }

  StatusOr<std::optional<std::uint8_t>> Chunk(const Point& chunk, std::uint8_t* out) override {
    const std::int64_t side = zarr::LabelSettings().chunk.x;
    const Box box = Intersect(Box2D(chunk.y * side, chunk.x * side, side, side), WholeOf(size_));
    for (ReaderPixels& reader : readers_) PB_RETURN_IF_ERROR(reader.Read(box));
    for (std::int64_t y = 0; y < box.height; ++y) {
      const auto row = static_cast<std::size_t>(y * box.width);
      for (std::size_t x = 0; x < static_cast<std::size_t>(box.width); ++x) {
        bool is_as_before = x > 0;
        for (std::size_t i = 0; i < readers_.size(); ++i) {
          const std::uint8_t vote = readers_[i].pixels[row + x];
          is_as_before = is_as_before && vote == votes_[i];
          votes_[i] = vote;
        }
        std::uint8_t* const pixel = out + y * side + static_cast<std::int64_t>(x);
        *pixel = is_as_before ? pixel[-1] : Winner();
      }
    }
    return std::optional<std::uint8_t>();
  }

 private:
  std::uint8_t Winner() const {
    std::uint8_t winner = zarr::kIgnoreLabel;
    std::ptrdiff_t most = 0;
    bool is_tied = false;
    for (std::size_t i = 0; i < votes_.size(); ++i) {
      const std::uint8_t vote = votes_[i];
      const auto before = votes_.begin() + static_cast<std::ptrdiff_t>(i);
      if (vote == zarr::kIgnoreLabel || std::find(votes_.begin(), before, vote) != before) continue;
      const std::ptrdiff_t count = std::count(votes_.begin(), votes_.end(), vote);
      if (count == most) is_tied = true;
      if (count <= most) continue;
      winner = vote, most = count, is_tied = false;
    }
    const bool is_enough = most >= static_cast<std::ptrdiff_t>(rule_.least_votes);
    return is_enough && (!is_tied || rule_.first_wins) ? winner : zarr::kIgnoreLabel;
  }

  std::vector<ReaderPixels> readers_;
  const VoteRule rule_;
  const Extent size_;
  std::vector<std::uint8_t> votes_;  ///< values of one pixel, by reader
};

}  // namespace

StatusOr<std::vector<std::string>> ReadersOf(const Json& payload, std::string_view what) {
  PB_ASSIGN_OR_RETURN(const Json* list, JsonMember(payload, "sets", what));
  PB_ASSIGN_OR_RETURN(auto names, FromJson<std::vector<std::string>>(*list, what));
  if (names.size() < 2 || names.size() > results::kMaxComparedSets) {
    return InvalidArgument(what, ": ", names.size(), " label sets: not 2 to ",
                           results::kMaxComparedSets);
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!zarr::IsSetName(names[i])) {
      return InvalidArgument(what, ": '", names[i], "' is not a name of a label set");
    }
    const auto here = names.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::find(names.begin(), here, names[i]) != here) {
      return InvalidArgument(what, ": the set '", names[i], "' is named twice");
    }
  }
  return names;
}

StatusOr<Readers> OpenReaders(const Folders& allowed, const std::string& store,
                              const std::vector<std::string>& names) {
  Readers readers;
  for (const std::string& name : names) {
    PB_ASSIGN_OR_RETURN(zarr::OpenedLabelSet set, zarr::OpenLabelSet(allowed, store, name));
    PB_ASSIGN_OR_RETURN(const Json* classes, JsonMember(set.attributes, "classes", kOpenLabelSets));
    PB_ASSIGN_OR_RETURN(plan::ClassTable table, plan::ClassTableFromJson(*classes, kOpenLabelSets));
    if (readers.sets.empty()) readers.classes = table;
    if (ValuesOf(table) != ValuesOf(readers.classes)) {
      return ErrorAbout(absl::StatusCode::kInvalidArgument, kOpenLabelSets, store,
                        StrCat("the classes of '", name, "' are not those of '", names[0],
                               "': import both with one class table"));
    }
    readers.sets.push_back(std::move(set));
  }
  std::vector<plan::LabelClass>& classes = readers.classes.classes;
  std::erase_if(classes, [](const auto& one) { return one.value == plan::kIgnoreClass; });
  for (plan::LabelClass& one : classes) one.from.clear();  // values of files; there is no file
  if (readers.classes.Find(readers.classes.background) == nullptr) {
    readers.classes.background.clear();
    readers.classes.exhaustive = false;
    readers.classes.region_of_interest.clear();
  }
  return readers;
}

StatusOr<std::unique_ptr<LabelRaster>> DrawMajority(const Folders& allowed,
                                                    const RasterRequest& request,
                                                    const Readers& readers, const VoteRule& rule) {
  std::vector<ReaderPixels> opened;
  for (const zarr::OpenedLabelSet& set : readers.sets) {
    ReaderPixels& reader = opened.emplace_back();
    PB_ASSIGN_OR_RETURN(reader.source, OpenImage(allowed, set.path));
    const ImageLayout& layout = reader.source->layout();
    if (layout.channels != 1 || layout.dtype != DType::kUint8 ||
        layout.levels[0].size != request.image.levels[0]) {
      return ErrorAbout(absl::StatusCode::kDataLoss, kOpenLabelSets, set.path,
                        "it does not match its image");
    }
    reader.scratch = reader.source->MakeScratch();
    reader.fetched.after_piece = request.after_piece;
  }
  return std::unique_ptr<LabelRaster>(
      std::make_unique<MajorityRaster>(std::move(opened), request, rule));
}

}  // namespace patchbay::workers
