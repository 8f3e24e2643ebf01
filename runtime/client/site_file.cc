#include "runtime/client/site_file.h"

#include <filesystem>

#include "runtime/core/strings.h"
#include "runtime/format/yaml/key_table.h"
#include "runtime/format/yaml/yaml.h"

namespace patchbay::client {
namespace {

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
  config::Key site{.type = kMap};
  site.members = {{.name = "pseudonym_key",
                   .help = "file of the key behind the names of stores; a relative path starts at "
                           "the folder of site.yaml"},
                  {.name = "burned_in",
                   .type = kBool,
                   .fallback = false,
                   .help = "whether `ingest --repair burned-in` is allowed"},
                  files};
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
