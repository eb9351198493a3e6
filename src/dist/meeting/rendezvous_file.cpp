// Meeting in files, for ranks that share a file system and no network. Rank r writes its Hello to PATH.<r>.hello, rank
// 0 answers in PATH.<r>.reply, and rank r removes both, which tells rank 0 that the reply has been read. Files of an
// earlier run do no harm: a rank takes no reply that does not repeat its nonce, and rank 0 counts a rank only when the
// reply has been removed, which a process of an earlier run never does. When the real rank overwrites an old Hello,
// rank 0 answers anew.
//
// Nobody proves anything here: the files are their owner's alone, and so are the numbers in them. Who may write to the
// directory can keep the ranks from meeting, but learns nothing, and no rank takes a reply of his. A second process
// that comes with a rank's number overwrites that rank's Hello and is turned away. The rank says hello again once that
// process has left.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <random>
#include <system_error>
#include <vector>

#include "dist/meeting/growing_pause.h"
#include "dist/meeting/rendezvous_ways.h"
#include "dist/peer_failed.h"
#include "tensor/errors.h"
#include "tensor/file_descriptor.h"

namespace dgc {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kFirstPause(2);

std::string hello_path(const Meeting& meeting, uint32_t rank) {
  return fmt::format("{}.{}.hello", meeting.point.path, rank);
}
std::string reply_path(const Meeting& meeting, uint32_t rank) {
  return fmt::format("{}.{}.reply", meeting.point.path, rank);
}

void remove_file(const std::string& path) noexcept {
  std::error_code ignored;
  fs::remove(path, ignored);
}

// A file that is removed with the object.
struct Hanging {
  std::string path;
  ~Hanging() { remove_file(path); }
};

// A file gets its name only when it is whole, so nobody ever reads half of one. Only its owner may open it, as a secret
// may travel in it, and nobody else can make it first, as nobody else knows the name that it has until then.
void write_whole(const Meeting& meeting, const std::string& path, std::span<const std::byte> bytes) {
  std::random_device random;
  const Hanging partial{fmt::format("{}.{:08x}{:08x}.part", path, random(), random())};
  FileDescriptor file(open(partial.path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, S_IRUSR | S_IWUSR));
  const bool whole = file && write_all(file, bytes) && file.close() == 0;
  if (!whole || rename(partial.path.c_str(), path.c_str()) != 0) {
    throw_user_error("rank {} cannot write {} ({}); give DGC_RENDEZVOUS a directory that all ranks can write to",
                     meeting.hello.rank, path, error_text());
  }
}

// The first bytes of a file, at most `size`; none when there is no such file. Another user may have put something there
// that is no file, and it must not keep this process waiting.
std::vector<std::byte> read_start(const std::string& path, size_t size) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  struct stat found {};
  if (!file || fstat(file.get(), &found) != 0 || !S_ISREG(found.st_mode)) return {};
  std::vector<std::byte> bytes(size);
  bytes.resize(read_all(file, bytes).value_or(0));
  return bytes;
}

// Rank 0's side of one conversation.
struct Guest {
  uint32_t rank = 0;
  Hello hello;  // the Hello that `replied` answers
  std::optional<Reply> replied;
  bool served = false;
};

// All ranks but rank 0. The destructor removes replies that no rank has taken.
struct Guests {
  explicit Guests(const Meeting& m) : meeting(m), all(m.hello.size - 1) {
    for (uint32_t rank = 1; rank < m.hello.size; ++rank) all[rank - 1].rank = rank;
  }
  ~Guests() {
    for (const Guest& guest : all) {
      if (!guest.served && guest.replied) remove_file(reply_path(meeting, guest.rank));
    }
  }
  Guests(const Guests&) = delete;
  Guests& operator=(const Guests&) = delete;

  const Meeting& meeting;
  std::vector<Guest> all;
};

