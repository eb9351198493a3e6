#include "dist/communicator.h"

#include <cstring>
#include <thread>

#include "tensor/errors.h"

namespace dgc {
namespace {

// Memory of a device, freed with the object.
class Stage {
 public:
  Stage(Device& device, size_t bytes) : device_(device), bytes_(bytes), data_(device.allocate_briefly(bytes)) {}
  ~Stage() { device_.free(data_, bytes_); }
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;
  void* data() const { return data_; }

 private:
  Device& device_;
  size_t bytes_;
  void* data_;
};

}  // namespace

size_t shard_size(size_t n, int ranks) {
  constexpr size_t kMultiple = 16;  // one cache line, so that every shard starts aligned
  DGC_CHECK(ranks >= 1, "a group has at least one rank");
  const auto count = static_cast<size_t>(ranks);
  return ((n + count - 1) / count + kMultiple - 1) / kMultiple * kMultiple;
}

void all_gather_host(Communicator& communicator, Device& device, std::span<const std::byte> mine,
                     std::span<std::byte> all) {
  DGC_CHECK(all.size() == mine.size() * static_cast<size_t>(communicator.size()), "all_gather_host sizes");
  const Stage from(device, mine.size()), to(device, all.size());
  device.copy_in(from.data(), mine.data(), mine.size());
  communicator.all_gather(device, from.data(), to.data(), mine.size());
  copy_out(communicator, device, all, to.data());
}

void copy_out(Communicator& communicator, Device& device, std::span<std::byte> to, const void* from) {
  if (to.empty()) return;
  const auto result = device.make_download(to.size());
  result->start(from);
  while (!result->ready()) {
    communicator.check();
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  if (communicator.recordable()) communicator.check();
  std::memcpy(to.data(), result->wait(), to.size());
}

}  // namespace dgc
