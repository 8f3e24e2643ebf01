#include "workers/stream/image_cache.h"

#include <iterator>

namespace patchbay::workers {
namespace {

std::string KeyOf(const std::string& path, const std::string& stamp) { return stamp + '\0' + path; }

}  // namespace

StatusOr<std::shared_ptr<const ImageSource>> ImageCache::Get(const Folders& allowed,
                                                             const std::string& path,
                                                             const std::string& stamp,
                                                             const ImageCheck& check) {
  const std::string key = KeyOf(path, stamp);
  if (auto image = Find(key)) return image;
  if (check) PB_RETURN_IF_ERROR(check(nullptr));
  PB_ASSIGN_OR_RETURN(std::unique_ptr<ImageSource> opened, open_(allowed, path));
  if (check) PB_RETURN_IF_ERROR(check(opened.get()));
  return Keep(key, std::move(opened));
}

void ImageCache::Forget(const std::string& path, const std::string& stamp,
                        const ImageSource* image) {
  std::list<Entry> dropped;  // closed without the lock
  const std::lock_guard lock(mu_);
  const auto it = by_key_.find(KeyOf(path, stamp));
  if (it == by_key_.end() || it->second->image.get() != image) return;
  bytes_ -= it->second->bytes;
  dropped.splice(dropped.begin(), entries_, it->second);
  by_key_.erase(it);
}

std::size_t ImageCache::size() const {
  const std::lock_guard lock(mu_);
  return entries_.size();
}

std::size_t ImageCache::bytes() const {
  const std::lock_guard lock(mu_);
  return bytes_;
}

std::shared_ptr<const ImageSource> ImageCache::Find(const std::string& key) {
  const std::lock_guard lock(mu_);
  const auto it = by_key_.find(key);
  if (it == by_key_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, it->second);
  return it->second->image;
}

std::shared_ptr<const ImageSource> ImageCache::Keep(const std::string& key,
                                                    std::shared_ptr<const ImageSource> image) {
  const std::size_t bytes = sizeof(Entry) + 2 * key.size() + image->MemoryBytes();
  std::list<Entry> dropped;  // closed without the lock
  const std::lock_guard lock(mu_);
  const auto it = by_key_.find(key);
  if (it != by_key_.end()) return it->second->image;
  entries_.push_front({key, bytes, image});
  by_key_[key] = entries_.begin();
  bytes_ += bytes;
  while (bytes_ > bytes_max_ && entries_.size() > kImagesMin) {
    bytes_ -= entries_.back().bytes;
    by_key_.erase(entries_.back().key);
    dropped.splice(dropped.begin(), entries_, std::prev(entries_.end()));
  }
  return image;
}

}  // namespace patchbay::workers
