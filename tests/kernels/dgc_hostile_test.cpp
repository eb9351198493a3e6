#include <algorithm>
#include <catch.hpp>
#include <functional>

#include "kernels/cpu/wire_message.h"
#include "tests/kernels/dgc_apply_case.h"
#include "tests/kernels/dgc_code_case.h"
#include "tests/kernels/kernel_backends.h"

// Messages that were damaged or made up on their way: decoding takes any bytes, and what comes of them is the message
// that was sent, or is refused.
using namespace dgc;
using namespace dgc::test;
using Kind = WireFaultKind;

namespace {

const std::vector<Size> kHostileSizes = {{3, 2}, {70000, 40}, {300, 300}, {131072, 1}};

CodeCase sent(WireFormat format, uint32_t worker = 0) {
  CodeCase c(kHostileSizes, format);
  c.header.worker = worker;
  c.set(0, {{0, 2}, {1, -2}});
  Entries many{{}, std::vector<float>(40, 0.5f)};
  for (int64_t i = 0; i < 40; ++i) many.indices.push_back(i < 20 ? 7 * i : 66000 + i * i);
  c.set(1, many);
  Entries all{{}, {}};
  for (int64_t i = 0; i < 300; ++i) all.indices.push_back(i), all.values.push_back(static_cast<float>(i - 150));
  c.set(2, all);
  c.set(3, {{131071}, {9}});
  seal(c);
  reference_encode(c);
  return c;
}

WireFault fault_of(const CodeCase& c, const std::vector<std::byte>& message) {
  const DgcTableMemory table(make_cpu_device(), c.segments, 0);
  return check_message(message.data(), c.header, c.step, table.table());
}

}  // namespace

TEST_CASE("any bytes are decoded, to the same on every backend, and refused", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const auto cpu = make_cpu_backend(1);
  std::mt19937 random(6);
  for (const WireFormat format : all_formats()) {
    for (int round = 0; round < 4; ++round) {
      CAPTURE(backend->name(), wire_format_name(format), round);
      const CodeCase c = sent(format);
      std::vector<std::byte> came = c.coded;
      for (size_t i = sizeof(WireHeader); i < came.size(); ++i) {
        if (round == 0) came[i] = static_cast<std::byte>(random());
        if (round == 1) came[i] = std::byte{0xff};
        if (round == 2) came[i] = std::byte{0};
        if (round == 3 && random() % 50 == 0) came[i] ^= static_cast<std::byte>(1u << random() % 8);
      }
      const auto message = decode(*backend, c, came);
      CHECK(message == decode(*cpu, c, came));
      CHECK((message == c.message || fault_of(c, message).kind == Kind::checksum));
    }
  }
}

TEST_CASE("every flipped bit of a coded message is noticed, or changes nothing", "[dgc]") {
  const auto backend = make_cpu_backend(1);
  for (const WireFormat format : all_formats()) {
    const CodeCase c = sent(format);
    std::vector<std::byte> came = c.coded;
    size_t without_effect = 0;
    for (size_t at = 0; at < came.size(); ++at) {
      for (int bit = 0; bit < 8; ++bit) {
        CAPTURE(wire_format_name(format), at, bit);
        came[at] ^= std::byte(1 << bit);
        const auto message = decode(*backend, c, came);
        if (message == c.message) ++without_effect;
        if (message != c.message) REQUIRE(fault_of(c, message).kind != Kind::none);
        came[at] ^= std::byte(1 << bit);
      }
    }
    // Padding: what arrays are aligned and streams are filled up with.
    CHECK(without_effect <= 8 * (15 + 4 * 14));
  }
}

TEST_CASE("a coded message from elsewhere is named and not applied", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const WireFormat format{WireValues::fp16, WireIndices::rice};
  const std::vector<CodeCase> workers = {sent(format, 0), sent(format, 1)};
  const size_t bytes = workers[0].coded.size();
  struct Damage {
    std::function<void(std::vector<std::byte>&)> damage;
    Kind kind;
    uint32_t worker;
    uint64_t found;
  };
  CodeCase stale = sent(format, 1);
  --stale.step;
  seal(stale);
  reference_encode(stale);
  const std::vector<Damage> damages = {
      {[](auto&) {}, Kind::none, 0, 0},
      {[&](auto& came) { came[bytes + 100] ^= std::byte{1}; }, Kind::checksum, 1, 0},
      {[&](auto& came) { came[3] = std::byte{0}; }, Kind::magic, 0, 0},
      {[&](auto& came) { came[bytes + 6] = std::byte{2}; }, Kind::format, 1, 0x302},
      {[&](auto& came) {
         std::swap_ranges(came.begin(), came.begin() + static_cast<std::ptrdiff_t>(bytes),
                          came.begin() + static_cast<std::ptrdiff_t>(bytes));
       },
       Kind::worker, 0, 1},
      {[&](auto& came) { std::ranges::copy(stale.coded, came.begin() + static_cast<std::ptrdiff_t>(bytes)); },
       Kind::stale, 1, 4}};
  for (const Damage& damage : damages) {
    std::vector<std::byte> came = workers[0].coded;
    came.insert(came.end(), workers[1].coded.begin(), workers[1].coded.end());
    damage.damage(came);
    const auto messages = decode(*backend, workers[0], came);
    ApplyCase c(kHostileSizes, 2);
    for (size_t w = 0; w < 2; ++w) {
      const size_t size = workers[w].message.size();
      c.workers[w].header = workers[w].header;
      c.workers[w].message.assign(messages.begin() + static_cast<std::ptrdiff_t>(w * size),
                                  messages.begin() + static_cast<std::ptrdiff_t>((w + 1) * size));
    }
    const auto w = c.w;
    apply(*backend, c, {});
    CHECK(c.control.fault.kind == damage.kind);
    CHECK(c.control.fault.worker == damage.worker);
    CHECK(c.control.fault.found == damage.found);
    CHECK((bits_of(c.w) == bits_of(w)) == (damage.kind != Kind::none));
  }
}
