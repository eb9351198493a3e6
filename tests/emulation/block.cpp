#include "tests/emulation/block.h"

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <new>
#include <string_view>

namespace dgc::emulation {
namespace {

constexpr size_t kSharedAlignment = 128;

bool same(const char* a, const char* b) { return a == b || std::string_view(a) == b; }

std::string name_of(const Thread& thread) {
  const Place& place = thread.wait.place;
  const std::string what = place.what != nullptr ? place.what : "running";
  if (place.at.line() == 0 || thread.fiber == nullptr) return what;
  const std::string_view file = place.at.file_name();
  return fmt::format("{} ({}:{})", what, file.substr(file.rfind('/') + 1), place.at.line());
}

}  // namespace

bool Wait::at(const Place& other) const {
  if (place.what == nullptr || place.at.line() != other.at.line()) return false;
  return same(place.what, other.what) && same(place.at.file_name(), other.at.file_name());
}

void FreeShared::operator()(std::byte* memory) const { ::operator delete (memory, std::align_val_t{kSharedAlignment}); }

Block::Block(unsigned number, unsigned size, size_t shared_bytes) : index(number), threads(size) {
  for (unsigned i = 0; i < size; ++i) {
    threads[i].block = this;
    threads[i].index = i;
  }
  for (unsigned i = 0; i < size; i += 32) warps[i / 32].first = &threads[i];
  if (shared_bytes == 0) return;
  void* memory = ::operator new (shared_bytes, std::align_val_t{kSharedAlignment});
  std::memset(memory, 0xff, shared_bytes);
  shared.reset(static_cast<std::byte*>(memory));
}

std::string who_waits(const std::vector<std::unique_ptr<Block>>& blocks) {
  std::map<std::string, int> groups;
  for (const auto& block : blocks) {
    for (const Thread& thread : block->threads) {
      ++groups[fmt::format("of block {} at {}", block->index, name_of(thread))];
    }
  }
  std::string text = "threads wait for each other:";
  for (const auto& [where, count] : groups) text += fmt::format(" {} {};", count, where);
  return text;
}

}  // namespace dgc::emulation
