// Texts that people write or hand on: YAML and key files.
#include <cstdlib>

#include "runtime/core/hash.h"
#include "runtime/format/yaml/yaml.h"
#include "runtime/wire/control/keys.h"
#include "scheduler/http/http_request.h"
#include "tests/fuzz/fuzz_target.h"

namespace patchbay::fuzz {
namespace {

std::size_t NodesOf(const config::YamlNode& node) {
  std::size_t count = 1;
  for (const auto& item : node.items) count += NodesOf(item);
  for (const auto& member : node.members) count += NodesOf(member.value);
  return count;
}

bool ReadYaml(std::span<const std::byte> bytes) {
  const auto node = config::ParseYaml(AsText(bytes), "fuzz.yaml");
  if (!node.ok()) return false;
  if (NodesOf(*node) > config::kMaxYamlNodes) std::abort();
  (void)config::YamlToJson(*node);
  (void)config::MergeYaml(*node, *node);
  return true;
}

std::vector<std::string> YamlSeeds() {
  return {
      "dataset: cohort.csv\nseed: 7\npatch: {size: [512, 512], mpp: [0.5, 1.0]}\naugment:\n"
      "  - flip\n  - affine: {p: 0.5, degrees: [-15, 15]}\n",
      "a: &x [1, 'two', \"three\\n\", ~, 1e3]\nb: *x\nc: |\n  text\n  more\n# end\n"};
}

bool ReadKey(std::span<const std::byte> bytes) {
  const auto key = control::ParseKeyFile(AsText(bytes));
  if (!key.ok()) return false;
  // A key file that was written reads as itself.
  const auto again = control::ParseKeyFile(control::FormatKeyFile(*key));
  if (!again.ok() || again->name != key->name || again->read != key->read) std::abort();
  return true;
}

std::vector<std::string> KeySeeds() {
  control::KeyFile key;
  key.name = "ann";
  key.role = control::Role::kTrainer;
  key.address = "tcp://10.0.0.7:7678";
  key.pair = control::KeyPair::Generate();
  key.server_key = key.pair.public_key;
  key.read = {"/data", "/more"};
  key.write = {"/out"};
  return {control::FormatKeyFile(key)};
}

bool ReadRequest(std::span<const std::byte> bytes) {
  const auto request = scheduler::ParseRequest(AsText(bytes));
  if (!request) return false;
  const bool is_plain = request->path.starts_with('/') &&
                        request->path.find_first_of(" ?\r\n") == std::string_view::npos &&
                        request->host.find_first_of("\r\n") == std::string_view::npos;
  if (!is_plain) std::abort();
  return true;
}

std::vector<std::string> RequestSeeds() {
  return {
      "GET /cluster?a=b HTTP/1.1\r\nHost: [::1]:9179\r\nCookie: a=b; patchbay_session=c\r\n"
      "X-Patchbay: 1\r\nAuthorization: Bearer 0123\r\n\r\n",
      "POST /login HTTP/1.0\r\n\r\n"};
}

}  // namespace

std::vector<FuzzTarget> TextTargets() {
  return {{"yaml", ReadYaml, YamlSeeds},
          {"key_file", ReadKey, KeySeeds},
          {"http_request", ReadRequest, RequestSeeds}};
}

}  // namespace patchbay::fuzz