void attend(const Meeting& meeting, Roster& roster, Guest& guest, std::span<const std::byte> blob) {
  const std::string reply_file = reply_path(meeting, guest.rank);
  if (guest.replied && is_served(*guest.replied) && !fs::exists(reply_file)) {
    roster.serve(guest.hello, *guest.replied);
    guest.served = true;
    return;
  }
  Hello hello;
  const auto said = read_start(hello_path(meeting, guest.rank), sizeof(hello));
  if (said.size() < sizeof(hello)) return;
  std::memcpy(&hello, said.data(), sizeof(hello));
  if (hello.magic != kMeetingMagic || hello.rank != guest.rank) return;
  if (guest.replied && guest.replied->nonce == hello.nonce) return;
  guest.hello = hello;
  guest.replied = roster.answer(hello);
  std::vector<std::byte> bytes(sizeof(Reply));
  std::memcpy(bytes.data(), &*guest.replied, sizeof(Reply));
  if (guest.replied->verdict == Verdict::welcome) bytes.insert(bytes.end(), blob.begin(), blob.end());
  write_whole(meeting, reply_file, bytes);
}

// A rank's Hello while it waits. Another process with the rank's number may have put its own in the place, which stays.
class OwnHello {
 public:
  explicit OwnHello(const Meeting& meeting) : meeting_(meeting), path_(hello_path(meeting, meeting.hello.rank)) {
    write();
  }
  ~OwnHello() {
    if (is_own()) remove_file(path_);
  }
  OwnHello(const OwnHello&) = delete;
  OwnHello& operator=(const OwnHello&) = delete;

  void write_if_gone() const {
    if (!fs::exists(fs::symlink_status(path_))) write();
  }

 private:
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(&meeting_.hello, 1)); }
  void write() const { write_whole(meeting_, path_, bytes()); }
  bool is_own() const { return std::ranges::equal(read_start(path_, sizeof(Hello)), bytes()); }

  const Meeting& meeting_;
  std::string path_;
};

}  // namespace

void host_over_files(const Meeting& meeting, std::span<const std::byte> blob) {
  Roster roster(meeting.hello, meeting.run);
  Guests guests(meeting);
  GrowingPause between(kFirstPause);
  while (true) {
    for (Guest& guest : guests.all) {
      if (!guest.served) attend(meeting, roster, guest, blob);
    }
    if (!roster.failure().empty()) throw ToldByPeer(roster.failure(), false);
    if (roster.complete()) return;
    if (std::chrono::steady_clock::now() >= meeting.deadline) throw_absent(meeting, roster);
    look_around(meeting, roster);
    between.wait(meeting.deadline);
  }
}

void join_over_files(const Meeting& meeting, std::span<std::byte> blob) {
  const std::string reply_file = reply_path(meeting, meeting.hello.rank);
  const OwnHello hello(meeting);
  GrowingPause between(kFirstPause);
  while (true) {
    Reply reply;
    const auto said = read_start(reply_file, sizeof(reply) + blob.size());
    if (said.size() >= sizeof(reply)) std::memcpy(&reply, said.data(), sizeof(reply));
    if (said.size() >= sizeof(reply) && reply.magic == kMeetingMagic && reply.nonce == meeting.hello.nonce) {
      remove_file(reply_file);
      if (reply.verdict != Verdict::welcome) throw_unwelcome(meeting, reply);
      if (said.size() != sizeof(reply) + blob.size()) {
        throw_user_error("{}: rank 0's welcome has {} bytes in place of {}; run the same dgc everywhere", reply_file,
                         said.size(), sizeof(reply) + blob.size());
      }
      std::copy(said.begin() + sizeof(reply), said.end(), blob.begin());
      return;
    }
    if (std::chrono::steady_clock::now() >= meeting.deadline) throw_no_host(meeting, "no reply");
    look_around(meeting, "no reply");
    hello.write_if_gone();
    between.wait(meeting.deadline);
  }
}

}  // namespace dgc
