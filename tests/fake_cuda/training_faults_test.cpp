// Every place in the program that calls CUDA, cuDNN, cuBLAS or NCCL fails in a training: in its first call, also its
// first one while a step is recorded. At some places the last call fails, after which the GPU stays broken.
#include <algorithm>
#include <catch.hpp>
#include <functional>
#include <vector>

#include "run/checkpoint.h"
#include "tests/fake_cuda/nccl_ranks.h"
#include "tests/fake_cuda/support.h"
#include "tests/support/rank_steps.h"
#include "tests/support/tiny.h"
#include "tests/support/tiny_text.h"
#include "train/ranks/failure.h"
#include "train/trainer.h"

using namespace dgc;
using namespace dgc::test;

namespace {

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Nobody reports that something could not be destroyed, or waited for before it is, nor that a graph found no memory,
// nor that cuDNN does not execute a plan, for which another one serves.
bool goes_unsaid(const std::string& call) {
  return call == "cudaGraphInstantiate" || call == "cudaGraphLaunch" || call == "cudnnBackendExecute" ||
         holds(call, "Destroy") || holds(call, "Free") || holds(call, "Synchronize") || holds(call, "Abort") ||
         holds(call, "Finalize") || holds(call, "cudaMemGetInfo");
}

// What a run that failed tells, and whether main.cpp makes exit code 2 of it.
Complaint told_by(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& error) {
    return complaint(error);
  }
  return {};
}

void check_complaint(const std::string& call, const Complaint& said) {
  CHECK(said.text.find('\n') == std::string::npos);
  if (said.text.empty()) {
    CHECK(goes_unsaid(call));
    return;
  }
  const bool users = holds(said.text, "out of memory") || holds(said.text, "is not available");
  CHECK(said.users == users);
  CHECK((users || said.text.starts_with("internal error: CUDA: ") || said.text.starts_with("internal error: cu")));
}

constexpr size_t kBrokenOneIn = 10;

const fake_cuda::Options kSmallGpus{.devices = 2, .multiprocessors = 1};  // fewer blocks take less time

struct Fault {
  fake_cuda::CallSite site;
  int64_t number;
  bool forever;
};

// The faults to try, from a run in which nothing fails.
std::vector<Fault> faults(const std::function<void()>& run) {
  fake_cuda::set(kSmallGpus);
  fake_cuda::fail(0);
  run();
  std::vector<Fault> all;
  size_t number = 0;
  for (const auto& [site, calls] : fake_cuda::call_sites()) {
    all.push_back({site, 1, false});
    if (number++ % kBrokenOneIn == 0) all.push_back({site, calls, true});
  }
  return all;
}

// Lets a fault happen in `run`, which returns what it told.
template <typename Run>
auto with_fault(const Fault& fault, bool& happened, const Run& run) {
  fake_cuda::set(kSmallGpus);
  fake_cuda::fail_at(fault.site, fault.number, fault.forever);
  const auto told = run();
  happened = !fake_cuda::failed_call().empty();  // how often a result is asked for depends on the time
  fake_cuda::fail(0);
  fake_cuda::revive();
  return told;
}

// Four steps, of which the third is recorded, with a checkpoint in the middle and an evaluation at the end.
const std::vector<std::string> kShort = {
    "device=cuda:0",          "workers_per_rank=1",       "training.max_steps=4", "training.batch_per_worker=1",
    "training.eval_batch=30", "checkpoint.every_steps=2", "checkpoint.keep=1"};

std::vector<std::string> short_run(const std::string& optimizer) {
  std::vector<std::string> all = kShort;
  all.push_back(optimizer);
  return all;
}

