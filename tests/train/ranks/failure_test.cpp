#include "train/ranks/failure.h"

#include <atomic>
#include <catch.hpp>
#include <cerrno>
#include <filesystem>
#include <new>
#include <system_error>

#include "tensor/errors.h"
#include "train/ranks/interrupt.h"

namespace dgc {

TEST_CASE("whose error an exception is, and its words") {
  CHECK(complaint(UserError("no such file")).users);
  CHECK(complaint(UserError("no such file")).text == "no such file");
  CHECK(complaint(PeerFailed("rank 2 has died")).text == "rank 2 has died");
  CHECK(complaint(std::bad_alloc()).users);
  CHECK_THAT(complaint(std::bad_alloc()).text, Catch::StartsWith("out of memory: ") && Catch::Contains("data.threads"));
  const Complaint no_thread = complaint(std::system_error(EAGAIN, std::generic_category()));
  CHECK(no_thread.users);
  CHECK_THAT(no_thread.text, Catch::Contains("start no more threads") && Catch::Contains("ulimit -u"));
  CHECK_FALSE(complaint(std::system_error(EIO, std::generic_category())).users);
  const std::filesystem::filesystem_error closed("status", "/root/x",
                                                 std::make_error_code(std::errc::permission_denied));
  CHECK(complaint(closed).users);
  CHECK(complaint(closed).text == "/root/x: Permission denied");
  CHECK(complaint(InternalError("a.cpp:3")).text == "internal error: a.cpp:3");
  CHECK_FALSE(complaint(PeerFailed("")).users);
  CHECK_FALSE(complaint(InternalError("")).users);
}

TEST_CASE("in unison all ranks go on, or none does and the first that failed says why") {
  const auto failing =
      GENERATE(std::vector<int>{}, std::vector<int>{0}, std::vector<int>{2, 3}, std::vector<int>{0, 1, 2, 3});
  const auto group = make_thread_communicators(4);
  std::atomic<int> went_on = 0, told = 0;
  const auto body = [&](Communicator& c) {
    const auto device = make_cpu_device();
    try {
      in_unison(c, *device, [&] {
        for (const int rank : failing) {
          if (c.rank() == rank) throw_user_error("rank {} lacks a file", rank);
        }
      });
    } catch (const ToldByPeer& error) {
      told += error.users && error.what() == fmt::format("rank {0}: rank {0} lacks a file", failing[0]);
      throw;
    }
    ++went_on;
  };
  if (failing.empty()) {
    run_ranks(group, body);
  } else {
    CHECK_THROWS_WITH(run_ranks(group, body), fmt::format("rank {} lacks a file", failing[0]));
  }
  CHECK(went_on == (failing.empty() ? 4 : 0));
  CHECK(told == (failing.empty() ? 0 : 3));
}

TEST_CASE("a process of its own tells its error once, with its rank, and the others none") {
  const auto group = make_thread_communicators(2);
  std::atomic<int> told = 0;
  const auto body = [&](Communicator& c) {
    try {
      as_rank(c, [&] {
        if (c.rank() == 1) throw_user_error("the disk is full");
        c.barrier(*make_cpu_device());
      });
    } catch (const ToldError& error) {
      if (c.rank() == 1) told += error.users && std::string(error.what()) == "the disk is full";
      if (c.rank() == 0) told += !error.users && std::string(error.what()) == "rank 1 failed: the disk is full";
      throw;
    }
  };
  CHECK_THROWS_AS(run_ranks(group, body), ToldError);
  CHECK(told == 2);
  CHECK_THROWS_AS(as_rank(*group[0], [] { throw Interrupted(); }), Interrupted);
  const auto single = make_single_communicator();
  CHECK_THROWS_AS(as_rank(*single, [] { throw_user_error("alone"); }), UserError);
  // Before NCCL connects the ranks, no communicator does, and yet they tell each other.
  CHECK_THROWS_AS(as_rank(*single, [] { throw ToldByPeer("rank 2 has said it", false); }), ToldError);
}

}  // namespace dgc
