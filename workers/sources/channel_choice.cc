#include "workers/sources/channel_choice.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "runtime/core/strings.h"
#include "runtime/model/source/channel_names.h"

namespace patchbay::workers {
namespace {

constexpr std::size_t kNamesShown = 16;

std::string Lower(std::string_view text) { return absl::AsciiStrToLower(std::string(text)); }

std::vector<std::string> ColourNames() { return {"red", "green", "blue"}; }

bool AreColours(const std::vector<std::string>& names) {
  if (names.size() != 3) return false;
  for (std::size_t c = 0; c < 3; ++c) {
    const std::string name = Lower(names[c]), colour = ColourNames()[c];
    if (name != colour && name != colour.substr(0, 1)) return false;
  }
  return true;
}

/// The text members `label` of a list of objects; empty where one has none.
std::vector<std::string> LabelsOf(const Json& list) {
  std::vector<std::string> names;
  for (const Json& one : list.is_array() ? list : Json::array()) {
    const Json name = one.is_object() ? one.value("label", Json()) : Json();
    if (!name.is_string()) return {};
    names.push_back(name.get<std::string>());
  }
  return names;
}

/// Whether they name `channels` channels, which are no colours.
bool Name(const std::vector<std::string>& names, int channels) {
  return names.size() == static_cast<std::size_t>(channels) && CheckChannelNames(names).ok() &&
         !AreColours(names);
}

/// Member `key` of an object; null where there is none.
Json MemberOf(const Json& object, const char* key) {
  return object.is_object() ? object.value(key, Json()) : Json();
}

Status Missing(const std::string& name, const std::vector<std::string>& names) {
  std::vector<std::string> shown = names;
  if (shown.size() > kNamesShown) shown.resize(kNamesShown);
  const std::string rest =
      names.size() > shown.size() ? StrCat(" and ", names.size() - shown.size(), " more") : "";
  return InvalidArgument("key 'patch.channels': the image has no channel '", name, "'; it has ",
                         StrJoin(shown, ", "), rest);
}

}  // namespace

std::vector<std::string> StoredChannelNames(const Json& attributes, int channels) {
  std::vector<std::string> names = ChannelNames(MemberOf(attributes, "patchbay"));
  if (Name(names, channels)) return names;
  // In NGFF 0.4 it lies beside `multiscales`, from 0.5 on in `ome`.
  const Json ome = MemberOf(attributes, "ome");
  const Json omero = MemberOf(ome.is_object() ? ome : attributes, "omero");
  names = LabelsOf(MemberOf(omero, "channels"));
  return Name(names, channels) ? names : std::vector<std::string>();
}

std::vector<std::string> WithoutNumbered(std::vector<std::string> names) {
  for (std::size_t c = 0; c < names.size(); ++c) {
    std::string_view rest = names[c];
    const std::string lower = Lower(rest);
    for (const std::string_view prefix : {"channel", "ch", "c"}) {
      if (!lower.starts_with(prefix)) continue;
      rest.remove_prefix(prefix.size());
      break;
    }
    while (!rest.empty() && (rest.front() == ' ' || rest.front() == '_')) rest.remove_prefix(1);
    if (rest != StrCat(c) && rest != StrCat(c + 1)) return names;
  }
  return {};
}

StatusOr<std::vector<int>> ChooseChannels(const std::vector<std::string>& names,
                                          const ImageLayout& layout) {
  if (names.empty()) return std::vector<int>();
  std::vector<std::string> there = layout.channel_names;
  const bool has_colours = layout.channels == 3 && layout.dtype == DType::kUint8;
  if (there.empty() && has_colours) there = ColourNames();
  std::vector<int> chosen;
  for (const std::string& name : names) {
    if (there.empty()) {
      return InvalidArgument("key 'patch.channels': the channels of the image (", layout.channels,
                             ") have no names: leave the key out to take all");
    }
    const auto found = std::find(there.begin(), there.end(), name);
    if (found == there.end()) return Missing(name, there);
    chosen.push_back(static_cast<int>(found - there.begin()));
  }
  return chosen;
}

Status DecodeChosen(const ImageSource& image, const EncodedPatch& patch, const TensorView& out,
                    double fill, DecodeScratch& scratch, std::vector<std::byte>& room) {
  if (patch.channels.empty() || image.ReadsChosenChannels()) {
    return image.Decode(patch, out, fill, scratch);
  }
  const TensorView to = out.rank == 3 ? WithDepth(out) : out;
  const std::int64_t there = image.layout().channels;
  const std::size_t element = SizeOf(to.dtype);
  room.resize(static_cast<std::size_t>(patch.box.Shape().Pixels() * there) * element);
  const TensorView all = ContiguousView<4>(
      room.data(), to.dtype, {patch.box.depth, patch.box.height, patch.box.width, there});
  PB_RETURN_IF_ERROR(image.Decode(patch, all, fill, scratch));
  const std::byte* from = room.data();
  for (std::int64_t z = 0; z < patch.box.depth; ++z) {
    for (std::int64_t y = 0; y < patch.box.height; ++y) {
      std::byte* pixel = to.data + z * to.stride_bytes[0] + y * to.stride_bytes[1];
      for (std::int64_t x = 0; x < patch.box.width; ++x, pixel += to.stride_bytes[2]) {
        for (std::size_t k = 0; k < patch.channels.size(); ++k) {
          std::memcpy(pixel + static_cast<std::int64_t>(k) * to.stride_bytes[3],
                      from + static_cast<std::size_t>(patch.channels[k]) * element, element);
        }
        from += static_cast<std::size_t>(there) * element;
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace patchbay::workers
