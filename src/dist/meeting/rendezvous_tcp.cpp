#include <poll.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "dist/meeting/growing_pause.h"
#include "dist/meeting/handshake.h"
#include "dist/meeting/interfaces.h"
#include "dist/meeting/reception.h"
#include "dist/meeting/rendezvous_ways.h"
#include "dist/peer_failed.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

using std::chrono::milliseconds;

// Throws UserError once the place has been unknown, or refused by the system, for so long that it must be a typing
// error.
class Doubt {
 public:
  explicit Doubt(const Meeting& meeting) : meeting_(meeting) {}

  void note(const Trouble& trouble) {
    const auto now = std::chrono::steady_clock::now();
    if (!trouble.of_place) return since_.reset();
    if (!since_) since_ = now;
    if (now - *since_ >= kPatience) give_up(trouble);
  }

  [[noreturn]] void give_up(const Trouble& trouble) const {
    throw_user_error("rank {} of {} cannot meet the others at {}, which {} names: {}{}", meeting_.hello.rank,
                     meeting_.hello.size, meeting_.point.url(), meeting_.point.variable, trouble.text,
                     trouble.of_place ? "; correct it on every rank" : "");
  }

 private:
  static constexpr milliseconds kPatience{5000};
  const Meeting& meeting_;
  std::optional<Deadline> since_;  // since when the place has seemed wrong; empty: it does not
};

// The addresses of the meeting point as rank 0 sees them.
std::vector<std::string> known_addresses(const Meeting& meeting) {
  constexpr milliseconds kPause(200);
  Doubt doubt(meeting);
  const auto look = [&] { meeting.options.while_waiting("rank 0 looks up " + meeting.point.url()); };
  while (true) {
    Trouble trouble;
    std::vector<std::string> found = look_up(meeting.point, {meeting.deadline, look}, trouble);
    if (!found.empty()) return found;
    if (std::chrono::steady_clock::now() >= meeting.deadline) doubt.give_up(trouble);
    doubt.note(trouble);
    look();
    std::this_thread::sleep_for(kPause);
  }
}

// Without a secret the loopback alone is safe from strangers, as far as the machine's own users are no strangers.
std::vector<std::string> permitted(const Meeting& meeting, std::vector<std::string> addresses) {
  if (meeting.secret.given() || addresses.empty()) return addresses;
  const std::string first = addresses.front();
  std::erase_if(addresses, [](const std::string& address) { return !is_loopback(address); });
  if (addresses.empty()) {
    throw_user_error(
        "rank {} of {} does not meet the others at {} ({}, which {} names): other machines can reach it, and without a "
        "secret any of them could join; make one with {}, copy FILE to every machine, and set DGC_SECRET_FILE=FILE for "
        "every rank",
        meeting.hello.rank, meeting.hello.size, first, meeting.point.url(), meeting.point.variable, kHowToMakeSecret);
  }
  return addresses;
}

std::vector<std::string> listening_addresses(const Meeting& meeting) {
  const std::string& interface = meeting.options.interface;
  if (!interface.empty()) return permitted(meeting, addresses_of_interface(interface, own_addresses()));
  const std::vector<std::string> found = permitted(meeting, known_addresses(meeting));
  return meeting.secret.given() ? meeting_addresses(meeting.point.host, found, own_addresses()) : found;
}

std::vector<Socket> listen_for_ranks(const Meeting& meeting) {
  const std::vector<std::string> where = listening_addresses(meeting);
  int port = meeting.point.port;
  std::string problem;
  std::vector<Socket> listeners = listen_at(where, port, problem);
  if (listeners.empty()) {
    throw_user_error("rank 0 cannot listen at {}: {}; choose another port with DGC_RENDEZVOUS or MASTER_PORT",
                     meeting.point.url(), problem);
  }
  return listeners;
}

void reply_to(Reception::Caller& caller, Roster& roster, std::span<const std::byte> blob) {
  Hello hello;
  std::memcpy(&hello, caller.first.data(), sizeof(hello));
  const Reply reply = roster.answer(hello);
  std::vector<std::byte> said = caller.session.seal(std::as_bytes(std::span(&reply, 1)));
  caller.session.note_sent();
  if (reply.verdict == Verdict::welcome) {
    const std::vector<std::byte> sealed = caller.session.seal(blob);
    said.insert(said.end(), sealed.begin(), sealed.end());
  }
  // The buffers of a fresh connection hold the whole reply, so sending does not wait.
  const bool sent = send_all(caller.socket, said, std::chrono::steady_clock::now());
  if (sent && is_served(reply)) roster.serve(hello, reply);
}

