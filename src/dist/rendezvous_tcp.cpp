#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#include "dist/communicator.h"
#include "dist/rendezvous_ways.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

using std::chrono::milliseconds;

// A connection to rank 0, and the bytes that have come over it so far.
struct Caller {
  Socket socket;
  std::array<std::byte, sizeof(Hello)> said{};
  size_t bytes = 0;

  Hello hello() const {
    Hello hello;
    std::memcpy(&hello, said.data(), sizeof(hello));
    return hello;
  }
};

enum class Heard { more, all, nothing };  // nothing: the guest is gone, or is no rank

Heard listen_to(Caller& guest) {
  const ssize_t got = recv(guest.socket.fd(), guest.said.data() + guest.bytes, guest.said.size() - guest.bytes, 0);
  if (got < 0) return errno == EAGAIN || errno == EINTR ? Heard::more : Heard::nothing;
  if (got == 0) return Heard::nothing;
  guest.bytes += static_cast<size_t>(got);
  const Hello hello = guest.hello();
  if (std::memcmp(&hello.magic, &kMeetingMagic, std::min(guest.bytes, sizeof(kMeetingMagic))) != 0) {
    return Heard::nothing;
  }
  return guest.bytes == guest.said.size() ? Heard::all : Heard::more;
}

// Throws UserError once the place has been unknown, or refused by the system, for so long that it must be a typing
// error.
class Doubt {
 public:
  explicit Doubt(const Meeting& meeting) : meeting_(meeting) {}

  void note(const Trouble& trouble) {
    const auto now = std::chrono::steady_clock::now();
    if (!trouble.of_place) good_ = now;
    if (now - good_ < kPatience) return;
    throw_user_error("rank {} of {} cannot meet the others at {}, which {} names: {}; correct it on every rank",
                     meeting_.hello.rank, meeting_.hello.size, meeting_.point.url(), meeting_.point.variable,
                     trouble.text);
  }

 private:
  static constexpr milliseconds kPatience{5000};
  const Meeting& meeting_;
  Deadline good_ = std::chrono::steady_clock::now();  // last time that nothing spoke against the place
};

// Rank 0 looks up the name of the meeting point only to report an error that would stop the other ranks.
void require_known(const Meeting& meeting) {
  constexpr milliseconds kPause(200);
  Doubt doubt(meeting);
  const auto look = [&] { meeting.options.while_waiting("rank 0 looks up " + meeting.point.url()); };
  for (Trouble trouble; !is_known(meeting.point, {meeting.deadline, look}, trouble);) {
    if (std::chrono::steady_clock::now() >= meeting.deadline) return;
    doubt.note(trouble);
    look();
    std::this_thread::sleep_for(kPause);
  }
}

void reply_to(const Caller& guest, Roster& roster, std::span<const std::byte> blob) {
  const Hello hello = guest.hello();
  const Reply reply = roster.answer(hello);
  std::vector<std::byte> bytes(sizeof(reply));
  std::memcpy(bytes.data(), &reply, sizeof(reply));
  if (reply.verdict == Verdict::welcome) bytes.insert(bytes.end(), blob.begin(), blob.end());
  // The buffers of a fresh connection hold the whole reply, so sending does not wait.
  const bool sent = send_all(guest.socket, bytes, std::chrono::steady_clock::now());
  if (sent && is_served(reply)) roster.serve(hello);
}

// Holds one conversation with rank 0. The text is empty when it went well, else it says what did not. Throws when rank
// 0 says no.
Trouble converse(const Meeting& meeting, std::span<std::byte> blob, const Wait& wait) {
  Trouble trouble;
  const Socket socket = connect_to(meeting.point, wait, trouble);
  if (!socket) return trouble;
  Reply reply;
  const auto answer = std::as_writable_bytes(std::span(&reply, 1));
  const auto magic = answer.first(sizeof(reply.magic)), rest = answer.subspan(magic.size());
  if (!send_all(socket, std::as_bytes(std::span(&meeting.hello, 1)), wait) || !receive_all(socket, magic, wait) ||
      (reply.magic == kMeetingMagic && !receive_all(socket, rest, wait))) {
    return {"connected, but no answer"};
  }
  if (reply.magic != kMeetingMagic || reply.nonce != meeting.hello.nonce) return {"another program answers there"};
  if (reply.verdict != Verdict::welcome) throw_unwelcome(meeting, reply);
  return receive_all(socket, blob, wait) ? Trouble{} : Trouble{"the answer broke off"};
}

}  // namespace

void host_over_tcp(const Meeting& meeting, std::span<const std::byte> blob) {
  constexpr int kBetweenLooks = 100;  // milliseconds
  require_known(meeting);
  const std::vector<Socket> listeners = listen_at(meeting.point);
  const size_t most_guests = meeting.hello.size + 64;  // silent strangers must not use up the process's descriptors
  Roster roster(meeting.hello);
  std::vector<Caller> guests;
  std::vector<pollfd> polled;
  while (!roster.complete()) {
    if (!roster.failure().empty()) throw ToldByPeer(roster.failure(), false);
    if (std::chrono::steady_clock::now() >= meeting.deadline) throw_absent(meeting, roster);
    look_around(meeting, roster);
    polled.clear();
    for (const Socket& listener : listeners) polled.push_back({listener.fd(), POLLIN, 0});
    for (const Caller& guest : guests) polled.push_back({guest.socket.fd(), POLLIN, 0});
    const int wait = std::min(kBetweenLooks, milliseconds_until(meeting.deadline));
    if (poll(polled.data(), polled.size(), wait) <= 0) continue;

    for (size_t i = guests.size(); i-- > 0;) {
      if (polled[listeners.size() + i].revents == 0) continue;
      const Heard heard = listen_to(guests[i]);
      if (heard == Heard::all) reply_to(guests[i], roster, blob);
      if (heard != Heard::more) guests.erase(guests.begin() + static_cast<std::ptrdiff_t>(i));
    }
    for (size_t i = 0; i < listeners.size(); ++i) {
      if (polled[i].revents == 0) continue;
      if (guests.size() >= most_guests) guests.erase(guests.begin());
      Caller guest;
      guest.socket = accept_from(listeners[i]);
      if (guest.socket) guests.push_back(std::move(guest));
    }
  }
}

void join_over_tcp(const Meeting& meeting, std::span<std::byte> blob) {
  constexpr milliseconds kFirstPause(10), kLongestPause(200), kPatience(10000);
  milliseconds pause = kFirstPause;
  Trouble trouble;
  Doubt doubt(meeting);
  const auto look = [&] { look_around(meeting, trouble.text); };
  while (true) {
    const auto now = std::chrono::steady_clock::now();
    if (now >= meeting.deadline) throw_no_host(meeting, trouble.text.empty() ? "no attempt" : trouble.text);
    Trouble met = converse(meeting, blob, {std::min<Deadline>(meeting.deadline, now + kPatience), look});
    if (met.text.empty()) return;
    // An attempt that the deadline has cut short says less than the one before it.
    if (trouble.text.empty() || std::chrono::steady_clock::now() < meeting.deadline) trouble = std::move(met);
    doubt.note(trouble);
    look();
    std::this_thread::sleep_for(std::min<milliseconds>(pause, milliseconds(milliseconds_until(meeting.deadline))));
    pause = std::min(2 * pause, kLongestPause);
  }
}

}  // namespace dgc
