#include "runtime/format/zarr/shard_list.h"

#include <charconv>

#include "runtime/core/strings.h"

namespace patchbay::zarr {
namespace {

constexpr std::size_t kHexDigits = 8;
constexpr std::size_t kWordDigits = 2 * kHexDigits;
constexpr std::string_view kNoFile = "-";

Status Refuse(std::size_t level, std::string_view cause) {
  return InvalidArgument("attributes.patchbay.shards: level ", level, ": ", cause);
}

/// A word of a row; false when it is none.
bool ParseWord(std::string_view word, std::optional<ListedShard>& out) {
  out.reset();
  if (word == kNoFile) return true;
  if (word.size() != kWordDigits) return false;
  if (word.find_first_not_of("0123456789abcdef") != std::string_view::npos) return false;
  const char* digits = word.data();
  out.emplace();
  std::from_chars(digits, digits + kHexDigits, out->first_bits, 16);
  std::from_chars(digits + kHexDigits, digits + kWordDigits, out->seal, 16);
  return true;
}

/// `columns` words with one space between them, appended to `out`; false when it is anything else.
bool ParseRow(std::string_view row, std::int64_t columns,
              std::vector<std::optional<ListedShard>>& out) {
  for (std::int64_t column = 0; column < columns; ++column) {
    const bool last = column == columns - 1;
    const std::size_t end = row.find(' ');
    if ((end == std::string_view::npos) != last) return false;
    if (!ParseWord(row.substr(0, end), out.emplace_back())) return false;
    if (!last) row.remove_prefix(end + 1);
  }
  return true;
}

/// attributes.patchbay.shards, or null where there is no such member.
const Json* ListIn(const Json& attributes) {
  const Json* list = &attributes;
  for (const char* key : {"patchbay", "shards"}) {
    if (!list->is_object() || !list->contains(key)) return nullptr;
    list = &(*list)[key];
  }
  return list;
}

/// The shard grid of an array as the image writer makes them: the first axis is slices, or all the
/// channels in one.
StatusOr<Extent> GridOf(const ArrayMetadata& array, std::size_t level) {
  if (array.rank() != 3) return Refuse(level, "not for such an array");
  return Extent{array.ShardGrid(0), array.ShardGrid(1), array.ShardGrid(2)};
}

StatusOr<LevelFiles> ParseLevel(const Json& value, std::size_t level, const Extent& grid) {
  const auto digest = value.is_object() ? value.find("digest") : value.end();
  const auto files = value.is_object() ? value.find("files") : value.end();
  if (!value.is_object() || value.size() != 2 || digest == value.end() || files == value.end()) {
    return Refuse(level, "not an object of digest and files");
  }
  const auto parsed = digest->is_string() ? Digest::FromHex(digest->get<std::string>())
                                          : StatusOr<Digest>(InvalidArgument(""));
  if (!parsed.ok()) return Refuse(level, "digest is not 64 hex digits");
  LevelFiles out;
  out.digest = *parsed;
  const std::int64_t rows = grid.z * grid.y;
  if (!files->is_array() || files->size() != static_cast<std::size_t>(rows)) {
    return Refuse(level, StrCat("files is not a list of ", rows, " rows"));
  }
  for (std::size_t row = 0; row < files->size(); ++row) {
    const Json& words = (*files)[row];
    if (!words.is_string() || !ParseRow(words.get_ref<const std::string&>(), grid.x, out.shards)) {
      return Refuse(level,
                    StrCat("row ", row, " is not ", grid.x, " words of sixteen hex digits or '-'"));
    }
  }
  return out;
}

}  // namespace

std::uint32_t FirstBitsOf(const Digest& digest) {
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < sizeof bits; ++i) bits = bits << 8 | digest.bytes[i];
  return bits;
}

std::string HexOf(std::uint32_t first_bits) { return Hex64(first_bits).substr(16 - kHexDigits); }

bool ListsShards(const ImageStoreSettings& settings, const std::vector<Extent>& levels) {
  std::int64_t left = kMaxListedShards;
  for (const Extent& level : levels) {
    const Extent grid = ShardGridOf(settings, level);
    if (grid.y > left / grid.x || grid.z > left / (grid.y * grid.x)) return false;
    left -= grid.Pixels();
  }
  return true;
}

Status PutShardList(const ImageStoreSettings& settings, const std::vector<Extent>& sizes,
                    const std::vector<LevelFiles>& levels, Json& root_document) {
  if (levels.empty()) return absl::OkStatus();
  if (levels.size() != sizes.size()) return Refuse(levels.size(), "not a level of this store");
  Json list = Json::array();
  for (std::size_t l = 0; l < levels.size(); ++l) {
    const Extent grid = ShardGridOf(settings, sizes[l]);
    if (levels[l].shards.size() != static_cast<std::size_t>(grid.Pixels())) {
      return Refuse(l, "another shard grid");
    }
    Json files = Json::array();
    for (std::int64_t row = 0; row < grid.z * grid.y; ++row) {
      std::string words;
      for (std::int64_t column = 0; column < grid.x; ++column) {
        const auto& shard = levels[l].shards[static_cast<std::size_t>(row * grid.x + column)];
        if (column > 0) words += ' ';
        words += shard ? HexOf(shard->first_bits) + HexOf(shard->seal) : std::string(kNoFile);
      }
      files.push_back(std::move(words));
    }
    list.push_back({{"digest", levels[l].digest.Hex()}, {"files", std::move(files)}});
  }
  root_document["attributes"]["patchbay"]["shards"] = std::move(list);
  return absl::OkStatus();
}

StatusOr<std::vector<LevelFiles>> ShardListIn(const Json& root_document,
                                              const ImageStoreSettings& settings,
                                              const std::vector<Extent>& sizes) {
  const bool has_attributes = root_document.is_object() && root_document.contains("attributes");
  const Json* list = has_attributes ? ListIn(root_document["attributes"]) : nullptr;
  if (list == nullptr) return std::vector<LevelFiles>();
  if (!list->is_array() || list->size() != sizes.size() || !ListsShards(settings, sizes)) {
    return InvalidArgument("attributes.patchbay.shards: not a list of ", sizes.size(), " levels");
  }
  std::vector<LevelFiles> out;
  for (std::size_t l = 0; l < sizes.size(); ++l) {
    PB_ASSIGN_OR_RETURN(LevelFiles level,
                        ParseLevel((*list)[l], l, ShardGridOf(settings, sizes[l])));
    out.push_back(std::move(level));
  }
  return out;
}

Status ExpectListedFiles(const Json& attributes, std::vector<Array>& levels) {
  const Json* list = ListIn(attributes);
  if (list == nullptr) return absl::OkStatus();
  if (!list->is_array() || list->size() != levels.size()) {
    return DataLoss("attributes.patchbay.shards: not a list of ", levels.size(), " levels");
  }
  for (std::size_t l = 0; l < levels.size(); ++l) {
    PB_ASSIGN_OR_RETURN(const Extent grid, GridOf(levels[l].metadata(), l));
    PB_ASSIGN_OR_RETURN(const LevelFiles level, ParseLevel((*list)[l], l, grid));
    std::vector<bool> has_file;
    std::vector<ShardMarks> marks;
    for (const auto& shard : level.shards) {
      has_file.push_back(shard.has_value());
      marks.push_back(shard ? ShardMarks{shard->seal, shard->first_bits} : ShardMarks{});
    }
    PB_RETURN_IF_ERROR(levels[l].ExpectFiles(std::move(has_file), std::move(marks)));
  }
  return absl::OkStatus();
}

}  // namespace patchbay::zarr
