#include "dist/meeting/handshake.h"

#include <sodium.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "tensor/errors.h"

namespace dgc {
namespace {

static_assert(kSealBytes == crypto_aead_chacha20poly1305_ietf_ABYTES);

const unsigned char* bytes_at(const void* memory) { return static_cast<const unsigned char*>(memory); }
unsigned char* bytes_at(void* memory) { return static_cast<unsigned char*>(memory); }

using Key = std::array<unsigned char, 32>;
static_assert(sizeof(Key) == crypto_auth_hmacsha256_BYTES && sizeof(Key) == crypto_aead_chacha20poly1305_ietf_KEYBYTES);

Key key_of(const Secret& secret, std::string_view direction, const Greeting& host, const Greeting& caller) {
  crypto_auth_hmacsha256_state state;
  crypto_auth_hmacsha256_init(&state, bytes_at(secret.bytes().data()), secret.bytes().size());
  crypto_auth_hmacsha256_update(&state, bytes_at(direction.data()), direction.size());
  crypto_auth_hmacsha256_update(&state, bytes_at(&host), sizeof(host));
  crypto_auth_hmacsha256_update(&state, bytes_at(&caller), sizeof(caller));
  Key key;
  crypto_auth_hmacsha256_final(&state, key.data());
  sodium_memzero(&state, sizeof(state));
  return key;
}

using FrameNumber = std::array<unsigned char, crypto_aead_chacha20poly1305_ietf_NPUBBYTES>;

FrameNumber frame_number(uint64_t n) {
  FrameNumber number{};
  std::memcpy(number.data(), &n, sizeof(n));
  return number;
}

// Why nothing more has come: the deadline, or the end of the connection.
Trouble silence(const Wait& wait, const Trouble& at_the_end) {
  if (std::chrono::steady_clock::now() >= wait.deadline) return {"connected, but no answer"};
  return at_the_end;
}

}  // namespace

Greeting make_greeting(Purpose purpose) {
  DGC_CHECK(sodium_init() >= 0, "libsodium starts");
  Greeting greeting;
  greeting.purpose = purpose;
  randombytes_buf(greeting.nonce.data(), greeting.nonce.size());
  return greeting;
}

std::string objection_to(std::span<const std::byte> begun, Purpose purpose) {
  Greeting said;
  std::memcpy(static_cast<void*>(&said), begun.data(), std::min(begun.size(), sizeof(said)));
  if (std::memcmp(&said.magic, &kHandshakeMagic, sizeof(said.magic)) != 0) return "it is another program";
  if (said.version != kHandshakeVersion && begun.size() >= offsetof(Greeting, purpose)) {
    return fmt::format("it is another dgc, with version {} of the handshake in place of {},", said.version,
                       kHandshakeVersion);
  }
  if (said.purpose != purpose && begun.size() >= offsetof(Greeting, nonce)) return "it is there for something else";
  return "";
}

SealedSession::SealedSession(const Secret& secret, Side own, const Greeting& host, const Greeting& caller)
    : sends_with_(key_of(secret, "dgc: from host to caller", host, caller)),
      opens_with_(key_of(secret, "dgc: from caller to host", host, caller)) {
  if (own == Side::caller) std::swap(sends_with_, opens_with_);
}

SealedSession::~SealedSession() {
  sodium_memzero(sends_with_.data(), sends_with_.size());
  sodium_memzero(opens_with_.data(), opens_with_.size());
}

std::vector<std::byte> SealedSession::seal(std::span<const std::byte> frame) const {
  std::vector<std::byte> sealed(frame.size() + kSealBytes);
  crypto_aead_chacha20poly1305_ietf_encrypt(bytes_at(sealed.data()), nullptr, bytes_at(frame.data()), frame.size(),
                                            nullptr, 0, nullptr, frame_number(sent_).data(), sends_with_.data());
  return sealed;
}

bool SealedSession::open(std::span<const std::byte> sealed, std::span<std::byte> frame) {
  DGC_CHECK(sealed.size() == frame.size() + kSealBytes, "a sealed frame's size");
  if (broken_) return false;
  const int failed = crypto_aead_chacha20poly1305_ietf_decrypt(bytes_at(frame.data()), nullptr, nullptr,
                                                               bytes_at(sealed.data()), sealed.size(), nullptr, 0,
                                                               frame_number(opened_).data(), opens_with_.data());
  ++opened_;
  if (failed != 0) broken_ = true;
  return !broken_;
}

std::optional<SealedSession> introduce(const Socket& socket, const Secret& secret, Purpose purpose,
                                       std::span<const std::byte> first, const Wait& wait, Trouble& trouble) {
  Greeting host;
  const auto greeting = std::as_writable_bytes(std::span(&host, 1));
  const auto magic = greeting.first(sizeof(host.magic)), rest = greeting.subspan(magic.size());
  // Another program may say less than a greeting, and wait for an answer.
  if (!receive_all(socket, magic, wait) || (host.magic == kHandshakeMagic && !receive_all(socket, rest, wait))) {
    trouble = silence(wait, {"it hangs up without a word"});
    return {};
  }
  if (const std::string objection = objection_to(greeting, purpose); !objection.empty()) {
    trouble = {objection + " that answers there", host.version != kHandshakeVersion};
    return {};
  }
  const Greeting own = make_greeting(purpose);
  SealedSession session(secret, SealedSession::Side::caller, host, own);
  const auto hello = std::as_bytes(std::span(&own, 1));
  std::vector<std::byte> said(hello.begin(), hello.end());
  const std::vector<std::byte> sealed = session.seal(first);
  said.insert(said.end(), sealed.begin(), sealed.end());
  if (!send_all(socket, said, wait)) {
    trouble = {"the connection broke off"};
    return {};
  }
  session.note_sent();
  return session;
}

Trouble receive_sealed(const Socket& socket, SealedSession& session, std::span<std::byte> frame, const Wait& wait) {
  constexpr const char* kRefused =
      "it hangs up, as it does on a rank that has another secret (DGC_SECRET_FILE) or none";
  std::vector<std::byte> sealed(frame.size() + kSealBytes);
  if (!receive_all(socket, sealed, wait)) return silence(wait, {kRefused, true});
  return session.open(sealed, frame) ? Trouble{} : Trouble{"what answers there does not know this rank's secret", true};
}

}  // namespace dgc
