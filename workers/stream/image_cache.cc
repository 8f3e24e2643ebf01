#include "workers/stream/image_cache.h"

#include <utility>

namespace patchbay::workers {
namespace {

std::string KeyOf(const std::string& path, const std::string& stamp) { return stamp + '\0' + path; }

}  // namespace

StatusOr<std::shared_ptr<const ImageSource>> ImageCache::Get(const Folders& allowed,
                                                             const std::string& path,
                                                             const std::string& stamp,
                                                             const ImageCheck& check,
                                                             const SlideChoice& choice) {
  const std::string key = KeyOf(path, stamp);
  if (auto image = Find(key)) return image;
  if (check) PB_RETURN_IF_ERROR(check(nullptr));
  PB_ASSIGN_OR_RETURN(std::unique_ptr<ImageSource> opened, open_(allowed, path, choice));
  if (check) PB_RETURN_IF_ERROR(check(opened.get()));
  return Keep(key, std::move(opened));
}

void ImageCache::Forget(const std::string& path, const std::string& stamp,
                        const ImageSource* image) {
  const std::string key = KeyOf(path, stamp);
  Images::Entries dropped;  // closed without the lock
  const std::lock_guard lock(mu_);
  const auto* const found = images_.Find(key);
  if (found != nullptr && found->get() == image) dropped = images_.Erase(key);
}

std::size_t ImageCache::size() const {
  const std::lock_guard lock(mu_);
  return images_.size();
}

std::size_t ImageCache::bytes() const {
  const std::lock_guard lock(mu_);
  return images_.cost();
}

std::shared_ptr<const ImageSource> ImageCache::Find(const std::string& key) {
  const std::lock_guard lock(mu_);
  const auto* const found = images_.Find(key);
  return found == nullptr ? nullptr : *found;
}

std::shared_ptr<const ImageSource> ImageCache::Keep(const std::string& key,
                                                    std::shared_ptr<const ImageSource> image) {
  const std::size_t bytes = sizeof(Images::Entry) + 2 * key.size() + image->MemoryBytes();
  Images::Entries dropped;  // closed without the lock
  const std::lock_guard lock(mu_);
  if (const auto* const found = images_.Find(key); found != nullptr) return *found;
  dropped = images_.Insert(key, image, bytes);
  return image;
}

}  // namespace patchbay::workers
