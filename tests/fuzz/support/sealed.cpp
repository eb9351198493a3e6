#include "tests/fuzz/support/sealed.h"

#include <sodium.h>

#include "tests/fuzz/support/fake_socket.h"

namespace dgc::fuzz {
namespace {

using Side = SealedSession::Side;

std::span<const std::byte> as_bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

}  // namespace

void draw_alike() {
  static randombytes_implementation alike = [] {
    randombytes_implementation all{};
    all.implementation_name = [] { return "alike"; };
    all.random = [] { return uint32_t{4}; };
    all.buf = [](void* to, size_t bytes) { std::memset(to, 4, bytes); };
    return all;
  }();
  randombytes_set_implementation(&alike);
}

Greeting greeting_from(Input& input, Purpose purpose) {
  Greeting greeting = make_greeting(purpose);
  const auto changes = input.take<uint8_t>();
  if ((changes & 1) != 0) greeting.nonce[0] = input.take<std::byte>();
  if ((changes & 2) != 0) greeting.magic = input.take<uint64_t>();
  if ((changes & 4) != 0) greeting.version = input.take<uint32_t>();
  if ((changes & 8) != 0) greeting.purpose = input.take<Purpose>();
  return greeting;
}

std::string Speaker::seal(const std::string& frame) {
  const auto sealed = session_.seal(as_bytes_of(frame));
  session_.note_sent();
  return {reinterpret_cast<const char*>(sealed.data()), sealed.size()};
}

std::optional<std::string> Speaker::open(const std::string& sealed) {
  if (sealed.size() < kSealBytes) return {};
  std::string frame(sealed.size() - kSealBytes, '\0');
  if (!session_.open(as_bytes_of(sealed), std::as_writable_bytes(std::span(frame)))) return {};
  return frame;
}

std::string first_words(const Greeting& own, const Secret& secret, const std::string& frame) {
  Speaker caller(secret, Side::caller, make_greeting(own.purpose), own);
  return bytes_of(own) + caller.seal(frame);
}

std::optional<std::string> understood(const std::string& words, const Secret& secret, const Greeting& host,
                                      size_t frame_bytes) {
  if (words.size() != sizeof(Greeting) + frame_bytes + kSealBytes) return {};
  const auto caller = from_bytes<Greeting>(words);
  if (caller.magic != host.magic || caller.version != host.version || caller.purpose != host.purpose) return {};
  return Speaker(secret, Side::host, host, caller).open(words.substr(sizeof(Greeting)));
}

}  // namespace dgc::fuzz
