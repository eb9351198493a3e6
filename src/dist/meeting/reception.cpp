#include "dist/meeting/reception.h"

#include <fmt/core.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>

namespace dgc {

Reception::Reception(std::vector<Socket> listeners, const Secret& secret, const Rules& rules)
    : listeners_(std::move(listeners)), secret_(secret), rules_(rules) {}

void Reception::add_to(std::vector<pollfd>& polled) const {
  for (const Socket& listener : listeners_) polled.push_back({listener.get(), POLLIN, 0});
  for (const Stranger& stranger : at_the_door_) polled.push_back({stranger.socket.get(), POLLIN, 0});
}

std::vector<Reception::Caller> Reception::receive() {
  const Clock::time_point now = Clock::now();
  std::vector<Caller> callers;
  std::erase_if(at_the_door_, [&](Stranger& stranger) {
    std::string objection = listen_to(stranger, callers);
    if (!stranger.socket) return true;  // a caller now
    if (objection.empty() && now - stranger.since > rules_.patience) objection = "it did not say who it is in time";
    if (objection.empty()) return false;
    turn_away(stranger, objection);
    return true;
  });
  accept_all(now);
  return callers;
}

// Returns why the stranger has to go; empty: not yet, or he is one of the callers.
std::string Reception::listen_to(Stranger& stranger, std::vector<Caller>& callers) {
  const ssize_t got =
      recv(stranger.socket.get(), stranger.said.data() + stranger.bytes, stranger.said.size() - stranger.bytes, 0);
  if (got < 0) return errno == EAGAIN || errno == EINTR ? "" : "the connection broke off";
  if (got == 0) return "it left before it had said who it is";
  stranger.bytes += static_cast<size_t>(got);
  const std::span said(stranger.said);
  std::string objection = objection_to(said.first(std::min(stranger.bytes, sizeof(Greeting))), rules_.purpose);
  if (!objection.empty() || stranger.bytes < said.size()) return objection;
  Greeting caller;
  std::memcpy(&caller, said.data(), sizeof(caller));
  SealedSession session(secret_, SealedSession::Side::host, stranger.host, caller);
  std::vector<std::byte> first(rules_.first_bytes);
  if (!session.open(said.subspan(sizeof(caller)), first)) return "it does not know the secret";
  callers.push_back({std::move(stranger.socket), session, std::move(first)});
  return "";
}

void Reception::accept_all(Clock::time_point now) {
  for (const Socket& listener : listeners_) {
    for (size_t n = 0; n < rules_.most; ++n) {  // who connects without end must not keep this process here
      Stranger stranger;
      stranger.socket = accept_from(listener, stranger.peer);
      if (!stranger.socket) {
        // The caller stays in the queue, and poll() would say so again at once.
        if (errno == EMFILE || errno == ENFILE) std::this_thread::sleep_for(std::chrono::milliseconds(20));
        break;
      }
      stranger.host = make_greeting(rules_.purpose);
      stranger.since = now;
      stranger.said.resize(sizeof(Greeting) + rules_.first_bytes + kSealBytes);
      // The buffers of a fresh connection hold a greeting, so sending does not wait.
      if (!send_all(stranger.socket, std::as_bytes(std::span(&stranger.host, 1)), now)) continue;
      if (at_the_door_.size() >= rules_.most) {
        const auto last_in_line = one_too_many();
        turn_away(*last_in_line, "there were too many");
        at_the_door_.erase(last_in_line);
      }
      at_the_door_.push_back(std::move(stranger));
    }
  }
}

// Returns the oldest of the strangers that come from the address with the most: max_element() finds the first.
std::vector<Reception::Stranger>::iterator Reception::one_too_many() {
  std::unordered_map<std::string_view, size_t> from;
  for (const Stranger& stranger : at_the_door_) ++from[stranger.peer];
  return std::ranges::max_element(at_the_door_, {}, [&](const Stranger& stranger) { return from[stranger.peer]; });
}

void Reception::turn_away(const Stranger& stranger, const std::string& why) {
  ++turned_away_;
  strangers_ = fmt::format("; {} {} turned away, the last one, from {}, because {}", turned_away_,
                           turned_away_ == 1 ? "stranger was" : "strangers were", stranger.peer, why);
}

}  // namespace dgc
