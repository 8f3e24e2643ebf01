#include "runtime/client/paths.h"

#include <filesystem>

namespace patchbay::client {
namespace fs = std::filesystem;

StatusOr<std::string> AbsolutePath(const std::string& path) {
  std::error_code error;
  const fs::path absolute = fs::weakly_canonical(fs::absolute(path, error), error);
  if (error) return FromErrno("find path", path, error.value());
  std::string text = absolute.string();
  if (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

std::string JobNames::operator()(const Subject& subject) const {
  const auto at = [&](const std::vector<std::string>& names) {
    return subject.index < names.size() ? names[subject.index] : std::string();
  };
  switch (subject.kind) {
    case SubjectKind::kRun:
      return out;
    case SubjectKind::kStore:
      return at(stores);
    case SubjectKind::kFile:
      return at(files);
    case SubjectKind::kSlide:
      return at(slides);
    case SubjectKind::kImage:
      return at(images);
    default:
      return "";
  }
}

}  // namespace patchbay::client