// The meeting point's addresses, for ranks that try again and again: a thousand of them would keep a name server busy.
class LookedUp {
 public:
  explicit LookedUp(const Meeting& meeting) : meeting_(meeting) {}

  // What look_up() returns, now or in the last seconds. What has been found once stays where a name server fails later.
  const std::vector<std::string>& addresses(const std::function<void()>& look, Trouble& trouble) {
    constexpr std::chrono::seconds kFresh(2);
    const Deadline now = std::chrono::steady_clock::now();
    if (!found_.empty() && now - at_ < kFresh) return found_;
    const Deadline until = found_.empty() ? meeting_.deadline : std::min<Deadline>(meeting_.deadline, now + kFresh);
    std::vector<std::string> found = look_up(meeting_.point, {until, look}, trouble);
    if (!found.empty()) found_ = std::move(found);
    at_ = std::chrono::steady_clock::now();
    return found_;
  }

 private:
  const Meeting& meeting_;
  std::vector<std::string> found_;
  Deadline at_;
};

// Holds one conversation with rank 0. The text is empty when it went well, else it says what did not. Throws when rank
// 0 says no.
Trouble converse(const Meeting& meeting, LookedUp& place, std::span<std::byte> blob,
                 const std::function<void()>& look) {
  constexpr milliseconds kPatience(10000);
  Trouble trouble;
  const std::vector<std::string>& found = place.addresses(look, trouble);
  if (found.empty()) return trouble;
  const Wait wait(std::min<Deadline>(meeting.deadline, std::chrono::steady_clock::now() + kPatience), look);
  const Socket socket = connect_to(permitted(meeting, found), meeting.point.port, wait, trouble);
  if (!socket) return trouble;
  const auto hello = std::as_bytes(std::span(&meeting.hello, 1));
  auto session = introduce(socket, meeting.secret, Purpose::rendezvous, hello, wait, trouble);
  if (!session) return trouble;
  Reply reply;
  trouble = receive_sealed(socket, *session, std::as_writable_bytes(std::span(&reply, 1)), wait);
  if (!trouble.text.empty()) return trouble;
  if (reply.verdict != Verdict::welcome) throw_unwelcome(meeting, reply);
  return receive_sealed(socket, *session, blob, wait);
}

}  // namespace

void host_over_tcp(const Meeting& meeting, std::span<const std::byte> blob) {
  constexpr int kBetweenLooks = 100;  // milliseconds
  Reception reception(listen_for_ranks(meeting), meeting.secret,
                      {Purpose::rendezvous, sizeof(Hello), meeting.hello.size + kMostStrangers});
  Roster roster(meeting.hello, meeting.run);
  std::vector<pollfd> polled;
  while (true) {
    if (!roster.failure().empty()) throw ToldByPeer(roster.failure(), false);
    if (roster.complete()) return;
    if (std::chrono::steady_clock::now() >= meeting.deadline) throw_absent(meeting, roster);
    look_around(meeting, roster);
    polled.clear();
    reception.add_to(polled);
    poll(polled.data(), polled.size(), std::min(kBetweenLooks, milliseconds_until(meeting.deadline)));
    for (Reception::Caller& caller : reception.receive()) reply_to(caller, roster, blob);
    roster.note_strangers(reception.strangers());
  }
}

void join_over_tcp(const Meeting& meeting, std::span<std::byte> blob) {
  GrowingPause between(milliseconds(10));
  Trouble trouble;
  Doubt doubt(meeting);
  LookedUp place(meeting);
  const auto look = [&] { look_around(meeting, trouble.text); };
  while (true) {
    if (std::chrono::steady_clock::now() >= meeting.deadline) {
      throw_no_host(meeting, trouble.text.empty() ? "no attempt" : trouble.text);
    }
    Trouble met = converse(meeting, place, blob, look);
    if (met.text.empty()) return;
    // An attempt that the deadline has cut short says less than the one before it.
    if (trouble.text.empty() || std::chrono::steady_clock::now() < meeting.deadline) trouble = std::move(met);
    doubt.note(trouble);
    look();
    between.wait(meeting.deadline);
  }
}

}  // namespace dgc
