#include "dist/communicator.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <numeric>
#include <random>

#include "tensor/errors.h"

using namespace dgc;
using Catch::Contains;

namespace {

std::vector<std::unique_ptr<Communicator>> make_group(int ranks) {
  if (ranks > 0) return make_thread_communicators(ranks);
  std::vector<std::unique_ptr<Communicator>> one;
  one.push_back(make_single_communicator());
  return one;
}

std::vector<std::vector<float>> random_workers(size_t workers, size_t n) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 1e3f);
  std::vector<std::vector<float>> all(workers, std::vector<float>(n));
  for (auto& worker : all) {
    for (float& x : worker) x = normal(random);
  }
  return all;
}

}  // namespace

TEST_CASE("all_gather puts the parts in rank order", "[communicator]") {
  const int ranks = GENERATE(0, 1, 2, 3, 7);  // 0: the single communicator
  const size_t count = GENERATE(size_t{0}, size_t{1}, size_t{1000});
  CAPTURE(ranks, count);
  const auto group = make_group(ranks);
  std::atomic<int> wrong = 0;
  run_ranks(group, [&](Communicator& c) {
    for (int round = 0; round < 20; ++round) {
      std::vector<int> mine(count, c.rank() * 100 + round), all(count * static_cast<size_t>(c.size()), -1);
      c.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
      mine.assign(count, -5);  // a part may be written over as soon as the call is back
      for (size_t i = 0; i < all.size(); ++i) wrong += all[i] != static_cast<int>(i / count) * 100 + round;
    }
  });
  CHECK(wrong == 0);
}

TEST_CASE("all_reduce_ordered gives the same bits for every layout of workers", "[communicator]") {
  const size_t n = GENERATE(size_t{0}, size_t{1}, size_t{5}, size_t{4097}, size_t{10000});
  constexpr size_t kWorkers = 12;
  const auto workers = random_workers(kWorkers, n);
  std::vector<float> expected(n);
  for (size_t i = 0; i < n; ++i) {
    float sum = workers[0][i];
    for (size_t worker = 1; worker < kWorkers; ++worker) sum += workers[worker][i];
    expected[i] = sum;
  }
  for (const int ranks : {0, 1, 2, 3, 4, 6, 12}) {
    CAPTURE(ranks, n);
    const auto group = make_group(ranks);
    const size_t local = kWorkers / group.size();
    std::atomic<int> wrong = 0;
    run_ranks(group, [&](Communicator& c) {
      std::vector<const float*> mine;
      for (size_t i = 0; i < local; ++i) mine.push_back(workers[static_cast<size_t>(c.rank()) * local + i].data());
      std::vector<float> out(n, -1);
      for (int round = 0; round < 3; ++round) {
        c.all_reduce_ordered(mine, out.data(), n);
        wrong += out != expected;
      }
    });
    CHECK(wrong == 0);
  }
}

TEST_CASE("a rank that fails ends the others, which say who it was", "[communicator]") {
  const auto group = make_thread_communicators(4);
  const int failing = GENERATE(0, 3);
  const int where = GENERATE(0, 1, 2);
  CAPTURE(failing, where);
  std::atomic<int> told = 0, survived = 0;
  const auto body = [&](Communicator& c) {
    std::vector<float> x(1000, 1), y(1000);
    const float* workers[] = {x.data()};
    std::vector<std::byte> all(4000);
    try {
      for (int round = 0; round < 10; ++round) {
        if (c.rank() == failing && round == 5) throw_user_error("the disk is full");
        if (where == 0) c.all_gather(std::as_bytes(std::span(x)).first(1000), all);
        if (where == 1) c.all_reduce_ordered(workers, y.data(), y.size());
        if (where == 2) c.barrier();
      }
    } catch (const PeerFailed& error) {
      told += error.what() == fmt::format("rank {} failed: the disk is full", failing);
      c.barrier();  // throws again: a failed group stays so
      ++survived;
    }
  };
  CHECK_THROWS_WITH(run_ranks(group, body), "the disk is full");
  CHECK(told == 3);
  CHECK(survived == 0);
}

TEST_CASE("ranks that disagree about sizes find out", "[communicator]") {
  const auto group = make_thread_communicators(2);
  CHECK_THROWS_AS(run_ranks(group,
                            [](Communicator& c) {
                              std::vector<std::byte> mine(c.rank() == 0 ? 4 : 8), all(2 * mine.size());
                              c.all_gather(mine, all);
                            }),
                  InternalError);
}
