#include "runtime/format/zarr/shard_list.h"

#include <charconv>
#include <string>

#include "runtime/core/fields.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/json_forms.h"

namespace patchbay::zarr {
namespace {

constexpr std::size_t kHexDigits = 8;
constexpr std::size_t kWordDigits = 2 * kHexDigits;
constexpr std::string_view kNoFile = "-";
constexpr std::string_view kList = "attributes.patchbay.shards";

/// A level of the list.
struct ListedLevel {
  Digest digest;
  std::vector<std::string> files;

  static constexpr auto Fields() {
    using T = ListedLevel;
    return AsFullObject(Field("digest", &T::digest), Field("files", &T::files));
  }
};

Status RefuseLevel(std::size_t level, std::string_view cause) {
  return InvalidArgument(kList, ": level ", level, ": ", cause);
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

StatusOr<std::vector<ListedLevel>> ReadList(const Json& list, std::size_t levels) {
  if (!list.is_array() || list.size() != levels) {
    return InvalidArgument(kList, ": not a list of ", levels, " levels");
  }
  return FromJson<std::vector<ListedLevel>>(list, kList);
}

/// The shard grid of one channel, or of all in one, as many times as there are such grids: the
/// slices of one channel follow those of another.
Extent StackedGridOf(const ImageStoreSettings& settings, const Extent& size) {
  Extent grid = ShardGridOf(settings, size);
  grid.z *= settings.Planes();
  return grid;
}

/// The shard grid of an array as the image writer makes them: the first axis is slices, or all the
/// channels in one; or channels, before the slices.
StatusOr<Extent> GridOf(const ArrayMetadata& array, std::size_t level) {
  if (array.rank() == 4) {
    return Extent{array.ShardGrid(0) * array.ShardGrid(1), array.ShardGrid(2), array.ShardGrid(3)};
  }
  if (array.rank() != 3) return RefuseLevel(level, "not for such an array");
  return Extent{array.ShardGrid(0), array.ShardGrid(1), array.ShardGrid(2)};
}

StatusOr<LevelFiles> FilesOf(const ListedLevel& listed, std::size_t level, const Extent& grid) {
  LevelFiles out;
  out.digest = listed.digest;
  const std::int64_t rows = grid.z * grid.y;
  if (listed.files.size() != static_cast<std::size_t>(rows)) {
    return RefuseLevel(level, StrCat("files is not a list of ", rows, " rows"));
  }
  for (std::size_t row = 0; row < listed.files.size(); ++row) {
    if (!ParseRow(listed.files[row], grid.x, out.shards)) {
      return RefuseLevel(
          level, StrCat("row ", row, " is not ", grid.x, " words of sixteen hex digits or '-'"));
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
    const Extent grid = StackedGridOf(settings, level);
    if (grid.y > left / grid.x || grid.z > left / (grid.y * grid.x)) return false;
    left -= grid.Pixels();
  }
  return true;
}

Status PutShardList(const ImageStoreSettings& settings, const std::vector<Extent>& sizes,
                    const std::vector<LevelFiles>& levels, Json& root_document) {
  if (levels.empty()) return absl::OkStatus();
  if (levels.size() != sizes.size()) return RefuseLevel(levels.size(), "not a level of this store");
  std::vector<ListedLevel> list;
  for (std::size_t l = 0; l < levels.size(); ++l) {
    const Extent grid = StackedGridOf(settings, sizes[l]);
    if (levels[l].shards.size() != static_cast<std::size_t>(grid.Pixels())) {
      return RefuseLevel(l, "another shard grid");
    }
    ListedLevel& listed = list.emplace_back();
    listed.digest = levels[l].digest;
    for (std::int64_t row = 0; row < grid.z * grid.y; ++row) {
      std::string& words = listed.files.emplace_back();
      for (std::int64_t column = 0; column < grid.x; ++column) {
        const auto& shard = levels[l].shards[static_cast<std::size_t>(row * grid.x + column)];
        if (column > 0) words += ' ';
        words += shard ? HexOf(shard->first_bits) + HexOf(shard->seal) : std::string(kNoFile);
      }
    }
  }
  root_document["attributes"]["patchbay"]["shards"] = JsonOf(list);
  return absl::OkStatus();
}

StatusOr<std::vector<LevelFiles>> ShardListIn(const Json& root_document,
                                              const ImageStoreSettings& settings,
                                              const std::vector<Extent>& sizes) {
  const bool has_attributes = root_document.is_object() && root_document.contains("attributes");
  const Json* list = has_attributes ? ListIn(root_document["attributes"]) : nullptr;
  if (list == nullptr) return std::vector<LevelFiles>();
  if (!ListsShards(settings, sizes)) return InvalidArgument(kList, ": too many shards for a list");
  PB_ASSIGN_OR_RETURN(const std::vector<ListedLevel> listed, ReadList(*list, sizes.size()));
  std::vector<LevelFiles> out;
  for (std::size_t l = 0; l < sizes.size(); ++l) {
    PB_ASSIGN_OR_RETURN(LevelFiles level, FilesOf(listed[l], l, StackedGridOf(settings, sizes[l])));
    out.push_back(std::move(level));
  }
  return out;
}

Status ExpectListedFiles(const Json& attributes, std::vector<Array>& levels) {
  const Json* list = ListIn(attributes);
  if (list == nullptr) return absl::OkStatus();
  PB_ASSIGN_OR_RETURN(const std::vector<ListedLevel> listed, ReadList(*list, levels.size()));
  for (std::size_t l = 0; l < levels.size(); ++l) {
    PB_ASSIGN_OR_RETURN(const Extent grid, GridOf(levels[l].metadata(), l));
    PB_ASSIGN_OR_RETURN(const LevelFiles level, FilesOf(listed[l], l, grid));
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
