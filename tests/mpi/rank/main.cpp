// One rank of a small program that mpi_test.cpp starts with mpirun: mpi_rank WHAT [RANK]. It ends as dgc does.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>

#include "run/log.h"
#include "tasks/make.h"
#include "tensor/errors.h"
#include "tests/dist/collectives.h"
#include "tests/mpi/rank/far_device.h"
#include "tests/support/altered_images.h"
#include "tests/support/rank_steps.h"
#include "tests/support/tiny.h"
#include "train/rank.h"
#include "train/ranks/failure.h"
#include "train/ranks/launched_config.h"
#include "train/ranks/on_ranks.h"

bool damages_sizes = false;  // damaged_sizes.cpp

namespace dgc {
namespace {

using namespace test;

int all_wrong(Communicator& c, const std::shared_ptr<Device>& device) {
  int wrong = 0;
  for (const size_t n : {0, 1, 15, 16, 17, 191, 193, 1000, 70'000}) {
    wrong += wrong_in_all_gather(c, device, n);
    wrong += wrong_in_all_gather_host(c, device, n);
    wrong += wrong_in_gather_shards(c, device, n);
    c.barrier(*device);
  }
  wrong += wrong_in_parts(c, device);
  wrong += wrong_in_mail(c, device);
  return wrong;
}

// Every rank prints how many numbers were wrong, so that none can be missing.
void collectives(int) {
  const Launch launch = read_launch();
  const auto whole = make_mpi_communicator(launch), pieces = make_mpi_communicator(launch, {.piece_bytes = 1000});
  int wrong = 0;
  for (Communicator* c : {whole.get(), pieces.get()}) {
    if (c->name() != "mpi" || c->recordable() || c->rank() != launch.rank || c->size() != launch.size) ++wrong;
    wrong += all_wrong(*c, make_cpu_device());
    wrong += all_wrong(*c, std::make_shared<FarDevice>());
  }
  fmt::print("rank {} of {}: {} wrong\n", launch.rank, launch.size, wrong);
}

void with_mpi(const std::function<void(Communicator&, const std::shared_ptr<Device>&)>& body, MpiOptions options = {}) {
  const auto c = make_mpi_communicator(read_launch(), std::move(options));
  as_rank(*c, [&] { body(*c, make_cpu_device()); });
}

// RANK fails between two exchanges; the others may be in any of them.
void fails(int rank) {
  with_mpi([&](Communicator& c, const std::shared_ptr<Device>& device) {
    for (int round = 0; round < 10; ++round) {
      if (c.rank() == rank && round == 5) throw_user_error("the disk is full");
      wrong_in_gather_shards(c, device, 1000);
      c.barrier(*device);
      wrong_in_all_gather(c, device, 1000);
    }
  });
}

void all_fail(int) {
  with_mpi([](Communicator& c, const std::shared_ptr<Device>& device) {
    c.barrier(*device);
    throw std::runtime_error("all have found the same");
  });
}

void disagrees(int what) {
  with_mpi([&](Communicator& c, const std::shared_ptr<Device>& device) { disagree(c, device, what); });
}

// RANK posts a letter, and damages its size on the way.
void damaged_letter(int rank) {
  with_mpi([&](Communicator& c, const std::shared_ptr<Device>&) {
    damages_sizes = c.rank() == rank;
    const int other = c.size() - 1 - c.rank();
    c.mail()->post(other, std::make_shared<const std::vector<std::byte>>(1000));
    while (!c.mail()->take(other)) std::this_thread::yield();
  });
}

// What waits for RANK, which does not come, is ended from outside.
void waits(int rank) {
  int looks = 0;
  MpiOptions options;
  options.while_waiting = [&] {
    if (++looks > 100) throw PeerFailed(fmt::format("rank {} has not been heard of", rank));
  };
  with_mpi(
      [&](Communicator& c, const std::shared_ptr<Device>& device) {
        c.barrier(*device);
        looks = 0;
        while (c.rank() == rank) c.check();
        wrong_in_all_gather(c, device, 1000);
      },
      options);
}

// The weights of RANK come to differ in one bit.
void replicas(int odd) {
  const Launch launch = read_launch();
  const Config config = with_launch(tiny_config({"workers_per_rank=1"}), launch);
  const auto train = make_images(config, Split::train), test = make_images(config, Split::test);
  on_ranks(config, launch, [&](Backend& backend, Communicator& c) {
    Rank rank(config, {*train, *test}, backend, c);
    rank.train_step();
    const auto check = [&] { in_unison(c, *backend.device(), [&] { rank.check_replicas(); }); };
    check();
    float* weight = rank.weights().view(3).f32() + 1;
    if (c.rank() == odd) *weight = std::nextafter(*weight, 10.f);
    check();
  });
}

// A gradient of RANK is not finite: all ranks skip the step, and go on.
void skips(int odd) {
  const Launch launch = read_launch();
  const Config config = with_launch(tiny_config({"workers_per_rank=1"}), launch);
  const auto train = make_images(config, Split::train), test = make_images(config, Split::test);
  std::vector<int32_t> samples;
  Sampler({train->size(), launch.size, 4, config.seed}).indices(2, odd, samples);
  const Poisoned poisoned(*train, samples[0]);
  on_ranks(config, launch, [&](Backend& backend, Communicator& c) {
    Rank rank(config, {poisoned, *test}, backend, c);
    std::string skipped;
    for (const StepMetrics& metrics : make_steps(rank, 4)) skipped += metrics.skipped ? 's' : '.';
    in_unison(c, *backend.device(), [&] { rank.check_replicas(); });
    const bool finite = std::ranges::all_of(numbers(rank.weights()), [](float w) { return std::isfinite(w); });
    fmt::print("rank {}: {}{}\n", c.rank(), skipped, finite ? "" : ", and its weights are not finite");
  });
}

const std::map<std::string, void (*)(int)> kScenes = {
    {"collectives", collectives},       {"fails", fails}, {"all_fail", all_fail}, {"disagrees", disagrees},
    {"damaged_letter", damaged_letter}, {"waits", waits}, {"replicas", replicas}, {"skips", skips}};

}  // namespace
}  // namespace dgc

int main(int argc, char** argv) {
  dgc::log_to_stderr();
  try {
    dgc::kScenes.at(argv[1])(argc > 2 ? std::atoi(argv[2]) : 0);
    return 0;
  } catch (const dgc::ToldError& error) {
    return error.users ? 2 : 1;
  }
}
