#include <sys/stat.h>
#include <xxhash.h>

#include <atomic>
#include <catch.hpp>
#include <cstring>
#include <fstream>
#include <set>

#include "dist/meeting/roster.h"
#include "tests/dist/meeting/meeting.h"

using namespace dgc;
using namespace dgc::test;
using Catch::Contains;

TEST_CASE("files of a run that died are not taken for this one's", "[rendezvous]") {
  const Directory directory;
  const MeetingPoint point = in_files(directory);
  const auto plant = [&](const std::string& name, const auto& what) {
    std::vector<std::byte> bytes(sizeof(what) + sizeof(Blob));
    std::memcpy(bytes.data(), &what, sizeof(what));
    std::ofstream(directory.path / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  };
  // What a run with the very same ranks and size left behind when it was killed.
  Hello hello;
  hello.size = 3;
  hello.blob_bytes = sizeof(Blob);
  hello.nonce = 7;
  hello.rank = 1;
  plant("meet.1.hello", hello);
  Reply reply;
  reply.nonce = 7;
  reply.size = 3;
  plant("meet.1.reply", reply);
  plant("meet.2.reply", reply);
  auto ranks = ranks_at(point, 3, kLong);
  const size_t late = GENERATE(0u, 1u, 2u);
  ranks[late].delay = milliseconds(100);
  for (Rank& rank : ranks) rank.launch.run.clear();  // the launcher does not tell one run from another
  CHECK(outcomes(ranks) == kFine3);
  CHECK(directory.empty());
}

TEST_CASE("a rank is answered once, and its answer is gone where it does not come for it", "[rendezvous]") {
  const Directory directory;
  const std::filesystem::path reply_file = directory.path / "meet.1.reply";
  Launch launch = launch_of(0, 3, in_files(directory));
  launch.run.clear();
  Hello hello;  // of a process that has been killed since
  hello.rank = 1;
  hello.size = 3;
  hello.blob_bytes = sizeof(Blob);
  hello.run = XXH3_64bits("", 0);
  hello.nonce = 7;
  std::ofstream(directory.path / "meet.1.hello", std::ios::binary)
      .write(reinterpret_cast<const char*>(&hello), sizeof(hello));
  std::set<ino_t> answers;
  RendezvousOptions options = within(kShort);
  options.while_waiting = [&](const std::string&) {
    struct stat found {};
    if (stat(reply_file.c_str(), &found) == 0) answers.insert(found.st_ino);
  };
  CHECK_THAT(outcome(launch, options), Contains("ranks 1, 2 did not come"));
  CHECK(answers.size() == 1);
  CHECK_FALSE(std::filesystem::exists(reply_file));
}

TEST_CASE("what ranks write to each other is their owner's alone", "[rendezvous]") {
  const Directory directory;
  auto ranks = ranks_at(in_files(directory), 3, kLong);
  std::atomic<int> open_to_others = 0;
  for (Rank& rank : ranks) {
    rank.options.while_waiting = [&](const std::string&) {
      std::error_code ignored;  // files come and go
      for (const auto& file : std::filesystem::directory_iterator(directory.path, ignored)) {
        const std::filesystem::file_status status = std::filesystem::status(file, ignored);
        constexpr auto kOthers = std::filesystem::perms::group_all | std::filesystem::perms::others_all;
        const bool open = (status.permissions() & kOthers) != std::filesystem::perms::none;
        if (std::filesystem::exists(status) && open) ++open_to_others;
      }
    };
  }
  ranks[1].delay = milliseconds(50);
  CHECK(outcomes(ranks) == kFine3);
  CHECK(open_to_others == 0);
}

TEST_CASE("a rank says hello again after another process with its number has left", "[rendezvous]") {
  const Directory directory;
  const auto ranks = ranks_at(in_files(directory), 2, kLong);
  auto rank1 = come(ranks[1]);
  while (!std::filesystem::exists(directory.path / "meet.1.hello") &&
         rank1.wait_for(milliseconds(1)) == std::future_status::timeout) {
  }
  CHECK_THAT(outcome(ranks[1].launch, within(milliseconds(50))), Contains("did not find rank 0"));
  CHECK(outcome(ranks[0].launch, ranks[0].options).empty());
  CHECK(rank1.get().empty());
  CHECK(directory.empty());
}

TEST_CASE("what is no file keeps nobody waiting", "[rendezvous]") {
  const Directory directory;
  auto ranks = ranks_at(in_files(directory), 2, kLong);
  ranks[1].delay = milliseconds(100);
  REQUIRE(mkfifo((directory.path / "meet.1.hello").c_str(), 0600) == 0);
  std::filesystem::create_symlink(directory.path / "meet.1.hello", directory.path / "meet.1.reply");
  CHECK(outcomes(ranks) == kFine2);
  CHECK(directory.empty());
}

TEST_CASE("an unwritable directory is named", "[rendezvous]") {
  MeetingPoint nowhere;
  nowhere.path = "/no/such/directory/meet";
  CHECK_THAT(outcome(launch_of(1, 2, nowhere), within(kShort)),
             Contains("rank 1 cannot write /no/such/directory/meet.1.hello") && Contains("No such file"));
}

TEST_CASE("a welcome that says less than it should is refused", "[rendezvous]") {
  const Directory directory;
  const MeetingPoint point = in_files(directory);
  const size_t missing = GENERATE(size_t{1}, sizeof(Blob));
  const std::filesystem::path hello_file = directory.path / "meet.1.hello",
                              reply_file = directory.path / "meet.1.reply";
  std::thread false_host([&] {
    while (!std::filesystem::exists(hello_file)) std::this_thread::sleep_for(milliseconds(1));
    Hello hello;
    std::ifstream(hello_file, std::ios::binary).read(reinterpret_cast<char*>(&hello), sizeof(hello));
    Reply reply;
    reply.nonce = hello.nonce;
    reply.size = 2;
    std::vector<char> bytes(sizeof(reply) + sizeof(Blob) - missing);
    std::memcpy(bytes.data(), &reply, sizeof(reply));
    const std::filesystem::path part = directory.path / "part";
    std::ofstream(part, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    std::filesystem::rename(part, reply_file);
  });
  const std::string said = outcome(launch_of(1, 2, point), within(kLong));
  false_host.join();
  CHECK_THAT(said, Contains(fmt::format("rank 0's welcome has {} bytes in place of {}", 640 - missing, 640)));
  CHECK(directory.empty());
}
