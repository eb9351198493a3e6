#include "train/steps/round_letters.h"

#include <cstring>
#include <type_traits>
#include <utility>

#include "tensor/errors.h"

namespace dgc {
namespace {

// Visits the members of a letter in the order in which they travel.
void visit(auto& to, auto& a, const Arrival*) { to(a.step, a.steps, a.everyone, a.shares); }
void visit(auto& to, auto& m, const Messages*) { to(m.bytes); }
void visit(auto& to, auto& v, const RollCall*) {
  to(v.step, v.steps, v.everyone, v.skipped, v.worker_steps, v.ranks, v.shares);
}
void visit(auto& to, auto& d, const Delivery*) { to(d.step, d.late, d.ranks, d.messages); }

class Writer {
 public:
  void operator()(const auto&... members) { (write(members), ...); }

  std::vector<std::byte> bytes;

 private:
  template <class T>
  void write(const T& number) {
    static_assert(std::is_trivially_copyable_v<T>);
    append(&number, sizeof(number));
  }
  template <class T>
  void write(const std::vector<T>& list) {
    static_assert(std::is_trivially_copyable_v<T>);
    write(static_cast<uint64_t>(list.size()));
    append(list.data(), list.size() * sizeof(T));
  }
  void append(const void* from, size_t count) {
    const auto* first = static_cast<const std::byte*>(from);
    bytes.insert(bytes.end(), first, first + count);
  }
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> left) : left_(left) {}
  void operator()(auto&... members) { (read(members), ...); }
  bool at_end() const { return left_.empty(); }

 private:
  template <class T>
  void read(T& number) {
    take(&number, sizeof(number));
  }
  template <class T>
  void read(std::vector<T>& list) {
    uint64_t count = 0;
    read(count);
    DGC_CHECK(count <= left_.size() / sizeof(T), "a letter between ranks is cut off");
    list.resize(count);
    take(list.data(), count * sizeof(T));
  }
  void take(void* to, size_t count) {
    DGC_CHECK(count <= left_.size(), "a letter between ranks is cut off");
    if (count > 0) std::memcpy(to, left_.data(), count);
    left_ = left_.subspan(count);
  }

  std::span<const std::byte> left_;
};

template <size_t kind = 0>
RoundLetter read_kind(size_t wanted, Reader& reader) {
  if constexpr (kind == std::variant_size_v<RoundLetter>) {
    throw InternalError("a letter between ranks is of no known kind");
  } else {
    if (wanted != kind) return read_kind<kind + 1>(wanted, reader);
    std::variant_alternative_t<kind, RoundLetter> letter;
    visit(reader, letter, &letter);
    return letter;
  }
}

}  // namespace

Mail::Letter to_letter(const RoundLetter& letter) {
  Writer writer;
  writer(static_cast<uint8_t>(letter.index()));
  std::visit([&](const auto& one) { visit(writer, one, &one); }, letter);
  return std::make_shared<const std::vector<std::byte>>(std::move(writer.bytes));
}

RoundLetter read_letter(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  uint8_t kind = 0;
  reader(kind);
  RoundLetter letter = read_kind(kind, reader);
  DGC_CHECK(reader.at_end(), "a letter between ranks is too long");
  return letter;
}

}  // namespace dgc
