#include "workers/sources/ome_planes.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "runtime/core/channels.h"
#include "runtime/core/strings.h"
#include "runtime/model/source/channel_names.h"
#include "workers/sources/xml_tags.h"

namespace patchbay::workers {
namespace {

constexpr std::size_t kMaxRuns = 65536;
constexpr std::int64_t kMaxSize = 1 << 30;

std::optional<std::int64_t> NumberOf(const XmlTag& tag, std::string_view name) {
  const auto text = XmlAttribute(tag, name);
  if (!text) return std::nullopt;
  std::int64_t value = 0;
  const auto read = std::from_chars(text->data(), text->data() + text->size(), value);
  if (read.ec != std::errc() || read.ptr != text->data() + text->size()) return std::nullopt;
  return std::clamp<std::int64_t>(value, -1, kMaxSize);
}

/// Reads the element `tag`, and sets `rest` to the text behind its UUID.
OmePlaneRun RunOf(const XmlTag& tag, std::string_view uuid, std::string_view& rest) {
  OmePlaneRun run;
  const auto directory = NumberOf(tag, "IFD");
  run.first = NumberOf(tag, "FirstC").value_or(0);
  run.directory = directory.value_or(0);
  run.count = NumberOf(tag, "PlaneCount");
  if (directory && !run.count) run.count = 1;
  if (tag.is_empty) return run;
  const auto inner = NextXmlTag(tag.rest);
  if (!inner || inner->is_end || inner->name != "UUID") return run;
  const std::string_view own = inner->rest.substr(0, inner->rest.find('<'));
  run.is_elsewhere = !uuid.empty() && own != uuid;
  rest = inner->rest;
  return run;
}

std::string Trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1));
}

}  // namespace

std::optional<OmePlanes> ParseOmePlanes(std::string_view description) {
  const auto root = FindXmlTag(description, "OME");
  const auto pixels = FindXmlTag(description, "Pixels");
  if (!root || !pixels) return std::nullopt;
  const std::string_view uuid = XmlAttribute(*root, "UUID").value_or("");
  OmePlanes planes;
  planes.size_c = NumberOf(*pixels, "SizeC").value_or(1);
  planes.size_z = NumberOf(*pixels, "SizeZ").value_or(1);
  planes.size_t_ = NumberOf(*pixels, "SizeT").value_or(1);
  if (pixels->is_empty) return planes;
  std::string_view rest = pixels->rest;
  for (auto tag = NextXmlTag(rest); tag; tag = NextXmlTag(rest)) {
    rest = tag->rest;
    if (tag->is_end && tag->name == "Pixels") break;
    if (tag->is_end) continue;
    if (tag->name == "Channel" && planes.channels.size() < kMaxRuns) {
      planes.channels.push_back({Trimmed(DecodedXml(XmlAttribute(*tag, "Name").value_or(""))),
                                 NumberOf(*tag, "SamplesPerPixel").value_or(1)});
    }
    if (tag->name == "TiffData" && planes.runs.size() < kMaxRuns) {
      planes.runs.push_back(RunOf(*tag, uuid, rest));
    }
  }
  return planes;
}

StatusOr<std::vector<std::size_t>> DirectoriesOfPlanes(const OmePlanes& planes,
                                                       std::int64_t samples,
                                                       std::size_t directories) {
  if (planes.size_z != 1 || planes.size_t_ != 1) {
    return Unimplemented("read tiff: ", planes.size_z, " focal planes and ", planes.size_t_,
                         " time points (OME-XML): one of each is supported");
  }
  if (planes.size_c < 1 || planes.size_c > kMaxChannels) {
    return Unimplemented("read tiff: SizeC ", planes.size_c, " (OME-XML): 1 to ", kMaxChannels,
                         " channels are supported");
  }
  if (planes.size_c % samples != 0) {
    return InvalidArgument("read tiff: SizeC ", planes.size_c, " (OME-XML), and directories of ",
                           samples, " samples per pixel");
  }
  const std::int64_t count = planes.size_c / samples;
  const auto in_file = static_cast<std::int64_t>(directories);
  std::vector<std::int64_t> found(static_cast<std::size_t>(count), -1);
  std::vector<OmePlaneRun> runs = planes.runs;
  if (runs.empty()) runs.push_back({});
  for (const OmePlaneRun& run : runs) {
    if (run.is_elsewhere) {
      return Unimplemented("read tiff: planes in other files (OME-XML) are not supported");
    }
    const std::int64_t some = run.count.value_or(count);
    if (run.first < 0 || run.directory < 0 || some < 0) {
      return InvalidArgument("read tiff: a TiffData of negative numbers (OME-XML)");
    }
    for (std::int64_t i = 0; i < some && run.first + i < count; ++i) {
      found[static_cast<std::size_t>(run.first + i)] = run.directory + i;
    }
  }
  std::vector<std::size_t> out;
  std::set<std::int64_t> seen;
  for (std::size_t c = 0; c < found.size(); ++c) {
    if (found[c] < 0 || found[c] >= in_file) {
      return InvalidArgument("read tiff: SizeC ", planes.size_c,
                             " (OME-XML), and the plane of channel ", c, " is not in the file's ",
                             directories, " directories");
    }
    if (!seen.insert(found[c]).second) {
      return InvalidArgument("read tiff: two channels in directory ", found[c], " (OME-XML)");
    }
    out.push_back(static_cast<std::size_t>(found[c]));
  }
  return out;
}

std::vector<std::string> UniqueChannelNames(const std::vector<std::string>& stated,
                                            std::size_t count) {
  std::vector<std::string> names;
  std::set<std::string> taken;
  for (std::size_t i = 0; i < count; ++i) {
    const bool is_named = i < stated.size() && CheckChannelName(stated[i]).ok();
    std::string name = is_named ? stated[i] : StrCat("channel ", i);
    const std::string first = name;
    for (int n = 2; !taken.insert(name).second; ++n) {
      const std::string mark = StrCat(" (", n, ")");
      name = first.size() + mark.size() <= kMaxChannelNameBytes ? first + mark
                                                                : StrCat("channel ", i, mark);
    }
    names.push_back(name);
  }
  return names;
}

}  // namespace patchbay::workers
