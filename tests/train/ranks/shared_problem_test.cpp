#include "train/ranks/shared_problem.h"

#include <atomic>
#include <catch.hpp>

#include "tensor/errors.h"
#include "train/ranks/failure.h"

namespace dgc {
namespace {

// A text of so many letters that does not repeat itself.
std::string long_text(size_t letters) {
  std::string text;
  for (size_t i = 0; text.size() < letters; ++i) text += fmt::format("{} ", i);
  return text.substr(0, letters);
}

}  // namespace

TEST_CASE("every rank is told the texts of all, whole, in their order") {
  const std::vector<std::string> texts = {long_text(3), "", long_text(70000), std::string("a\0b", 3)};
  const auto group = make_thread_communicators(4);
  std::atomic<int> good = 0;
  run_ranks(group, [&](Communicator& c) {
    const auto device = make_cpu_device();
    good += told_by_all(c, *device, texts[static_cast<size_t>(c.rank())]) == texts;
    good += told_by_all(c, *device, "") == std::vector<std::string>(4);
  });
  CHECK(good == 8);
}

TEST_CASE("the problem of the lowest rank that has one is told whole, however long it is") {
  const std::string problem = long_text(5000);
  const auto group = make_thread_communicators(3);
  std::atomic<int> good = 0;
  run_ranks(group, [&](Communicator& c) {
    const auto device = make_cpu_device();
    const std::vector<std::string> own = {"", problem, "another one"};
    good += shared_problem(c, *device, own[static_cast<size_t>(c.rank())]) == "rank 1: " + problem;
    good += shared_problem(c, *device, "").empty();
  });
  CHECK(good == 6);
  const auto alone = make_single_communicator();
  CHECK(shared_problem(*alone, *make_cpu_device(), problem) == problem);
  CHECK(shared_problem(*alone, *make_cpu_device(), "").empty());
}

TEST_CASE("an error of one rank in unison with others reaches them whole") {
  const std::string problem = long_text(5000);
  const auto group = make_thread_communicators(2);
  std::atomic<int> told = 0;
  const auto body = [&](Communicator& c) {
    try {
      in_unison(c, *make_cpu_device(), [&] {
        if (c.rank() == 1) throw UserError(problem);
      });
    } catch (const ToldByPeer& error) {
      told += error.what() == "rank 1: " + problem;
      throw;
    }
  };
  CHECK_THROWS_WITH(run_ranks(group, body), problem);
  CHECK(told == 1);
}

}  // namespace dgc
