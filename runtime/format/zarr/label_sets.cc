#include "runtime/format/zarr/label_sets.h"

#include <map>
#include <utility>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/store_tree.h"
#include "runtime/os/file.h"
#include "runtime/os/folder_listing.h"

namespace patchbay::zarr {
namespace {

constexpr std::size_t kMaxSetNameBytes = 64;
constexpr std::size_t kRevisionDigits = 16;
constexpr std::size_t kMaxDocumentBytes = 16u << 20;

std::string LabelsOf(const std::string& store) { return StrCat(store, "/", kLabelsFolder); }

/// "gleason" of "gleason.1f0c..."; "" for any other name.
std::string_view SetOf(std::string_view revision) {
  const std::size_t dot = revision.rfind('.');
  if (dot == std::string_view::npos || !IsSetName(revision.substr(0, dot))) return {};
  const std::string_view digits = revision.substr(dot + 1);
  const bool is_hex = digits.size() == kRevisionDigits &&
                      digits.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  return is_hex ? revision.substr(0, dot) : std::string_view();
}

StatusOr<OpenedLabelSet> Open(const Folders& allowed, const std::string& store,
                              const std::string& revision) {
  OpenedLabelSet out;
  out.path = StrCat(LabelsOf(store), "/", revision);
  const std::string what = StrCat(kLabelsFolder, "/", revision, "/zarr.json");
  PB_ASSIGN_OR_RETURN(const std::string text,
                      ReadFile(allowed, out.path + "/zarr.json", kMaxDocumentBytes));
  PB_ASSIGN_OR_RETURN(Json document, ParseJson(text, what));
  PB_ASSIGN_OR_RETURN(out.root, ParseGroupV3(std::move(document), what));
  Json& attributes = out.root.attributes;
  PB_ASSIGN_OR_RETURN(const Json* patchbay, JsonMember(attributes, "patchbay", what));
  PB_ASSIGN_OR_RETURN(const std::string digest, JsonString(*patchbay, "digest", what));
  PB_ASSIGN_OR_RETURN(out.digest, Digest::FromHex(digest));
  PB_RETURN_IF_ERROR(JsonMember(*patchbay, "labels", what).status());
  out.attributes = std::move(attributes["patchbay"]["labels"]);
  return out;
}

/// `current`: folder of the current revision by set.
Status WriteLabelSets(const Folders& allowed, const std::string& store,
                      const std::map<std::string, std::string>& current) {
  Json list = Json::array();
  for (const auto& [name, revision] : current) list.push_back(revision);
  const Json document = {{"zarr_format", 3},
                         {"node_type", "group"},
                         {"attributes", {{"ome", {{"version", "0.5"}, {"labels", list}}}}}};
  return WriteFileDurably(allowed, StrCat(LabelsOf(store), "/zarr.json"),
                          AsBytes(document.dump(2) + "\n"));
}

StatusOr<std::map<std::string, std::string>> CurrentRevisions(const Folders& allowed,
                                                              const std::string& store) {
  PB_ASSIGN_OR_RETURN(const std::vector<LabelSet> sets, ReadLabelSets(allowed, store));
  std::map<std::string, std::string> current;
  for (const LabelSet& one : sets) current[one.name] = one.revision;
  return current;
}

}  // namespace

bool IsSetName(std::string_view name) {
  const auto is_word = [](std::string_view word) {
    constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyz0123456789_-";
    return !word.empty() && word.find_first_not_of(kAllowed) == std::string_view::npos;
  };
  const std::size_t at = name.find('@');
  const bool has_reader = at != std::string_view::npos;
  return name.size() <= kMaxSetNameBytes && is_word(name.substr(0, at)) &&
         (!has_reader || is_word(name.substr(at + 1)));
}

std::string RevisionName(std::string_view set, const Digest& digest) {
  return StrCat(set, ".", digest.Hex().substr(0, kRevisionDigits));
}

StatusOr<std::vector<LabelSet>> ReadLabelSets(const Folders& allowed, const std::string& store) {
  const std::string path = StrCat(LabelsOf(store), "/zarr.json");
  const StatusOr<std::string> text = ReadFile(allowed, path, kMaxDocumentBytes);
  if (absl::IsNotFound(text.status())) return std::vector<LabelSet>();
  if (!text.ok()) return text.status();
  PB_ASSIGN_OR_RETURN(const Json document, ParseJson(*text, path));
  PB_ASSIGN_OR_RETURN(const Json* attributes, JsonMember(document, "attributes", path));
  PB_ASSIGN_OR_RETURN(const Json* ome, JsonMember(*attributes, "ome", path));
  PB_ASSIGN_OR_RETURN(const Json* list, JsonMember(*ome, "labels", path));
  std::vector<LabelSet> sets;
  for (const Json& name : *list) {
    const std::string revision = name.is_string() ? name.get<std::string>() : "";
    const std::string_view set = SetOf(revision);
    if (set.empty()) {
      return ErrorAbout(absl::StatusCode::kInvalidArgument, "read label sets", path,
                        StrCat("'", revision, "' is not a revision of a set"));
    }
    sets.push_back({std::string(set), revision});
  }
  return sets;
}

StatusOr<OpenedLabelSet> OpenLabelSet(const Folders& allowed, const std::string& store,
                                      std::string_view name) {
  PB_ASSIGN_OR_RETURN(const std::vector<LabelSet> sets, ReadLabelSets(allowed, store));
  std::vector<std::string> names;
  for (const LabelSet& set : sets) {
    if (set.name == name) return Open(allowed, store, set.revision);
    names.push_back(set.name);
  }
  return ErrorAbout(
      absl::StatusCode::kNotFound, "open label set", store,
      StrCat(
          "no set '", name, "' (",
          names.empty()
              ? std::string("it has none: `patchbay labels import` and `labels tissue` make them")
              : StrCat("it has ", StrJoin(names, ", ")),
          ")"));
}

StatusOr<OpenedLabelSet> OpenLabelRevision(const Folders& allowed, const std::string& store,
                                           std::string_view name, const Digest& digest) {
  PB_ASSIGN_OR_RETURN(OpenedLabelSet set, Open(allowed, store, RevisionName(name, digest)));
  if (set.digest == digest) return set;
  return ErrorAbout(absl::StatusCode::kDataLoss, "open label set", set.path,
                    StrCat("digest ", set.digest.Hex(), " recorded, not ", digest.Hex()));
}

StatusOr<OpenedLabelSet> FindLabelRevision(const Folders& allowed, const std::string& store,
                                           std::string_view name, const std::string& file,
                                           const Digest& digest) {
  const auto has_it = [&](const OpenedLabelSet& set) {
    const Json files = set.attributes.value("files", Json::object());
    return files.is_object() && files.value(file, Json()) == digest.Hex();
  };
  StatusOr<OpenedLabelSet> current = OpenLabelSet(allowed, store, name);
  if (current.ok() && has_it(*current)) return current;
  PB_ASSIGN_OR_RETURN(const LabelFolders folders, ListLabelFolders(allowed, store));
  for (const std::string& revision : folders.revisions) {
    if (SetOf(revision) != name) continue;
    StatusOr<OpenedLabelSet> set = Open(allowed, store, revision);
    if (set.ok() && has_it(*set)) return set;
  }
  return ErrorAbout(absl::StatusCode::kNotFound, "open label set", store,
                    StrCat("no revision of '", name, "' with that ", file));
}

Status MakeCurrent(const Folders& allowed, const std::string& store, const LabelSet& set) {
  PB_ASSIGN_OR_RETURN(auto current, CurrentRevisions(allowed, store));
  current[set.name] = set.revision;
  return WriteLabelSets(allowed, store, current);
}

Status MakeAbsent(const Folders& allowed, const std::string& store, std::string_view set) {
  PB_ASSIGN_OR_RETURN(auto current, CurrentRevisions(allowed, store));
  if (current.erase(std::string(set)) == 0) return absl::OkStatus();
  return WriteLabelSets(allowed, store, current);
}

StatusOr<LabelFolders> ListLabelFolders(const Folders& allowed, const std::string& store) {
  LabelFolders out;
  const auto names = ListFolder(allowed, LabelsOf(store));
  if (absl::IsNotFound(names.status())) return out;
  PB_RETURN_IF_ERROR(names.status());
  for (const std::string& name : *names) {
    PB_ASSIGN_OR_RETURN(const EntryKind kind,
                        EntryKindOf(allowed, StrCat(LabelsOf(store), "/", name)));
    if (name == kLabelStagingFolder || (name == "zarr.json" && kind == EntryKind::kFile)) continue;
    const bool is_revision = kind == EntryKind::kFolder && !SetOf(name).empty();
    (is_revision ? out.revisions : out.strange).push_back(name);
  }
  return out;
}

}  // namespace patchbay::zarr
