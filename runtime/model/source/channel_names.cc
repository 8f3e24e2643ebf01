#include "runtime/model/source/channel_names.h"

#include <charconv>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/ascii.h"
#include "runtime/core/channels.h"
#include "runtime/core/printable.h"
#include "runtime/core/strings.h"

namespace patchbay {
namespace {

std::optional<std::string> TextIn(const Json& value) {
  return value.is_string() ? std::optional(value.get<std::string>()) : std::nullopt;
}

bool IsNumber(const std::string& text, std::size_t& number) {
  const char* end = text.data() + text.size();
  const auto [after, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && after == end;
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = Utf8Length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

/// {"0": "T1", "1": "T2"}, or the list of both.
std::vector<std::string> NamesByNumber(const Json& numbered) {
  std::map<std::size_t, std::string> names;
  std::size_t place = 0;
  for (const auto& [key, value] : numbered.items()) {
    std::size_t number = place++;
    if (numbered.is_object() && !IsNumber(key, number)) return {};
    const auto name = TextIn(value);
    if (!name || !names.emplace(number, *name).second) return {};
  }
  std::vector<std::string> ordered;
  for (const auto& [number, name] : names) {
    if (number != ordered.size()) return {};
    ordered.push_back(name);
  }
  return ordered;
}

}  // namespace

Status CheckChannelName(std::string_view name) {
  if (name.empty()) return InvalidArgument("a channel without a name");
  const bool is_text = IsUtf8(name) && Printable(name) == name;
  if (name.size() <= kMaxChannelNameBytes && is_text) return absl::OkStatus();
  return InvalidArgument("channel '", Printable(name.substr(0, kMaxChannelNameBytes)),
                         "': a name is up to ", kMaxChannelNameBytes, " bytes of printable text");
}

Status CheckChannelNames(const std::vector<std::string>& names) {
  if (names.size() > static_cast<std::size_t>(kMaxChannels)) {
    return InvalidArgument(names.size(), " channels, and a volume has ", kMaxChannels, " at most");
  }
  std::set<std::string_view> seen;
  for (const std::string& name : names) {
    PB_RETURN_IF_ERROR(CheckChannelName(name));
    if (!seen.insert(name).second) return InvalidArgument("channel '", name, "' is there twice");
  }
  return absl::OkStatus();
}

std::optional<Modality> ChannelModality(std::string_view name) {
  constexpr std::string_view kOfMr[] = {"mr", "t1", "t2", "flair", "adc", "dwi"};
  const std::string lower = absl::AsciiStrToLower(std::string(name));
  std::string modality;
  if (lower == "ct" || lower == "pet" || lower == "pt") modality = lower;
  for (const std::string_view mr : kOfMr) {
    if (lower.starts_with(mr)) modality = "MR";
  }
  const auto found = ParseModality(modality);
  return found.ok() ? std::optional(*found) : std::nullopt;
}

std::vector<std::string> ChannelNames(const Json& attributes) {
  const Json channels = attributes.is_object() ? attributes.value(kChannelsKey, Json()) : Json();
  std::vector<std::string> names;
  if (!channels.is_array()) return names;
  for (const Json& channel : channels) {
    const auto name = TextIn(channel.is_object() ? channel.value("name", Json()) : Json());
    if (!name) return {};
    names.push_back(*name);
  }
  return names;
}

std::vector<std::string> DatasetChannels(const Json& dataset) {
  for (const char* key : {"channel_names", "modality"}) {
    const Json numbered = dataset.is_object() ? dataset.value(key, Json()) : Json();
    if (numbered.is_structured() && !numbered.empty()) return NamesByNumber(numbered);
  }
  return {};
}

}  // namespace patchbay
