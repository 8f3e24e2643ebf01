#include "runtime/client/site_file.h"

#include <filesystem>

#include "runtime/core/strings.h"
#include "runtime/format/yaml/key_table.h"
#include "runtime/format/yaml/yaml.h"

namespace patchbay::client {
namespace {

/// A path, or a list of them.
Status CheckAbsolute(const Json& paths) {
  for (const Json& path : paths.is_array() ? paths : Json::array({paths})) {
    const auto& text = path.get_ref<const std::string&>();
    if (text.empty() || text.front() != '/') return InvalidArgument("'", text, "' is not absolute");
  }
  return absl::OkStatus();
}

config::Key SiteKeys() {
  using enum config::KeyType;
  config::Key files{.name = "files", .type = kMap, .optional = true};
  files.help = "rights of the stores, tables, results and label sets that nodes publish";
  files.members = {{.name = "group", .required = true, .help = "group that the files get"},
                   {.name = "mode",
                    .type = kChoice,
                    .fallback = "0640",
                    .choices = {"0640", "0660"},
                    .help = "permissions of files; folders get search too"}};
  config::Key functions{.name = "functions", .type = kMap, .optional = true};
  functions.help = "own functions of run configs that nodes run; without it none";
  functions.members = {{.name = "python",
                        .required = true,
                        .help = "interpreter that runs them, with `-I`: a path",
                        .check = CheckAbsolute},
                       {.name = "files",
                        .type = kStringList,
                        .required = true,
                        .min_items = 1,
                        .max_items = 1'000,
                        .help = "files of functions, by path; any other is refused",
                        .check = CheckAbsolute}};
  config::Key site{.type = kMap};
  site.members = {{.name = "pseudonym_key",
                   .help = "file of the key behind the names of stores; a relative path starts at "
                           "the folder of site.yaml"},
                  {.name = "burned_in",
                   .type = kBool,
                   .fallback = false,
                   .help = "whether `ingest --repair burned-in` is allowed"},
                  files,
                  functions};
  return site;
}

}  // namespace

StatusOr<Site> ReadSite(const Environment& environment) {
  Site site;
  site.file = environment.site_file;
  if (site.file.empty()) return site;
  PB_ASSIGN_OR_RETURN(const config::YamlNode node,
                      config::ReadYamlFile(Folders::OfThisUser(), site.file));
  PB_ASSIGN_OR_RETURN(const Json values, config::Validate(node, SiteKeys()));
  const std::string key = values.value("pseudonym_key", "");
  if (!key.empty()) {
    site.pseudonym_key = (std::filesystem::path(site.file).parent_path() / key).string();
  }
  site.may_take_burned_in = values.value("burned_in", false);
  if (values.contains("functions")) site.functions = DumpJson(values["functions"]);
  if (!values.contains("files")) return site;
  site.group = values["files"]["group"].get<std::string>();
  site.mode = values["files"]["mode"] == "0660" ? 0660 : 0640;
  site.group_line = config::LineOf(node, "files.group");
  return site;
}

StatusOr<std::optional<FileSharing>> SharingOf(const Site& site) {
  if (site.group.empty()) return std::nullopt;
  const StatusOr<FileSharing> sharing = FileSharing::Of(site.group, site.mode);
  if (sharing.ok()) return sharing;
  return Annotate(sharing.status(), StrCat(site.file, ":", site.group_line, ": key 'files.group'"));
}

}  // namespace patchbay::client