// Leaves out the places in `tried`, and adds its own to them.
void check_faults(const Config& config, std::vector<fake_cuda::CallSite>& tried) {
  const Gpu gpu(kSmallGpus);
  std::string hash;
  const std::vector<Fault> all = faults([&] {
    const TempRun folder;
    hash = final_hash(train(config, {folder.path() / "run"}));
  });
  const std::vector<fake_cuda::CallSite> known = tried;
  size_t told = 0, left_something = 0, resumed = 0;
  for (const Fault& fault : all) {
    if (std::ranges::count(known, fault.site) > 0) continue;
    tried.push_back(fault.site);
    const TempRun folder;
    const auto run = folder.path() / "run";
    const std::string before = all_alive();
    bool happened = false;
    const Complaint said = with_fault(fault, happened, [&] { return told_by([&] { train(config, {run}); }); });
    CAPTURE(fault.site.call, fault.site.captured, fault.number, fault.forever, said.text);
    CHECK(all_alive() == before);
    if (happened) check_complaint(fault.site.call, said);
    if (!said.text.empty()) ++told;
    const auto saved = CheckpointStore(run).list();
    for (const auto& checkpoint : saved) CHECK_NOTHROW(Checkpoint(checkpoint));
    if (said.text.empty() || saved.empty() || left_something++ % 8 != 0) continue;
    ++resumed;
    train(config, {.out = run, .resume = true});
    CHECK(final_hash(run) == hash);
  }
  CHECK(told > 20);
  CHECK(resumed > 0);
}

const std::string kShortDgc = R"(optimizer={"type": "dgc", "momentum": 0.9, "sparsity": 0.9, "warmup": {"epochs": 0}})";

}  // namespace

TEST_CASE("each call of CUDA in a training may fail: one sentence, the right exit code, and what was saved is whole") {
  std::vector<fake_cuda::CallSite> tried;
  check_faults(tiny_config(short_run(kShortDgc)), tried);
  const TinyText text;
  check_faults(text.config(short_run(kShortDgc)), tried);
  CHECK(tried.size() > 150);
}

TEST_CASE("each call of CUDA may fail where workers compute at the same time") {
  std::vector<std::string> at_once = short_run(kShortDgc);
  at_once.insert(at_once.end(), {"workers_per_rank=2", "workers_at_once=2"});
  std::vector<fake_cuda::CallSite> tried;
  check_faults(tiny_config(at_once), tried);
}

TEST_CASE("a rank that fails in any call of a training ends all ranks that NCCL connects, each in one sentence") {
  const Gpu gpu(kSmallGpus);
  const Config written = tiny_config({kShortDgc, "device=cuda:0", "workers_per_rank=1", "exchange.overlap=\"on\""});
  const Datasets sets = open_sets(written);
  Config config = task_of(written).completed(written, sets);
  config.ranks = 2;
  const auto run = [&] {
    return on_nccl_ranks(2, [&](int, Backend& backend, Communicator& communicator) {
      Rank rank(config, sets.view(), backend, communicator);
      for (int i = 0; i < 4; ++i) {
        rank.train_step();
        while (rank.next_metrics()) {
        }
      }
      rank.finish_steps();
      while (rank.next_metrics()) {
      }
      rank.evaluate();
      communicator.barrier(*backend.device());
    });
  };
  const std::vector<Fault> all = faults([&] { CHECK(run() == std::vector<std::string>(2)); });
  CHECK(all.size() > 100);
  size_t number = 0;
  for (const Fault& fault : all) {
    // One GPU's own calls have their turn in the test above, so a fourth of them will do here.
    if (!std::string(fault.site.call).starts_with("nccl") && number++ % 4 != 0) continue;
    const std::string before = all_alive();
    bool happened = false;
    const std::vector<std::string> said = with_fault(fault, happened, run);
    CAPTURE(fault.site.call, fault.site.captured, fault.number, fault.forever, said);
    CHECK(all_alive() == before);
    for (const std::string& one : said) CHECK(one.find('\n') == std::string::npos);
    CHECK((!happened || !said[0].empty() || !said[1].empty() || goes_unsaid(fault.site.call)));
  }
}
